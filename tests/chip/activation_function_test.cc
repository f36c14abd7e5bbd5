// The activation functions over rows, against their definitions in float64.
#include "chip/activation_function.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "chip/exact_functions.h"

namespace headway::chip {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<Function> all_functions() {
  std::vector<Function> all;
  for (std::size_t f = 0; f < names_of(Function{}).size(); ++f) all.push_back(static_cast<Function>(f));
  return all;
}
std::string name(Function f) { return std::string(names_of(f)[static_cast<std::size_t>(f)]); }

struct Mapped {
  std::vector<float> y;
  float outside = 0;
};
Mapped map(Function f, const std::vector<float>& x, std::int64_t rows = 1, float scale = 1,
           float bias = kNoBias) {
  Mapped m;
  m.y.resize(x.size());
  const std::int64_t n = static_cast<std::int64_t>(x.size()) / rows;
  m.outside =
      activation_rows(f, {x.data(), n}, same_value(scale), same_value(bias), {m.y.data(), n}, rows, n);
  return m;
}
float value(Function f, float x) { return map(f, {x}).y[0]; }

// Inputs within the valid range: evenly spread, and spread over magnitudes.
std::vector<float> inputs(Function f, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(f) + 1);
  const ValidRange range = valid_range(f);
  const float high = range.everything ? (f == Function::exp ? 88.7f : 100.0f) : range.high;
  const float low = range.everything || range.low == 0 ? 1e-12f : range.low;
  const bool both_signs = range.everything || range.of_magnitude;
  std::uniform_real_distribution<double> exponent(std::log2(low), std::log2(high)),
      even(0, std::min(high, 12.0f));
  std::vector<float> x(count);
  for (float& v : x) {
    v = static_cast<float>(random() % 2 ? std::exp2(exponent(random)) : even(random));
    v = std::clamp(v, low, high);
    if (both_signs && random() % 2) v = -v;
  }
  x[0] = high;
  x[1] = both_signs ? -high : low;
  return x;
}

class ActivationFunction : public ::testing::TestWithParam<Function> {};

TEST_P(ActivationFunction, IsAsExactAsStated) {
  const Function f = GetParam();
  const Error error = stated_error(f);
  const std::vector<float> x = inputs(f, 200'003);
  const Mapped m = map(f, x);
  EXPECT_TRUE(std::isnan(m.outside)) << m.outside;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = exact(f, double{x[i]});
    ASSERT_LE(std::abs(double{m.y[i]} - expected), error.relative * std::abs(expected) + error.absolute)
        << name(f) << "(" << x[i] << ") = " << m.y[i] << " instead of " << expected;
  }
}

TEST_P(ActivationFunction, DependsOnNothingButTheElement) {
  const Function f = GetParam();
  const std::vector<float> x = inputs(f, 6 * 5 * 7 * 3);
  const std::vector<float> whole = map(f, x).y;
  // Short rows, that are brought together, and long ones; with what doesn't fill a vector.
  for (const std::int64_t n : {1, 2, 6, 15, 63, 90, 105, 630}) {
    const std::vector<float> y = map(f, x, static_cast<std::int64_t>(x.size()) / n).y;
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(y[i], whole[i]) << name(f) << "(" << x[i] << "), rows of " << n;
  }
}

TEST_P(ActivationFunction, WritesNoFurtherThanItsRows) {
  const Function f = GetParam();
  for (const std::int64_t n : {1, 5, 17, 70}) {
    const std::vector<float> x(static_cast<std::size_t>(3 * n), 1.5f);
    std::vector<float> y(static_cast<std::size_t>(3 * (n + 2)), 42);
    const std::vector<float> scale(3, 1), bias(3, kNoBias);
    activation_rows(f, {x.data(), n}, one_a_row(scale.data()), one_a_row(bias.data()), {y.data(), n + 2}, 3,
                    n);
    for (std::int64_t r = 0; r < 3; ++r) {
      EXPECT_EQ(y[static_cast<std::size_t>(r * (n + 2) + n - 1)], value(f, 1.5f));
      EXPECT_EQ(y[static_cast<std::size_t>(r * (n + 2) + n)], 42);
      EXPECT_EQ(y[static_cast<std::size_t>(r * (n + 2) + n + 1)], 42);
    }
  }
}

TEST_P(ActivationFunction, KeepsNaN) {
  // A signalling one and one with every bit of the mantissa too.
  for (const std::uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0x7fffffffu})
    EXPECT_TRUE(std::isnan(value(GetParam(), std::bit_cast<float>(bits))))
        << name(GetParam()) << std::hex << bits;
  EXPECT_TRUE(std::isnan(map(GetParam(), {kNaN, 1.0f}).outside)) << "NaN isn't outside";
}

INSTANTIATE_TEST_SUITE_P(All, ActivationFunction, ::testing::ValuesIn(all_functions()),
                         [](const auto& info) { return name(info.param); });

TEST(ActivationFunctions, ScaleAndBiasRoundOneAfterTheOther) {
  // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24, a tie that rounds to even; fused, the last term would survive the
  // subtraction.
  const float x = 1 + 0x1p-12f;
  for (const std::size_t n : {1u, 100u}) {
    const Mapped m = map(Function::copy, std::vector<float>(n, x), 1, x, -1);
    for (const float y : m.y) EXPECT_EQ(y, 0x1p-11f);
  }
  EXPECT_EQ(map(Function::exp, {3}, 1, 2, -6).y[0], 1);
  // Without a bias nothing is added: -0 stays. Rows with a scale of their own are brought together.
  EXPECT_TRUE(std::signbit(map(Function::copy, {-0.0f}).y[0]));
  const std::vector<float> zeros(6, -0.0f), ones(3, 1), none(3, kNoBias);
  std::vector<float> y(6);
  activation_rows(Function::copy, {zeros.data(), 2}, one_a_row(ones.data()), one_a_row(none.data()),
                  {y.data(), 2}, 3, 2);
  for (const float zero : y) EXPECT_TRUE(std::signbit(zero));
}

TEST(ActivationFunctions, ReachTheirLimitsAtInfinity) {
  using enum Function;
  const struct {
    Function f;
    float below, above;
  } limits[] = {{sigmoid, 0, 1},
                {gelu, 0, kInfinity},
                {gelu_dx, 0, 1},
                {gelu_apprx_tanh, 0, kInfinity},
                {gelu_apprx_sigmoid, 0, kInfinity},
                {gelu_apprx_sigmoid_dx, 0, 1},
                {silu, 0, kInfinity},
                {silu_dx, 0, 1},
                {tanh, -1, 1},
                {softplus, 0, kInfinity},
                {mish, 0, kInfinity},
                {erf, -1, 1},
                {erf_dx, 0, 0},
                {exp, 0, kInfinity},
                {sign, -1, 1},
                {abs, kInfinity, kInfinity},
                {square, kInfinity, kInfinity},
                {relu, 0, kInfinity},
                {prelu, 0, kInfinity},
                {copy, -kInfinity, kInfinity}};
  for (const auto& [f, below, above] : limits) {
    EXPECT_EQ(value(f, -kInfinity), below) << name(f);
    const float lowest = std::numeric_limits<float>::lowest();
    EXPECT_EQ(value(f, lowest), f == copy ? lowest : f == abs ? -lowest : below) << name(f);
    EXPECT_EQ(value(f, kInfinity), above) << name(f);
  }
}

TEST(ActivationFunctions, ExpEndsWhereFloat32Does) {
  EXPECT_NEAR(value(Function::exp, 88.722f) / std::exp(double{88.722f}), 1, 1e-7);
  EXPECT_EQ(value(Function::exp, 88.723f), kInfinity);
  EXPECT_NEAR(value(Function::exp, -87.32f) / std::exp(double{-87.32f}), 1, 1e-7);
  EXPECT_EQ(value(Function::exp, -87.34f), 0) << "no subnormal results";
  EXPECT_EQ(value(Function::exp, 0), 1);
}

TEST(ActivationFunctions, SayWhichInputLiesOutside) {
  using enum Function;
  const float pi = 3.14159274f;
  const struct {
    Function f;
    float last_inside, first_outside;
  } edges[] = {{log, 0x1p64f, 0x1.000002p64f},
               {log, 0x1p-64f, 0x1.fffffep-65f},
               {log, 1, 0},
               {log, 1, -1},
               {sin, pi, std::nextafter(pi, 4.0f)},
               {sin, -pi, -std::nextafter(pi, 4.0f)},
               {arctan, pi / 2, std::nextafter(pi / 2, 4.0f)},
               {arctan, -pi / 2, -2},
               {sqrt, 0x1p118f, 0x1.000002p118f},
               {sqrt, 0x1p-116f, 0},
               {sqrt, 1, -1},
               {rsqrt, 0x1p97f, 0x1.000002p97f},
               {rsqrt, 0x1p-87f, 0x1.fffffep-88f},
               {reciprocal, 0x1p42f, 0x1.000002p42f},
               {reciprocal, -0x1p-42f, -0x1.fffffep-43f},
               {reciprocal, -1, -kInfinity}};
  for (const auto& [f, inside, outside] : edges) {
    EXPECT_TRUE(std::isnan(map(f, {inside}).outside)) << name(f) << inside;
    for (const std::int64_t rows : {1, 10}) {
      std::vector<float> x(70, inside);
      x[67] = outside;
      EXPECT_EQ(map(f, x, rows).outside, outside) << name(f) << outside;
    }
  }
  for (const Function f : all_functions()) {
    if (valid_range(f).everything) {
      EXPECT_TRUE(std::isnan(map(f, {kInfinity, -1e30f}).outside)) << name(f);
    }
  }
}

TEST(ActivationFunctions, GoOnOutsideTheirRange) {
  using enum Function;
  // The documentation: sin isn't reduced, a cubic is extrapolated, sin(9) is about 27.65.
  EXPECT_NEAR(value(sin, 9), 27.65, 0.005);
  EXPECT_EQ(value(sin, -9), -value(sin, 9));
  EXPECT_NEAR(value(sin, 3.2f), std::sin(3.2), 1e-5) << "no step at pi";
  EXPECT_NEAR(value(arctan, 100), std::atan(100.0), 2e-7);
  EXPECT_FLOAT_EQ(value(arctan, -kInfinity), -1.57079637f);
  EXPECT_EQ(value(log, 0), -kInfinity);
  EXPECT_EQ(value(log, 0x1p-140f), -kInfinity) << "subnormal numbers count as zero";
  EXPECT_TRUE(std::isnan(value(log, -1)));
  EXPECT_TRUE(std::isnan(value(log, -0x1p-140f)));
  EXPECT_EQ(value(log, kInfinity), kInfinity);
  EXPECT_EQ(value(sqrt, 0), 0);
  EXPECT_TRUE(std::isnan(value(sqrt, -1)));
  EXPECT_EQ(value(rsqrt, 0), kInfinity);
  EXPECT_EQ(value(reciprocal, 0), kInfinity);
  EXPECT_EQ(value(reciprocal, -kInfinity), 0);
}

}  // namespace
}  // namespace headway::chip
