// The training loss.
#pragma once

#include "graph/graph.h"

namespace headway::graph {

// (logits [..., vocab], targets [...] i32) -> mean over the targets that aren't -1 of -log
// softmax(c)[target], with c = cap tanh(logits / cap), or the logits themselves when cap is 0. 0 when every
// target is -1.
struct SoftcapCrossEntropy : Operator {
  explicit SoftcapCrossEntropy(double cap) : cap(cap) {}
  const double cap;
  std::string_view name() const override { return "softcap_cross_entropy"; }
  nlohmann::json attributes() const override { return {{"cap", cap}}; }
  bool takes_tokens(std::size_t input) const override { return input == 1; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
  int eager_launches() const override { return cap > 0 ? 5 : 2; }
};

// (logits, targets, dloss []) -> dlogits.
struct SoftcapCrossEntropyGrad : Operator {
  explicit SoftcapCrossEntropyGrad(double cap) : cap(cap) {}
  const double cap;
  std::string_view name() const override { return "softcap_cross_entropy_grad"; }
  nlohmann::json attributes() const override { return {{"cap", cap}}; }
  bool takes_tokens(std::size_t input) const override { return input == 1; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  int eager_launches() const override { return cap > 0 ? 6 : 2; }
};

Value softcap_cross_entropy(Graph& graph, Value logits, Value targets, double cap);

}  // namespace headway::graph
