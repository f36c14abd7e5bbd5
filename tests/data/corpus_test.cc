#include "data/corpus.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "data/corpus_writer.h"
#include "data/random_text.h"
#include "data/temporary_folder.h"

namespace headway::data {
namespace {

namespace fs = std::filesystem;
using Groups = std::vector<std::vector<std::string>>;

Groups random_groups(Random& random, int count) {
  Groups groups;
  for (int g = 0; g < count; ++g) {
    auto& group = groups.emplace_back();
    for (std::uint64_t d = 1 + random.below(30); d > 0; --d) {
      group.push_back(random_text(random, 1 + static_cast<int>(random.below(300))));
    }
  }
  return groups;
}

std::string write(const fs::path& folder, const Groups& train, const Groups& val,
                  FileSystem& files = FileSystem::real(),
                  std::int64_t shard_bytes = CorpusWriter::kShardBytes) {
  CorpusWriter writer(folder, files, shard_bytes);
  for (std::size_t i = 0; i < std::max(train.size(), val.size()); ++i) {
    if (i < train.size()) writer.add_group(Split::train, train[i]);
    if (i < val.size()) writer.add_group(Split::public_val, val[i]);
  }
  return writer.finish({{"a book", "book-doc", "CC0-1.0", 7, 8}});
}

TEST(Corpus, ReturnsWhatWasWritten) {
  const TemporaryFolder folder;
  Random random(1);
  const Groups train = random_groups(random, 40), val = random_groups(random, 3);
  // Small shards, so that groups lie in many.
  const std::string hash = write(folder / "c", train, val, FileSystem::real(), 20'000);
  const Corpus corpus(folder / "c");
  EXPECT_EQ(corpus.hash(), hash);
  EXPECT_EQ(hash.size(), 32u);
  EXPECT_EQ(corpus.size(Split::train).groups, 40);
  EXPECT_EQ(corpus.size(Split::public_val).groups, 3);
  EXPECT_EQ(corpus.size(Split::official).documents, 0);
  std::int64_t documents = 0, bytes = 0;
  for (int g = 39; g >= 0; --g) {
    EXPECT_EQ(corpus.group(Split::train, g), train[static_cast<std::size_t>(g)]);
    for (const auto& text : train[static_cast<std::size_t>(g)]) {
      ++documents;
      bytes += static_cast<std::int64_t>(text.size());
    }
  }
  EXPECT_EQ(corpus.size(Split::train).documents, documents);
  EXPECT_EQ(corpus.size(Split::train).bytes, bytes);
  EXPECT_EQ(corpus.group(Split::public_val, 2), val[2]);
  ASSERT_EQ(corpus.sources().size(), 1u);
  EXPECT_EQ(corpus.sources()[0].licence, "CC0-1.0");
  EXPECT_TRUE(fs::exists(folder / "c/train-00002.corpus"));
}

TEST(Corpus, HashCoversTextsOrderAndGroupsButNotShards) {
  const TemporaryFolder folder;
  const Groups groups = {{"one", "two"}, {"three"}};
  const std::string hash = write(folder / "a", groups, {});
  EXPECT_EQ(write(folder / "a", groups, {}), hash);
  EXPECT_EQ(write(folder / "a", groups, {}, FileSystem::real(), 1), hash);
  for (const Groups& other :
       {Groups{{"two", "one"}, {"three"}}, Groups{{"one"}, {"two", "three"}},
        Groups{{"onet", "wo"}, {"three"}}, Groups{{"one", "two"}, {"threE"}}, Groups{{"one", "two"}}}) {
    EXPECT_NE(write(folder / "a", other, {}), hash);
  }
  EXPECT_NE(write(folder / "a", {}, groups), hash);
}

TEST(Corpus, ReadsOnSeveralThreads) {
  const TemporaryFolder folder;
  Random random(2);
  const Groups train = random_groups(random, 30);
  write(folder / "c", train, {}, FileSystem::real(), 10'000);
  const Corpus corpus(folder / "c");
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t g = 0; g < train.size(); ++g)
        wrong[t] += corpus.group(Split::train, static_cast<std::int64_t>(g)) != train[g];
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Corpus, NoticesEveryChangedByte) {
  const TemporaryFolder folder;
  Random random(3);
  write(folder / "c", random_groups(random, 2), {});
  for (const char* name : {"manifest.json", "train-00000.corpus"}) {
    const std::string whole = read_file(folder / (std::string("c/") + name));
    for (int i = 0; i < 300; ++i) {
      std::string bytes = whole;
      const std::size_t at = random.below(bytes.size());
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      if (i % 10 == 0) bytes.resize(at);
      folder.write(std::string("c/") + name, bytes);
      try {
        const Corpus corpus(folder / "c");
        corpus.group(Split::train, 0);
        // Only white space between the manifest's tokens is covered by nothing.
        EXPECT_EQ(std::string(name), "manifest.json");
        EXPECT_TRUE(std::isspace(static_cast<unsigned char>(whole[at]))) << at;
      } catch (const InputError&) {
      }
    }
    folder.write(std::string("c/") + name, whole);
  }
}

TEST(Corpus, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  expect_error<InputError>([&] { Corpus corpus(folder / "none"); }, "no corpus here");
  write(folder / "c", {{"text"}}, {});
  fs::remove(folder / "c/train-00000.corpus");
  expect_error<InputError>([&] { Corpus corpus(folder / "c"); }, "the shard is missing");
  folder.write("v/manifest.json", R"({"format": "headway-corpus", "version": 99})");
  expect_error<InputError>([&] { Corpus corpus(folder / "v"); }, "version 99 is unknown");
  folder.write("f/manifest.json", R"({"format": "something"})");
  expect_error<InputError>([&] { Corpus corpus(folder / "f"); }, "not a manifest of a corpus");
  folder.write("g/manifest.json", "{");
  expect_error<InputError>([&] { Corpus corpus(folder / "g"); }, "damaged manifest");
}

TEST(CorpusWriter, ReplacesACorpusButNothingElse) {
  const TemporaryFolder folder;
  write(folder / "c", {{"old"}}, {});
  folder.write("c/cache/tokens", "stale");
  const std::string hash = write(folder / "c", {{"new"}}, {});
  EXPECT_EQ(Corpus(folder / "c").hash(), hash);
  EXPECT_FALSE(fs::exists(folder / "c/cache"));
  EXPECT_FALSE(fs::exists(folder / "c.partial"));

  const auto precious = folder.write("home/precious.txt", "mine");
  expect_error<InputError>([&] { write(folder / "home", {{"new"}}, {}); },
                           "is not a corpus, so it is not replaced");
  EXPECT_EQ(read_file(precious), "mine");
  fs::create_directories(folder / "empty");
  EXPECT_NO_THROW(write(folder / "empty", {{"new"}}, {}));
}

// A file system that fails at the n-th call, as a full disk or a killed process would.
class FailingFiles : public FileSystem {
 public:
  explicit FailingFiles(int after) : left_(after) {}
  std::unique_ptr<WritableFile> create(const fs::path& path) override {
    step();
    return std::make_unique<File>(FileSystem::create(path), *this);
  }
  void rename(const fs::path& from, const fs::path& to) override {
    step();
    FileSystem::rename(from, to);
  }
  void step() {
    if (left_-- <= 0) throw SystemError("disk", "full");
  }

 private:
  struct File : WritableFile {
    File(std::unique_ptr<WritableFile> f, FailingFiles& o) : file(std::move(f)), owner(o) {}
    void append(const void* data, std::size_t bytes) override {
      owner.step();
      file->append(data, bytes);
    }
    void close() override {
      owner.step();
      file->close();
    }
    std::unique_ptr<WritableFile> file;
    FailingFiles& owner;
  };
  int left_;
};

TEST(CorpusWriter, LeavesTheOldCorpusWhateverFails) {
  const TemporaryFolder folder;
  Random random(4);
  const Groups groups = random_groups(random, 5);
  const std::string old = write(folder / "c", {{"old"}}, {});
  int failures = 0;
  for (int after = 0;; ++after) {
    FailingFiles files(after);
    try {
      write(folder / "c", groups, groups, files, 3000);
      break;
    } catch (const SystemError&) {
      ++failures;
      EXPECT_EQ(Corpus(folder / "c").hash(), old);
      EXPECT_FALSE(fs::exists(folder / "c.partial"));
      FailingFiles none(after);
      EXPECT_THROW(write(folder / "new", groups, groups, none, 3000), SystemError);
      EXPECT_FALSE(fs::exists(folder / "new"));
    }
  }
  EXPECT_GT(failures, 20);
  EXPECT_EQ(Corpus(folder / "c").size(Split::public_val).groups, 5);
}

TEST(CorpusWriter, LeavesAnotherWritersFolderAlone) {
  const TemporaryFolder folder;
  CorpusWriter first(folder / "c", FileSystem::real());
  first.add_group(Split::train, std::vector<std::string>{"text"});
  expect_error<InputError>([&] { CorpusWriter second(folder / "c", FileSystem::real()); },
                           "another process is writing this corpus");
  const std::string hash = first.finish({});
  EXPECT_EQ(Corpus(folder / "c").hash(), hash);
  EXPECT_NO_THROW(CorpusWriter(folder / "c", FileSystem::real()));
}

TEST(CorpusWriter, ClearsWhatAKilledWriterLeft) {
  const TemporaryFolder folder;
  folder.write("c.partial/train-00000.corpus", "half");
  folder.write("c.partial/train-00007.corpus", "half");
  const std::string hash = write(folder / "c", {{"text"}}, {});
  EXPECT_EQ(Corpus(folder / "c").hash(), hash);
  EXPECT_FALSE(fs::exists(folder / "c/train-00007.corpus"));
}

}  // namespace
}  // namespace headway::data
