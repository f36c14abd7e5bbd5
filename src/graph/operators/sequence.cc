#include "graph/operators/sequence.h"

#include <algorithm>

#include "base/error.h"
#include "graph/operators/linear.h"

namespace headway::graph {

std::vector<TensorType> Embedding::infer(std::span<const TensorType> in) const {
  require(in.size() == 2 && in[0].dtype == DType::i32 && in[1].shape.size() == 2, *this,
          "takes int32 tokens and table [vocab, n]", in);
  Shape shape = in[0].shape;
  shape.push_back(in[1].shape[1]);
  return {{shape, in[1].dtype}};
}

std::vector<Value> Embedding::gradient(const GradientRequest& r) const {
  const std::int64_t vocab = r.graph.type(r.inputs[1]).shape[0];
  return {{}, r.graph.apply1(std::make_shared<EmbeddingGrad>(vocab), {r.inputs[0], r.output_gradients[0]})};
}

std::vector<TensorType> EmbeddingGrad::infer(std::span<const TensorType> in) const {
  require(in.size() == 2 && in[0].dtype == DType::i32 && !in[1].shape.empty() &&
              rows(in[1].shape) == elements(in[0].shape),
          *this, "takes int32 tokens and dy with a row a token", in);
  return {{{vocab, in[1].shape.back()}, in[1].dtype}};
}

std::vector<TensorType> RmsNorm::infer(std::span<const TensorType> in) const {
  require(in.size() == 1 && !in[0].shape.empty() && size > 0 && in[0].shape.back() % size == 0, *this,
          "takes x [..., n] with n a multiple of size " + std::to_string(size), in);
  return {in[0]};
}

std::vector<Value> RmsNorm::gradient(const GradientRequest& r) const {
  return {r.graph.apply1(std::make_shared<RmsNormGrad>(size, eps), {r.inputs[0], r.output_gradients[0]})};
}

std::vector<TensorType> RmsNormGrad::infer(std::span<const TensorType> in) const {
  require(in.size() == 2 && in[0] == in[1], *this, "takes x and dy of one shape", in);
  return {in[0]};
}

std::vector<TensorType> Rotary::infer(std::span<const TensorType> in) const {
  require(in.size() == 1 && in[0].shape.size() == 3 && head_dim > 0 && head_dim % 2 == 0 &&
              in[0].shape[2] % head_dim == 0,
          *this, "takes x [batch, time, heads * d] with d even, d = " + std::to_string(head_dim), in);
  return {in[0]};
}

std::vector<Value> Rotary::gradient(const GradientRequest& r) const {
  return {r.graph.apply1(std::make_shared<Rotary>(head_dim, base, !inverse), {r.output_gradients[0]})};
}

nlohmann::json AttentionShape::json() const {
  return {
      {"heads", heads}, {"kv_heads", kv_heads}, {"head_dim", head_dim}, {"window", window}, {"scale", scale}};
}

std::vector<TensorType> Attention::infer(std::span<const TensorType> in) const {
  const AttentionShape& s = shape;
  require(in.size() == 3 && in[0].shape.size() == 3 && in[1] == in[2] && in[1].shape.size() == 3 &&
              in[0].shape[0] == in[1].shape[0] && in[0].shape[1] == in[1].shape[1] && s.kv_heads > 0 &&
              s.heads % s.kv_heads == 0 && in[0].shape[2] == s.heads * s.head_dim &&
              in[1].shape[2] == s.kv_heads * s.head_dim && s.window >= 0,
          *this, "takes q [b, t, heads * d], k and v [b, t, kv_heads * d] with heads a multiple of kv_heads",
          in);
  return {in[0], {{in[0].shape[0], s.heads, in[0].shape[1]}, in[0].dtype}};
}

std::vector<Value> Attention::gradient(const GradientRequest& r) const {
  if (r.output_gradients[1].valid()) throw Unsupported("[attention] has no gradient rule for lse");
  return r.graph.apply(
      std::make_shared<AttentionGrad>(shape),
      {r.inputs[0], r.inputs[1], r.inputs[2], r.outputs[0], r.outputs[1], r.output_gradients[0]});
}

namespace {

// FLOPs of one product of a [time, d] by a [d, window] matrix in every head.
double score_product(const AttentionShape& s, const Shape& q) {
  const auto window = static_cast<double>(std::min(s.window, q[1]));
  return 2.0 * static_cast<double>(q[0] * q[1] * s.heads * s.head_dim) * window;
}

}  // namespace

double Attention::flops(std::span<const TensorType> in, std::span<const TensorType>) const {
  return 2 * score_product(shape, in[0].shape);
}

std::vector<TensorType> AttentionGrad::infer(std::span<const TensorType> in) const {
  require(in.size() == 6 && in[1] == in[2] && in[3] == in[0] && in[5] == in[0], *this,
          "takes q, k, v, o, lse and do", in);
  return {in[0], in[1], in[2]};
}

// Twice the forward's, by the contest's count; recomputing the probabilities is not credited.
double AttentionGrad::flops(std::span<const TensorType> in, std::span<const TensorType>) const {
  return 4 * score_product(shape, in[0].shape);
}

std::vector<TensorType> CausalConvolution::infer(std::span<const TensorType> in) const {
  require(in.size() == 2 && in[0].shape.size() == 3 && in[1].shape.size() == 2 &&
              in[1].shape[0] == in[0].shape[2],
          *this, "takes x [batch, time, n] and weight [n, taps]", in);
  return {in[0]};
}

std::vector<Value> CausalConvolution::gradient(const GradientRequest& r) const {
  return r.graph.apply(std::make_shared<CausalConvolutionGrad>(),
                       {r.inputs[0], r.inputs[1], r.output_gradients[0]});
}

std::vector<TensorType> CausalConvolutionGrad::infer(std::span<const TensorType> in) const {
  require(in.size() == 3 && in[0] == in[2], *this, "takes x, weight and dy", in);
  return {in[0], in[1]};
}

Value embedding(Graph& graph, Value tokens, Value table) {
  return graph.apply1(std::make_shared<Embedding>(), {tokens, table});
}
Value rms_norm(Graph& graph, Value x, double eps, std::int64_t size) {
  if (size == 0) size = graph.type(x).shape.back();
  return graph.apply1(std::make_shared<RmsNorm>(size, eps), {x});
}
Value rotary(Graph& graph, Value x, std::int64_t head_dim, double base) {
  return graph.apply1(std::make_shared<Rotary>(head_dim, base), {x});
}
Value attention(Graph& graph, Value q, Value k, Value v, AttentionShape shape) {
  return graph.apply(std::make_shared<Attention>(shape), {q, k, v})[0];
}
Value causal_convolution(Graph& graph, Value x, Value weight) {
  return graph.apply1(std::make_shared<CausalConvolution>(), {x, weight});
}

}  // namespace headway::graph
