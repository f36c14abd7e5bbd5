// Conversions against the definition of each format (tests/base/number_format_test.cc checks that against
// ml_dtypes).
#include "simd/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/number_format.h"
#include "base/random.h"

namespace headway {
namespace {

using Bytes = std::vector<unsigned char>;

std::vector<DType> formats() {
  std::vector<DType> all;
  for (int i = 0; i < kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype != DType::f64 && !is_packed(dtype)) all.push_back(dtype);
  }
  return all;
}

// Float32 patterns around everything that rounds: all upper halves with lower halves at and beside the
// middles of each format, random ones, and the middles between whole numbers.
const std::vector<float>& floats() {
  static const std::vector<float> all = [] {
    std::vector<float> values;
    for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
      for (std::uint32_t lower :
           {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff})
        values.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
    Random random(11);
    for (int i = 0; i < 300'000; ++i)
      values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random.bits())));
    for (int i = 0; i < 100'000; ++i) {
      const auto whole =
          static_cast<float>(std::ldexp(random.uniform(-1, 1), static_cast<int>(random.below(34))));
      const float middle = std::floor(whole) + 0.5f;
      for (float towards : {-INFINITY, middle, INFINITY}) values.push_back(std::nextafter(middle, towards));
    }
    return values;
  }();
  return all;
}

// Calls convert(begin, count) for consecutive pieces of [0, n) of all small lengths.
template <class F>
void in_pieces(std::size_t n, const F& convert) {
  std::size_t length = 1;
  for (std::size_t begin = 0; begin < n; begin += length, length = length % 131 + 1)
    convert(begin, std::min(length, n - begin));
}

class Convert : public ::testing::TestWithParam<DType> {};

TEST_P(Convert, FromFloatIsEncode) {
  const DType dtype = GetParam();
  const auto size = static_cast<std::size_t>(size_of(dtype));
  const std::vector<float>& in = floats();
  Bytes out(in.size() * size);
  in_pieces(in.size(), [&](std::size_t begin, std::size_t count) {
    simd::from_float(dtype, in.data() + begin, out.data() + begin * size, static_cast<std::int64_t>(count));
  });
  for (std::size_t i = 0; i < in.size(); ++i) {
    unsigned char expected[4];
    encode(dtype, in[i], expected);
    ASSERT_EQ(std::memcmp(out.data() + i * size, expected, size), 0)
        << std::hexfloat << in[i] << ", 0x" << std::hex << std::bit_cast<std::uint32_t>(in[i]);
  }
}

TEST_P(Convert, ToFloatIsDecode) {
  const DType dtype = GetParam();
  const auto size = static_cast<std::size_t>(size_of(dtype));
  Bytes in;
  if (size == 4) {
    for (float value : floats()) {
      const auto bits = std::bit_cast<std::uint32_t>(value);
      for (int byte = 0; byte < 4; ++byte) in.push_back(static_cast<unsigned char>(bits >> (8 * byte)));
    }
  } else {
    for (std::uint32_t code = 0; code < 1u << (8 * size); ++code)
      for (std::size_t byte = 0; byte < size; ++byte)
        in.push_back(static_cast<unsigned char>(code >> (8 * byte)));
  }
  std::vector<float> out(in.size() / size);
  in_pieces(out.size(), [&](std::size_t begin, std::size_t count) {
    simd::to_float(dtype, in.data() + begin * size, out.data() + begin, static_cast<std::int64_t>(count));
  });
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float expected = decode(dtype, in.data() + i * size);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(expected))
        << "element " << i;
  }
}

TEST_P(Convert, WritesNothingBeyondTheEnd) {
  const DType dtype = GetParam();
  const std::size_t size = static_cast<std::size_t>(size_of(dtype)), most = 70;
  const std::vector<float> ones(most, 1);
  for (std::size_t n = 0; n < most; ++n) {
    Bytes encoded(most * size, 0xa5);
    simd::from_float(dtype, ones.data(), encoded.data(), static_cast<std::int64_t>(n));
    for (std::size_t i = n * size; i < encoded.size(); ++i) ASSERT_EQ(encoded[i], 0xa5) << n;
    std::vector<float> decoded(most, 42);
    simd::to_float(dtype, encoded.data(), decoded.data(), static_cast<std::int64_t>(n));
    for (std::size_t i = 0; i < most; ++i) ASSERT_EQ(decoded[i], i < n ? 1 : 42) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Convert, ::testing::ValuesIn(formats()),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(Conversions, TheRestIsRefused) {
  float value = 1;
  std::uint64_t element = 0;
  for (DType dtype : {DType::f64, DType::f8e4m3fn_x4, DType::f8e5m2_x4, DType::f4e2m1fn_x4}) {
    EXPECT_THROW(simd::from_float(dtype, &value, &element, 1), Bug);
    EXPECT_THROW(simd::to_float(dtype, &element, &value, 1), Bug);
  }
}

}  // namespace
}  // namespace headway
