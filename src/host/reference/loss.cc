#include "graph/operators/loss.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "graph/operators/linear.h"
#include "host/kernel.h"
#include "host/reference/references.h"

namespace headway::host {
namespace {

constexpr std::int32_t kIgnored = -1;  // a target that doesn't count

// How many targets count. Throws InputError for one that is neither a token nor kIgnored.
std::int64_t counted(const Tensor& targets, std::int64_t vocab, const char* op) {
  std::int64_t count = 0;
  for (std::int64_t r = 0; r < targets.count(); ++r) {
    const std::int32_t target = targets.as<std::int32_t>()[r];
    if (target == kIgnored) continue;
    if (target < 0 || target >= vocab) {
      throw InputError(
          op, "target " + std::to_string(target) + " is outside the vocabulary of " + std::to_string(vocab));
    }
    ++count;
  }
  return count;
}

template <class T>
T capped(T logit, T cap) {
  return cap > 0 ? cap * std::tanh(logit / cap) : logit;
}

// log sum_v exp(c_v) over one row of `vocab` logits.
template <class T>
T log_sum_exp(const T* logits, std::int64_t vocab, T cap) {
  T largest = capped(logits[0], cap);
  for (std::int64_t v = 1; v < vocab; ++v) largest = std::max(largest, capped(logits[v], cap));
  T sum = 0;
  for (std::int64_t v = 0; v < vocab; ++v) sum += std::exp(capped(logits[v], cap) - largest);
  return largest + std::log(sum);
}

// logits [rows, vocab], targets [rows] -> loss []
template <class T>
void softcap_cross_entropy(const Call& call) {
  const T cap = static_cast<T>(call.op<graph::SoftcapCrossEntropy>().cap);
  const auto* targets = call.inputs[1].as<std::int32_t>();
  const std::int64_t vocab = call.inputs[0].shape.back();
  const std::int64_t count = counted(call.inputs[1], vocab, "[softcap_cross_entropy]");
  double total = 0;
  for (std::int64_t r = 0; r < call.inputs[1].count(); ++r) {
    const T* logits = call.inputs[0].as<T>() + r * vocab;
    if (targets[r] != kIgnored) total += log_sum_exp(logits, vocab, cap) - capped(logits[targets[r]], cap);
  }
  *call.outputs[0].as<T>() = count > 0 ? static_cast<T>(total / static_cast<double>(count)) : T(0);
}

// logits [rows, vocab], targets [rows], dloss [] -> dlogits [rows, vocab]
template <class T>
void softcap_cross_entropy_grad(const Call& call) {
  const T cap = static_cast<T>(call.op<graph::SoftcapCrossEntropyGrad>().cap);
  const auto* targets = call.inputs[1].as<std::int32_t>();
  const T dloss = *call.inputs[2].as<T>();
  const std::int64_t vocab = call.inputs[0].shape.back();
  const std::int64_t count = counted(call.inputs[1], vocab, "[softcap_cross_entropy_grad]");
  std::fill_n(call.outputs[0].as<T>(), call.outputs[0].count(), T(0));
  for (std::int64_t r = 0; r < call.inputs[1].count(); ++r) {
    if (targets[r] == kIgnored) continue;
    const T* logits = call.inputs[0].as<T>() + r * vocab;
    T* dlogits = call.outputs[0].as<T>() + r * vocab;
    const T lse = log_sum_exp(logits, vocab, cap);
    for (std::int64_t v = 0; v < vocab; ++v) {
      const T c = capped(logits[v], cap);
      const T slope = cap > 0 ? 1 - (c / cap) * (c / cap) : T(1);
      dlogits[v] =
          dloss / static_cast<T>(count) * (std::exp(c - lse) - (v == targets[r] ? T(1) : T(0))) * slope;
    }
  }
}

}  // namespace

void register_loss_references() {
  Reference("softcap_cross_entropy", softcap_cross_entropy<float>, softcap_cross_entropy<double>);
  Reference("softcap_cross_entropy_grad", softcap_cross_entropy_grad<float>,
            softcap_cross_entropy_grad<double>);
}

}  // namespace headway::host
