// Operators that know about tokens and positions: embedding, rotary, attention, the causal convolution, RMS
// norm. Activations are [batch, time, channels]; heads are contiguous slices of the channels.
#pragma once

#include "graph/graph.h"

namespace headway::graph {

// (tokens [...] i32, table [vocab, n]) -> [..., n].
struct Embedding : Operator {
  std::string_view name() const override { return "embedding"; }
  bool takes_tokens(std::size_t input) const override { return input == 0; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
};

// (tokens, dy [..., n]) -> dtable [vocab, n]: rows of dy added up by token.
struct EmbeddingGrad : Operator {
  explicit EmbeddingGrad(std::int64_t vocab) : vocab(vocab) {}
  const std::int64_t vocab;
  std::string_view name() const override { return "embedding_grad"; }
  nlohmann::json attributes() const override { return {{"vocab", vocab}}; }
  bool takes_tokens(std::size_t input) const override { return input == 0; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
};

// Each contiguous run of `size` channels divided by sqrt(mean of squares + eps). No parameters.
struct RmsNorm : Operator {
  RmsNorm(std::int64_t size, double eps) : size(size), eps(eps) {}
  const std::int64_t size;
  const double eps;
  std::string_view name() const override { return "rms_norm"; }
  nlohmann::json attributes() const override { return {{"size", size}, {"eps", eps}}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
};

// (x, dy) -> dx.
struct RmsNormGrad : Operator {
  RmsNormGrad(std::int64_t size, double eps) : size(size), eps(eps) {}
  const std::int64_t size;
  const double eps;
  std::string_view name() const override { return "rms_norm_grad"; }
  nlohmann::json attributes() const override { return {{"size", size}, {"eps", eps}}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
};

// Rotary positions (Su et al. 2021, halves convention): with c, s = cos, sin(t base^(-2 i / d)), the pair of
// channels (i, i + d/2) of each head, (a, b), becomes (a c + b s, b c - a s). `inverse` turns the other way,
// which is the gradient.
struct Rotary : Operator {
  Rotary(std::int64_t head_dim, double base, bool inverse = false)
      : head_dim(head_dim), base(base), inverse(inverse) {}
  const std::int64_t head_dim;
  const double base;
  const bool inverse;
  std::string_view name() const override { return "rotary"; }
  nlohmann::json attributes() const override {
    return {{"head_dim", head_dim}, {"base", base}, {"inverse", inverse}};
  }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
  int eager_launches() const override { return 7; }
};

// What kind of attention: head h of the queries reads head h * kv_heads / heads of keys and values; query i
// sees the keys j with i - window <= j <= i; scores are scaled by `scale`.
struct AttentionShape {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t window = 0;
  double scale = 1;
  nlohmann::json json() const;
};

// (q [b, t, heads d], k, v [b, t, kv_heads d]) -> (o [b, t, heads d], lse [b, heads, t]): causal softmax
// attention; lse is the log of the sum of exponentials of the scaled scores, which the gradient recomputes
// probabilities from.
struct Attention : Operator {
  explicit Attention(AttentionShape shape) : shape(shape) {}
  const AttentionShape shape;
  std::string_view name() const override { return "attention"; }
  nlohmann::json attributes() const override { return shape.json(); }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

// (q, k, v, o, lse, do) -> (dq, dk, dv).
struct AttentionGrad : Operator {
  explicit AttentionGrad(AttentionShape shape) : shape(shape) {}
  const AttentionShape shape;
  std::string_view name() const override { return "attention_grad"; }
  nlohmann::json attributes() const override { return shape.json(); }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

// Depthwise causal convolution: (x [b, t, n], weight [n, taps]) -> y[t] = sum_k weight[:, k] x[t - (taps - 1)
// + k].
struct CausalConvolution : Operator {
  std::string_view name() const override { return "causal_convolution"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
};

// (x, weight, dy) -> (dx, dweight).
struct CausalConvolutionGrad : Operator {
  std::string_view name() const override { return "causal_convolution_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
};

Value embedding(Graph& graph, Value tokens, Value table);
// Over the whole last dimension when size is 0.
Value rms_norm(Graph& graph, Value x, double eps, std::int64_t size = 0);
Value rotary(Graph& graph, Value x, std::int64_t head_dim, double base);
Value attention(Graph& graph, Value q, Value k, Value v, AttentionShape shape);
Value causal_convolution(Graph& graph, Value x, Value weight);

}  // namespace headway::graph
