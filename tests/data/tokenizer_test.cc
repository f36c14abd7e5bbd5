#include "data/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "data/gunzip.h"
#include "data/random_text.h"
#include "data/split.h"
#include "data/temporary_folder.h"
#include "data/tokenizer_files.h"

namespace headway::data {
namespace {

namespace fs = std::filesystem;

const fs::path kShared = HEADWAY_ROOT "/../shared/tokenizer";

// A vocabulary of all bytes in a scrambled order and random joins of its own tokens.
std::vector<std::string> random_ranks(Random& random, int joins, int alphabet) {
  std::vector<std::string> ranks;
  for (int b = 0; b < 256; ++b) ranks.emplace_back(1, static_cast<char>(b));
  for (int i = 255; i > 0; --i)
    std::swap(ranks[static_cast<std::size_t>(i)], ranks[random.below(static_cast<std::uint64_t>(i) + 1)]);
  std::vector<std::string> pool;
  for (int i = 0; i < alphabet; ++i) pool.emplace_back(1, static_cast<char>('a' + i));
  while (joins > 0) {
    const std::string joined = pool[random.below(pool.size())] + pool[random.below(pool.size())];
    if (joined.size() > 30 || std::find(ranks.begin(), ranks.end(), joined) != ranks.end()) {
      --joins;
      continue;
    }
    ranks.push_back(joined);
    pool.push_back(joined);
    --joins;
  }
  return ranks;
}

// Greedy byte-pair merging as its definition says.
std::vector<std::int32_t> naive_encode(const std::vector<std::string>& ranks, const Splitter& splitter,
                                       std::string_view text) {
  std::map<std::string, std::int32_t> ids;
  for (std::size_t i = 0; i < ranks.size(); ++i) ids[ranks[i]] = static_cast<std::int32_t>(i);
  std::vector<std::int32_t> out;
  Splitter::Pieces pieces(splitter, text);
  for (std::string_view piece; pieces.next(piece);) {
    if (ids.contains(std::string(piece))) {
      out.push_back(ids[std::string(piece)]);
      continue;
    }
    std::vector<std::string> parts;
    for (const char c : piece) parts.emplace_back(1, c);
    while (true) {
      std::size_t best = parts.size();
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto it = ids.find(parts[i] + parts[i + 1]);
        if (it == ids.end()) continue;
        if (best == parts.size() || it->second < ids[parts[best] + parts[best + 1]]) best = i;
      }
      if (best == parts.size()) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    for (const std::string& part : parts) out.push_back(ids[part]);
  }
  return out;
}

std::vector<std::int32_t> encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

std::vector<std::string> byte_ranks() {
  std::vector<std::string> ranks;
  for (int b = 0; b < 256; ++b) ranks.emplace_back(1, static_cast<char>(b));
  return ranks;
}

class TokenizerFiles : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) { return folder_.write(name, text); }
  std::string load_error(const fs::path& path) {
    try {
      Tokenizer::load(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  TemporaryFolder folder_;
};

TEST(TokenizerEncode, AsTheDefinitionOnRandomVocabularies) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    const int alphabet = 1 + static_cast<int>(random.below(4));
    const std::vector<std::string> ranks = random_ranks(random, 60, alphabet);
    const Tokenizer tokenizer(ranks, {"<|bos|>"});
    const Splitter splitter;
    for (int n = 0; n < 40; ++n) {
      // Both sides of the lengths where the encoder changes its method (16, 64 bytes).
      const std::uint64_t length = random.below(n % 4 == 0 ? 300 : 80);
      std::string text;
      for (std::uint64_t i = 0; i < length; ++i) {
        text += random.below(60) == 0
                    ? ' '
                    : static_cast<char>('a' + random.below(static_cast<std::uint64_t>(alphabet)));
      }
      ASSERT_EQ(encode(tokenizer, text), naive_encode(ranks, splitter, text)) << text;
    }
  }
}

TEST(TokenizerEncode, RandomUnicodeDecodesBack) {
  Random random(4);
  const std::vector<std::string> ranks = random_ranks(random, 200, 6);
  const Tokenizer tokenizer(ranks, {"<|bos|>"});
  const Splitter splitter;
  for (int round = 0; round < 1000; ++round) {
    const std::string text = random_text(random, static_cast<int>(random.below(100)));
    const std::vector<std::int32_t> ids = encode(tokenizer, text);
    ASSERT_EQ(ids, naive_encode(ranks, splitter, text));
    ASSERT_EQ(tokenizer.decode(ids), text);
    std::size_t bytes = 0;
    for (const std::int32_t id : ids)
      bytes += static_cast<std::size_t>(tokenizer.byte_counts()[static_cast<std::size_t>(id)]);
    ASSERT_EQ(bytes, text.size());
  }
}

TEST(TokenizerEncode, AppendsAndLeavesSpecialNamesAlone) {
  const Tokenizer tokenizer(byte_ranks(), {"<|bos|>", "<|eos|>"});
  std::vector<std::int32_t> ids = {7};
  tokenizer.encode("<|bos|>", ids);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{7, '<', '|', 'b', 'o', 's', '|', '>'}));
  EXPECT_EQ(tokenizer.vocab_size(), 258);
  EXPECT_EQ(tokenizer.bos(), 256);
  EXPECT_EQ(tokenizer.byte_counts()[256], 0);
  const std::vector<std::int32_t> mixed = {256, 'h', 'i', 257};
  EXPECT_EQ(tokenizer.decode(mixed), "<|bos|>hi<|eos|>");
  const std::vector<std::int32_t> outside = {258};
  EXPECT_THROW(tokenizer.decode(outside), InputError);
}

TEST(TokenizerEncode, RefusesWhatIsNotUtf8NamingTheByte) {
  const Tokenizer tokenizer(byte_ranks(), {"<|bos|>"});
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    std::string text = random_text(random, 20);
    const std::size_t good = text.size();
    text += "\xff" + random_text(random, 5);
    std::vector<std::int32_t> ids;
    try {
      tokenizer.encode(text, ids);
      FAIL() << "took invalid text";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("byte " + std::to_string(good)), std::string::npos)
          << error.what();
    }
    EXPECT_TRUE(ids.empty());
  }
}

TEST(TokenizerEncode, AMegabyteOfOneLetterIsQuick) {
  std::vector<std::string> ranks = byte_ranks();
  for (std::string run = "aa"; run.size() <= 64; run += run) ranks.push_back(run);
  const Tokenizer tokenizer(ranks, {"<|bos|>"});
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::int32_t> ids = encode(tokenizer, std::string(1 << 20, 'a'));
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 10.0);
  EXPECT_EQ(ids, std::vector<std::int32_t>((1 << 20) / 64, 261));
}

TEST(TokenizerEncode, ThreadsAndTokenizersDontMix) {
  Random random(6);
  const std::vector<std::string> first_ranks = random_ranks(random, 100, 3);
  const std::vector<std::string> second_ranks = random_ranks(random, 100, 3);
  const Tokenizer first(first_ranks, {"<|bos|>"});
  const Tokenizer second(second_ranks, {"<|bos|>"});
  std::string text;
  for (int i = 0; i < 20000; ++i)
    text += random.below(6) == 0 ? ' ' : static_cast<char>('a' + random.below(3));
  const auto expected_first = naive_encode(first_ranks, Splitter(), text);
  const auto expected_second = naive_encode(second_ranks, Splitter(), text);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        wrong += encode(first, text) != expected_first;
        wrong += encode(second, text) != expected_second;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(TokenizerIdentity, DependsOnRanksSpecialsAndPattern) {
  const std::string base = Tokenizer(byte_ranks(), {"<|bos|>"}).hash();
  EXPECT_EQ(base, Tokenizer(byte_ranks(), {"<|bos|>"}, "nanochat").hash());
  EXPECT_NE(base, Tokenizer(byte_ranks(), {"<|eos|>"}).hash());
  EXPECT_NE(base, Tokenizer(byte_ranks(), {"<|bos|>"}, "gpt2").hash());
  std::vector<std::string> more = byte_ranks();
  more.emplace_back("ab");
  EXPECT_NE(base, Tokenizer(more, {"<|bos|>"}).hash());
}

TEST(TokenizerIdentity, RefusesImpossibleVocabularies) {
  std::vector<std::string> ranks = byte_ranks();
  EXPECT_THROW(Tokenizer(ranks, {}), InputError);
  EXPECT_THROW(Tokenizer(ranks, {"<|a|>", "<|a|>"}), InputError);
  EXPECT_THROW(Tokenizer(ranks, {""}), InputError);
  ranks.emplace_back("a");
  EXPECT_THROW(Tokenizer(ranks, {"<|a|>"}), InputError);
  ranks.back() = "";
  EXPECT_THROW(Tokenizer(ranks, {"<|a|>"}), InputError);
  ranks.pop_back();
  ranks.pop_back();
  EXPECT_THROW(Tokenizer(ranks, {"<|a|>"}), InputError);
}

TEST_F(TokenizerFiles, SaveAndLoad) {
  Random random(8);
  const Tokenizer saved(random_ranks(random, 100, 20), {"<|start|>", "<|stop|>"}, "gpt2");
  const fs::path path = folder_ / "some.tiktoken";
  saved.save(path);
  const Tokenizer loaded = Tokenizer::load(path);
  EXPECT_EQ(loaded.hash(), saved.hash());
  EXPECT_EQ(loaded.specials(), saved.specials());
  EXPECT_EQ(loaded.pattern(), saved.pattern());
  // Without its sidecar the contest's specials and nanochat's pattern hold.
  fs::remove(folder_ / "some.special.json");
  const Tokenizer bare = Tokenizer::load(path);
  EXPECT_EQ(bare.specials(), Tokenizer::contest_specials());
  EXPECT_EQ(bare.pattern(), Splitter().pattern());
  EXPECT_EQ(bare.bos(), saved.bos());
}

TEST_F(TokenizerFiles, ErrorsNameFileAndLine) {
  EXPECT_NE(load_error(folder_ / "missing.tiktoken").find("missing.tiktoken"), std::string::npos);
  const auto rule = [&](const std::string& text) { return load_error(write("bad.tiktoken", text)); };
  EXPECT_NE(rule("YQ== 0\nYg==\n").find("bad.tiktoken:2"), std::string::npos);
  EXPECT_NE(rule("YQ== 0\nYg==\n").find("no rank"), std::string::npos);
  EXPECT_NE(rule("Y!== 0\n").find("bad.tiktoken:1"), std::string::npos);
  EXPECT_NE(rule("YQ= 0\n").find("base64"), std::string::npos);
  EXPECT_NE(rule("YR== 0\n").find("base64"), std::string::npos);
  EXPECT_NE(rule("YQ== 0\nYg== x\n").find("bad.tiktoken:2"), std::string::npos);
  EXPECT_NE(rule("YQ== 0\nYg== 0\n").find("taken by line 1"), std::string::npos);
  EXPECT_NE(rule("YQ== 0\nYQ== 1\n").find("bad.tiktoken:2"), std::string::npos);
  EXPECT_NE(rule("YQ== 0\nYg== 2\n").find("rank 1 is missing"), std::string::npos);
  EXPECT_NE(rule("YQ== 99999999999\n").find("bad.tiktoken:1"), std::string::npos);
  EXPECT_NE(rule("").find("no tokens"), std::string::npos);
  EXPECT_NE(rule("YQ== 0\n").find("byte 0 is no token"), std::string::npos);
}

TEST_F(TokenizerFiles, SidecarsAreCheckedStrictly) {
  const fs::path path = folder_ / "x.tiktoken";
  write_ranks(path, byte_ranks());
  const auto rule = [&](const std::string& text) {
    write("x.special.json", text);
    return load_error(path);
  };
  EXPECT_EQ(rule(R"({"version": 1, "specials": ["<|b|>"]})"), "");
  EXPECT_EQ(Tokenizer::load(path).specials(), std::vector<std::string>{"<|b|>"});
  EXPECT_NE(rule("{\"version\": 1,\n\"specials\" [}").find("x.special.json:2"), std::string::npos);
  EXPECT_NE(rule(R"({"version": 2, "specials": ["<|b|>"]})").find("version 1"), std::string::npos);
  EXPECT_NE(rule(R"({"specials": ["<|b|>"]})").find("version 1"), std::string::npos);
  EXPECT_NE(rule(R"({"version": 1, "specials": ["<|b|>"], "more": 1})").find("unknown key 'more'"),
            std::string::npos);
  EXPECT_NE(rule(R"({"version": 1, "specials": "b"})").find("not a list"), std::string::npos);
  EXPECT_NE(rule(R"({"version": 1, "specials": [1]})").find("not a list"), std::string::npos);
  EXPECT_NE(rule(R"({"version": 1, "specials": []})").find("no specials"), std::string::npos);
  EXPECT_NE(rule(R"({"version": 1, "specials": ["a"], "pattern": 3})").find("pattern"), std::string::npos);
  EXPECT_NE(rule(R"({"version": 1, "specials": ["a"], "pattern": "(a"})").find("split pattern"),
            std::string::npos);
  EXPECT_NE(rule("[]").find("not a JSON object"), std::string::npos);
}

// Texts with the ids that tiktoken gives, for five encodings.
struct Vector {
  std::string text;
  std::map<std::string, std::vector<std::int32_t>> ids;
};

std::vector<Vector> vectors() {
  std::vector<Vector> found;
  std::istringstream lines(gunzip(kShared / "vectors.jsonl.gz"));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    Vector vector{json["text"].get<std::string>(), {}};
    for (const auto& [key, value] : json.items())
      if (key != "text") vector.ids[key] = value.get<std::vector<std::int32_t>>();
    found.push_back(std::move(vector));
  }
  return found;
}

void expect_vectors(const Tokenizer& tokenizer, const std::string& encoding) {
  const std::vector<Vector> all = vectors();
  ASSERT_EQ(all.size(), 85u);
  for (const Vector& vector : all) {
    ASSERT_TRUE(vector.ids.contains(encoding));
    EXPECT_EQ(encode(tokenizer, vector.text), vector.ids.at(encoding))
        << encoding << ": " << vector.text.substr(0, 200);
    EXPECT_EQ(tokenizer.decode(vector.ids.at(encoding)), vector.text);
  }
}

TEST_F(TokenizerFiles, VectorsOfNanochat) {
  if (!fs::exists(kShared / "vectors.jsonl.gz")) GTEST_SKIP() << "no " << kShared;
  const Tokenizer small = Tokenizer::load(kShared / "nanochat_8192.tiktoken");
  EXPECT_EQ(small.vocab_size(), 8183 + 4);
  expect_vectors(small, "nano8192");
  const fs::path large = write("nanochat_65536.tiktoken", gunzip(kShared / "nanochat_65536.tiktoken.gz"));
  expect_vectors(Tokenizer::load(large), "nano65536");
}

// HEADWAY_RANKS: a folder with gpt2.tiktoken, cl100k_base.tiktoken, o200k_base.tiktoken
// (tests/conformance/npm_ranks.mjs makes it).
class PublicVectors : public testing::TestWithParam<std::string> {};

TEST_P(PublicVectors, AsTiktoken) {
  const char* const folder = std::getenv("HEADWAY_RANKS");
  if (!folder) GTEST_SKIP() << "HEADWAY_RANKS names no folder of ranks (tests/conformance/README.md)";
  if (!fs::exists(kShared / "vectors.jsonl.gz")) GTEST_SKIP() << "no " << kShared;
  const std::string name = GetParam();
  expect_vectors(Tokenizer(read_ranks(fs::path(folder) / (name + ".tiktoken")), {"<|endoftext|>"}, name),
                 name);
}
INSTANTIATE_TEST_SUITE_P(Tokenizer, PublicVectors, testing::Values("gpt2", "cl100k_base", "o200k_base"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace headway::data
