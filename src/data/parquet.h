// The text column of a Parquet file, read strictly: what ClimbMix and its like are made of, and nothing else.
//
// Read: a top-level column of BYTE_ARRAY, REQUIRED or OPTIONAL; PLAIN values in v1 data pages, any number of
// them per column chunk; ZSTD or UNCOMPRESSED; page checksums, verified when present. Refused by name: other
// codecs and encodings, dictionaries, v2 pages, nested or repeated text, encryption. Other columns may be
// anything.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace headway::data {

class ParquetText {
 public:
  // Reads the footer. Throws InputError naming the file and what is wrong with it or not supported.
  explicit ParquetText(const std::filesystem::path& path, const std::string& column = "text");
  ~ParquetText();

  std::int64_t row_groups() const;
  // Of all row groups, nulls included.
  std::int64_t rows() const;
  std::int64_t file_bytes() const;
  // The texts of a row group in order, without the nulls; it is held in memory whole. Throws InputError
  // naming file, row group and page.
  std::vector<std::string> row_group(std::int64_t index) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace headway::data
