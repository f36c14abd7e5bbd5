#include <memory>

#include "host/kernels/attention_blocks.h"
#include "host/kernels/families.h"
#include "host/kernels/vectors.h"
#include "simd/lanes.h"
#include "simd/simd_math.h"

namespace headway::host {
namespace {

// Query rows at a time: the reduction of dk and dv, long enough that their tiles are seldom loaded and
// stored.
constexpr std::int64_t kQueryRows = 112;

// Scratch of one thread, in floats: operands by the dimension they are multiplied along, then one block of
// probabilities and of score gradients.
struct Scratch {
  std::int64_t keys_depth, keys_time, values_depth, q_rows, do_rows, q_time, do_time, p, ds, total;
  explicit Scratch(const AttentionSizes& s)
      : keys_depth(0),
        keys_time(keys_depth + s.packed_keys()),
        values_depth(keys_time + s.packed_keys()),
        q_rows(values_depth + s.packed_keys()),
        do_rows(q_rows + s.packed_rows(kQueryRows)),
        q_time(do_rows + s.packed_rows(kQueryRows)),
        do_time(q_time + kQueryRows * panels(s.d) * kTileColumns),
        p(do_time + kQueryRows * panels(s.d) * kTileColumns),
        ds(p + kQueryRows * kRowStride),
        total(ds + kQueryRows * kRowStride) {}
};

// In place: scores -> p = e^(scale score - lse), products do.v -> ds = scale p (do.v - mean), for first <= j
// < last; both 0 elsewhere below count.
void score_gradients(float* p, float* ds, std::int64_t count, std::int64_t first, std::int64_t last,
                     float scale, float lse, float mean) {
  const auto zero = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j) p[j] = ds[j] = 0;
  };
  zero(0, first);
  std::int64_t j = first;
  for (; j + kLanes <= last; j += kLanes) {
    const F32 probability = exp(load(p + j) * scale - lse);
    store(p + j, probability);
    store(ds + j, probability * scale * (load(ds + j) - mean));
  }
  if (j < last) {
    const F32 probability = exp(load_first(p + j, last - j) * scale - lse);
    store_first(p + j, probability, last - j);
    store_first(ds + j, probability * scale * (load_first(ds + j, last - j) - mean), last - j);
  }
  zero(std::max(first, last), count);
}

// to [keys, d] += left [rows, keys]^T right [rows, d] for the keys [begin, end), where row r sees key j only
// if j <= i0 + r <= j + window.
void add_to_keys(const AttentionSizes& s, std::int64_t i0, std::int64_t rows, std::int64_t begin,
                 std::int64_t end, const float* left, const float* right, float* to) {
  const std::int64_t keys = end - begin, tiles = (keys + kTileRows - 1) / kTileRows;
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t j0 = keys * t / tiles, j1 = keys * (t + 1) / tiles;
    const std::int64_t first = std::max<std::int64_t>(0, begin + j0 - i0);
    const std::int64_t last = std::min(rows, begin + j1 + s.window - i0);
    if (first >= last) continue;
    for (std::int64_t c = 0; c < s.d; c += kTileColumns) {
      gemm_tile(ByRows::no, static_cast<int>(j1 - j0), last - first, left + first * kRowStride + j0,
                kRowStride, right + c * rows + first * kTileColumns, to + (begin + j0) * s.kv_row() + c,
                s.kv_row(), s.d - c, true);
    }
  }
}

struct Head {
  const float *q, *o, *d_o, *lse;
  float *dq, *dk, *dv;
};

void head_gradients(const AttentionSizes& s, float scale, const Head& head, float* own, const Scratch& at) {
  float *p = own + at.p, *ds = own + at.ds;
  float mean[kQueryRows];
  for (std::int64_t i0 = 0; i0 < s.time; i0 += kQueryRows) {
    const std::int64_t rows = std::min(kQueryRows, s.time - i0);
    const float *q = head.q + i0 * s.row(), *d_o = head.d_o + i0 * s.row();
    pack_queries(s, rows, q, own + at.q_rows);
    pack_queries(s, rows, d_o, own + at.do_rows);
    pack_b(false, rows, s.d, q, s.row(), own + at.q_time, false);
    pack_b(false, rows, s.d, d_o, s.row(), own + at.do_time, false);
    for (std::int64_t r = 0; r < rows; ++r)
      mean[r] = dot(d_o + r * s.row(), head.o + (i0 + r) * s.row(), s.d);

    const std::int64_t begin = first_key(s, i0) / kTileColumns * kTileColumns;
    const std::int64_t end = i0 + rows;
    for (std::int64_t j = begin; j < end; j += kBlockK) {
      const std::int64_t j_end = std::min(end, j + kBlockK);
      score_block(s, i0, rows, j, j_end, own + at.q_rows, own + at.keys_depth, p);
      score_block(s, i0, rows, j, j_end, own + at.do_rows, own + at.values_depth, ds);
      for (std::int64_t r = 0; r < rows; ++r) {
        score_gradients(p + r * kRowStride, ds + r * kRowStride, j_end - j,
                        std::clamp<std::int64_t>(first_key(s, i0 + r) - j, 0, j_end - j),
                        std::clamp<std::int64_t>(i0 + r + 1 - j, 0, j_end - j), scale, head.lse[i0 + r],
                        mean[r]);
      }
      add_to_keys(s, i0, rows, j, j_end, p, own + at.do_time, head.dv);
      add_to_keys(s, i0, rows, j, j_end, ds, own + at.q_time, head.dk);
      // dq of a tile of rows: from the first to the last key that one of them sees.
      const std::int64_t tiles = (rows + kTileRows - 1) / kTileRows;
      for (std::int64_t t = 0; t < tiles; ++t) {
        const std::int64_t r0 = rows * t / tiles, r1 = rows * (t + 1) / tiles;
        const std::int64_t start = first_key(s, i0 + r0);
        const std::int64_t first = std::max(j, start), last = std::min(j_end, i0 + r1);
        if (first >= last) continue;
        for (std::int64_t c = 0; c < s.d; c += kTileColumns) {
          gemm_tile(ByRows::yes, static_cast<int>(r1 - r0), last - first, ds + r0 * kRowStride + first - j, 0,
                    own + at.keys_time + c * s.time + first * kTileColumns, head.dq + (i0 + r0) * s.row() + c,
                    s.row(), s.d - c, first > start);
        }
      }
    }
  }
}

class AttentionGradKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const graph::AttentionShape& shape = call.op<graph::AttentionGrad>().shape;
    const AttentionSizes s(shape, call.inputs[0].shape);
    const Scratch scratch(s);
    // One head of keys and values is one piece of work: the query heads that share it add to dk and dv in
    // turn.
    call.pool.for_range(s.batch * s.kv_heads, [&](std::int64_t begin, std::int64_t end, int thread) {
      float* own = static_cast<float*>(call.workspace) + scratch.total * thread;
      for (std::int64_t work = begin; work < end; ++work) {
        const std::int64_t b = work / s.kv_heads, kv = work % s.kv_heads;
        const std::int64_t kv_at = b * s.time * s.kv_row() + kv * s.d;
        const float *k = call.inputs[1].as<float>() + kv_at, *v = call.inputs[2].as<float>() + kv_at;
        pack_along_depth(s, k, own + scratch.keys_depth);
        pack_along_depth(s, v, own + scratch.values_depth);
        pack_b(false, s.time, s.d, k, s.kv_row(), own + scratch.keys_time, false);
        Head head{};
        head.dk = call.outputs[1].as<float>() + kv_at;
        head.dv = call.outputs[2].as<float>() + kv_at;
        for (std::int64_t t = 0; t < s.time; ++t) {
          std::fill_n(head.dk + t * s.kv_row(), s.d, 0.0f);
          std::fill_n(head.dv + t * s.kv_row(), s.d, 0.0f);
        }
        for (std::int64_t h = kv * s.group(); h < (kv + 1) * s.group(); ++h) {
          const std::int64_t at = b * s.time * s.row() + h * s.d;
          head.q = call.inputs[0].as<float>() + at;
          head.o = call.inputs[3].as<float>() + at;
          head.lse = call.inputs[4].as<float>() + (b * s.heads + h) * s.time;
          head.d_o = call.inputs[5].as<float>() + at;
          head.dq = call.outputs[0].as<float>() + at;
          head_gradients(s, static_cast<float>(shape.scale), head, own, scratch);
        }
      }
    });
  }
  std::int64_t workspace(std::span<const graph::Operator* const> ops,
                         std::span<const graph::TensorType> inputs, std::span<const graph::TensorType>,
                         int threads) const override {
    const auto& op = dynamic_cast<const graph::AttentionGrad&>(*ops[0]);
    return Scratch(AttentionSizes(op.shape, inputs[0].shape)).total * threads *
           static_cast<std::int64_t>(sizeof(float));
  }
};

}  // namespace

void add_attention_grad_kernels(Kernels& kernels) {
  kernels.add("attention_grad", std::make_shared<AttentionGradKernel>());
}

}  // namespace headway::host
