#include "base/number_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/safetensors.h"

namespace headway {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<DType> formats() {
  std::vector<DType> all;
  for (int i = 0; i < kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype != DType::f64 && !is_packed(dtype)) all.push_back(dtype);
  }
  return all;
}

std::uint32_t encoded(DType dtype, float value) {
  std::uint32_t code = 0;
  encode(dtype, value, &code);
  return code;
}
float decoded(DType dtype, std::uint32_t code) { return decode(dtype, &code); }
std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

class NumberFormat : public ::testing::TestWithParam<DType> {};

// The tables that tests/fixtures/make_numbers.py took from NumPy and ml_dtypes.
const Safetensors& fixture() {
  static const Safetensors file(std::filesystem::path(HEADWAY_ROOT) / "tests/fixtures/numbers.safetensors");
  return file;
}
std::vector<std::uint32_t> table(const std::string& name) {
  const Safetensors::Entry& entry = fixture().tensors().at(name);
  std::vector<std::uint32_t> values(static_cast<std::size_t>(elements(entry.shape)));
  fixture().copy(name, DType::i32, entry.shape, values.data());
  return values;
}

TEST_P(NumberFormat, EncodesAsMlDtypesDoes) {
  const DType dtype = GetParam();
  if (dtype == DType::f32) return;
  const std::string name(name_of(dtype));
  const std::vector<std::uint32_t> floats = table(name + "/floats"), expected = table(name + "/encoded");
  ASSERT_GT(floats.size(), 400u);
  for (std::size_t i = 0; i < floats.size(); ++i)
    ASSERT_EQ(encoded(dtype, std::bit_cast<float>(floats[i])), expected[i])
        << std::hexfloat << std::bit_cast<float>(floats[i]);
}

TEST_P(NumberFormat, DecodesAsMlDtypesDoes) {
  const DType dtype = GetParam();
  if (!is_float(dtype) || size_of(dtype) > 2) return;
  const std::string name = std::string(name_of(dtype)) + "/decoded";
  if (size_of(dtype) == 1) {
    const std::vector<std::uint32_t> expected = table(name);
    for (std::uint32_t code = 0; code < 256; ++code)
      EXPECT_EQ(bits(decoded(dtype, code)), expected[code]) << code;
    return;
  }
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    for (int byte = 0; byte < 4; ++byte)
      hash = (hash ^ ((bits(decoded(dtype, code)) >> (8 * byte)) & 0xff)) * 0x100000001b3u;
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  EXPECT_EQ(fixture().metadata().at(name), digits);
}

TEST_P(NumberFormat, EveryNumberSurvivesARoundTrip) {
  const DType dtype = GetParam();
  const int wide = 8 * size_of(dtype);
  // All encodings of up to 16 bits; of 32 those with a pattern in the lower half.
  for (std::uint32_t upper = 0; upper < (wide == 8 ? 256u : 0x10000u); ++upper) {
    for (std::uint32_t lower : wide == 32 ? std::vector<std::uint32_t>{0, 0x8000, 0xe000} : std::vector{0u}) {
      const std::uint32_t code = wide == 32 ? upper << 16 | lower : upper;
      const float value = decoded(dtype, code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decoded(dtype, encoded(dtype, value)))) << code;
      } else if (dtype == DType::boolean) {
        EXPECT_EQ(encoded(dtype, value), code == 0 ? 0u : 1u);
      } else if (is_integer(dtype) && wide == 32) {
        EXPECT_EQ(decoded(dtype, encoded(dtype, value)),
                  value == 0x1p31f && dtype == DType::i32 ? decoded(dtype, 0x7fffffff) : value);
      } else {
        ASSERT_EQ(encoded(dtype, value), code);
      }
    }
  }
}

TEST_P(NumberFormat, TouchesItsBytesOnly) {
  const DType dtype = GetParam();
  unsigned char place[16];
  std::memset(place, 0xa5, sizeof place);
  encode(dtype, 1, place + 5);  // at an odd address
  EXPECT_EQ(decode(dtype, place + 5), 1);
  for (std::size_t i = 0; i < sizeof place; ++i) {
    const bool inside = i >= 5 && i < 5 + static_cast<std::size_t>(size_of(dtype));
    EXPECT_TRUE(inside || place[i] == 0xa5) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, NumberFormat, ::testing::ValuesIn(formats()),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(NumberFormats, OverflowAsTheyShould) {
  EXPECT_EQ(decoded(DType::f16, encoded(DType::f16, 65519)), 65504);
  EXPECT_EQ(decoded(DType::f16, encoded(DType::f16, 65520)), kInfinity);
  EXPECT_EQ(decoded(DType::f8e4m3, encoded(DType::f8e4m3, 247)), 240);
  EXPECT_EQ(decoded(DType::f8e4m3, encoded(DType::f8e4m3, -248)), -kInfinity);
  EXPECT_EQ(decoded(DType::f8e5m2, encoded(DType::f8e5m2, 61440)), kInfinity);
  EXPECT_EQ(decoded(DType::f8e4m3fn, encoded(DType::f8e4m3fn, 464)), 448);
  EXPECT_TRUE(std::isnan(decoded(DType::f8e4m3fn, encoded(DType::f8e4m3fn, 464.001f))));
  EXPECT_TRUE(std::isnan(decoded(DType::f8e4m3fn, encoded(DType::f8e4m3fn, kInfinity))));
  EXPECT_EQ(decoded(DType::bf16, encoded(DType::bf16, 3.4e38f)), kInfinity);
  EXPECT_EQ(decoded(DType::tf32, encoded(DType::tf32, 3.4028235e38f)), kInfinity);
}

TEST(NumberFormats, KeepSubnormalsAndTheSignOfZero) {
  for (DType dtype :
       {DType::f32, DType::tf32, DType::bf16, DType::f16, DType::f8e5m2, DType::f8e4m3, DType::f8e4m3fn}) {
    const FloatFormat format = float_format(dtype);
    const auto smallest = static_cast<float>(std::ldexp(1.0, 1 - format.bias - format.mantissa_bits));
    EXPECT_EQ(encoded(dtype, smallest), 1u << format.unused_bits) << name_of(dtype);
    EXPECT_EQ(decoded(dtype, encoded(dtype, -smallest)), -smallest) << name_of(dtype);
    EXPECT_TRUE(std::signbit(decoded(dtype, encoded(dtype, -0.0f)))) << name_of(dtype);
  }
}

TEST(NumberFormats, PowersOfTwo) {
  const auto power = [](float value) { return encoded(DType::f8e8m0fnu, value); };
  EXPECT_EQ(power(1), 127u);
  EXPECT_EQ(power(2.999f), 128u);
  EXPECT_EQ(power(3), 129u);
  EXPECT_EQ(power(1e-45f), 0u);
  EXPECT_EQ(power(0x1p-127f), 0u);
  EXPECT_EQ(power(0x1.0001p-127f), 1u);
  EXPECT_EQ(power(0x1.7ffffep127f), 254u);
  for (float value : {0.0f, -0.0f, -1.0f, kInfinity, -kInfinity, kNaN, 0x1.8p127f})
    EXPECT_EQ(power(value), 255u) << value;
}

TEST(NumberFormats, IntegersSaturate) {
  EXPECT_EQ(decoded(DType::i8, encoded(DType::i8, 2.5f)), 2);
  EXPECT_EQ(decoded(DType::i8, encoded(DType::i8, 127.5f)), 127);
  EXPECT_EQ(decoded(DType::i8, encoded(DType::i8, -kInfinity)), -128);
  EXPECT_EQ(decoded(DType::u8, encoded(DType::u8, -3)), 0);
  EXPECT_EQ(encoded(DType::i32, kInfinity), 0x7fffffffu);
  EXPECT_EQ(encoded(DType::i32, -3e9f), 0x80000000u);
  EXPECT_EQ(encoded(DType::u32, 5e9f), 0xffffffffu);
  EXPECT_EQ(encoded(DType::i16, kNaN), 0u);
  EXPECT_EQ(encoded(DType::boolean, kNaN), 1u);
  EXPECT_EQ(encoded(DType::boolean, -0.0f), 0u);
  EXPECT_EQ(decoded(DType::boolean, 0x40), 1);
}

TEST(NumberFormats, TheRestIsRefused) {
  std::uint64_t element = 0;
  for (DType dtype : {DType::f64, DType::f8e4m3fn_x4, DType::f8e5m2_x4, DType::f4e2m1fn_x4}) {
    EXPECT_THROW(decode(dtype, &element), Bug);
    EXPECT_THROW(encode(dtype, 1, &element), Bug);
  }
}

}  // namespace
}  // namespace headway
