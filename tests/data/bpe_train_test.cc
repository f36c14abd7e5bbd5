#include "data/bpe_train.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/random.h"
#include "data/gunzip.h"
#include "data/random_text.h"

namespace headway::data {
namespace {

// Counts every pair anew for each merge.
std::vector<std::string> naive_train(const std::map<std::string, std::int64_t>& pieces, int merges) {
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
  std::vector<std::pair<std::vector<int>, std::int64_t>> words;
  for (const auto& [piece, count] : pieces) {
    std::vector<int> ids;
    for (const char c : piece) ids.push_back(static_cast<unsigned char>(c));
    words.emplace_back(ids, count);
  }
  while (static_cast<int>(tokens.size()) < 256 + merges) {
    std::map<std::pair<int, int>, std::int64_t> counts;
    for (const auto& [ids, count] : words)
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) counts[{ids[i], ids[i + 1]}] += count;
    if (counts.empty()) break;
    auto best = counts.begin();
    for (auto it = counts.begin(); it != counts.end(); ++it)
      if (it->second > best->second) best = it;
    const auto [left, right] = best->first;
    const std::string joined =
        tokens[static_cast<std::size_t>(left)] + tokens[static_cast<std::size_t>(right)];
    const auto known = std::find(tokens.begin(), tokens.end(), joined);
    const int made = static_cast<int>(known - tokens.begin());
    if (known == tokens.end()) tokens.push_back(joined);
    for (auto& [ids, count] : words) {
      std::vector<int> out;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (i + 1 < ids.size() && ids[i] == left && ids[i + 1] == right) {
          out.push_back(made);
          ++i;
        } else {
          out.push_back(ids[i]);
        }
      }
      ids = out;
    }
  }
  return tokens;
}

TEST(BpeTrain, MergesAsTheDefinition) {
  Random random(1);
  int already_tokens = 0;
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t alphabet = 1 + random.below(5);
    std::map<std::string, std::int64_t> pieces;
    for (int i = 0; i < 40; ++i) {
      std::string piece;
      const std::uint64_t size = 1 + random.below(12);
      for (std::uint64_t k = 0; k < size; ++k) piece += static_cast<char>('a' + random.below(alphabet));
      pieces[piece] += static_cast<std::int64_t>(1 + random.below(round % 2 == 0 ? 3 : 50));
    }
    PieceCounts counts;
    for (const auto& [piece, count] : pieces) counts.add(piece, count);
    const int merges = static_cast<int>(1 + random.below(60));
    const std::vector<std::string> tokens = train_merges(counts, merges);
    ASSERT_EQ(tokens, naive_train(pieces, merges));
    already_tokens += static_cast<int>(tokens.size()) < 256 + merges;

    PieceCounts backwards;
    for (auto it = pieces.rbegin(); it != pieces.rend(); ++it) backwards.add(it->first, it->second);
    ASSERT_EQ(train_merges(backwards, merges), tokens);
  }
  EXPECT_GT(already_tokens, 0);  // some rounds ran out of pairs
}

TEST(BpeTrain, TiesGoToTheSmallerIds) {
  PieceCounts counts;
  counts.add("zy", 5);
  counts.add("ab", 5);
  counts.add("ac", 5);
  const std::vector<std::string> tokens = train_merges(counts, 10);
  EXPECT_EQ((std::vector<std::string>(tokens.begin() + 256, tokens.end())),
            (std::vector<std::string>{"ab", "ac", "zy"}));
}

TEST(BpeTrain, CountsPieces) {
  PieceCounts counts;
  std::map<std::string, std::int64_t> expected;
  Random random(2);
  for (int i = 0; i < 50000; ++i) {
    const std::string piece = std::to_string(random.below(20000));
    counts.add(piece);
    ++expected[piece];
  }
  PieceCounts doubled;
  doubled.add(counts);
  doubled.add(counts);
  ASSERT_EQ(doubled.size(), expected.size());
  for (std::size_t i = 0; i < doubled.size(); ++i)
    ASSERT_EQ(doubled.count(i), 2 * expected[std::string(doubled.piece(i))]);
}

std::vector<std::vector<std::string>> random_groups(Random& random, int groups) {
  std::vector<std::vector<std::string>> all;
  for (int g = 0; g < groups; ++g) {
    std::vector<std::string> documents;
    for (std::uint64_t d = random.below(6); d > 0; --d) {
      std::string text;
      for (std::uint64_t i = random.below(200); i > 0; --i) {
        text +=
            random.below(5) == 0 ? " " : utf8(static_cast<char32_t>("abc\u00e9\u4f60\0"[random.below(3)]));
        if (random.below(20) == 0) text += utf8(0xe9);
      }
      documents.push_back(text);
    }
    all.push_back(documents);
  }
  return all;
}

TEST(BpeTrain, TheSameForAnyThreadCountAndCutting) {
  Random random(3);
  const auto groups = random_groups(random, 23);
  const auto from = [](const std::vector<std::vector<std::string>>& all) {
    return [&all](std::int64_t i) { return all[static_cast<std::size_t>(i)]; };
  };
  // Limits in characters, as the definition: whole documents until the total is reached, each cut.
  BpeOptions options;
  options.vocab_size = 300;
  options.document_characters = 90;
  options.total_characters = 2000;
  PieceCounts counts;
  const Splitter splitter;
  std::int64_t total = 0;
  for (const auto& group : groups) {
    for (const std::string& document : group) {
      if (total >= 2000) break;
      std::string kept;
      std::int64_t characters = 0;
      for (const char c : document) {
        const bool starts = (static_cast<unsigned char>(c) & 0xc0) != 0x80;
        if (starts && characters == 90) break;
        characters += starts;
        kept += c;
      }
      total += characters;
      Splitter::Pieces pieces(splitter, kept);
      for (std::string_view piece; pieces.next(piece);) counts.add(piece);
    }
  }
  ASSERT_GE(total, 2000);
  const Tokenizer expected(train_merges(counts, 300 - 256 - 4), Tokenizer::contest_specials());
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads, false);
    EXPECT_EQ(train_bpe(23, from(groups), options, pool).hash(), expected.hash()) << threads;
  }
  EXPECT_EQ(expected.vocab_size(), 300);
  EXPECT_EQ(expected.bos(), 296);

  // Limits off: other text, so other merges.
  ThreadPool pool(2, false);
  options.document_characters = options.total_characters = 0;
  EXPECT_NE(train_bpe(23, from(groups), options, pool).hash(), expected.hash());
}

TEST(BpeTrain, RefusesWhatCantBe) {
  ThreadPool pool(2, false);
  BpeOptions options;
  options.vocab_size = 259;
  const auto nothing = [](std::int64_t) { return std::vector<std::string>{}; };
  EXPECT_THROW(train_bpe(1, nothing, options, pool), InputError);
  options.vocab_size = 260;
  EXPECT_EQ(train_bpe(1, nothing, options, pool).vocab_size(), 260);
  options.vocab_size = 300;  // nothing to merge: fewer tokens than asked for
  EXPECT_EQ(train_bpe(1, nothing, options, pool).vocab_size(), 260);
  const auto broken = [](std::int64_t) { return std::vector<std::string>{"fine", "br\xffken"}; };
  try {
    train_bpe(1, broken, options, pool);
    FAIL() << "took invalid text";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("document 1, byte 2"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace headway::data
