// The activation functions as the documentation names them, in float64, and how far the float32 rows may be
// from them.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "chip/activation_function.h"

namespace headway::chip {

inline double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double exact_softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
inline double exact_normal(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

inline double exact(Function function, double x) {
  using std::numbers::pi;
  switch (function) {
    case Function::copy:
      return x;
    case Function::square:
      return x * x;
    case Function::sigmoid:
      return exact_sigmoid(x);
    case Function::relu:
    case Function::prelu:
      return std::max(x, 0.0);
    case Function::gelu:
      return x * exact_normal(x);
    case Function::gelu_dx:
      return exact_normal(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * pi);
    case Function::gelu_apprx_tanh: {
      // 1 + tanh u, which would lose its digits below 0.
      const double u = std::sqrt(2 / pi) * (x + 0.044715 * x * x * x);
      return x * exact_sigmoid(2 * u);
    }
    case Function::gelu_apprx_sigmoid:
      return x * exact_sigmoid(1.702 * x);
    case Function::gelu_apprx_sigmoid_dx:
      return exact_sigmoid(1.702 * x) + 1.702 * x * exact_sigmoid(1.702 * x) * exact_sigmoid(-1.702 * x);
    case Function::silu:
      return x * exact_sigmoid(x);
    case Function::silu_dx:
      return exact_sigmoid(x) + x * exact_sigmoid(x) * exact_sigmoid(-x);
    case Function::tanh:
      return std::tanh(x);
    case Function::softplus:
      return exact_softplus(x);
    case Function::mish:
      return x * std::tanh(exact_softplus(x));
    case Function::erf:
      return std::erf(x);
    case Function::erf_dx:
      return 2 / std::sqrt(pi) * std::exp(-x * x);
    case Function::exp:
      return std::exp(x);
    case Function::sign:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case Function::abs:
      return std::abs(x);
    case Function::log:
      return std::log(x);
    case Function::sin:
      return std::sin(x);
    case Function::arctan:
      return std::atan(x);
    case Function::sqrt:
      return std::sqrt(x);
    case Function::rsqrt:
      return 1 / std::sqrt(x);
    case Function::reciprocal:
      return 1 / x;
  }
  return std::nan("");
}

// What docs/chip/scalar.md states: |y - exact| <= relative |exact| + absolute. Absolute where the function
// has a zero inside, or where results become so small that float32 has no normal number for them.
struct Error {
  double relative = 0, absolute = 0;
};
inline Error stated_error(Function function) {
  constexpr double half_unit = 0x1p-24, vanishing = 0x1p-118;
  switch (function) {
    case Function::copy:
    case Function::relu:
    case Function::prelu:
    case Function::sign:
    case Function::abs:
      return {};
    case Function::square:
      return {half_unit, vanishing};
    case Function::sqrt:
    case Function::reciprocal:
      return {half_unit, 0};
    case Function::rsqrt:
      return {1e-7, 0};
    case Function::exp:
      return {1e-7, vanishing};
    case Function::log:
      return {1e-7, 0};
    case Function::sin:
      return {1.3e-7, 0};
    case Function::arctan:
      return {1.4e-7, 0};
    case Function::sigmoid:
    case Function::tanh:
    case Function::softplus:
    case Function::silu:
      return {2e-7, vanishing};
    case Function::mish:
      return {3e-7, vanishing};
    case Function::erf:
      return {2e-7, 0};
    case Function::erf_dx:
      return {3e-7, vanishing};
    case Function::gelu:
      return {6e-7, vanishing};
    case Function::gelu_apprx_tanh:
      return {1.5e-5, vanishing};
    case Function::gelu_apprx_sigmoid:
      return {8e-6, vanishing};
    case Function::gelu_dx:
    case Function::gelu_apprx_sigmoid_dx:
    case Function::silu_dx:
      return {2e-7, 2e-7};
  }
  return {};
}

}  // namespace headway::chip
