#include "graph/operators/loss.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "graph/operators/linear.h"
#include "host/kernels/families.h"
#include "host/kernels/loss_rows.h"
#include "host/kernels/vectors.h"
#include "simd/simd_math.h"

namespace headway::host {
namespace {

constexpr std::int64_t kLogits = 512;

F32 capped(F32 logits, float cap, float inverse) { return cap > 0 ? cap * tanh(logits * inverse) : logits; }

F32 gradient(F32 capped, float inverse, float lse, float factor) {
  const F32 t = capped * inverse;
  return exp(capped - lse) * factor * (1.0f - t * t);
}

}  // namespace

void cap_piece(const float* logits, float* to, std::int64_t count, float cap, RowSum& row) {
  const float lowest = -std::numeric_limits<float>::infinity();
  const float inverse = cap > 0 ? 1 / cap : 0;
  const std::int64_t whole = count / kLanes * kLanes;
  F32 top = splat(lowest);
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    const F32 c = capped(load(logits + i), cap, inverse);
    store(to + i, c);
    top = maximum(c, top);
  }
  if (whole < count) {
    const F32 c = capped(load_first(logits + whole, count - whole, lowest), cap, inverse);
    store_first(to + whole, c, count - whole);
    for (std::int64_t i = whole; i < count; ++i) top = maximum(splat(to[i]), top);
  }
  const float largest_now = std::max(row.largest, largest(top));
  if (row.total > 0) row.total *= std::exp(row.largest - largest_now);
  row.largest = largest_now;
  F32 total{};
  for (std::int64_t i = 0; i < whole; i += kLanes) total += exp(load(to + i) - largest_now);
  if (whole < count) total += exp(load_first(to + whole, count - whole, lowest) - largest_now);
  row.total += sum(total);
}

void gradient_piece(float* x, std::int64_t count, float cap, float lse, float factor, bool round) {
  const float inverse = cap > 0 ? 1 / cap : 0;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const F32 d = gradient(load(x + i), inverse, lse, factor);
    store(x + i, round ? round_to_bf16(d) : d);
  }
  if (i < count) {
    const F32 d = gradient(load_first(x + i, count - i), inverse, lse, factor);
    store_first(x + i, round ? round_to_bf16(d) : d, count - i);
  }
}

float target_gradient(float capped, float cap, float lse, float factor, bool round) {
  const float t = cap > 0 ? capped / cap : 0;
  const F32 d = splat(factor * (exp(splat(capped - lse))[0] - 1) * (1 - t * t));
  return (round ? round_to_bf16(d) : d)[0];
}

std::int64_t counted_targets(const Tensor& targets, std::int64_t vocab) {
  std::int64_t count = 0;
  for (std::int64_t r = 0; r < targets.count(); ++r) {
    const std::int32_t target = targets.as<std::int32_t>()[r];
    if (target == kIgnoredTarget) continue;
    if (target < 0 || target >= vocab) {
      throw InputError(
          "[softcap_cross_entropy]",
          "target " + std::to_string(target) + " is outside the vocabulary of " + std::to_string(vocab));
    }
    ++count;
  }
  return count;
}

namespace {

// Workspace: the loss of every row, so that the sum doesn't depend on who computed them.
class SoftcapCrossEntropyKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const auto cap = static_cast<float>(call.op<graph::SoftcapCrossEntropy>().cap);
    const std::int64_t vocab = call.inputs[0].shape.back(), rows = call.inputs[1].count();
    const std::int64_t count = counted_targets(call.inputs[1], vocab);
    const auto* targets = call.inputs[1].as<std::int32_t>();
    auto* losses = static_cast<float*>(call.workspace);
    call.pool.for_range(rows, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) float piece[kLogits];
      for (std::int64_t r = begin; r < end; ++r) {
        losses[r] = 0;
        if (targets[r] == kIgnoredTarget) continue;
        const float* logits = call.inputs[0].as<float>() + r * vocab;
        RowSum row;
        float target = 0;
        for (std::int64_t v = 0; v < vocab; v += kLogits) {
          const std::int64_t n = std::min(kLogits, vocab - v);
          cap_piece(logits + v, piece, n, cap, row);
          if (targets[r] >= v && targets[r] < v + n) target = piece[targets[r] - v];
        }
        losses[r] = row.log_sum_exp() - target;
      }
    });
    double total = 0;
    for (std::int64_t r = 0; r < rows; ++r) total += static_cast<double>(losses[r]);
    *call.outputs[0].as<float>() = count > 0 ? static_cast<float>(total / static_cast<double>(count)) : 0.0f;
  }
  std::int64_t workspace(std::span<const graph::Operator* const>, std::span<const graph::TensorType> inputs,
                         std::span<const graph::TensorType>, int) const override {
    return elements(inputs[1].shape) * static_cast<std::int64_t>(sizeof(float));
  }
};

class SoftcapCrossEntropyGradKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const auto cap = static_cast<float>(call.op<graph::SoftcapCrossEntropyGrad>().cap);
    const std::int64_t vocab = call.inputs[0].shape.back();
    const std::int64_t count = counted_targets(call.inputs[1], vocab);
    const auto* targets = call.inputs[1].as<std::int32_t>();
    const float factor = *call.inputs[2].as<float>() / static_cast<float>(std::max<std::int64_t>(count, 1));
    call.pool.for_range(call.inputs[1].count(), [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t r = begin; r < end; ++r) {
        const float* logits = call.inputs[0].as<float>() + r * vocab;
        float* dlogits = call.outputs[0].as<float>() + r * vocab;
        if (targets[r] == kIgnoredTarget) {
          std::fill_n(dlogits, vocab, 0.0f);
          continue;
        }
        RowSum row;
        for (std::int64_t v = 0; v < vocab; v += kLogits)
          cap_piece(logits + v, dlogits + v, std::min(kLogits, vocab - v), cap, row);
        const float lse = row.log_sum_exp();
        const float target = dlogits[targets[r]];
        gradient_piece(dlogits, vocab, cap, lse, factor, false);
        dlogits[targets[r]] = target_gradient(target, cap, lse, factor, false);
      }
    });
  }
  int may_overwrite(int) const override { return 0; }
};

}  // namespace

void add_loss_kernels(Kernels& kernels) {
  kernels.add("softcap_cross_entropy", std::make_shared<SoftcapCrossEntropyKernel>());
  kernels.add("softcap_cross_entropy_grad", std::make_shared<SoftcapCrossEntropyGradKernel>());
}

}  // namespace headway::host
