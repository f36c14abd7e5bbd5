// Products with a weight matrix. x [..., in], weight [out, in].
#pragma once

#include "graph/graph.h"

namespace headway::graph {

// y [..., out] = x weight^T.
struct Linear : Operator {
  std::string_view name() const override { return "linear"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

// (dy [..., out], weight) -> dx [..., in] = dy weight.
struct LinearGradInput : Operator {
  std::string_view name() const override { return "linear_grad_input"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

// (dy [..., out], x [..., in]) -> dweight [out, in] = dy^T x.
struct LinearGradWeight : Operator {
  std::string_view name() const override { return "linear_grad_weight"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

Value linear(Graph& graph, Value x, Value weight);

// Product of all extents but the last: the rows that row-wise operators work on.
std::int64_t rows(const Shape& shape);

}  // namespace headway::graph
