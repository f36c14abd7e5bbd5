#include "graph/operators/elementwise.h"

#include "base/error.h"
#include "graph/operators/linear.h"

namespace headway::graph {
namespace {

// Shape rule of operators whose operands all look alike.
std::vector<TensorType> alike(const Operator& op, std::span<const TensorType> in, std::size_t count) {
  bool equal = count == 0 ? !in.empty() : in.size() == count;
  for (const TensorType& type : in) equal = equal && type == in[0];
  require(equal, op, "takes operands of one shape", in);
  return {in[0]};
}

}  // namespace

std::vector<TensorType> Add::infer(std::span<const TensorType> in) const { return alike(*this, in, 0); }

std::vector<Value> Add::gradient(const GradientRequest& r) const {
  return std::vector<Value>(r.inputs.size(), r.output_gradients[0]);
}

std::vector<TensorType> Multiply::infer(std::span<const TensorType> in) const { return alike(*this, in, 2); }

std::vector<Value> Multiply::gradient(const GradientRequest& r) const {
  std::vector<Value> result(2);
  if (r.needed[0]) result[0] = multiply(r.graph, r.output_gradients[0], r.inputs[1]);
  if (r.needed[1]) result[1] = multiply(r.graph, r.output_gradients[0], r.inputs[0]);
  return result;
}

std::string_view name_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::relu:
      return "relu";
    case ActivationKind::relu2:
      return "relu2";
    case ActivationKind::gelu:
      return "gelu";
    case ActivationKind::silu:
      return "silu";
  }
  throw Bug("unknown activation");
}

std::vector<TensorType> Activation::infer(std::span<const TensorType> in) const {
  return alike(*this, in, 1);
}

std::vector<Value> Activation::gradient(const GradientRequest& r) const {
  return {r.graph.apply1(std::make_shared<ActivationGrad>(kind), {r.inputs[0], r.output_gradients[0]})};
}

ActivationGrad::ActivationGrad(ActivationKind kind)
    : kind(kind), name_(std::string(name_of(kind)) + "_grad") {}

std::vector<TensorType> ActivationGrad::infer(std::span<const TensorType> in) const {
  return alike(*this, in, 2);
}

std::vector<TensorType> Softcap::infer(std::span<const TensorType> in) const { return alike(*this, in, 1); }

std::vector<Value> Softcap::gradient(const GradientRequest& r) const {
  return {r.graph.apply1(std::make_shared<SoftcapGrad>(cap), {r.outputs[0], r.output_gradients[0]})};
}

std::vector<TensorType> SoftcapGrad::infer(std::span<const TensorType> in) const {
  return alike(*this, in, 2);
}

std::vector<TensorType> ResidualMix::infer(std::span<const TensorType> in) const {
  require(in.size() == 4 && in[0] == in[1] && in[2] == in[3] && in[2].shape.size() == 1 && layer >= 0 &&
              layer < in[2].shape[0],
          *this, "takes x, x0 of one shape and two vectors with an entry a layer", in);
  return {in[0]};
}

std::vector<Value> ResidualMix::gradient(const GradientRequest& r) const {
  std::vector<Value> operands(r.inputs.begin(), r.inputs.end());
  operands.push_back(r.output_gradients[0]);
  return r.graph.apply(std::make_shared<ResidualMixGrad>(layer), operands);
}

std::vector<TensorType> ResidualMixGrad::infer(std::span<const TensorType> in) const {
  require(in.size() == 5 && in[0] == in[1] && in[2] == in[3] && in[4] == in[0], *this,
          "takes the operands of residual_mix and dy", in);
  return {in[0], in[1], in[2], in[3]};
}

std::vector<TensorType> SliceColumns::infer(std::span<const TensorType> in) const {
  require(in.size() == 1 && !in[0].shape.empty() && 0 <= begin && begin < end && end <= in[0].shape.back(),
          *this, "takes x [..., n] with 0 <= begin < end <= n", in);
  Shape shape = in[0].shape;
  shape.back() = end - begin;
  return {{shape, in[0].dtype}};
}

std::vector<Value> SliceColumns::gradient(const GradientRequest& r) const {
  const std::int64_t width = r.graph.type(r.inputs[0]).shape.back();
  return {r.graph.apply1(std::make_shared<PadColumns>(begin, width), {r.output_gradients[0]})};
}

std::vector<TensorType> PadColumns::infer(std::span<const TensorType> in) const {
  require(in.size() == 1 && !in[0].shape.empty() && begin >= 0 && begin + in[0].shape.back() <= width, *this,
          "takes x [..., n] with begin + n <= width", in);
  Shape shape = in[0].shape;
  shape.back() = width;
  return {{shape, in[0].dtype}};
}

std::vector<Value> PadColumns::gradient(const GradientRequest& r) const {
  return {
      slice_columns(r.graph, r.output_gradients[0], begin, begin + r.graph.type(r.inputs[0]).shape.back())};
}

std::vector<TensorType> ValueGate::infer(std::span<const TensorType> in) const {
  require(in.size() == 3 && in[0] == in[1] && !in[0].shape.empty() && !in[2].shape.empty() &&
              rows(in[0].shape) == rows(in[2].shape) && in[0].shape.back() % in[2].shape.back() == 0,
          *this, "takes v and e [..., heads * d] and g [..., heads]", in);
  return {in[0]};
}

std::vector<Value> ValueGate::gradient(const GradientRequest& r) const {
  const Value dy = r.output_gradients[0];
  const std::vector<Value> de_dg =
      r.graph.apply(std::make_shared<ValueGateGrad>(), {r.inputs[1], r.inputs[2], dy});
  return {dy, de_dg[0], de_dg[1]};
}

std::vector<TensorType> ValueGateGrad::infer(std::span<const TensorType> in) const {
  require(in.size() == 3 && in[0] == in[2], *this, "takes e, g and dy", in);
  return {in[0], in[1]};
}

Value add(Graph& graph, std::vector<Value> values) {
  if (values.size() == 1) return values[0];
  return graph.apply1(std::make_shared<Add>(), std::move(values));
}
Value multiply(Graph& graph, Value a, Value b) { return graph.apply1(std::make_shared<Multiply>(), {a, b}); }
Value activation(Graph& graph, ActivationKind kind, Value x) {
  return graph.apply1(std::make_shared<Activation>(kind), {x});
}
Value softcap(Graph& graph, Value x, double cap) {
  return cap > 0 ? graph.apply1(std::make_shared<Softcap>(cap), {x}) : x;
}
Value residual_mix(Graph& graph, Value x, Value x0, Value a, Value b, std::int64_t layer) {
  return graph.apply1(std::make_shared<ResidualMix>(layer), {x, x0, a, b});
}
Value slice_columns(Graph& graph, Value x, std::int64_t begin, std::int64_t end) {
  return graph.apply1(std::make_shared<SliceColumns>(begin, end), {x});
}
Value value_gate(Graph& graph, Value v, Value embedding, Value gate) {
  return graph.apply1(std::make_shared<ValueGate>(), {v, embedding, gate});
}

}  // namespace headway::graph
