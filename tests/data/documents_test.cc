#include "data/documents.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "data/compress.h"
#include "data/random_text.h"
#include "data/temporary_folder.h"
#include "data/utf8.h"

namespace headway::data {
namespace {

using Texts = std::vector<std::string>;

Texts read_all(const std::filesystem::path& path) {
  const auto reader = read_documents(path);
  Texts all;
  DocumentBatch batch;
  while (reader->next(batch)) {
    for (auto& text : batch.documents) all.push_back(std::move(text));
  }
  return all;
}

// The place is found by a scalar walk, yes or no by a vectorised one: they must agree.
TEST(Utf8, AgreesWithSimdjsonOnDamagedText) {
  Random random(5);
  int invalid = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = random_text(random, 40);
    text[random.below(text.size())] = static_cast<char>(random.bits());
    const auto at = first_invalid_utf8(text);
    ASSERT_EQ(!at.has_value(), simdjson::validate_utf8(text));
    if (!at) continue;
    ++invalid;
    EXPECT_TRUE(simdjson::validate_utf8(text.data(), *at));  // all before it is fine
    // A walk over prefixes: no longer prefix that ends at a character is valid.
    for (std::size_t end = *at + 1; end <= std::min(text.size(), *at + 4); ++end) {
      EXPECT_FALSE(simdjson::validate_utf8(text.data(), end));
    }
  }
  EXPECT_GT(invalid, 500);
}

TEST(Documents, AFileOfTextIsOneDocument) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_all(folder.write("a.txt", "\xef\xbb\xbf\r\n \n  One.\r\n\r\nTwo.\n\n\n")),
            Texts{"  One.\n\nTwo."});
  EXPECT_EQ(read_all(folder.write("a.md", "# Title\n\n* item\n")), Texts{"# Title\n\n* item"});
  EXPECT_EQ(read_all(folder.write("b.txt.gz", gzip("packed\n"))), Texts{"packed"});
  EXPECT_EQ(read_all(folder.write("b.md.zst", zstd("packed\n"))), Texts{"packed"});
  EXPECT_EQ(read_all(folder.write("c.txt", " \n\n")), Texts{});
}

TEST(Documents, LargeTextIsCutAtBlankLines) {
  const TemporaryFolder folder;
  std::string whole;
  std::vector<std::string> paragraphs;
  Random random(3);
  while (whole.size() < 1'000'000) {
    std::string paragraph = "P" + std::to_string(paragraphs.size());
    for (std::uint64_t n = 20 + random.below(200); n > 0; --n) paragraph += n % 9 == 0 ? "\nmöre" : " words";
    whole += paragraph + "\n\n";
    paragraphs.push_back(paragraph);
  }
  const Texts documents = read_all(folder.write("book.txt", whole));
  EXPECT_GE(documents.size(), 10u);
  std::string joined;
  for (const std::string& text : documents) {
    EXPECT_LE(text.size(), 128u * 1024);
    joined += text + "\n\n";
  }
  EXPECT_EQ(joined, whole);
}

TEST(Documents, LargeTextWithoutBlankLinesIsCutBetweenCharacters) {
  const TemporaryFolder folder;
  std::string whole;
  for (int i = 0; i < 100'000; ++i) whole += "日本";
  std::string joined;
  for (const std::string& text : read_all(folder.write("wall.txt", whole))) {
    EXPECT_EQ(first_invalid_utf8(text), std::nullopt);
    EXPECT_LE(text.size(), 128u * 1024);
    joined += text;
  }
  EXPECT_EQ(joined, whole);
}

// Against nlohmann's parser, line by line, over lines longer and shorter than a chunk.
TEST(Documents, JsonLinesGiveTheirText) {
  const TemporaryFolder folder;
  Random random(11);
  std::string lines;
  Texts expected;
  for (int i = 0; i < 400; ++i) {
    const int characters = i % 100 == 7 ? 400'000 : static_cast<int>(random.below(500));
    nlohmann::json object = {
        {"text", random_text(random, characters)}, {"n", i}, {"other", {{"text", "no"}}}};
    lines += object.dump(-1, ' ', i % 2 == 0) + (i % 3 == 0 ? "\r\n" : "\n");
    if (i % 10 == 0) lines += "\n";
    if (characters > 0) expected.push_back(object["text"]);
  }
  lines.pop_back();  // the last line needs no end
  EXPECT_EQ(read_all(folder.write("a.jsonl", lines)), expected);
  EXPECT_EQ(read_all(folder.write("a.jsonl.gz", gzip(lines))), expected);
  EXPECT_EQ(read_all(folder.write("a.jsonl.zst", zstd(lines))), expected);
  // Several gzip members and zstd frames one after another are one file.
  const std::size_t middle = lines.size() / 2;
  EXPECT_EQ(read_all(folder.write("b.jsonl.gz", gzip(lines.substr(0, middle)) + gzip(lines.substr(middle)))),
            expected);
  EXPECT_EQ(read_all(folder.write("b.jsonl.zst", zstd(lines.substr(0, middle)) + zstd(lines.substr(middle)))),
            expected);
}

TEST(Documents, NamesTheLineThatHasNoText) {
  const TemporaryFolder folder;
  const std::string good = "{\"text\": \"fine\"}\n";
  const auto expect = [&](const std::string& line, const std::string& message) {
    const auto path = folder.write("x.jsonl", good + good + line + "\n" + good);
    expect_error<InputError>([&] { read_all(path); }, "x.jsonl:3: " + message);
  };
  expect("{\"body\": 1}", "the object has no field `text`");
  expect("{\"text\": 1}", "the field `text` is not a string");
  expect("{\"text\": null}", "the field `text` is not a string");
  expect("[1]", "the line holds no JSON object");
  expect("{\"text\": \"a\"", "not JSON");
  expect("{\"text\": \"a\"} {}", "not JSON");
  expect("{\"text\": \"\\ud800\"}", "not JSON");
  expect("{\"text\": \"\xff\"}", "not UTF-8 at byte 44 of the file");
}

TEST(Documents, NamesTheByteThatIsNotUtf8) {
  const TemporaryFolder folder;
  expect_error<InputError>([&] { read_all(folder.write("latin.txt", "na\xefve")); },
                           "latin.txt: not UTF-8 at byte 2");
  std::string large(400'000, 'x');
  for (std::size_t i = 70; i < large.size(); i += 71) large[i] = '\n';
  large[333'333] = '\xe9';
  expect_error<InputError>([&] { read_all(folder.write("large.txt", large)); },
                           "large.txt: not UTF-8 at byte 333333");
  expect_error<InputError>([&] { read_all(folder.write("large.txt.gz", gzip(large))); },
                           "not UTF-8 at byte 333333");
}

// Every prefix of a compressed file that lacks something is refused; nothing passes for the whole.
TEST(Documents, RefusesTruncatedCompression) {
  const TemporaryFolder folder;
  Random random(9);
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += nlohmann::json({{"text", random_text(random, 100)}}).dump() + "\n";
  for (const auto& [ending, packed] : {std::pair{".gz", gzip(lines)}, std::pair{".zst", zstd(lines)}}) {
    for (std::size_t cut :
         {std::size_t{5}, packed.size() / 3, packed.size() - 300, packed.size() - 9, packed.size() - 1}) {
      const auto path = folder.write(std::string("x.jsonl") + ending, packed.substr(0, cut));
      expect_error<InputError>([&] { read_all(path); }, "data is truncated");
    }
  }
  std::string damaged = gzip(lines);
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  EXPECT_THROW(read_all(folder.write("y.jsonl.gz", damaged)), InputError);
  expect_error<InputError>([&] { read_all(folder.write("z.jsonl.gz", "plain")); },
                           "the gzip data is damaged");
  expect_error<InputError>([&] { read_all(folder.write("z.jsonl.zst", "plain")); },
                           "the zstd data is damaged");
}

TEST(Documents, ParquetRowGroupsStayTogether) {
  const auto reader =
      read_documents(std::filesystem::path(HEADWAY_ROOT) / "tests/data/fixtures/parquet/optional.parquet");
  DocumentBatch batch;
  int groups = 0;
  while (reader->next(batch)) {
    EXPECT_TRUE(batch.row_group);
    EXPECT_FALSE(batch.documents.empty());
    for (const std::string& text : batch.documents) EXPECT_FALSE(text.empty());
    ++groups;
  }
  EXPECT_EQ(groups, 5);
}

TEST(Documents, RefusesUnknownEndings) {
  const TemporaryFolder folder;
  for (const char* name : {"a.csv", "a.txt.bz2", "a.parquet.gz", "text"}) {
    const auto path = folder.write(name, "x");
    EXPECT_FALSE(holds_documents(path)) << name;
    expect_error<InputError>([&] { read_documents(path); }, "no kind of text file");
  }
  expect_error<InputError>([&] { read_documents(folder / "missing.txt"); }, "missing.txt");
}

}  // namespace
}  // namespace headway::data
