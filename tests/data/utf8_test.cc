#include "data/utf8.h"

#include <gtest/gtest.h>

#include "data/random_text.h"

namespace headway::data {
namespace {

TEST(Utf8, SaysWhereTextStopsBeingValid) {
  const auto valid = [](std::string_view text) { return first_invalid_utf8(text).value_or(text.size()); };
  EXPECT_EQ(valid(""), 0u);
  EXPECT_EQ(valid("plain ascii text"), 16u);
  EXPECT_EQ(valid("abc\xff"), 3u);
  EXPECT_EQ(valid("12345678\x80"), 8u);
  EXPECT_EQ(valid("\xc0\xaf"), 0u);          // overlong
  EXPECT_EQ(valid("a\xe0\x80\xaf"), 1u);     // overlong
  EXPECT_EQ(valid("\xf0\x80\x80\xaf"), 0u);  // overlong
  EXPECT_EQ(valid("\xed\xa0\x80"), 0u);      // surrogate
  EXPECT_EQ(valid("\xf4\x90\x80\x80"), 0u);  // above U+10FFFF
  EXPECT_EQ(valid("\xe4\xbd"), 0u);          // cut off
  EXPECT_EQ(valid("\xe4\xbd\x41"), 0u);
  // Every code point is valid, and stops being so without its last byte.
  for (char32_t c = 0x80; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    const std::string text = utf8(c);
    ASSERT_EQ(valid(text), text.size());
    ASSERT_EQ(valid(text.substr(0, text.size() - 1)), 0u);
  }
}

}  // namespace
}  // namespace headway::data
