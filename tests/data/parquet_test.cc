#include "data/parquet.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "data/temporary_folder.h"

namespace headway::data {
namespace {

std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(HEADWAY_ROOT) / "tests/data/fixtures/parquet" / (name + ".parquet");
}

// text() of make_parquet.py.
std::optional<std::string> text(int i) {
  static const std::vector<std::string> words = {"chip", "kernel", "tensor",    "naïve", "Größe",
                                                 "日本", "🙂",   "partition", "\n",    "  two  spaces"};
  if (i % 7 == 3) return std::nullopt;
  if (i % 11 == 5) return "";
  std::string joined;
  for (int j = 0; j < 1 + i % 23; ++j) {
    joined += (j > 0 ? " " : "") + words[static_cast<std::size_t>(i * 5 + j * 3) % words.size()];
  }
  return joined + " #" + std::to_string(i);
}

std::vector<std::string> texts(int begin, int end) {
  std::vector<std::string> all;
  for (int i = begin; i < end; ++i) {
    if (auto t = text(i)) all.push_back(*t);
  }
  return all;
}

std::vector<std::string> read_all(const std::filesystem::path& path) {
  const ParquetText file(path);
  std::vector<std::string> all;
  for (std::int64_t i = 0; i < file.row_groups(); ++i) {
    for (auto& t : file.row_group(i)) all.push_back(std::move(t));
  }
  return all;
}

class ParquetVariant : public testing::TestWithParam<const char*> {};

TEST_P(ParquetVariant, ReadsTheTextsOfEveryRowGroup) {
  const ParquetText file(fixture(GetParam()));
  EXPECT_EQ(file.rows(), 300);
  const int size = std::string(GetParam()) == "many_pages" ? 300 : 64;
  ASSERT_EQ(file.row_groups(), (300 + size - 1) / size);
  for (int g = 0; g < file.row_groups(); ++g) {
    EXPECT_EQ(file.row_group(g), texts(g * size, std::min(300, (g + 1) * size))) << "row group " << g;
  }
}

INSTANTIATE_TEST_SUITE_P(Written, ParquetVariant,
                         testing::Values("optional", "checksums", "uncompressed", "many_pages",
                                         "large_string", "other_columns"));

TEST(Parquet, ReadsARequiredColumn) {
  const auto all = read_all(fixture("required"));
  ASSERT_EQ(all.size(), 300u);
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(all[static_cast<std::size_t>(i)], text(i).value_or("no null " + std::to_string(i)));
  }
}

TEST(Parquet, HasNoTextsWhereThereAreNone) {
  EXPECT_EQ(read_all(fixture("empty")).size(), 0u);
  EXPECT_EQ(ParquetText(fixture("all_null")).rows(), 100);
  EXPECT_EQ(read_all(fixture("all_null")).size(), 0u);
}

TEST(Parquet, RefusesByNameWhatItDoesNotRead) {
  const std::pair<const char*, const char*> cases[] = {
      {"snappy", "codec SNAPPY is not supported; expected ZSTD"},
      {"gzip", "codec GZIP is not supported"},
      {"dictionary", "dictionary encoding is not supported"},
      {"version2", "version 2"},
      {"delta", "encoding DELTA_LENGTH_BYTE_ARRAY is not supported"},
      {"integers", "has type INT64; expected BYTE_ARRAY"},
      {"list", "is nested"},
      {"nested", "is nested"},
      {"no_text", "no column `text`. It has: body, title"},
  };
  for (const auto& [name, message] : cases) {
    expect_error<InputError>([&] { read_all(fixture(name)); }, message);
    expect_error<InputError>([&] { read_all(fixture(name)); }, std::string(name) + ".parquet");
  }
}

TEST(Parquet, SaysWhenAFileIsNoneOrCutOff) {
  const TemporaryFolder folder;
  const std::string whole = read_file(fixture("optional"));
  expect_error<InputError>([&] { read_all(folder.write("a.parquet", "not Parquet, but text")); },
                           "not a Parquet file");
  expect_error<InputError>([&] { read_all(folder.write("b.parquet", "")); }, "not a Parquet file");
  expect_error<InputError>([&] { read_all(folder.write("c.parquet", whole.substr(0, whole.size() - 1))); },
                           "truncated");
  std::string encrypted = whole;
  encrypted.replace(0, 4, "PARE");
  expect_error<InputError>([&] { read_all(folder.write("d.parquet", encrypted)); }, "encrypted");
}

TEST(Parquet, FindsAChangedByteByThePageChecksum) {
  const TemporaryFolder folder;
  std::string bytes = read_file(fixture("checksums"));
  bytes[100] = static_cast<char>(bytes[100] ^ 1);  // in the first page
  expect_error<InputError>([&] { read_all(folder.write("x.parquet", bytes)); }, "wrong checksum");
}

// Damage of all kinds: either the reader says so, or the damage was where it doesn't matter (statistics,
// padding) or can't be seen (text without a checksum); then the number of texts is still right. Sanitizer
// builds make this count.
TEST(Parquet, SurvivesDamage) {
  const TemporaryFolder folder;
  Random random(20240607);
  int refused = 0, read = 0;
  for (const char* name :
       {"optional", "checksums", "uncompressed", "many_pages", "other_columns", "required", "all_null"}) {
    const std::string whole = read_file(fixture(name));
    const auto expected = read_all(fixture(name));
    for (int i = 0; i < 400; ++i) {
      std::string bytes = whole;
      if (i % 4 == 0) {
        bytes.resize(random.below(bytes.size()));
      } else {
        // Half of the damage goes to the footer, where the structure is.
        const std::uint64_t changes = 1 + random.below(4);
        for (std::uint64_t c = 0; c < changes; ++c) {
          const std::size_t range = i % 2 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 400);
          bytes[bytes.size() - 1 - random.below(range)] = static_cast<char>(random.bits());
        }
      }
      const auto path = folder.write("damaged.parquet", bytes);
      try {
        const auto all = read_all(path);
        ++read;
        if (std::string(name) == "checksums" && bytes.size() == whole.size()) {
          EXPECT_EQ(all, expected);
        }
      } catch (const InputError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 50);
}

}  // namespace
}  // namespace headway::data
