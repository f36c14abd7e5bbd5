#include "graph/operators/loss.h"

#include "graph/operators/linear.h"

namespace headway::graph {
namespace {

bool fits(std::span<const TensorType> in) {
  return in.size() >= 2 && !in[0].shape.empty() && in[1].dtype == DType::i32 &&
         rows(in[0].shape) == elements(in[1].shape);
}

}  // namespace

std::vector<TensorType> SoftcapCrossEntropy::infer(std::span<const TensorType> in) const {
  require(in.size() == 2 && fits(in), *this, "takes logits [..., vocab] and an int32 target a row", in);
  return {{{}, in[0].dtype}};
}

std::vector<Value> SoftcapCrossEntropy::gradient(const GradientRequest& r) const {
  return {r.graph.apply1(std::make_shared<SoftcapCrossEntropyGrad>(cap),
                         {r.inputs[0], r.inputs[1], r.output_gradients[0]}),
          {}};
}

std::vector<TensorType> SoftcapCrossEntropyGrad::infer(std::span<const TensorType> in) const {
  require(in.size() == 3 && fits(in) && in[2].shape.empty(), *this,
          "takes logits, targets and a scalar dloss", in);
  return {in[0]};
}

Value softcap_cross_entropy(Graph& graph, Value logits, Value targets, double cap) {
  return graph.apply1(std::make_shared<SoftcapCrossEntropy>(cap), {logits, targets});
}

}  // namespace headway::graph
