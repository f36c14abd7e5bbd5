// What the attention kernels share: blocks of query rows against all keys of one head, without the masked
// tiles.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/operators/sequence.h"
#include "host/kernel.h"
#include "host/kernels/vectors.h"
#include "simd/gemm_tile.h"

namespace headway::host {

// Sizes of one attention call.
struct AttentionSizes {
  std::int64_t batch, time, heads, kv_heads, d, window;
  std::int64_t padded_time;   // time rounded up to whole panels
  std::int64_t depth_blocks;  // pieces of at most kBlockK that the head dimension is cut into

  AttentionSizes(const graph::AttentionShape& shape, const Shape& q)
      : batch(q[0]),
        time(q[1]),
        heads(shape.heads),
        kv_heads(shape.kv_heads),
        d(shape.head_dim),
        window(std::min(shape.window, q[1])),
        padded_time(panels(time) * kTileColumns),
        depth_blocks((d + kBlockK - 1) / kBlockK) {}

  std::int64_t group() const { return heads / kv_heads; }
  std::int64_t row() const { return heads * d; }        // floats between positions of q
  std::int64_t kv_row() const { return kv_heads * d; }  // and of k and v
  std::int64_t depth(std::int64_t block) const { return std::min(kBlockK, d - block * kBlockK); }
  // Floats of a packed [time, d] or [d, time] operand, and of `rows` rows packed as the left operand.
  std::int64_t packed_keys() const { return padded_time * (panels(d) * kTileColumns); }
  std::int64_t packed_rows(std::int64_t rows) const { return depth_blocks * rows * kRowStride; }
};

// Packs the heads' rows [time, d] of k or v (rows kv_row apart) as the right operand that is multiplied along
// d.
inline void pack_along_depth(const AttentionSizes& s, const float* from, float* to) {
  for (std::int64_t block = 0; block < s.depth_blocks; ++block) {
    pack_b(true, s.depth(block), s.time, from + block * kBlockK, s.kv_row(),
           to + block * kBlockK * s.padded_time, false);
  }
}

// Packs `rows` rows of q or do (rows `row` apart) as the left operand.
inline void pack_queries(const AttentionSizes& s, std::int64_t rows, const float* from, float* to) {
  for (std::int64_t block = 0; block < s.depth_blocks; ++block)
    pack_rows(rows, s.depth(block), from + block * kBlockK, s.row(), to + block * rows * kRowStride, false);
}

// The first key that row i sees.
inline std::int64_t first_key(const AttentionSizes& s, std::int64_t i) {
  return std::max<std::int64_t>(0, i - s.window);
}

// out[r, j - key_begin] = left[r] . right[j] for the rows i0 + r, r < rows, and the keys [key_begin, key_end)
// that lie in a panel of which the row sees something; other elements of `out` (rows kRowStride apart) are
// untouched. key_begin is the beginning of a panel and key_end - key_begin <= kBlockK.
inline void score_block(const AttentionSizes& s, std::int64_t i0, std::int64_t rows, std::int64_t key_begin,
                        std::int64_t key_end, const float* left, const float* right, float* out) {
  for (std::int64_t j = key_begin; j < key_end; j += kTileColumns) {
    const std::int64_t first = std::max<std::int64_t>(0, j - i0);
    const std::int64_t last = std::min(rows, j + kTileColumns + s.window - i0);
    if (first >= last) continue;
    for (std::int64_t block = 0; block < s.depth_blocks; ++block) {
      const std::int64_t depth = s.depth(block);
      gemm_panel(ByRows::yes, last - first, depth, left + (block * rows + first) * kRowStride, 0,
                 right + block * kBlockK * s.padded_time + j * depth,
                 out + first * kRowStride + j - key_begin, kRowStride, kTileColumns, block > 0);
    }
  }
}

}  // namespace headway::host
