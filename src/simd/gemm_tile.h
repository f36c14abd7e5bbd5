// The innermost matrix product: a tile of C that lives in registers while the reduction runs through packed
// operands.
//
// Packed B: panels of kTileColumns columns, each [k][kTileColumns], the last padded with zeros.
// Packed A, by rows: [rows][kRowStride], at most kBlockK of a row used. By columns: [k][step], a column of
// A^T a row. Neither needs a transpose where the reduction is the other dimension of the source, and both can
// be written by whatever produces A (a softmax, an activation), so that products chain without a packing
// pass.
#pragma once

#include <cstdint>

#include "simd/simd.h"

namespace headway::simd {
inline namespace HEADWAY_VECTORS {

// As many accumulators as the register file holds beside two vectors of B and a broadcast element of A.
#if defined(__AVX512F__)
inline constexpr int kTileRows = 14;
#elif defined(__AVX__)
inline constexpr int kTileRows = 6;
#elif defined(__aarch64__)
inline constexpr int kTileRows = 12;
#else
inline constexpr int kTileRows = 6;
#endif
inline constexpr int kTileVectors = 2;
inline constexpr int kTileColumns = kTileVectors * kLanes;

// The reduction is cut into blocks of kBlockK: a panel of B and a tile of A then stay in the first two
// caches. The row stride is off the power of two so that the rows of a tile fall into different cache sets.
inline constexpr std::int64_t kBlockK = 256;
inline constexpr std::int64_t kRowStride = kBlockK + 16;

// How A is packed.
enum class ByRows { no, yes };

// C [rows, kTileColumns] (+)= A [rows, k] B [k, kTileColumns]; rows in 1..kTileRows. `step` is the distance
// between successive k of an A packed by columns. Stores the first `columns` columns only.
void gemm_tile(ByRows form, int rows, std::int64_t k, const float* a, std::int64_t step, const float* b,
               float* c, std::int64_t ldc, std::int64_t columns, bool accumulate);

// Rows [0, m) of C against one panel of B, cut into tiles of nearly equal heights.
inline void gemm_panel(ByRows form, std::int64_t m, std::int64_t k, const float* a, std::int64_t step,
                       const float* b, float* c, std::int64_t ldc, std::int64_t columns, bool accumulate) {
  const std::int64_t tiles = (m + kTileRows - 1) / kTileRows;
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t row = m * t / tiles;
    const auto rows = static_cast<int>(m * (t + 1) / tiles - row);
    gemm_tile(form, rows, k, a + (form == ByRows::yes ? row * kRowStride : row), step, b, c + row * ldc, ldc,
              columns, accumulate);
  }
}

// Packs `n` columns (any number) of B [k, n] into panels; `transposed` says that the source is B^T [n, k].
// Panels are k * kTileColumns apart. `round` rounds to bfloat16.
void pack_b(bool transposed, std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb, float* packed,
            bool round);
// The same for a B that isn't transposed, a row at a time: for rows that come from far away and are long.
// Panels are `panel` floats apart, at least k * kTileColumns.
void pack_b_by_rows(std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb, float* packed,
                    std::int64_t panel);
// Packs A [m, k], k <= kBlockK, by rows.
void pack_rows(std::int64_t m, std::int64_t k, const float* a, std::int64_t lda, float* packed, bool round);
// Packs the transpose of a source [k, m] by columns, `step` apart.
void pack_columns(std::int64_t m, std::int64_t k, const float* a, std::int64_t lda, float* packed,
                  std::int64_t step, bool round);

// to [columns, rows] = the transpose of from [rows, columns], bit for bit, whatever the 32 bits of an element
// mean.
void transpose(std::int64_t rows, std::int64_t columns, const float* from, std::int64_t ld_from, float* to,
               std::int64_t ld_to);

inline std::int64_t panels(std::int64_t n) { return (n + kTileColumns - 1) / kTileColumns; }

}  // namespace HEADWAY_VECTORS
}  // namespace headway::simd
