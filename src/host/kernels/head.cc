// The head and the loss in one: logits exist for a block of rows at a time, in the caches, as loss, gradient
// of the input and gradient of the weight are taken from them.
#include <algorithm>
#include <cmath>
#include <memory>

#include "graph/operators/linear.h"
#include "graph/operators/loss.h"
#include "host/kernels/families.h"
#include "host/kernels/loss_rows.h"
#include "host/kernels/vectors.h"
#include "simd/gemm_tile.h"

namespace headway::host {
namespace {

// Rows of one thread at a time.
constexpr std::int64_t kRows = 8 * kTileRows;

struct Sizes {
  std::int64_t rows, n, vocab;
  std::int64_t chunks;        // pieces of kBlockK that the vocabulary is cut into
  std::int64_t depth_blocks;  // and the width
  std::int64_t padded_vocab, padded_n;

  Sizes(const Shape& x, const Shape& weight)
      : rows(graph::rows(x)),
        n(weight[1]),
        vocab(weight[0]),
        chunks((vocab + kBlockK - 1) / kBlockK),
        depth_blocks((n + kBlockK - 1) / kBlockK),
        padded_vocab(panels(vocab) * kTileColumns),
        padded_n(panels(n) * kTileColumns) {}
  std::int64_t depth(std::int64_t block) const { return std::min(kBlockK, n - block * kBlockK); }
  std::int64_t chunk(std::int64_t c) const { return std::min(kBlockK, vocab - c * kBlockK); }
};

// Scratch in floats. Shared: the weight packed for logits (multiplied along n) and for dx (along the
// vocabulary), the rows' losses. Per thread: its rows of x as left and as right operand, its logits.
struct Scratch {
  std::int64_t weight_n, weight_vocab, losses, threads;
  std::int64_t x_rows, x_panels, logits, per_thread;
  Scratch(const Sizes& s, bool backward)
      : weight_n(0),
        weight_vocab(weight_n + s.padded_vocab * s.n),
        losses(weight_vocab + (backward ? s.chunks * kBlockK * s.padded_n : 0)),
        threads(losses + (s.rows + 15) / 16 * 16),
        x_rows(0),
        x_panels(x_rows + s.depth_blocks * kRows * kRowStride),
        logits(x_panels + (backward ? kRows * s.padded_n : 0)),
        per_thread(logits + s.chunks * kRows * kRowStride) {}
  std::int64_t bytes(int count) const {
    return (threads + per_thread * count) * static_cast<std::int64_t>(sizeof(float));
  }
};

struct Work {
  Sizes s;
  Scratch scratch;
  const float* x;
  const float* weight;
  const std::int32_t* targets;
  float cap, factor;
  bool backward, round, accumulate_dx, accumulate_dw;
  float *dx, *dw;
  float* space;

  float* own(int thread) const { return space + scratch.threads + scratch.per_thread * thread; }
};

void pack_weight(const Work& w, std::int64_t first_chunk, std::int64_t last_chunk) {
  const Sizes& s = w.s;
  for (std::int64_t c = first_chunk; c < last_chunk; ++c) {
    const float* rows = w.weight + c * kBlockK * s.n;
    for (std::int64_t block = 0; block < s.depth_blocks; ++block) {
      pack_b(true, s.depth(block), s.chunk(c), rows + block * kBlockK, s.n,
             w.space + w.scratch.weight_n + block * kBlockK * s.padded_vocab + c * kBlockK * s.depth(block),
             w.round);
    }
    if (w.backward) {
      pack_b(false, s.chunk(c), s.n, rows, s.n, w.space + w.scratch.weight_vocab + c * kBlockK * s.padded_n,
             w.round);
    }
  }
}

// Losses of the rows [r0, r0 + rows), and, going backward, dx and the gradients of their logits.
void rows_forth_and_back(const Work& w, std::int64_t r0, std::int64_t rows, float* own) {
  const Sizes& s = w.s;
  const float* x = w.x + r0 * s.n;
  const std::int32_t* targets = w.targets + r0;
  float* left = own + w.scratch.x_rows;
  float* logits = own + w.scratch.logits;
  for (std::int64_t block = 0; block < s.depth_blocks; ++block)
    pack_rows(rows, s.depth(block), x + block * kBlockK, s.n, left + block * rows * kRowStride, w.round);

  RowSum sums[kRows];
  float target_logits[kRows] = {};
  for (std::int64_t c = 0; c < s.chunks; ++c) {
    float* chunk = logits + c * kRows * kRowStride;
    for (std::int64_t v = 0; v < s.chunk(c); v += kTileColumns) {
      for (std::int64_t block = 0; block < s.depth_blocks; ++block) {
        gemm_panel(ByRows::yes, rows, s.depth(block), left + block * rows * kRowStride, 0,
                   w.space + w.scratch.weight_n + block * kBlockK * s.padded_vocab +
                       (c * kBlockK + v) * s.depth(block),
                   chunk + v, kRowStride, kTileColumns, block > 0);
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      float* row = chunk + r * kRowStride;
      cap_piece(row, row, s.chunk(c), w.cap, sums[r]);
      const std::int64_t at = targets[r] - c * kBlockK;
      if (at >= 0 && at < kBlockK) target_logits[r] = row[at];
    }
  }

  float lse[kRows];
  for (std::int64_t r = 0; r < rows; ++r) {
    lse[r] = sums[r].log_sum_exp();
    w.space[w.scratch.losses + r0 + r] = targets[r] == kIgnoredTarget ? 0 : lse[r] - target_logits[r];
  }
  if (!w.backward) return;

  for (std::int64_t c = 0; c < s.chunks; ++c) {
    float* chunk = logits + c * kRows * kRowStride;
    for (std::int64_t r = 0; r < rows; ++r) {
      float* row = chunk + r * kRowStride;
      if (targets[r] == kIgnoredTarget) {
        std::fill_n(row, s.chunk(c), 0.0f);
        continue;
      }
      gradient_piece(row, s.chunk(c), w.cap, lse[r], w.factor, w.round);
      const std::int64_t at = targets[r] - c * kBlockK;
      if (at >= 0 && at < kBlockK)
        row[at] = target_gradient(target_logits[r], w.cap, lse[r], w.factor, w.round);
    }
    const float* weight = w.space + w.scratch.weight_vocab + c * kBlockK * s.padded_n;
    for (std::int64_t j = 0; j < s.n; j += kTileColumns) {
      gemm_panel(ByRows::yes, rows, s.chunk(c), chunk, 0, weight + j * s.chunk(c), w.dx + r0 * s.n + j, s.n,
                 s.n - j, w.accumulate_dx || c > 0);
    }
  }
  pack_b(false, rows, s.n, x, s.n, own + w.scratch.x_panels, w.round);
}

// Adds what `rows` rows, whose logit gradients lie in `own`, contribute to dw of the chunks [first, last).
void add_to_weight(const Work& w, std::int64_t first, std::int64_t last, std::int64_t rows, const float* own,
                   bool accumulate) {
  for (std::int64_t c = first; c < last; ++c) {
    for (std::int64_t j = 0; j < w.s.n; j += kTileColumns) {
      gemm_panel(ByRows::no, w.s.chunk(c), rows, own + w.scratch.logits + c * kRows * kRowStride, kRowStride,
                 own + w.scratch.x_panels + j * rows, w.dw + c * kBlockK * w.s.n + j, w.s.n, w.s.n - j,
                 accumulate);
    }
  }
}

void run_all(const Work& w, ThreadPool& pool) {
  const Sizes& s = w.s;
  const int threads = pool.size();
  pool.for_range(s.chunks, [&](std::int64_t begin, std::int64_t end, int) { pack_weight(w, begin, end); });
  const std::int64_t rounds = (s.rows + kRows * threads - 1) / (kRows * threads);
  for (std::int64_t round = 0; round < rounds; ++round) {
    const std::int64_t begin = s.rows * round / rounds, count = s.rows * (round + 1) / rounds - begin;
    const auto first = [&](int thread) { return count * thread / threads; };
    pool.run([&](int thread) {
      const std::int64_t rows = first(thread + 1) - first(thread);
      if (rows > 0) rows_forth_and_back(w, begin + first(thread), rows, w.own(thread));
    });
    if (!w.backward) continue;
    // Every thread's rows, in order, into this thread's part of the vocabulary.
    pool.for_range(s.chunks, [&](std::int64_t first_chunk, std::int64_t last_chunk, int) {
      bool accumulate = w.accumulate_dw || round > 0;
      for (int of = 0; of < threads; ++of) {
        const std::int64_t rows = first(of + 1) - first(of);
        if (rows == 0) continue;
        add_to_weight(w, first_chunk, last_chunk, rows, w.own(of), accumulate);
        accumulate = true;
      }
    });
  }
}

// Inputs x, weight, targets and, going backward, dloss; outputs loss and, going backward, dx, dweight.
class HeadKernel : public Kernel {
 public:
  explicit HeadKernel(bool backward) : backward_(backward) {}

  void run(const Call& call) const override {
    const Sizes s(call.inputs[0].shape, call.inputs[1].shape);
    const std::int64_t count = counted_targets(call.inputs[2], s.vocab);
    Work w{s,
           Scratch(s, backward_),
           call.inputs[0].as<float>(),
           call.inputs[1].as<float>(),
           call.inputs[2].as<std::int32_t>(),
           static_cast<float>(call.op<graph::SoftcapCrossEntropy>(1).cap),
           0,
           backward_,
           call.options.bf16_products,
           false,
           false,
           nullptr,
           nullptr,
           static_cast<float*>(call.workspace)};
    if (backward_) {
      w.factor = *call.inputs[3].as<float>() / static_cast<float>(std::max<std::int64_t>(count, 1));
      w.dx = call.outputs[1].as<float>();
      w.dw = call.outputs[2].as<float>();
      w.accumulate_dx = call.accumulate[1];
      w.accumulate_dw = call.accumulate[2];
    }
    run_all(w, call.pool);
    double total = 0;
    for (std::int64_t r = 0; r < s.rows; ++r) total += static_cast<double>(w.space[w.scratch.losses + r]);
    *call.outputs[0].as<float>() = count > 0 ? static_cast<float>(total / static_cast<double>(count)) : 0.0f;
  }
  std::int64_t workspace(std::span<const graph::Operator* const>, std::span<const graph::TensorType> inputs,
                         std::span<const graph::TensorType>, int threads) const override {
    return Scratch(Sizes(inputs[0].shape, inputs[1].shape), backward_).bytes(threads);
  }
  bool can_accumulate(int output) const override { return output > 0; }

 private:
  bool backward_;
};

}  // namespace

void add_head_kernels(Kernels& kernels) {
  Pattern forward{
      {{"linear", {"x", "w"}, {"logits"}}, {"softcap_cross_entropy", {"logits", "targets"}, {"loss"}}},
      {"x", "w", "targets"},
      {"loss"}};
  Pattern both = forward;
  both.nodes.push_back({"softcap_cross_entropy_grad", {"logits", "targets", "dloss"}, {"dlogits"}});
  both.nodes.push_back({"linear_grad_input", {"dlogits", "w"}, {"dx"}});
  both.nodes.push_back({"linear_grad_weight", {"dlogits", "x"}, {"dw"}});
  both.inputs = {"x", "w", "targets", "dloss"};
  both.outputs = {"loss", "dx", "dw"};
  kernels.add(both, std::make_shared<HeadKernel>(true));
  kernels.add(forward, std::make_shared<HeadKernel>(false));
}

}  // namespace headway::host
