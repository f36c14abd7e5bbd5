// Matrix products against sums in double, on shapes around the edges of tiles, panels and blocks.
#include "simd/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/random.h"

namespace headway {
namespace {

std::vector<float> random_floats(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

void multiply(const simd::Gemm& g, int threads) {
  ThreadPool pool(threads, false);
  const auto bytes = static_cast<std::size_t>(simd::gemm_workspace(g.m, g.n, g.k, threads));
  std::unique_ptr<void, decltype(&std::free)> workspace(std::aligned_alloc(64, (bytes + 63) / 64 * 64),
                                                        std::free);
  simd::gemm(g, pool, workspace.get());
}

struct Case {
  std::int64_t m, n, k;
};

class GemmTest : public ::testing::TestWithParam<Case> {};

TEST_P(GemmTest, IsTheSumOfProducts) {
  const auto [m, n, k] = GetParam();
  const std::int64_t spare = 5;  // beyond the rows, never to be written
  for (int form = 0; form < 16; ++form) {
    simd::Gemm g;
    g.m = m;
    g.n = n;
    g.k = k;
    g.a_transposed = form & 1;
    g.b_transposed = form & 2;
    g.accumulate = form & 4;
    g.round_to_bf16 = form & 8;
    g.lda = (g.a_transposed ? m : k) + spare;
    g.ldb = (g.b_transposed ? k : n) + spare;
    g.ldc = n + spare;
    const std::vector<float> a = random_floats(g.lda * (g.a_transposed ? k : m), 1);
    const std::vector<float> b = random_floats(g.ldb * (g.b_transposed ? n : k), 2);
    const std::vector<float> before = random_floats(g.ldc * m, 3);
    std::vector<float> c = before;
    g.a = a.data();
    g.b = b.data();
    g.c = c.data();
    std::mutex mutex;
    std::vector<int> times(static_cast<std::size_t>(m * n));
    g.finished = [&](std::int64_t row_begin, std::int64_t row_end, std::int64_t column_begin,
                     std::int64_t column_end) {
      const std::lock_guard lock(mutex);
      for (std::int64_t i = row_begin; i < row_end; ++i)
        for (std::int64_t j = column_begin; j < column_end; ++j) ++times[static_cast<std::size_t>(i * n + j)];
    };
    multiply(g, 2);

    const auto operand = [&](float value) { return double{g.round_to_bf16 ? round_to_bf16(value) : value}; };
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < g.ldc; ++j) {
        const auto at = static_cast<std::size_t>(i * g.ldc + j);
        if (j >= n) {
          ASSERT_EQ(c[at], before[at]) << "beyond row " << i;
          continue;
        }
        double sum = g.accumulate ? double{before[at]} : 0, size = std::abs(sum);
        for (std::int64_t l = 0; l < k; ++l) {
          const double product =
              operand(a[static_cast<std::size_t>(g.a_transposed ? l * g.lda + i : i * g.lda + l)]) *
              operand(b[static_cast<std::size_t>(g.b_transposed ? j * g.ldb + l : l * g.ldb + j)]);
          sum += product;
          size += std::abs(product);
        }
        ASSERT_NEAR(c[at], sum, 1e-6 * size) << i << ", " << j << " of form " << form;
        ASSERT_EQ(times[static_cast<std::size_t>(i * n + j)], 1) << i << ", " << j;
      }
    }

    std::vector<float> alone = before;
    g.c = alone.data();
    g.finished = nullptr;
    multiply(g, 1);
    ASSERT_EQ(alone, c) << "depends on the number of threads, form " << form;
  }
}

std::string shape_name(const ::testing::TestParamInfo<Case>& info) {
  return std::to_string(info.param.m) + "x" + std::to_string(info.param.n) + "x" +
         std::to_string(info.param.k);
}

INSTANTIATE_TEST_SUITE_P(Shapes, GemmTest,
                         ::testing::Values(Case{1, 1, 1}, Case{3, 5, 7}, Case{14, 32, 256}, Case{15, 33, 257},
                                           Case{128, 128, 128}, Case{113, 65, 300}, Case{2, 1100, 530}),
                         shape_name);

}  // namespace
}  // namespace headway
