#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace headway {
namespace {

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// The value of a bfloat16, with what would come after the largest in the place of infinity.
double extended(std::uint32_t bf16) {
  if ((bf16 & 0x7fffu) == 0x7f80u) return (bf16 & 0x8000u) ? -0x1p128 : 0x1p128;
  return from_bits(bf16 << 16);
}

TEST(RoundToBf16, IsTheNearerNeighbourAndTheEvenOneOfTwo) {
  for (std::uint32_t bf16 = 0; bf16 < 0x10000u; ++bf16) {
    if ((bf16 & 0x7f80u) == 0x7f80u) continue;  // infinities and NaNs have no next one
    const double toward_zero = extended(bf16), away = extended(bf16 + 1);
    for (std::uint32_t low : {0x0000u, 0x0001u, 0x1234u, 0x7fffu, 0x8000u, 0x8001u, 0xcdefu, 0xffffu}) {
      const float value = from_bits((bf16 << 16) | low);
      const double below = std::abs(value - toward_zero), above = std::abs(away - value);
      const bool up = above < below || (above == below && (bf16 & 1u) == 1u);
      const float expected = from_bits((up ? bf16 + 1 : bf16) << 16);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(round_to_bf16(value)), std::bit_cast<std::uint32_t>(expected))
          << std::hexfloat << value;
    }
  }
}

TEST(RoundToBf16, KeepsInfinitiesAndNaNs) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(round_to_bf16(infinity), infinity);
  EXPECT_EQ(round_to_bf16(-infinity), -infinity);
  for (std::uint32_t mantissa : {1u, 0x8000u, 0x400000u, 0x7fffffu}) {
    for (std::uint32_t sign : {0u, 0x80000000u}) {
      const float rounded = round_to_bf16(from_bits(sign | 0x7f800000u | mantissa));
      EXPECT_TRUE(std::isnan(rounded)) << mantissa;
      EXPECT_EQ(std::bit_cast<std::uint32_t>(rounded) & 0x0000ffffu, 0u) << "is no bfloat16";
    }
  }
}

TEST(Shapes, CountTheirElements) {
  EXPECT_EQ(elements({}), 1);
  EXPECT_EQ(elements({2, 3, 5}), 30);
  EXPECT_EQ(elements({1 << 20, 1 << 20}), std::int64_t{1} << 40);
  EXPECT_EQ(elements({4, 0}), 0);
  EXPECT_EQ(to_string(Shape{8, 1024}), "[8, 1024]");
  EXPECT_EQ(to_string(Shape{}), "[]");
}

TEST(DTypes, HaveNamesAndSizes) {
  EXPECT_EQ(size_of(DType::f64), 8);
  EXPECT_EQ(size_of(DType::bf16), 2);
  EXPECT_EQ(name_of(DType::bf16), "bfloat16");
  EXPECT_EQ(name_of(DType::i32), "int32");
}

}  // namespace
}  // namespace headway
