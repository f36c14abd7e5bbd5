// The functions of the Scalar engine's activation tables.
//
// The engine evaluates piecewise polynomials whose coefficients aren't public. Here every function is
// computed to float32 precision (errors in docs/chip/scalar.md), so results lie nearer to the mathematical
// function than the chip's do.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "chip/alu.h"

namespace headway::chip {

enum class Function : std::uint8_t {
  copy,
  square,
  sigmoid,
  relu,
  prelu,
  gelu,
  gelu_dx,
  gelu_apprx_tanh,
  gelu_apprx_sigmoid,
  gelu_apprx_sigmoid_dx,
  silu,
  silu_dx,
  tanh,
  softplus,
  mish,
  erf,
  erf_dx,
  exp,
  sign,
  abs,
  log,
  sin,
  arctan,
  sqrt,
  rsqrt,
  reciprocal
};
std::span<const std::string_view> names_of(Function);

// The inputs for which the documentation calls the result valid. Outside, this model goes on with the
// mathematical function, except that `sin` follows the cubic that the documentation describes, and says so
// once (rule "activation-range").
struct ValidRange {
  float low = 0, high = 0;
  bool of_magnitude = false;  // low and high bound |x|
  bool everything = true;
};
ValidRange valid_range(Function function);

// Functions of one number are in one table and need no load between them; -1: needs none. Which share a table
// isn't public; taken: arithmetic needs none, functions that are made of one another share one.
int table_of(Function function);

// A bias that changes nothing: x + -0 is x for every x, which x + 0 isn't.
inline constexpr float kNoBias = -0.0f;

// y[r][i] = function(x[r][i] * scale[r] + bias[r]) for rows of n elements, in float32, product and sum
// rounded one after the other. scale and bias have one value a row, or one for all rows (a stride of 0). y
// may lie where x lies. Returns one of the function's inputs that lie outside its valid range, or NaN where
// all lie inside (NaN itself is never outside).
float activation_rows(Function function, Rows<float> x, Rows<float> scale, Rows<float> bias, RowsOut<float> y,
                      std::int64_t rows, std::int64_t n);

}  // namespace headway::chip
