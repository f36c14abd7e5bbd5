#include "data/split.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <gtest/gtest.h>
#include <pcre2.h>

#include <set>

#include "base/error.h"
#include "base/random.h"
#include "data/random_text.h"

namespace headway::data {
namespace {

std::vector<std::string> split(const Splitter& splitter, std::string_view text) {
  std::vector<std::string> pieces;
  Splitter::Pieces cut(splitter, text);
  for (std::string_view piece; cut.next(piece);) pieces.emplace_back(piece);
  return pieces;
}

// The same pattern through PCRE2's engine: a no-op group keeps it from being recognised as nanochat's.
Splitter oracle() { return Splitter("(?:" + Splitter("nanochat").pattern() + ")"); }

// Whether PCRE2 puts this code point into the class that we do. Its tables are older than Unicode 16, so it
// doesn't know the newest characters.
class Agreement {
 public:
  Agreement() {
    for (const char* one : {"\\p{L}", "\\p{N}", "\\p{Cn}"}) {
      int error;
      PCRE2_SIZE place;
      codes_.push_back(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(one), PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP, &error, &place, nullptr));
      HEADWAY_CHECK(codes_.back());
    }
    data_ = pcre2_match_data_create(4, nullptr);
  }
  ~Agreement() {
    for (pcre2_code* code : codes_) pcre2_code_free(code);
    pcre2_match_data_free(data_);
  }
  bool matches(int which, const std::string& c) {
    return pcre2_match(codes_[static_cast<std::size_t>(which)], reinterpret_cast<PCRE2_SPTR>(c.data()),
                       c.size(), 0, 0, data_, nullptr) > 0;
  }
  bool unassigned(const std::string& c) { return matches(2, c); }

 private:
  std::vector<pcre2_code*> codes_;
  pcre2_match_data* data_;
};

TEST(Split, ClassesAgreeWithPcre2WhereItKnowsTheCharacter) {
  Agreement pcre;
  int letters = 0;
  int numbers = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    const std::string text = utf8(c);
    letters += class_of(c) == CharClass::letter;
    numbers += class_of(c) == CharClass::number;
    if (pcre.unassigned(text)) continue;
    ASSERT_EQ(class_of(c) == CharClass::letter, pcre.matches(0, text)) << std::hex << static_cast<int>(c);
    ASSERT_EQ(class_of(c) == CharClass::number, pcre.matches(1, text)) << std::hex << static_cast<int>(c);
  }
  // Unicode 16, as tiktoken 0.14 counts them.
  EXPECT_EQ(letters, 141028);
  EXPECT_EQ(numbers, 1911);
}

TEST(Split, KnownPieces) {
  const Splitter splitter;
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(split(splitter, ""), Pieces{});
  EXPECT_EQ(split(splitter, "Hello, world! 2024"), (Pieces{"Hello", ",", " world", "!", " ", "20", "24"}));
  EXPECT_EQ(split(splitter, "I'll don'T 'S 'llama"),
            (Pieces{"I", "'ll", " don", "'T", " '", "S", " '", "llama"}));
  EXPECT_EQ(split(splitter, "'\u017fx'\u017f"), (Pieces{"'\u017f", "x", "'\u017f"}));
  EXPECT_EQ(split(splitter, "a  b   "), (Pieces{"a", " ", " b", "   "}));
  EXPECT_EQ(split(splitter, " \n \n  x\t\ty"), (Pieces{" \n \n", " ", " x", "\t", "\ty"}));
  EXPECT_EQ(split(splitter, "x ??\r\n\r\n.."), (Pieces{"x", " ??\r\n\r\n", ".."}));
  EXPECT_EQ(split(splitter, "\u00a0\u4f60\u597d\u0660\u0661\u0662"),
            (Pieces{"\u00a0\u4f60\u597d", "\u0660\u0661", "\u0662"}));
}

TEST(Split, RandomTextAsPcre2) {
  const Splitter fast;
  const Splitter slow = oracle();
  ASSERT_NE(fast.pattern(), slow.pattern());
  Agreement pcre;
  Random random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    const int length = static_cast<int>(random.below(40));
    for (int i = 0; i < length; ++i) {
      const std::string c = utf8(random_code_point(random));
      if (!pcre.unassigned(c)) text += c;
    }
    ASSERT_EQ(split(fast, text), split(slow, text)) << testing::PrintToString(text);
  }
}

TEST(Split, EveryPairAndTripleOfInterestingCharacters) {
  const Splitter fast;
  const Splitter slow = oracle();
  const std::vector<std::string> some = {"a", "S",      "l",      "E",      "v",         "\u017f", "\u00e9",
                                         "1", "\u00bd", " ",      "\t",     "\n",        "\r",     "'",
                                         "!", "\u0301", "\u00a0", "\u2028", "\U0001f600"};
  for (const std::string& a : some)
    for (const std::string& b : some)
      for (const std::string& c : some)
        for (const std::string& d : some) {
          const std::string text = a + b + c + d;
          ASSERT_EQ(split(fast, text), split(slow, text)) << testing::PrintToString(text);
        }
}

TEST(Split, NamedPatterns) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(split(Splitter("gpt2"), "it's 12345  ok"), (Pieces{"it", "'s", " 12345", " ", " ok"}));
  EXPECT_EQ(split(Splitter("cl100k_base"), "it'S 12345\n\nok"),
            (Pieces{"it", "'S", " ", "123", "45", "\n\n", "ok"}));
  EXPECT_EQ(split(Splitter("o200k_base"), "camelCase it's"), (Pieces{"camel", "Case", " it's"}));
  for (const std::string& name : Splitter::pattern_names()) {
    const Splitter splitter(name);
    EXPECT_NE(splitter.pattern(), name);
    Random random(7);
    for (int round = 0; round < 500; ++round) {
      const std::string text = random_text(random, 60);
      std::string joined;
      for (const std::string& piece : split(splitter, text)) {
        EXPECT_FALSE(piece.empty());
        joined += piece;
      }
      ASSERT_EQ(joined, text);
    }
  }
}

TEST(Split, OwnPatterns) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(split(Splitter("[a-z]+"), "ab12cd."), (Pieces{"ab", "12", "cd", "."}));
  EXPECT_EQ(split(Splitter("x*"), "axxb"), (Pieces{"a", "xx", "b"}));
  // U+180E is white space to PCRE2 but not to Unicode.
  EXPECT_EQ(split(Splitter("\\s+|\\S+"), "a\u180eb \u3000c"), (Pieces{"a\u180eb", " \u3000", "c"}));
  EXPECT_THROW(Splitter("(a"), InputError);
}

TEST(Split, LongRunsOfOneCharacter) {
  for (const std::string& name : Splitter::pattern_names()) {
    const Splitter splitter(name);
    for (const char* one : {"a", " ", "\n", "!", "\u00e9", "A"}) {
      std::string text;
      for (int i = 0; i < 300000; ++i) text += one;
      std::string joined;
      for (const std::string& piece : split(splitter, text)) joined += piece;
      EXPECT_EQ(joined, text) << name << " " << one;
    }
  }
}

}  // namespace
}  // namespace headway::data
