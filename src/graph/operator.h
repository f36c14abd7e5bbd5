// An operator: one piece of mathematics with its shape rule, gradient rule and cost. Operators are immutable;
// how they are computed is the business of an Executable, which finds a kernel by name().
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace headway::graph {

class Graph;

// Shape and logical element type of a value. Real numbers are f32 here; an executable may compute them in
// another precision (the reference instance uses f64).
struct TensorType {
  Shape shape;
  DType dtype = DType::f32;
  bool operator==(const TensorType&) const = default;
};

// A handle to a value of a Graph. Only meaningful together with that graph.
struct Value {
  int id = -1;
  bool valid() const { return id >= 0; }
  bool operator==(const Value&) const = default;
};

// What a gradient rule may use: the node's operands and results, and d loss / d output for each output (not
// valid() where no gradient arrives).
struct GradientRequest {
  Graph& graph;
  std::span<const Value> inputs;
  std::span<const Value> outputs;
  std::span<const Value> output_gradients;
  const std::vector<bool>& needed;  // per input: does anybody want its gradient?
};

class Operator {
 public:
  virtual ~Operator() = default;

  // The name that kernels are registered under: "rms_norm", "attention_grad".
  virtual std::string_view name() const = 0;
  // Attributes as they are passed to chip kernels and written to records.
  virtual nlohmann::json attributes() const { return nlohmann::json::object(); }

  // Types of the outputs. Throws InputError, starting with the operator's name, when the operands don't fit.
  virtual std::vector<TensorType> infer(std::span<const TensorType> inputs) const = 0;

  // Does operand `input` hold token ids? All others must be real numbers, which Graph::apply checks.
  virtual bool takes_tokens(std::size_t) const { return false; }

  // d loss / d input for each input, built from operators; not valid() where there is none or it isn't
  // needed. The default throws Unsupported.
  virtual std::vector<Value> gradient(const GradientRequest& request) const;

  // FLOPs of the matrix products in it (a multiply-add is 2): what MFU counts. Attention counts the whole
  // window, not the causal half, as the contest does.
  virtual double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const;
  // Bytes that must move between memory and the machine when nothing is cached, with real numbers of
  // `real_bytes`.
  virtual double bytes(std::span<const TensorType> inputs, std::span<const TensorType> outputs,
                       int real_bytes) const;
  // How many launches PyTorch's eager mode makes of it.
  virtual int eager_launches() const { return 1; }
};

// Throws InputError "[operator] rule: shapes" unless `condition` holds. For shape rules.
void require(bool condition, const Operator& op, const std::string& rule, std::span<const TensorType> inputs);

}  // namespace headway::graph
