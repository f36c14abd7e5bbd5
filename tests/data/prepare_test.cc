#include "data/prepare.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "data/compress.h"
#include "data/parquet.h"
#include "data/temporary_folder.h"

namespace headway::data {
namespace {

namespace fs = std::filesystem;

PreparedCorpus prepare(const std::vector<fs::path>& paths, const fs::path& out) {
  return prepare_corpus(user_sources(paths), out, FileSystem::real(), false);
}

std::string json_lines(int begin, int end) {
  std::string lines;
  for (int i = begin; i < end; ++i) lines += "{\"text\": \"document number " + std::to_string(i) + "\"}\n";
  return lines;
}

std::vector<std::string> texts_of(const Corpus& corpus, Split split) {
  std::vector<std::string> all;
  for (std::int64_t g = 0; g < corpus.size(split).groups; ++g) {
    for (auto& text : corpus.group(split, g)) all.push_back(std::move(text));
  }
  return all;
}

TEST(Prepare, ReadsFoldersMixesDocumentsAndDropsDuplicates) {
  const TemporaryFolder folder;
  folder.write("in/b.txt", "second");
  folder.write("in/a/z.md", "first");
  folder.write("in/c.jsonl", "{\"text\": \"third\"}\n{\"text\": \"second\"}\n{\"text\": \"third\"}\n");
  folder.write("in/d.jsonl.gz", gzip(json_lines(0, 100)));
  folder.write("in/e.jsonl.zst", zstd(json_lines(50, 150)));
  folder.write("in/.hidden.txt", "hidden");
  folder.write("in/image.png", "no text");
  const auto made = prepare({folder / "in"}, folder / "c");
  EXPECT_EQ(made.duplicates, 52);
  ASSERT_EQ(made.sources.size(), 1u);
  EXPECT_EQ(made.sources[0].name, "in");
  EXPECT_EQ(made.sources[0].documents, 153);
  const Corpus corpus(folder / "c");
  EXPECT_EQ(corpus.hash(), made.hash);

  std::vector<std::string> expected = {"first", "second", "third"};
  for (int i = 0; i < 150; ++i) expected.push_back("document number " + std::to_string(i));
  // Together the splits are everything, and neighbours in a file are no longer neighbours.
  std::multiset<std::string> all;
  int neighbours = 0;
  for (const Split split : kSplits) {
    const auto texts = texts_of(corpus, split);
    all.insert(texts.begin(), texts.end());
    for (std::size_t i = 1; i < texts.size(); ++i) {
      const auto before = std::find(expected.begin(), expected.end(), texts[i - 1]);
      neighbours += before + 1 != expected.end() && *(before + 1) == texts[i];
    }
    EXPECT_EQ(corpus.size(split).documents, made.sizes[static_cast<int>(split)].documents);
  }
  EXPECT_EQ(all, std::multiset<std::string>(expected.begin(), expected.end()));
  EXPECT_LT(neighbours, 10);
  EXPECT_EQ(corpus.size(Split::public_val).documents, 7);  // a twentieth of 153
  EXPECT_EQ(corpus.size(Split::official).documents, 7);

  EXPECT_EQ(prepare({folder / "in"}, folder / "again").hash, made.hash);
  // The order of files doesn't matter, what is in them does.
  std::filesystem::rename(folder / "in/d.jsonl.gz", folder / "in/0.jsonl.gz");
  EXPECT_EQ(prepare({folder / "in"}, folder / "renamed").hash, made.hash);
}

TEST(Prepare, SplitsTinyCorporaWherePossible) {
  const TemporaryFolder folder;
  const std::map<int, std::vector<std::int64_t>> expected = {
      {1, {1, 0, 0}}, {2, {1, 1, 0}}, {3, {1, 1, 1}}, {30, {28, 1, 1}}};
  for (const auto& [count, sizes] : expected) {
    folder.write("in.jsonl", json_lines(0, count));
    const auto made = prepare({folder / "in.jsonl"}, folder / "c");
    for (std::size_t s = 0; s < 3; ++s) EXPECT_EQ(made.sizes[s].documents, sizes[s]) << count << " documents";
  }
}

TEST(Prepare, SplitsManyDocumentsByTheirHashAlone) {
  const TemporaryFolder folder;
  folder.write("a.jsonl", json_lines(0, 20'000));
  folder.write("b.jsonl", json_lines(10'000, 40'000));
  prepare({folder / "a.jsonl"}, folder / "a");
  prepare({folder / "b.jsonl"}, folder / "b");
  const Corpus a(folder / "a"), b(folder / "b");
  std::map<std::string, Split> where;
  for (const Split split : kSplits) {
    for (const auto& text : texts_of(a, split)) where[text] = split;
  }
  int shared = 0;
  for (const Split split : kSplits) {
    for (const auto& text : texts_of(b, split)) {
      if (const auto found = where.find(text); found != where.end()) {
        EXPECT_EQ(found->second, split) << text;
        ++shared;
      }
    }
  }
  EXPECT_EQ(shared, 10'000);
  for (const Split split : {Split::public_val, Split::official}) {
    EXPECT_GT(a.size(split).documents, 140);
    EXPECT_LT(a.size(split).documents, 260);
  }
  for (const auto& [split, documents] : {std::pair{Split::train, 1024u}, std::pair{Split::public_val, 10u}}) {
    for (std::int64_t g = 0; g + 1 < a.size(split).groups; ++g)
      EXPECT_EQ(a.group(split, g).size(), documents);
  }
}

TEST(Prepare, MakesGroupsForSeveralRanksOfFewDocuments) {
  const TemporaryFolder folder;
  for (const int count : {400, 1000, 5000}) {
    folder.write("in.jsonl", json_lines(0, count));
    prepare({folder / "in.jsonl"}, folder / "c");
    const Corpus corpus(folder / "c");
    for (const Split split : kSplits) {
      const SplitSize size = corpus.size(split);
      EXPECT_GE(size.groups, 16) << name_of(split) << " of " << count;
      for (std::int64_t g = 0; g + 1 < size.groups; ++g) {
        EXPECT_EQ(static_cast<std::int64_t>(corpus.group(split, g).size()), size.documents / 16);
      }
    }
  }
}

TEST(Prepare, KeepsRowGroupsOfParquet) {
  const TemporaryFolder folder;
  const fs::path parquet = fs::path(HEADWAY_ROOT) / "tests/data/fixtures/parquet/required.parquet";
  fs::create_directories(folder / "in");
  fs::copy_file(parquet, folder / "in/shard_00001.parquet");
  folder.write("in/shard_00000.txt", "a text before");
  folder.write("in/shard_00002.txt", "a text behind");
  prepare({folder / "in"}, folder / "c");
  const Corpus corpus(folder / "c");
  const ParquetText source(parquet);
  ASSERT_EQ(source.row_groups(), 5);
  // Row group i of the source is group i + 1 of train, without what went to other splits and without empty
  // texts.
  std::set<std::string> elsewhere;
  for (const Split split : {Split::public_val, Split::official}) {
    for (auto& text : texts_of(corpus, split)) elsewhere.insert(text);
  }
  EXPECT_GE(elsewhere.size(), 20u);
  std::int64_t group = 0;
  if (!elsewhere.contains("a text before")) {
    EXPECT_EQ(corpus.group(Split::train, group++).at(0), "a text before");
  }
  for (int i = 0; i < 5; ++i) {
    std::vector<std::string> expected;
    for (const auto& text : source.row_group(i)) {
      if (!text.empty() && !elsewhere.contains(text)) expected.push_back(text);
    }
    EXPECT_EQ(corpus.group(Split::train, group++), expected) << i;
  }
  if (!elsewhere.contains("a text behind")) {
    EXPECT_EQ(corpus.group(Split::train, group++).at(0), "a text behind");
  }
  EXPECT_EQ(corpus.size(Split::train).groups, group);
}

// Whatever is wrong with the input, the old corpus stays and nothing half-written appears.
TEST(Prepare, RefusesBadInputAndWritesNothing) {
  const TemporaryFolder folder;
  folder.write("good.txt", "some text");
  const std::string old = prepare({folder / "good.txt"}, folder / "c").hash;
  const std::string packed = gzip(json_lines(0, 5000)), packed_zstd = zstd(json_lines(0, 5000));
  std::string parquet = read_file(fs::path(HEADWAY_ROOT) / "tests/data/fixtures/parquet/checksums.parquet");
  parquet[200] = static_cast<char>(parquet[200] ^ 4);
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"empty.txt", "", "there is no text"},
      {"blank.jsonl", "\n\n{\"text\": \"\"}\n", "there is no text"},
      {"latin.txt", "caf\xe9", "latin.txt: not UTF-8 at byte 3"},
      {"cut.jsonl.gz", packed.substr(0, packed.size() - 4), "cut.jsonl.gz: the gzip data is truncated"},
      {"cut.jsonl.zst", packed_zstd.substr(0, packed_zstd.size() - 4),
       "cut.jsonl.zst: the zstd data is truncated"},
      {"bad.parquet", parquet, "bad.parquet: row group 0, page 0: damaged Parquet file: wrong checksum"},
      {"none.jsonl", json_lines(0, 4000) + "{\"body\": \"x\"}\n",
       "none.jsonl:4001: the object has no field `text`"},
  };
  for (const auto& [name, contents, message] : cases) {
    const auto path = folder.write(name, contents);
    const bool empty = message == "there is no text";
    // Alone and after good text; in both the new and the existing folder.
    for (const char* out : {"c", "new"}) {
      expect_error<InputError>([&] { prepare({path}, folder / out); }, message);
      if (!empty)
        expect_error<InputError>([&] { prepare({folder / "good.txt", path}, folder / out); }, message);
    }
    EXPECT_FALSE(fs::exists(folder / "new"));
    EXPECT_FALSE(fs::exists(folder / "new.partial"));
    EXPECT_FALSE(fs::exists(folder / "c.partial"));
    EXPECT_EQ(Corpus(folder / "c").hash(), old);
  }
}

// A real kill, at ever later moments.
TEST(Prepare, SurvivesBeingKilled) {
  const TemporaryFolder folder;
  folder.write("old.txt", "the old text");
  folder.write("in.jsonl", json_lines(0, 60'000));
  const std::string old = prepare({folder / "old.txt"}, folder / "c").hash;
  const std::string fresh = prepare({folder / "in.jsonl"}, folder / "reference").hash;
  int killed = 0;
  for (int milliseconds = 1; milliseconds < 400; milliseconds += 1 + milliseconds / 3) {
    const pid_t child = fork();
    if (child == 0) {
      prepare({folder / "in.jsonl"}, folder / "c");
      _exit(0);
    }
    usleep(static_cast<useconds_t>(milliseconds) * 1000);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    killed += WIFSIGNALED(status);
    const Corpus corpus(folder / "c");
    if (corpus.hash() == old) {
      EXPECT_EQ(corpus.group(Split::train, 0).at(0), "the old text");
    } else {
      EXPECT_EQ(corpus.hash(), fresh);
      for (const Split split : kSplits) texts_of(corpus, split);
      break;
    }
  }
  EXPECT_GT(killed, 0);
  EXPECT_EQ(prepare({folder / "in.jsonl"}, folder / "c").hash, fresh);
}

TEST(Sources, NamesMissingPackages) {
  const TemporaryFolder folder;
  folder.write("anarchism/html/a.html", "<p>text");
  expect_error<InputError>([&] { debian_sources(folder / ""); },
                           "apt-get install debian-handbook postgresql-doc-15 python3.11-doc rust-doc");
}

TEST(Sources, ChoosesProseOfThePackagesThroughLinks) {
  const TemporaryFolder folder;
  const std::string prose = "<body><p>" + std::string(500, 'x') + "</p></body>";
  folder.write("elsewhere/secA.html", prose);
  folder.write("elsewhere/index.html", prose);
  fs::create_directories(folder / "root/anarchism");
  fs::create_directory_symlink(folder / "elsewhere", folder / "root/anarchism/html");
  for (const char* page :
       {"debian-handbook/html/en-US/apt.html", "postgresql-doc-15/html/mvcc.html",
        "postgresql-doc-15/html/catalog-pg-class.html", "python3.11/html/tutorial/classes.html",
        "rust-doc/html/book/ch01.html", "rust-doc/html/book/print.html"}) {
    folder.write(std::string("root/") + page, prose);
  }
  const auto sources = debian_sources(folder / "root");
  ASSERT_EQ(sources.size(), 5u);
  for (const auto& source : sources) {
    ASSERT_EQ(source.files.size(), 1u) << source.package;
    EXPECT_FALSE(source.licence.empty());
  }
  EXPECT_EQ(sources[0].files[0].filename(), "secA.html");
}

TEST(Sources, RefusesWhatIsNotThere) {
  const TemporaryFolder folder;
  expect_error<InputError>([&] { user_sources({folder / "missing"}); }, "no such file or folder");
  folder.write("in/a.csv", "x");
  expect_error<InputError>([&] { user_sources({folder / "in"}); }, "the folder has no text files");
  expect_error<InputError>([&] { user_sources({folder / "in/a.csv"}); }, "no kind of text file");
  folder.write("loop/a.txt", "x");
  fs::create_directory_symlink(folder / "loop", folder / "loop/again");
  EXPECT_EQ(user_sources({folder / "loop"})[0].files.size(), 1u);
}

// The shared prose, where it lies beside the clone.
TEST(Prepare, ReadsTheSharedProse) {
  const fs::path shared = fs::path(HEADWAY_ROOT) / "../shared/text/prose.valid.jsonl.gz";
  if (!fs::exists(shared)) GTEST_SKIP() << shared << " is not there";
  const TemporaryFolder folder;
  const auto made = prepare({shared}, folder / "c");
  EXPECT_EQ(made.sources[0].documents + made.duplicates, 166);
  EXPECT_EQ(made.sources[0].bytes, 2'943'998);
}

}  // namespace
}  // namespace headway::data
