// The elementary functions against the C library in double: as exact as their header says, all lanes and
// rests.
#include "simd/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"

namespace headway {
namespace {

struct Function {
  const char* name;
  void (*fast)(const float*, float*, std::int64_t);
  double (*exact)(double);
  double low, high;
  double relative_error;
};

class VectorMath : public ::testing::TestWithParam<Function> {};

TEST_P(VectorMath, IsAsExactAsItSays) {
  const Function& f = GetParam();
  Random random(7);
  std::vector<float> x(100'003), y(x.size());
  for (float& value : x) value = static_cast<float>(random.uniform(f.low, f.high));
  f.fast(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = f.exact(double{x[i]});
    ASSERT_NEAR(y[i], exact, f.relative_error * std::abs(exact)) << f.name << "(" << x[i] << ")";
  }
}

TEST_P(VectorMath, DependsOnNothingButTheElement) {
  const Function& f = GetParam();
  Random random(8);
  std::vector<float> x(67), whole(x.size());
  for (float& value : x) value = static_cast<float>(random.uniform(f.low, f.high));
  f.fast(x.data(), whole.data(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    float alone[2] = {0, 42};
    f.fast(&x[i], alone, 1);
    EXPECT_EQ(alone[0], whole[i]) << f.name << "(" << x[i] << ")";
    EXPECT_EQ(alone[1], 42) << "written beyond the end";
  }
}

TEST_P(VectorMath, KeepsNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  float y = 0;
  GetParam().fast(&nan, &y, 1);
  EXPECT_TRUE(std::isnan(y));
}

INSTANTIATE_TEST_SUITE_P(
    All, VectorMath,
    ::testing::Values(Function{"exp", simd::vector_math::exp, std::exp, -87.3, 88.3, 9e-8},
                      Function{"tanh", simd::vector_math::tanh, std::tanh, -12, 12, 1.5e-7},
                      Function{"sigmoid", simd::vector_math::sigmoid,
                               [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80, 1.5e-7},
                      Function{"normal_cdf", simd::vector_math::normal_cdf,
                               [](double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }, -13, 13, 5e-7}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace headway
