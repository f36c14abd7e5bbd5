// The operator's contract, apart so that its test can see it.
#pragma once

#include "graph/operator.h"

namespace headway::examples {

// x -> y of the same shape: x^2 where x > 0, -leak x^2 elsewhere.
struct LeakyRelu2 : graph::Operator {
  explicit LeakyRelu2(double leak) : leak(leak) {}
  const double leak;
  std::string_view name() const override { return "leaky_relu2"; }
  nlohmann::json attributes() const override { return {{"leak", leak}}; }
  std::vector<graph::TensorType> infer(std::span<const graph::TensorType> inputs) const override;
  std::vector<graph::Value> gradient(const graph::GradientRequest& request) const override;
};

// (x, dy) -> dx.
struct LeakyRelu2Grad : graph::Operator {
  explicit LeakyRelu2Grad(double leak) : leak(leak) {}
  const double leak;
  std::string_view name() const override { return "leaky_relu2_grad"; }
  nlohmann::json attributes() const override { return {{"leak", leak}}; }
  std::vector<graph::TensorType> infer(std::span<const graph::TensorType> inputs) const override;
};

}  // namespace headway::examples
