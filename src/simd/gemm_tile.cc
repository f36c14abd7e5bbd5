#include "simd/gemm_tile.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace headway::simd {
inline namespace HEADWAY_VECTORS {
namespace {

using Tile = void (*)(std::int64_t k, const float* a, std::int64_t step, const float* b, float* c,
                      std::int64_t ldc, bool accumulate);

template <int rows, bool by_rows>
void tile(std::int64_t k, const float* a, std::int64_t step, const float* b, float* c, std::int64_t ldc,
          bool accumulate) {
  // Where C comes from memory, it arrives while the products are taken.
  for (int i = 0; i < rows; ++i) {
    __builtin_prefetch(c + i * ldc, 1);
    __builtin_prefetch(c + i * ldc + kTileColumns - 1, 1);
  }
  F32 sums[rows][kTileVectors] = {};
#pragma GCC unroll 2
  for (std::int64_t l = 0; l < k; ++l) {
    F32 row_of_b[kTileVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) row_of_b[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const F32 element = splat(a[by_rows ? i * kRowStride : i]);
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) sums[i][v] += element * row_of_b[v];
    }
    a += by_rows ? 1 : step;
    b += kTileColumns;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
      float* to = c + i * ldc + v * kLanes;
      store(to, accumulate ? load(to) + sums[i][v] : sums[i][v]);
    }
  }
}

template <bool by_rows, std::size_t... i>
constexpr std::array<Tile, sizeof...(i)> tiles(std::index_sequence<i...>) {
  return {tile<static_cast<int>(i) + 1, by_rows>...};
}
constexpr auto kByRows = tiles<true>(std::make_index_sequence<kTileRows>());
constexpr auto kByColumns = tiles<false>(std::make_index_sequence<kTileRows>());

F32 rounded(F32 value, bool round) { return round ? round_to_bf16(value) : value; }

// Copies `count` floats, rounding if asked.
void copy(const float* from, float* to, std::int64_t count, bool round) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, rounded(load(from + i), round));
  if (i < count) store_first(to + i, rounded(load_first(from + i, count - i), round), count - i);
}

// Transposes the kLanes x kLanes block at `from` (rows ld_from apart) to `to`, in log2(kLanes) rounds in
// which pairs of rows exchange ever smaller halves.
void transpose_block(const float* from, std::int64_t ld_from, float* to, std::int64_t ld_to, bool round) {
  F32 rows[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) rows[i] = rounded(load(from + i * ld_from), round);
#pragma GCC unroll 4
  for (int half = kLanes / 2; half > 0; half /= 2) {
    I32 low{}, high{};
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane) {
      const bool upper = (lane & half) != 0;
      low[lane] = upper ? kLanes + lane - half : lane;
      high[lane] = upper ? kLanes + lane : lane + half;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if ((i & half) != 0) continue;
      const F32 a = rows[i], b = rows[i + half];
      rows[i] = __builtin_shuffle(a, b, low);
      rows[i + half] = __builtin_shuffle(a, b, high);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) store(to + i * ld_to, rows[i]);
}

}  // namespace

void gemm_tile(ByRows form, int rows, std::int64_t k, const float* a, std::int64_t step, const float* b,
               float* c, std::int64_t ldc, std::int64_t columns, bool accumulate) {
  const Tile run = (form == ByRows::yes ? kByRows : kByColumns)[static_cast<std::size_t>(rows - 1)];
  if (columns >= kTileColumns) {
    run(k, a, step, b, c, ldc, accumulate);
    return;
  }
  alignas(64) float edge[kTileRows * kTileColumns];
  run(k, a, step, b, edge, kTileColumns, false);
  for (int i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      float& to = c[i * ldc + j];
      to = (accumulate ? to : 0) + edge[i * kTileColumns + j];
    }
  }
}

void pack_b(bool transposed, std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb, float* packed,
            bool round) {
  for (std::int64_t j = 0; j < n; j += kTileColumns) {
    const std::int64_t columns = std::min<std::int64_t>(kTileColumns, n - j);
    float* panel = packed + j * k;
    if (!transposed) {
      for (std::int64_t l = 0; l < k; ++l) {
        float* to = panel + l * kTileColumns;
        copy(b + l * ldb + j, to, columns, round);
        for (std::int64_t i = columns; i < kTileColumns; ++i) to[i] = 0;
      }
      continue;
    }
    for (std::int64_t i = 0; i < kTileColumns; i += kLanes) {
      std::int64_t l = 0;
      if (i + kLanes <= columns) {
        for (; l + kLanes <= k; l += kLanes) {
          transpose_block(b + (j + i) * ldb + l, ldb, panel + l * kTileColumns + i, kTileColumns, round);
        }
      }
      for (; l < k; ++l) {
        float* to = panel + l * kTileColumns + i;
        F32 values{};
        for (int lane = 0; lane < kLanes && i + lane < columns; ++lane)
          values[lane] = b[(j + i + lane) * ldb + l];
        store(to, rounded(values, round));
      }
    }
  }
}

void pack_b_by_rows(std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb, float* packed,
                    std::int64_t panel) {
  const std::int64_t whole = n / kTileColumns;
  for (std::int64_t l = 0; l < k; ++l) {
    const float* from = b + l * ldb;
    float* to = packed + l * kTileColumns;
    for (std::int64_t p = 0; p < whole; ++p, from += kTileColumns, to += panel)
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) store(to + v * kLanes, load(from + v * kLanes));
    const std::int64_t rest = n - whole * kTileColumns;
    for (std::int64_t i = 0; rest > 0 && i < kTileColumns; ++i) to[i] = i < rest ? from[i] : 0;
  }
}

void transpose(std::int64_t rows, std::int64_t columns, const float* from, std::int64_t ld_from, float* to,
               std::int64_t ld_to) {
  const std::int64_t whole_rows = rows / kLanes * kLanes, whole_columns = columns / kLanes * kLanes;
  for (std::int64_t j = 0; j < whole_columns; j += kLanes)
    for (std::int64_t i = 0; i < whole_rows; i += kLanes)
      transpose_block(from + i * ld_from + j, ld_from, to + j * ld_to + i, ld_to, false);
  const auto one = [&](std::int64_t i, std::int64_t j) {
    std::memcpy(to + j * ld_to + i, from + i * ld_from + j, sizeof(float));
  };
  for (std::int64_t i = 0; i < whole_rows; ++i)
    for (std::int64_t j = whole_columns; j < columns; ++j) one(i, j);
  for (std::int64_t i = whole_rows; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) one(i, j);
}

void pack_rows(std::int64_t m, std::int64_t k, const float* a, std::int64_t lda, float* packed, bool round) {
  for (std::int64_t i = 0; i < m; ++i) copy(a + i * lda, packed + i * kRowStride, k, round);
}

void pack_columns(std::int64_t m, std::int64_t k, const float* a, std::int64_t lda, float* packed,
                  std::int64_t step, bool round) {
  for (std::int64_t l = 0; l < k; ++l) copy(a + l * lda, packed + l * step, m, round);
}

}  // namespace HEADWAY_VECTORS
}  // namespace headway::simd
