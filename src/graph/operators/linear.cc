#include "graph/operators/linear.h"

namespace headway::graph {

std::int64_t rows(const Shape& shape) { return shape.empty() ? 1 : elements(shape) / shape.back(); }

std::vector<TensorType> Linear::infer(std::span<const TensorType> in) const {
  require(in.size() == 2 && !in[0].shape.empty() && in[1].shape.size() == 2 &&
              in[0].shape.back() == in[1].shape[1],
          *this, "takes x [..., in] and weight [out, in]", in);
  Shape shape = in[0].shape;
  shape.back() = in[1].shape[0];
  return {{shape, in[0].dtype}};
}

std::vector<Value> Linear::gradient(const GradientRequest& r) const {
  const Value dy = r.output_gradients[0];
  std::vector<Value> result(2);
  if (r.needed[0]) result[0] = r.graph.apply1(std::make_shared<LinearGradInput>(), {dy, r.inputs[1]});
  if (r.needed[1]) result[1] = r.graph.apply1(std::make_shared<LinearGradWeight>(), {dy, r.inputs[0]});
  return result;
}

double Linear::flops(std::span<const TensorType> in, std::span<const TensorType>) const {
  return 2.0 * static_cast<double>(elements(in[0].shape)) * static_cast<double>(in[1].shape[0]);
}

std::vector<TensorType> LinearGradInput::infer(std::span<const TensorType> in) const {
  require(in.size() == 2 && !in[0].shape.empty() && in[1].shape.size() == 2 &&
              in[0].shape.back() == in[1].shape[0],
          *this, "takes dy [..., out] and weight [out, in]", in);
  Shape shape = in[0].shape;
  shape.back() = in[1].shape[1];
  return {{shape, in[0].dtype}};
}

double LinearGradInput::flops(std::span<const TensorType> in, std::span<const TensorType>) const {
  return 2.0 * static_cast<double>(elements(in[0].shape)) * static_cast<double>(in[1].shape[1]);
}

std::vector<TensorType> LinearGradWeight::infer(std::span<const TensorType> in) const {
  require(in.size() == 2 && !in[0].shape.empty() && !in[1].shape.empty() &&
              rows(in[0].shape) == rows(in[1].shape),
          *this, "takes dy [..., out] and x [..., in] with equal rows", in);
  return {{{in[0].shape.back(), in[1].shape.back()}, in[0].dtype}};
}

double LinearGradWeight::flops(std::span<const TensorType> in, std::span<const TensorType>) const {
  return 2.0 * static_cast<double>(elements(in[0].shape)) * static_cast<double>(in[1].shape.back());
}

Value linear(Graph& graph, Value x, Value weight) {
  return graph.apply1(std::make_shared<Linear>(), {x, weight});
}

}  // namespace headway::graph
