#include "base/random.h"

#include <gtest/gtest.h>

#include <vector>

namespace headway {
namespace {

TEST(Random, IsSplitMix64) {
  // The generator's published first values for seed 0.
  Random random(0);
  EXPECT_EQ(random.bits(), 0xe220a8397b1dcdafu);
  EXPECT_EQ(random.bits(), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(random.bits(), 0x06c45d188009454fu);
}

TEST(Random, ResumesFromItsState) {
  Random random(42);
  for (int i = 0; i < 5; ++i) random.normal();
  Random resumed(random.state());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(resumed.normal(), random.normal());
}

TEST(Random, UniformNumbersFillTheirRangeEvenly) {
  Random random(1);
  std::vector<int> bins(10, 0);
  for (int i = 0; i < 100000; ++i) {
    const double u = random.uniform(-2, 3);
    ASSERT_GE(u, -2);
    ASSERT_LT(u, 3);
    ++bins[static_cast<std::size_t>((u + 2) * 2)];
  }
  // Each count is binomial with a standard deviation of 95.
  for (int count : bins) EXPECT_NEAR(count, 10000, 500);
}

TEST(Random, BelowReachesEveryNumberAndNoOther) {
  Random random(2);
  for (std::uint64_t n : {1u, 2u, 7u}) {
    std::vector<int> counts(n, 0);
    for (int i = 0; i < 7000; ++i) ++counts.at(random.below(n));
    for (int count : counts) EXPECT_NEAR(count, 7000.0 / static_cast<double>(n), 250);
  }
}

TEST(Random, NormalNumbersHaveTheMomentsOfTheNormalDistribution) {
  Random random(3);
  const int n = 200000;
  double sum = 0, squares = 0, fourth = 0, beyond = 0;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    beyond += std::abs(x) > 1.959964 ? 1 : 0;
  }
  // Five standard errors each.
  EXPECT_NEAR(sum / n, 0, 5 * 1 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96.0 / n));
  EXPECT_NEAR(beyond / n, 0.05, 5 * std::sqrt(0.05 * 0.95 / n));
}

}  // namespace
}  // namespace headway
