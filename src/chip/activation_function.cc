#include "chip/activation_function.h"

#include <array>

namespace headway::chip {

std::span<const std::string_view> names_of(Function) {
  static constexpr std::array<std::string_view, 26> names{"copy",
                                                          "square",
                                                          "sigmoid",
                                                          "relu",
                                                          "prelu",
                                                          "gelu",
                                                          "gelu_dx",
                                                          "gelu_apprx_tanh",
                                                          "gelu_apprx_sigmoid",
                                                          "gelu_apprx_sigmoid_dx",
                                                          "silu",
                                                          "silu_dx",
                                                          "tanh",
                                                          "softplus",
                                                          "mish",
                                                          "erf",
                                                          "erf_dx",
                                                          "exp",
                                                          "sign",
                                                          "abs",
                                                          "log",
                                                          "sin",
                                                          "arctan",
                                                          "sqrt",
                                                          "rsqrt",
                                                          "reciprocal"};
  return names;
}

// The table of activation functions in NKI's API reference. Pi is taken to float32, which lies a little above
// it: kernels clamp to that.
ValidRange valid_range(Function function) {
  constexpr float pi = 3.14159274f;
  switch (function) {
    case Function::log:
      return {0x1p-64f, 0x1p64f, false, false};
    case Function::sin:
      return {0, pi, true, false};
    case Function::arctan:
      return {0, pi / 2, true, false};
    case Function::sqrt:
      return {0x1p-116f, 0x1p118f, false, false};
    case Function::rsqrt:
      return {0x1p-87f, 0x1p97f, false, false};
    case Function::reciprocal:
      return {0x1p-42f, 0x1p42f, true, false};
    default:
      return {};
  }
}

int table_of(Function function) {
  switch (function) {
    case Function::copy:
    case Function::square:
    case Function::relu:
    case Function::prelu:
    case Function::sign:
    case Function::abs:
      return -1;
    case Function::exp:
      return 0;
    case Function::sigmoid:
    case Function::silu:
    case Function::silu_dx:
      return 1;
    case Function::tanh:
    case Function::mish:
    case Function::softplus:
      return 2;
    case Function::gelu:
    case Function::gelu_dx:
    case Function::gelu_apprx_tanh:
    case Function::gelu_apprx_sigmoid:
    case Function::gelu_apprx_sigmoid_dx:
      return 3;
    case Function::erf:
    case Function::erf_dx:
      return 4;
    case Function::log:
      return 5;
    case Function::sin:
    case Function::arctan:
      return 6;
    case Function::sqrt:
    case Function::rsqrt:
    case Function::reciprocal:
      return 7;
  }
  return -1;
}

}  // namespace headway::chip
