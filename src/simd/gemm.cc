#include "simd/gemm.h"

#include <algorithm>

#include "simd/gemm_tile.h"

namespace headway::simd {
namespace {

// Rows of A that are packed at a time: with kBlockK columns they stay in the second cache.
constexpr std::int64_t kBlockRows = kTileRows * 8;
// Floats of B that are packed at a time.
constexpr std::int64_t kBlockB = 256 * 1024;
constexpr std::int64_t kColumnStep = kBlockRows + 16;
constexpr std::int64_t kPackedA = std::max(kBlockRows * kRowStride, kBlockK* kColumnStep);

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

// How B is cut: columns first, so that whole reductions (and `finished`) come early where they fit.
struct Cut {
  std::int64_t columns, k;
  Cut(std::int64_t n, std::int64_t k_all) {
    columns = std::min(round_up(n, kTileColumns), round_up(kBlockB / kBlockK, kTileColumns));
    k = std::min(k_all, std::max(kBlockK, kBlockB / columns / kBlockK * kBlockK));
  }
  std::int64_t floats() const { return round_up(columns * k, 16); }
};

// A grid of threads over C that packs least: A is packed once a column of the grid, B once a row.
struct Grid {
  int rows = 1, columns = 1;
  Grid(std::int64_t m, std::int64_t n, int threads) {
    double least = 0;
    for (int r = 1; r <= threads; ++r) {
      if (threads % r != 0) continue;
      const int c = threads / r;
      const double packed = static_cast<double>(round_up((m + r - 1) / r, kTileRows)) +
                            static_cast<double>(round_up((n + c - 1) / c, kTileColumns));
      if (r == 1 || packed <= least) {
        least = packed;
        rows = r;
        columns = c;
      }
    }
  }
};

void part(const Gemm& g, std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1, float* packed_a,
          float* packed_b) {
  const Cut cut(n1 - n0, g.k);
  const ByRows form = g.a_transposed ? ByRows::no : ByRows::yes;
  const std::int64_t blocks = (m1 - m0 + kBlockRows - 1) / kBlockRows;
  for (std::int64_t n = n0; n < n1; n += cut.columns) {
    const std::int64_t columns = std::min(cut.columns, n1 - n);
    for (std::int64_t k = 0; k < g.k; k += cut.k) {
      const std::int64_t k_end = std::min(g.k, k + cut.k);
      // Panels of one block of k lie together.
      for (std::int64_t l = k; l < k_end; l += kBlockK) {
        const std::int64_t depth = std::min(kBlockK, k_end - l);
        pack_b(g.b_transposed, depth, columns, g.b + (g.b_transposed ? n * g.ldb + l : l * g.ldb + n), g.ldb,
               packed_b + (l - k) * round_up(columns, kTileColumns), g.round_to_bf16);
      }
      for (std::int64_t block = 0; block < blocks; ++block) {
        const std::int64_t m = m0 + (m1 - m0) * block / blocks;
        const std::int64_t rows = m0 + (m1 - m0) * (block + 1) / blocks - m;
        for (std::int64_t l = k; l < k_end; l += kBlockK) {
          const std::int64_t depth = std::min(kBlockK, k_end - l);
          if (g.a_transposed) {
            pack_columns(rows, depth, g.a + l * g.lda + m, g.lda, packed_a, kColumnStep, g.round_to_bf16);
          } else {
            pack_rows(rows, depth, g.a + m * g.lda + l, g.lda, packed_a, g.round_to_bf16);
          }
          const float* panel = packed_b + (l - k) * round_up(columns, kTileColumns);
          for (std::int64_t j = 0; j < columns; j += kTileColumns, panel += depth * kTileColumns) {
            gemm_panel(form, rows, depth, packed_a, kColumnStep, panel, g.c + m * g.ldc + n + j, g.ldc,
                       columns - j, g.accumulate || l > 0);
          }
        }
        if (g.finished && k_end == g.k) g.finished(m, m + rows, n, n + columns);
      }
    }
  }
}

}  // namespace

std::int64_t gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k, int threads) {
  const Grid grid(m, n, threads);
  const Cut cut(round_up((n + grid.columns - 1) / grid.columns, kTileColumns), k);
  return (cut.floats() + kPackedA) * threads * static_cast<std::int64_t>(sizeof(float));
}

void gemm(const Gemm& product, ThreadPool& pool, void* workspace) {
  const Gemm& g = product;
  const Grid grid(g.m, g.n, pool.size());
  const Cut cut(round_up((g.n + grid.columns - 1) / grid.columns, kTileColumns), g.k);
  const std::int64_t panel_count = panels(g.n);
  pool.run([&](int thread) {
    const int row = thread / grid.columns, column = thread % grid.columns;
    const std::int64_t m0 = g.m * row / grid.rows, m1 = g.m * (row + 1) / grid.rows;
    const std::int64_t n0 = panel_count * column / grid.columns * kTileColumns;
    const std::int64_t n1 = std::min(g.n, panel_count * (column + 1) / grid.columns * kTileColumns);
    if (m0 == m1 || n0 >= n1) return;
    float* packed_a = static_cast<float*>(workspace) + (cut.floats() + kPackedA) * thread;
    part(g, m0, m1, n0, n1, packed_a, packed_a + kPackedA);
  });
}

}  // namespace headway::simd
