// Optimizer mathematics. Learning rates, momentum, weight decay and the step number are scalar inputs, so
// that schedules change values and never graphs.
#pragma once

#include <array>

#include "graph/graph.h"

namespace headway::graph {

// (p, g, m, v, lr [], weight_decay [], step []) -> (p', m', v'), AdamW with decoupled decay (Loshchilov,
// Hutter 2019): p (1 - lr wd) - lr mhat / (sqrt(vhat) + eps), with m, v bias-corrected by step (1 for the
// first).
struct AdamW : Operator {
  AdamW(double beta1, double beta2, double eps) : beta1(beta1), beta2(beta2), eps(eps) {}
  const double beta1, beta2, eps;
  std::string_view name() const override { return "adamw"; }
  nlohmann::json attributes() const override { return {{"beta1", beta1}, {"beta2", beta2}, {"eps", eps}}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  int eager_launches() const override { return 10; }
};

// (g, buffer, momentum []) -> (update, buffer'): buffer' = buffer + (1 - momentum)(g - buffer), and
// Nesterov's update = g + momentum (buffer' - g).
struct NesterovMomentum : Operator {
  std::string_view name() const override { return "nesterov_momentum"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  int eager_launches() const override { return 2; }
};

// x [m, n] -> an approximation of U V^T of its singular value decomposition, by the Polar Express polynomials
// (Amsel et al. 2025): x / (1.01 |x| + 1e-6) with the Frobenius norm, then x <- a x + (b A + c A A) x with A
// = x x^T, transposed where m > n, once for each of the first `iterations` coefficient triples.
struct PolarExpress : Operator {
  explicit PolarExpress(int iterations) : iterations(iterations) {}
  const int iterations;
  static constexpr std::array<std::array<double, 3>, 5> coefficients = {{
      {8.156554524902461, -22.48329292557795, 15.878769915207462},
      {4.042929935166739, -2.808917465908714, 0.5000178451051316},
      {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
      {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
      {2.3465413258596377, -1.7097828382687081, 0.42323551169305323},
  }};
  std::string_view name() const override { return "polar_express"; }
  nlohmann::json attributes() const override { return {{"iterations", iterations}}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  int eager_launches() const override { return 4 + 6 * iterations; }
};

// (u [m, n], second [m] or [n]) -> (u', second'): NorMuon (Li et al. 2025). The mean square of each row (of
// each column where m < n) feeds second' = second + (1 - beta2)(mean - second); rows are divided by
// sqrt(max(second', 1e-10)), then the whole is rescaled to the Frobenius norm it had.
struct NorMuon : Operator {
  explicit NorMuon(double beta2) : beta2(beta2) {}
  const double beta2;
  std::string_view name() const override { return "normuon"; }
  nlohmann::json attributes() const override { return {{"beta2", beta2}}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  int eager_launches() const override { return 12; }
};

// (p, u, lr [], weight_decay []) -> p - s lr u - s lr wd p [u p >= 0] with s = lr_scale: decay only where it
// agrees with the update.
struct CautiousUpdate : Operator {
  explicit CautiousUpdate(double lr_scale) : lr_scale(lr_scale) {}
  const double lr_scale;
  std::string_view name() const override { return "cautious_update"; }
  nlohmann::json attributes() const override { return {{"lr_scale", lr_scale}}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  int eager_launches() const override { return 6; }
};

// (g1, g2, ...) -> [] the Euclidean norm of all their elements.
struct GlobalNorm : Operator {
  std::string_view name() const override { return "global_norm"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
};

// (g, norm []) -> g min(1, max_norm / norm).
struct ClipByNorm : Operator {
  explicit ClipByNorm(double max_norm) : max_norm(max_norm) {}
  const double max_norm;
  std::string_view name() const override { return "clip_by_norm"; }
  nlohmann::json attributes() const override { return {{"max_norm", max_norm}}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
};

}  // namespace headway::graph
