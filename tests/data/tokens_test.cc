#include "data/tokens.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "data/corpus_writer.h"
#include "data/random_text.h"
#include "data/temporary_folder.h"

namespace headway::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> some_ranks() {
  std::vector<std::string> ranks;
  for (int b = 0; b < 256; ++b) ranks.emplace_back(1, static_cast<char>(b));
  for (const char* more : {"ab", "the", " a", "th", "he"}) ranks.emplace_back(more);
  return ranks;
}

class TokensTest : public testing::Test {
 protected:
  void SetUp() override {
    Random random(9);
    CorpusWriter writer(folder_ / "corpus", FileSystem::real());
    for (int g = 0; g < 21; ++g) {
      texts_.emplace_back();
      for (std::uint64_t d = 1 + random.below(9); d > 0; --d)
        texts_.back().push_back("the ab " + random_text(random, static_cast<int>(random.below(80))));
      writer.add_group(Split::train, texts_.back());
    }
    writer.finish({});
  }

  Corpus corpus() const { return Corpus(folder_ / "corpus"); }

  void expect_all(const Tokens& tokens, const Tokenizer& tokenizer) {
    ASSERT_EQ(tokens.groups(), static_cast<std::int64_t>(texts_.size()));
    std::int64_t document = 0;
    std::int64_t total = 0;
    for (std::size_t g = 0; g < texts_.size(); ++g) {
      const auto [first, end] = tokens.group(static_cast<std::int64_t>(g));
      ASSERT_EQ(first, document);
      ASSERT_EQ(end - first, static_cast<std::int64_t>(texts_[g].size()));
      for (const std::string& text : texts_[g]) {
        std::vector<std::int32_t> ids;
        tokenizer.encode(text, ids);
        const auto found = tokens.document(document++);
        ASSERT_EQ(std::vector<std::int32_t>(found.begin(), found.end()), ids);
        total += static_cast<std::int64_t>(ids.size());
      }
    }
    EXPECT_EQ(tokens.documents(), document);
    EXPECT_EQ(tokens.tokens(), total);
  }

  TemporaryFolder folder_;
  std::vector<std::vector<std::string>> texts_;
  Tokenizer tokenizer_{some_ranks(), {"<|bos|>"}};
};

// A disk that fills up after so many bytes.
class FullDisk : public FileSystem {
 public:
  explicit FullDisk(std::size_t left) : left_(left) {}
  std::unique_ptr<WritableFile> create(const fs::path& path) override {
    return std::make_unique<File>(FileSystem::create(path), left_);
  }

 private:
  class File : public WritableFile {
   public:
    File(std::unique_ptr<WritableFile> file, std::size_t& left) : file_(std::move(file)), left_(left) {}
    void append(const void* data, std::size_t bytes) override {
      if (bytes > left_) throw SystemError("disk", "full");
      left_ -= bytes;
      file_->append(data, bytes);
    }
    void close() override { file_->close(); }

   private:
    std::unique_ptr<WritableFile> file_;
    std::size_t& left_;
  };
  std::size_t left_;
};

TEST_F(TokensTest, EncodesOnceForAnyThreadCount) {
  std::string hash;
  for (const int threads : {1, 2, 5}) {
    fs::remove_all(Tokens::cache_path(corpus(), Split::train, tokenizer_).parent_path());
    ThreadPool pool(threads, false);
    const Tokens tokens = Tokens::prepare(corpus(), Split::train, tokenizer_, pool, false);
    expect_all(tokens, tokenizer_);
    if (hash.empty()) hash = tokens.hash();
    EXPECT_EQ(tokens.hash(), hash);
  }
  // The second time nothing is written: a disk without room is no trouble.
  ThreadPool pool(1);
  FullDisk full(0);
  expect_all(Tokens::prepare(corpus(), Split::train, tokenizer_, pool, false, full), tokenizer_);
}

TEST_F(TokensTest, EachTokenizerHasItsOwn) {
  ThreadPool pool(2, false);
  const Tokenizer other(some_ranks(), {"<|bos|>"}, "gpt2");
  const Tokens one = Tokens::prepare(corpus(), Split::train, tokenizer_, pool, false);
  const Tokens two = Tokens::prepare(corpus(), Split::train, other, pool, false);
  expect_all(one, tokenizer_);
  expect_all(two, other);
  EXPECT_NE(one.hash(), two.hash());
}

TEST_F(TokensTest, DamageIsFoundAndRepaired) {
  ThreadPool pool(2, false);
  const fs::path path = Tokens::cache_path(corpus(), Split::train, tokenizer_);
  Tokens::prepare(corpus(), Split::train, tokenizer_, pool, false);
  const std::string good = read_file(path);
  Random random(10);
  for (int round = 0; round < 60; ++round) {
    std::string bad = good;
    switch (round % 3) {
      case 0:
        bad[random.below(bad.size())] ^= static_cast<char>(1u << random.below(8));
        break;
      case 1:
        bad.resize(random.below(bad.size()));
        break;
      default:
        bad += "more";
    }
    std::ofstream(path, std::ios::binary) << bad;
    testing::internal::CaptureStderr();
    const Tokens tokens = Tokens::prepare(corpus(), Split::train, tokenizer_, pool, false);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("encoding again"), std::string::npos);
    EXPECT_NE(said.find(path.string()), std::string::npos);
    expect_all(tokens, tokenizer_);
    ASSERT_EQ(read_file(path), good);
  }
}

TEST_F(TokensTest, TokensOfAnotherCorpusAreMadeAnew) {
  ThreadPool pool(2, false);
  const fs::path path = Tokens::cache_path(corpus(), Split::train, tokenizer_);
  Tokens::prepare(corpus(), Split::train, tokenizer_, pool, false);
  const std::string old = read_file(path);
  texts_.resize(3);
  CorpusWriter writer(folder_ / "corpus", FileSystem::real());
  for (const auto& group : texts_) writer.add_group(Split::train, group);
  writer.finish({});
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << old;
  testing::internal::CaptureStderr();
  const Tokens tokens = Tokens::prepare(corpus(), Split::train, tokenizer_, pool, false);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("not the tokens of this corpus"), std::string::npos);
  expect_all(tokens, tokenizer_);
}

TEST_F(TokensTest, AFullDiskLeavesNothingBehind) {
  ThreadPool pool(2, false);
  const fs::path path = Tokens::cache_path(corpus(), Split::train, tokenizer_);
  Tokens::prepare(corpus(), Split::train, tokenizer_, pool, false);
  const std::size_t size = fs::file_size(path);
  for (std::size_t room = 0; room < size; room += size / 7) {
    fs::remove(path);
    FullDisk disk(room);
    EXPECT_THROW(Tokens::prepare(corpus(), Split::train, tokenizer_, pool, false, disk), SystemError);
    EXPECT_TRUE(fs::is_empty(path.parent_path()));
  }
  expect_all(Tokens::prepare(corpus(), Split::train, tokenizer_, pool, false), tokenizer_);
}

TEST_F(TokensTest, RefusesWhatCantBe) {
  ThreadPool pool(1);
  EXPECT_THROW(Tokens::prepare(corpus(), Split::official, tokenizer_, pool, false), InputError);
  std::vector<std::string> many = some_ranks();
  for (int i = 0; many.size() < 65536; ++i) many.push_back("#" + std::to_string(i));
  EXPECT_THROW(Tokens::prepare(corpus(), Split::train, Tokenizer(many, {"<|bos|>"}), pool, false),
               InputError);
  many.pop_back();  // the largest that fits
  EXPECT_NO_THROW(Tokens::prepare(corpus(), Split::train, Tokenizer(many, {"<|bos|>"}), pool, false));
}

}  // namespace
}  // namespace headway::data
