// Element by element: sums, products, activations, the soft cap, and the per-layer mix of residual streams.
#pragma once

#include "graph/graph.h"

namespace headway::graph {

// y = x1 + x2 + ... of equal shapes.
struct Add : Operator {
  std::string_view name() const override { return "add"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
};

// y = a * b of equal shapes.
struct Multiply : Operator {
  std::string_view name() const override { return "multiply"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
};

// relu2: max(x, 0)^2. gelu: x Phi(x) (the exact one). silu: x sigmoid(x).
enum class ActivationKind { relu, relu2, gelu, silu };
std::string_view name_of(ActivationKind kind);

struct Activation : Operator {
  explicit Activation(ActivationKind kind) : kind(kind) {}
  const ActivationKind kind;
  std::string_view name() const override { return name_of(kind); }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
  int eager_launches() const override { return kind == ActivationKind::relu2 ? 2 : 1; }
};

// (x, dy) -> dx. Named "relu2_grad" and so on.
struct ActivationGrad : Operator {
  explicit ActivationGrad(ActivationKind kind);
  const ActivationKind kind;
  std::string_view name() const override { return name_; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  int eager_launches() const override { return kind == ActivationKind::relu2 ? 2 : 1; }

 private:
  std::string name_;
};

// y = cap tanh(x / cap).
struct Softcap : Operator {
  explicit Softcap(double cap) : cap(cap) {}
  const double cap;
  std::string_view name() const override { return "softcap"; }
  nlohmann::json attributes() const override { return {{"cap", cap}}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
  int eager_launches() const override { return 3; }
};

// (y, dy) -> dx = dy (1 - (y / cap)^2), with y the output of Softcap.
struct SoftcapGrad : Operator {
  explicit SoftcapGrad(double cap) : cap(cap) {}
  const double cap;
  std::string_view name() const override { return "softcap_grad"; }
  nlohmann::json attributes() const override { return {{"cap", cap}}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
};

// (x, x0, a [layers], b [layers]) -> a[layer] x + b[layer] x0: how a block sees the residual stream and the
// embedding.
struct ResidualMix : Operator {
  explicit ResidualMix(std::int64_t layer) : layer(layer) {}
  const std::int64_t layer;
  std::string_view name() const override { return "residual_mix"; }
  nlohmann::json attributes() const override { return {{"layer", layer}}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
  int eager_launches() const override { return 3; }
};

// (x, x0, a, b, dy) -> (dx, dx0, da [layers], db [layers]); da and db are zero outside [layer].
struct ResidualMixGrad : Operator {
  explicit ResidualMixGrad(std::int64_t layer) : layer(layer) {}
  const std::int64_t layer;
  std::string_view name() const override { return "residual_mix_grad"; }
  nlohmann::json attributes() const override { return {{"layer", layer}}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  int eager_launches() const override { return 6; }
};

// Columns [begin, end) of the last dimension.
struct SliceColumns : Operator {
  SliceColumns(std::int64_t begin, std::int64_t end) : begin(begin), end(end) {}
  const std::int64_t begin, end;
  std::string_view name() const override { return "slice_columns"; }
  nlohmann::json attributes() const override { return {{"begin", begin}, {"end", end}}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
};

// The transpose of SliceColumns: x [..., n] at columns [begin, begin + n) of zeros [..., width].
struct PadColumns : Operator {
  PadColumns(std::int64_t begin, std::int64_t width) : begin(begin), width(width) {}
  const std::int64_t begin, width;
  std::string_view name() const override { return "pad_columns"; }
  nlohmann::json attributes() const override { return {{"begin", begin}, {"width", width}}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
};

// (v [..., heads * d], e [..., heads * d], g [..., heads]) -> v + 2 sigmoid(g) e, one gate a head: value
// embeddings.
struct ValueGate : Operator {
  std::string_view name() const override { return "value_gate"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> gradient(const GradientRequest& request) const override;
  int eager_launches() const override { return 4; }
};

// (e, g, dy) -> (de, dg).
struct ValueGateGrad : Operator {
  std::string_view name() const override { return "value_gate_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  int eager_launches() const override { return 6; }
};

Value add(Graph& graph, std::vector<Value> values);
Value multiply(Graph& graph, Value a, Value b);
Value activation(Graph& graph, ActivationKind kind, Value x);
Value softcap(Graph& graph, Value x, double cap);
Value residual_mix(Graph& graph, Value x, Value x0, Value a, Value b, std::int64_t layer);
Value slice_columns(Graph& graph, Value x, std::int64_t begin, std::int64_t end);
Value value_gate(Graph& graph, Value v, Value embedding, Value gate);

}  // namespace headway::graph
