#include "data/parquet.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "data/thrift.h"

namespace headway::data {
namespace {

// Numbers and names from apache/parquet-format, parquet.thrift.
constexpr std::array<std::string_view, 8> kTypes = {
    "BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
constexpr std::array<std::string_view, 8> kCodecs = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                                     "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};
constexpr std::array<std::string_view, 10> kEncodings = {
    "PLAIN",          "GROUP_VAR_INT",       "PLAIN_DICTIONARY",        "RLE",
    "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
    "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"};
constexpr int kByteArray = 6;
constexpr int kRequired = 0, kOptional = 1;
constexpr int kUncompressed = 0, kZstd = 6;
constexpr int kPlain = 0, kRle = 3;
constexpr int kDataPage = 0, kIndexPage = 1, kDictionaryPage = 2, kDataPageV2 = 3;
constexpr std::int64_t kLargestPage = std::int64_t{1} << 30;
constexpr std::string_view kMagic = "PAR1";

template <std::size_t N>
std::string name_in(const std::array<std::string_view, N>& names, std::int64_t value) {
  if (value >= 0 && value < static_cast<std::int64_t>(N))
    return std::string(names[static_cast<std::size_t>(value)]);
  return "number " + std::to_string(value);
}

std::uint32_t little32(const char* bytes) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

struct SchemaElement {
  std::optional<std::int32_t> type;
  std::int32_t repetition = kRequired;
  std::int32_t children = 0;
  std::string name;
};

struct ColumnChunk {
  std::string path;  // joined by dots
  std::int32_t codec = -1;
  std::int64_t values = -1;
  std::int64_t bytes = -1;  // compressed, headers included
  std::int64_t first_page = -1;
  bool dictionary = false;
  bool encrypted = false;
  bool elsewhere = false;  // in another file
};

struct RowGroup {
  std::vector<ColumnChunk> columns;
  std::int64_t rows = -1;
};

SchemaElement read_schema_element(ThriftReader& in) {
  SchemaElement element;
  in.structure([&](const ThriftReader::Field& field) {
    switch (field.id) {
      case 1:
        element.type = in.i32(field);
        return true;
      case 3:
        element.repetition = in.i32(field);
        return true;
      case 4:
        element.name = in.binary(field);
        return true;
      case 5:
        element.children = in.i32(field);
        return true;
      default:
        return false;
    }
  });
  return element;
}

void read_column_metadata(ThriftReader& in, ColumnChunk& chunk) {
  in.structure([&](const ThriftReader::Field& field) {
    switch (field.id) {
      case 3:
        in.list(field, ThriftType::binary, [&] {
          if (!chunk.path.empty()) chunk.path += '.';
          chunk.path += in.binary_element();
        });
        return true;
      case 4:
        chunk.codec = in.i32(field);
        return true;
      case 5:
        chunk.values = in.i64(field);
        return true;
      case 7:
        chunk.bytes = in.i64(field);
        return true;
      case 9:
        chunk.first_page = in.i64(field);
        return true;
      case 11:
        chunk.dictionary = true;
        return false;
      default:
        return false;
    }
  });
}

ColumnChunk read_column_chunk(ThriftReader& in) {
  ColumnChunk chunk;
  in.structure([&](const ThriftReader::Field& field) {
    switch (field.id) {
      case 1:
        chunk.elsewhere = true;
        return false;
      case 3:
        if (field.type != ThriftType::structure) return false;
        read_column_metadata(in, chunk);
        return true;
      case 8:
      case 9:
        chunk.encrypted = true;
        return false;
      default:
        return false;
    }
  });
  return chunk;
}

RowGroup read_row_group(ThriftReader& in) {
  RowGroup group;
  in.structure([&](const ThriftReader::Field& field) {
    switch (field.id) {
      case 1:
        in.list(field, ThriftType::structure, [&] { group.columns.push_back(read_column_chunk(in)); });
        return true;
      case 3:
        group.rows = in.i64(field);
        return true;
      default:
        return false;
    }
  });
  return group;
}

struct PageHeader {
  std::int32_t type = -1;
  std::int32_t uncompressed = -1;
  std::int32_t compressed = -1;
  std::optional<std::int32_t> crc;
  std::int32_t values = -1;
  std::int32_t encoding = -1;
  std::int32_t level_encoding = -1;
};

PageHeader read_page_header(ThriftReader& in) {
  PageHeader header;
  in.structure([&](const ThriftReader::Field& field) {
    switch (field.id) {
      case 1:
        header.type = in.i32(field);
        return true;
      case 2:
        header.uncompressed = in.i32(field);
        return true;
      case 3:
        header.compressed = in.i32(field);
        return true;
      case 4:
        header.crc = in.i32(field);
        return true;
      case 5:
        if (field.type != ThriftType::structure) return false;
        in.structure([&](const ThriftReader::Field& inner) {
          switch (inner.id) {
            case 1:
              header.values = in.i32(inner);
              return true;
            case 2:
              header.encoding = in.i32(inner);
              return true;
            case 3:
              header.level_encoding = in.i32(inner);
              return true;
            default:
              return false;
          }
        });
        return true;
      default:
        return false;
    }
  });
  return header;
}

// How many of the first `values` definition levels (0 = null, 1 = there) are 1, from runs in the RLE and
// bit-packing hybrid at bit width 1. Nothing when the runs end before.
std::optional<std::int64_t> count_defined(std::string_view runs, std::int64_t values) {
  std::int64_t defined = 0;
  std::size_t at = 0;
  for (std::int64_t left = values; left > 0;) {
    std::uint64_t head = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (at >= runs.size() || shift > 28) return std::nullopt;
      const auto byte = static_cast<unsigned char>(runs[at++]);
      head |= static_cast<std::uint64_t>(byte & 0x7fu) << shift;
      if (byte < 0x80) break;
    }
    if (head < 2) return std::nullopt;  // an empty run
    if ((head & 1) == 0) {
      const std::int64_t run = std::min<std::int64_t>(static_cast<std::int64_t>(head >> 1), left);
      if (at >= runs.size()) return std::nullopt;
      const auto level = static_cast<unsigned char>(runs[at++]);
      if (level > 1) return std::nullopt;
      defined += level * run;
      left -= run;
    } else {
      for (std::uint64_t group = head >> 1; group > 0 && left > 0; --group) {
        if (at >= runs.size()) return std::nullopt;
        unsigned levels = static_cast<unsigned char>(runs[at++]);
        if (left < 8) levels &= (1u << left) - 1;  // the last group is padded to eight
        defined += std::popcount(levels);
        left -= std::min<std::int64_t>(left, 8);
      }
    }
  }
  return defined;
}

}  // namespace

struct ParquetText::Data {
  Data(const std::filesystem::path& p, const std::string& c) : path(p), column(c), file(p) {}

  std::filesystem::path path;
  std::string column;
  MappedFile file;
  bool optional = false;
  std::size_t footer = 0;           // where the metadata begins: pages end before it
  std::vector<ColumnChunk> chunks;  // of the text column, one per row group
  std::int64_t rows = 0;

  [[noreturn]] void refuse(const std::string& rule, const std::string& remedy = "") const {
    throw InputError(path.string(), rule, remedy);
  }

  void read_footer();
  std::size_t find_column(const std::vector<SchemaElement>& schema);
  void add_row_group(const RowGroup& group, std::size_t leaf, std::size_t leaves);
  // Appends the page's texts; returns how many rows it has.
  std::int64_t read_page(const PageHeader& header, std::string_view stored, ZSTD_DCtx* zstd,
                         std::string& unpacked, const std::string& where, int codec,
                         std::vector<std::string>& texts) const;
};

void ParquetText::Data::read_footer() {
  const std::string_view all = file.view();
  if (all.size() < 12 || all.substr(0, 4) != kMagic) {
    refuse(all.starts_with("PARE") ? "encrypted Parquet is not supported"
                                   : "not a Parquet file (no PAR1 at its start)");
  }
  if (all.substr(all.size() - 4) != kMagic) {
    refuse(all.ends_with("PARE") ? "encrypted Parquet is not supported"
                                 : "the Parquet file is truncated (no PAR1 at its end)",
           all.ends_with("PARE") ? "" : "The file is incomplete: copy or download it again");
  }
  const std::size_t length = little32(all.data() + all.size() - 8);
  if (length == 0 || length > all.size() - 12)
    refuse("damaged Parquet file: impossible length of the footer");
  footer = all.size() - 8 - length;

  std::vector<SchemaElement> schema;
  std::vector<RowGroup> groups;
  std::int64_t stated_rows = -1;
  ThriftReader in(all.substr(footer, length), path.string());
  in.structure([&](const ThriftReader::Field& field) {
    switch (field.id) {
      case 2:
        in.list(field, ThriftType::structure, [&] { schema.push_back(read_schema_element(in)); });
        return true;
      case 3:
        stated_rows = in.i64(field);
        return true;
      case 4:
        in.list(field, ThriftType::structure, [&] { groups.push_back(read_row_group(in)); });
        return true;
      case 8:
        refuse("encrypted Parquet is not supported");
      default:
        return false;
    }
  });
  const std::size_t leaf = find_column(schema);
  const auto leaves = static_cast<std::size_t>(std::count_if(
      schema.begin() + 1, schema.end(), [](const SchemaElement& element) { return element.children == 0; }));
  for (const RowGroup& group : groups) add_row_group(group, leaf, leaves);
  if (stated_rows != rows) refuse("damaged Parquet file: its row groups don't add up to its rows");
}

// The position of the text column among the columns that have values.
std::size_t ParquetText::Data::find_column(const std::vector<SchemaElement>& schema) {
  if (schema.empty() || schema[0].children < 0) refuse("damaged Parquet file: no schema");
  std::size_t leaf = 0;
  std::string others;
  // Depth first: `open` counts the children still to come at each level; top-level columns have one level
  // open.
  std::vector<std::int64_t> open = {schema[0].children};
  for (std::size_t i = 1; i < schema.size(); ++i) {
    while (!open.empty() && open.back() == 0) open.pop_back();
    const SchemaElement& element = schema[i];
    if (open.empty() || element.children < 0) refuse("damaged Parquet file: the schema is no tree");
    --open.back();
    const bool top = open.size() == 1;
    if (top && element.name == column) {
      if (element.children > 0)
        refuse("the column `" + column + "` is nested; expected a plain BYTE_ARRAY column");
      if (element.repetition != kRequired && element.repetition != kOptional) {
        refuse("the column `" + column + "` is REPEATED; expected REQUIRED or OPTIONAL");
      }
      if (element.type != kByteArray) {
        refuse("the column `" + column + "` has type " + name_in(kTypes, element.type.value_or(-1)) +
               "; expected BYTE_ARRAY");
      }
      optional = element.repetition == kOptional;
      return leaf;
    }
    if (top && others.size() < 200) others += (others.empty() ? "" : ", ") + element.name;
    if (element.children > 0) {
      open.push_back(element.children);
    } else {
      ++leaf;
    }
  }
  refuse("no column `" + column + "`", "It has: " + others);
}

void ParquetText::Data::add_row_group(const RowGroup& group, std::size_t leaf, std::size_t leaves) {
  const std::string which = "row group " + std::to_string(chunks.size()) + ": ";
  if (group.columns.size() != leaves)
    refuse("damaged Parquet file: " + which + "not one column chunk per column");
  ColumnChunk chunk = group.columns[leaf];
  if (chunk.encrypted) refuse("encrypted Parquet is not supported");
  if (chunk.elsewhere) refuse(which + "the column is stored in another file, which is not supported");
  if (chunk.path != column)
    refuse("damaged Parquet file: " + which + "the column chunk is called `" + chunk.path + "`");
  if (chunk.codec != kUncompressed && chunk.codec != kZstd) {
    refuse(
        which + "codec " + name_in(kCodecs, chunk.codec) + " is not supported; expected ZSTD or UNCOMPRESSED",
        "Write the file again with compression zstd");
  }
  if (chunk.dictionary) {
    refuse(which + "dictionary encoding is not supported; expected PLAIN",
           "Write the file again without dictionaries");
  }
  if (group.rows == 0 && chunk.values == 0) {  // there are no pages, wherever they are said to be
    chunk.first_page = 4;
    chunk.bytes = 0;
  }
  const auto end = static_cast<std::int64_t>(footer);
  if (chunk.first_page < 4 || chunk.bytes < 0 || chunk.first_page > end ||
      chunk.bytes > end - chunk.first_page) {
    refuse("damaged Parquet file: " + which + "its pages lie outside the file");
  }
  if (group.rows < 0 || chunk.values != group.rows || group.rows > (std::int64_t{1} << 40)) {
    refuse("damaged Parquet file: " + which + "impossible number of rows");
  }
  rows += group.rows;
  chunks.push_back(std::move(chunk));
}

namespace {

// Decompresses a page of `size` bytes. A frame that states another size is refused before anything is
// allocated; one that states none grows the buffer only as far as it produces data.
bool unpack_zstd(ZSTD_DCtx* zstd, std::string_view stored, std::size_t size, std::string& unpacked) {
  const unsigned long long stated = ZSTD_getFrameContentSize(stored.data(), stored.size());
  if (stated == ZSTD_CONTENTSIZE_ERROR) return false;
  if (stated != ZSTD_CONTENTSIZE_UNKNOWN) {
    if (stated != size) return false;
    unpacked.resize(size);
    return ZSTD_decompressDCtx(zstd, unpacked.data(), size, stored.data(), stored.size()) == size;
  }
  ZSTD_DCtx_reset(zstd, ZSTD_reset_session_only);
  ZSTD_inBuffer in{stored.data(), stored.size(), 0};
  unpacked.clear();
  while (true) {
    const std::size_t before = unpacked.size();
    unpacked.resize(std::min(size + 1, before + std::max<std::size_t>(before, 1 << 16)));
    ZSTD_outBuffer out{unpacked.data(), unpacked.size(), before};
    const std::size_t status = ZSTD_decompressStream(zstd, &out, &in);
    const bool full = out.pos == out.size;
    unpacked.resize(out.pos);
    if (ZSTD_isError(status) || out.pos > size) return false;
    if (status == 0) return out.pos == size && in.pos == in.size;
    if (in.pos == in.size && !full) return false;  // cut off
  }
}

}  // namespace

std::int64_t ParquetText::Data::read_page(const PageHeader& header, std::string_view stored, ZSTD_DCtx* zstd,
                                          std::string& unpacked, const std::string& where, int codec,
                                          std::vector<std::string>& texts) const {
  if (header.encoding != kPlain) {
    throw InputError(where,
                     "encoding " + name_in(kEncodings, header.encoding) + " is not supported; expected PLAIN",
                     "Write the file again without dictionaries");
  }
  if (header.crc) {
    const auto actual = crc32_z(0, reinterpret_cast<const Bytef*>(stored.data()), stored.size());
    if (static_cast<std::uint32_t>(actual) != static_cast<std::uint32_t>(*header.crc)) {
      throw InputError(where, "damaged Parquet file: wrong checksum");
    }
  }
  const auto size = static_cast<std::size_t>(header.uncompressed);
  std::string_view values = stored;
  if (codec == kZstd) {
    if (!unpack_zstd(zstd, stored, size, unpacked))
      throw InputError(where, "damaged Parquet file: bad ZSTD data");
    values = unpacked;
  } else if (stored.size() != size) {
    throw InputError(where, "damaged Parquet file: two sizes for uncompressed data");
  }

  std::int64_t defined = header.values;
  if (optional) {
    if (header.level_encoding != kRle) {
      throw InputError(where, "definition levels encoded as " + name_in(kEncodings, header.level_encoding) +
                                  " are not supported; expected RLE");
    }
    const std::size_t length = values.size() < 4 ? 0 : little32(values.data());
    if (values.size() < 4 || length > values.size() - 4) {
      throw InputError(where, "damaged Parquet file: definition levels are too long");
    }
    const auto counted = count_defined(values.substr(4, length), header.values);
    if (!counted) throw InputError(where, "damaged Parquet file: bad definition levels");
    defined = *counted;
    values.remove_prefix(4 + length);
  }
  for (std::int64_t i = 0; i < defined; ++i) {
    const std::size_t length = values.size() < 4 ? 0 : little32(values.data());
    if (values.size() < 4 || length > values.size() - 4) {
      throw InputError(where, "damaged Parquet file: a text reaches beyond its page");
    }
    texts.emplace_back(values.substr(4, length));
    values.remove_prefix(4 + length);
  }
  if (!values.empty()) throw InputError(where, "damaged Parquet file: bytes left over after the last text");
  return header.values;
}

ParquetText::ParquetText(const std::filesystem::path& path, const std::string& column)
    : data_(std::make_unique<Data>(path, column)) {
  data_->read_footer();
}
ParquetText::~ParquetText() = default;

std::int64_t ParquetText::row_groups() const { return static_cast<std::int64_t>(data_->chunks.size()); }
std::int64_t ParquetText::rows() const { return data_->rows; }
std::int64_t ParquetText::file_bytes() const { return static_cast<std::int64_t>(data_->file.size()); }

std::vector<std::string> ParquetText::row_group(std::int64_t index) const {
  HEADWAY_CHECK(index >= 0 && index < row_groups());
  const ColumnChunk& chunk = data_->chunks[static_cast<std::size_t>(index)];
  std::string_view rest = data_->file.view().substr(static_cast<std::size_t>(chunk.first_page),
                                                    static_cast<std::size_t>(chunk.bytes));
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> zstd(ZSTD_createDCtx(), ZSTD_freeDCtx);
  std::string unpacked;
  std::vector<std::string> texts;
  std::int64_t rows = 0;
  for (int page = 0; rows < chunk.values || !rest.empty(); ++page) {
    const std::string where =
        data_->path.string() + ": row group " + std::to_string(index) + ", page " + std::to_string(page);
    ThriftReader in(rest, where);
    const PageHeader header = read_page_header(in);
    rest.remove_prefix(in.position());
    if (header.uncompressed < 0 || header.uncompressed > kLargestPage || header.compressed < 0 ||
        static_cast<std::size_t>(header.compressed) > rest.size()) {
      throw InputError(where, "damaged Parquet file: impossible page size");
    }
    const std::string_view stored = rest.substr(0, static_cast<std::size_t>(header.compressed));
    rest.remove_prefix(stored.size());
    switch (header.type) {
      case kDataPage:
        break;
      case kIndexPage:
        continue;
      case kDictionaryPage:
        throw InputError(where, "dictionary encoding is not supported; expected PLAIN",
                         "Write the file again without dictionaries");
      case kDataPageV2:
        throw InputError(where, "data pages of version 2 are not supported; expected version 1");
      default:
        throw InputError(where, "unknown page type " + std::to_string(header.type));
    }
    if (header.values < 0 || header.values > chunk.values - rows) {
      throw InputError(where, "damaged Parquet file: impossible number of values");
    }
    rows += data_->read_page(header, stored, zstd.get(), unpacked, where, chunk.codec, texts);
  }
  return texts;
}

}  // namespace headway::data
