#include <cmath>
#include <limits>
#include <memory>

#include "host/kernels/attention_blocks.h"
#include "host/kernels/families.h"
#include "host/kernels/vectors.h"
#include "simd/simd_math.h"

namespace headway::host {
namespace {

// Query rows at a time, fewer where sequences are long: all scores of a block are kept, in the second cache
// if possible.
std::int64_t block_rows(const AttentionSizes& s) {
  constexpr std::int64_t kScores = 96 * 1024;
  const std::int64_t tiles = std::clamp<std::int64_t>(kScores / s.padded_time / kTileRows, 1, 8);
  return tiles * kTileRows;
}

// Blocks of kBlockK keys that a query block may need: one more than fit, since it starts at a panel.
std::int64_t key_blocks(const AttentionSizes& s) { return (s.padded_time + kBlockK - 1) / kBlockK; }

// Scratch of one thread, in floats.
struct Scratch {
  std::int64_t keys, values, queries, scores, total;
  explicit Scratch(const AttentionSizes& s)
      : keys(0),
        values(keys + s.packed_keys()),
        queries(values + s.packed_keys()),
        scores(queries + s.packed_rows(block_rows(s))),
        total(scores + key_blocks(s) * block_rows(s) * kRowStride) {}
};

// A row of scores of the keys from `begin` on, which lies in pieces of kBlockK keys.
class Row {
 public:
  Row(float* scores, std::int64_t rows, std::int64_t begin) : scores_(scores), rows_(rows), begin_(begin) {}

  // Calls f(scores, count, a, b) for every piece of the keys [begin, end): its first `count` scores, of which
  // [a, b) are of the keys [first, last) that the row sees.
  template <class F>
  void pieces(std::int64_t end, std::int64_t first, std::int64_t last, const F& f) const {
    for (std::int64_t j = begin_; j < end; j += kBlockK) {
      const std::int64_t count = std::min(kBlockK, end - j);
      f(scores_ + (j - begin_) / kBlockK * rows_ * kRowStride, count,
        std::clamp<std::int64_t>(first - j, 0, count), std::clamp<std::int64_t>(last - j, 0, count));
    }
  }

 private:
  float* scores_;
  std::int64_t rows_, begin_;
};

float largest_of(const float* x, std::int64_t first, std::int64_t last) {
  const float lowest = -std::numeric_limits<float>::infinity();
  F32 top = splat(lowest);
  std::int64_t j = first;
  for (; j + kLanes <= last; j += kLanes) top = maximum(load(x + j), top);
  if (j < last) top = maximum(load_first(x + j, last - j, lowest), top);
  return largest(top);
}

// x[j] = e^(x[j] scale - top) for first <= j < last, 0 for other j < count; returns the sum.
float exponentials(float* x, std::int64_t count, std::int64_t first, std::int64_t last, float scale,
                   float top) {
  F32 total{};
  for (std::int64_t j = 0; j < first; ++j) x[j] = 0;
  std::int64_t j = first;
  for (; j + kLanes <= last; j += kLanes) {
    const F32 e = exp(load(x + j) * scale - top);
    total += e;
    store(x + j, e);
  }
  if (j < last) {
    const F32 e = exp(load_first(x + j, last - j, -std::numeric_limits<float>::infinity()) * scale - top);
    total += e;
    store_first(x + j, e, last - j);
    j = last;
  }
  for (; j < count; ++j) x[j] = 0;
  return sum(total);
}

// One head of one sequence against packed keys and values.
void attend(const AttentionSizes& s, float scale, const float* q, const float* keys, const float* values,
            float* o, float* lse, float* queries, float* scores) {
  const std::int64_t block = block_rows(s);
  for (std::int64_t i0 = 0; i0 < s.time; i0 += block) {
    const std::int64_t rows = std::min(block, s.time - i0);
    pack_queries(s, rows, q + i0 * s.row(), queries);
    const std::int64_t begin = first_key(s, i0) / kTileColumns * kTileColumns;
    for (std::int64_t j = begin; j < i0 + rows; j += kBlockK) {
      score_block(s, i0, rows, j, std::min(j + kBlockK, i0 + rows), queries, keys,
                  scores + (j - begin) / kBlockK * rows * kRowStride);
    }

    const std::int64_t tiles = (rows + kTileRows - 1) / kTileRows;
    for (std::int64_t t = 0; t < tiles; ++t) {
      const std::int64_t r0 = rows * t / tiles, r1 = rows * (t + 1) / tiles;
      // Some row of this tile sees the keys [start, end).
      const std::int64_t start = first_key(s, i0 + r0), end = i0 + r1;
      float inverse[kTileRows];
      for (std::int64_t r = r0; r < r1; ++r) {
        const Row row(scores + r * kRowStride, rows, begin);
        const std::int64_t first = first_key(s, i0 + r), last = i0 + r + 1;
        float top = -std::numeric_limits<float>::infinity();
        row.pieces(end, first, last, [&](const float* x, std::int64_t, std::int64_t a, std::int64_t b) {
          if (a < b) top = std::max(top, largest_of(x, a, b));
        });
        top *= scale;
        float total = 0;
        row.pieces(end, first, last, [&](float* x, std::int64_t count, std::int64_t a, std::int64_t b) {
          total += exponentials(x, count, a, b, scale, top);
        });
        inverse[r - r0] = 1 / total;
        lse[i0 + r] = top + std::log(total);
      }
      for (std::int64_t c = 0; c < s.d; c += kTileColumns) {
        const std::int64_t columns = std::min<std::int64_t>(kTileColumns, s.d - c);
        bool accumulate = false;
        for (std::int64_t j = begin; j < end; j += kBlockK) {
          const std::int64_t first = std::max(j, start), last = std::min(j + kBlockK, end);
          if (first >= last) continue;
          gemm_tile(ByRows::yes, static_cast<int>(r1 - r0), last - first,
                    scores + ((j - begin) / kBlockK * rows + r0) * kRowStride + first - j, 0,
                    values + c * s.time + first * kTileColumns, o + (i0 + r0) * s.row() + c, s.row(), columns,
                    accumulate);
          accumulate = true;
        }
      }
      for (std::int64_t r = r0; r < r1; ++r) {
        float* to = o + (i0 + r) * s.row();
        for (std::int64_t c = 0; c < s.d; ++c) to[c] *= inverse[r - r0];
      }
    }
  }
}

class AttentionKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const graph::AttentionShape& shape = call.op<graph::Attention>().shape;
    const AttentionSizes s(shape, call.inputs[0].shape);
    const Scratch scratch(s);
    // A head and its sequence are one piece of work; consecutive ones share packed keys and values.
    call.pool.for_range(s.batch * s.heads, [&](std::int64_t begin, std::int64_t end, int thread) {
      float* own = static_cast<float*>(call.workspace) + scratch.total * thread;
      std::int64_t packed = -1;
      for (std::int64_t work = begin; work < end; ++work) {
        const std::int64_t b = work / s.heads, h = work % s.heads, kv = h / s.group();
        const std::int64_t kv_at = b * s.time * s.kv_row() + kv * s.d;
        if (packed != kv_at) {
          pack_along_depth(s, call.inputs[1].as<float>() + kv_at, own + scratch.keys);
          pack_b(false, s.time, s.d, call.inputs[2].as<float>() + kv_at, s.kv_row(), own + scratch.values,
                 false);
          packed = kv_at;
        }
        const std::int64_t at = b * s.time * s.row() + h * s.d;
        attend(s, static_cast<float>(shape.scale), call.inputs[0].as<float>() + at, own + scratch.keys,
               own + scratch.values, call.outputs[0].as<float>() + at,
               call.outputs[1].as<float>() + work * s.time, own + scratch.queries, own + scratch.scores);
      }
    });
  }
  std::int64_t workspace(std::span<const graph::Operator* const> ops,
                         std::span<const graph::TensorType> inputs, std::span<const graph::TensorType>,
                         int threads) const override {
    const auto& op = dynamic_cast<const graph::Attention&>(*ops[0]);
    return Scratch(AttentionSizes(op.shape, inputs[0].shape)).total * threads *
           static_cast<std::int64_t>(sizeof(float));
  }
};

}  // namespace

void add_attention_kernels(Kernels& kernels) {
  kernels.add("attention", std::make_shared<AttentionKernel>());
}

}  // namespace headway::host
