// The activation functions over rows, a vector at a time. Polynomials are minimax fits (iteratively
// reweighted least squares) of the relative error; docs/chip/scalar.md states what is left of it,
// tests/chip/activation_function_test.cc measures it.
#include <algorithm>
#include <limits>

#include "chip/activation_function.h"
#include "simd/simd_math.h"

namespace headway::chip {
namespace {

using simd::absolute;
using simd::bits;
using simd::F32;
using simd::from_bits;
using simd::I32;
using simd::kLanes;
using simd::splat;
using simd::U32;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr std::int32_t kSign = std::numeric_limits<std::int32_t>::min();

// Keeps the compiler from fusing a product with the sum that follows: both round, as in the other engines'
// instructions.
inline F32 rounded(F32 value) {
#if defined(__x86_64__)
  asm("" : "+x"(value));
#elif defined(__aarch64__)
  asm("" : "+w"(value));
#endif
  return value;
}

inline F32 at_least(F32 x, float low) { return x < low ? splat(low) : x; }
inline F32 at_most(F32 x, float high) { return x > high ? splat(high) : x; }
inline F32 with_sign_of(F32 magnitude, F32 x) { return from_bits(bits(magnitude) | (bits(x) & kSign)); }

// e^x over all of float32, which simd::exp saturates before: 0 below -87.33, where results would be
// subnormal, infinity from where they round to it.
inline F32 exponential(F32 x) {
  // 1.5 * 2^23 - 1: adding it leaves the nearest integer less one in the low bits. The polynomial is twice
  // e^r, so that 2^128 is within the exponent's reach.
  constexpr float magic = 12582911.0f;
  constexpr float largest = 88.7228317f;
  const F32 shifted = at_most(x, largest) * 1.44269504f + magic;
  const F32 n = shifted - magic;
  const F32 r = (at_most(x, largest) - n * 0.693359375f) +
                n * 2.12194440e-4f;  // ln 2 in two pieces, the first in 10 bits
  F32 p = r * (2 * 0.00138142216f) + 2 * 0.00836889911f;
  p = p * r + 2 * 0.0416684039f;
  p = p * r + 2 * 0.166665196f;
  p = p * r + 2 * 0.49999994f;
  p = p * (r * r) + (r + r) + 2.0f;
  const F32 scaled = reinterpret_cast<F32>(reinterpret_cast<U32>(p) + (reinterpret_cast<U32>(shifted) << 23));
  const F32 y = x <= largest ? scaled : x + kInfinity;  // NaN stays NaN
  return x < -87.33f ? splat(0) : y;
}

inline F32 logistic(F32 x) { return 1.0f / (1.0f + exponential(-x)); }

// ln x. Subnormal numbers count as zero.
inline F32 logarithm(F32 x) {
  constexpr std::int32_t root_half =
      0x3f3504f3;  // the bits of sqrt(1/2): the mantissa is taken from there to sqrt(2)
  // Unsigned: negative numbers, whose result isn't used, wrap around.
  const I32 raw = reinterpret_cast<I32>(reinterpret_cast<U32>(x) - static_cast<std::uint32_t>(root_half));
  const F32 e = __builtin_convertvector(raw >> 23, F32);
  const F32 f = from_bits((raw & 0x7fffff) + root_half) - 1.0f;
  F32 p = f * -0.0763434023f + 0.127615154f;
  p = p * f - 0.131602123f;
  p = p * f + 0.142017677f;
  p = p * f - 0.166233554f;
  p = p * f + 0.200012267f;
  p = p * f - 0.250008225f;
  p = p * f + 0.333333313f;
  const F32 square = f * f;
  const F32 y = ((f * square * p - e * 2.12194440e-4f) - 0.5f * square) + f + e * 0.693359375f;
  const F32 positive = x <= std::numeric_limits<float>::max() ? y : x;
  const F32 other = x < 0.0f ? splat(kNaN) : splat(-kInfinity);
  return x < std::numeric_limits<float>::min() ? other : positive;
}

// ln(1 + t) for t in [0, 1]: what rounding 1 + t lost is added again.
inline F32 logarithm_of_one_plus(F32 t) {
  const F32 u = rounded(1.0f + t);
  return logarithm(u) + (t - (u - 1.0f)) / u;
}

// The distribution of the standard normal for any x, and its density.
inline F32 normal(F32 x) { return simd::normal_cdf(at_most(at_least(x, -40), 40)); }
inline F32 normal_density(F32 x) { return 0.398942280f * simd::gaussian(x); }

inline F32 error_function(F32 x) {
  const F32 z = x * x;
  F32 p = z * 7.85384982e-05f - 0.000801019021f;
  p = p * z + 0.00518832728f;
  p = p * z - 0.026853811f;
  p = p * z + 0.112835854f;
  p = p * z - 0.37612626f;
  p = p * z + 1.12837911f;
  const F32 a = absolute(x);
  const F32 far = 1.0f - 2.0f * normal(a * -1.41421356f);
  return a < 1.0f ? x * p : with_sign_of(far, x);
}

// 2 / sqrt(pi) e^(-x^2), the exponent squared in two pieces as in simd::gaussian.
inline F32 error_function_dx(F32 x) {
  x = at_most(absolute(x), 40);
  const F32 high = from_bits(bits(x) & ~0xfff);
  const F32 low = x - high;
  return 1.12837917f * (exponential(-(high * high)) * exponential(-((x + high) * low)));
}

// Within [-pi, pi]; outside, the cubic around pi that the documentation speaks of (sin(9) = 27.65).
inline F32 sine(F32 x) {
  constexpr float pi = 3.14159274f, pi_rest = -8.74227766e-8f;
  const F32 a = absolute(x);
  const F32 beyond = (a - pi) - pi_rest;
  const F32 r = a > pi / 2 ? -beyond : a;
  const F32 z = r * r;
  F32 p = z * 2.60577986e-06f - 0.000198096022f;
  p = p * z + 0.00833306648f;
  p = p * z - 0.166666597f;
  const F32 inside = r + r * z * p;
  const F32 outside = beyond * (beyond * beyond * (1.0f / 6) - 1.0f);
  const F32 y = a > pi ? outside : inside;
  return from_bits(bits(y) ^ (bits(x) & kSign));
}

inline F32 arc_tangent(F32 x) {
  const F32 a = absolute(x);
  const F32 r = a > 1.0f ? 1.0f / a : a;
  const F32 z = r * r;
  F32 p = z * -0.00179323368f + 0.0109128645f;
  p = p * z - 0.0311745927f;
  p = p * z + 0.0579543188f;
  p = p * z - 0.0840325877f;
  p = p * z + 0.109521203f;
  p = p * z - 0.142642289f;
  p = p * z + 0.199985474f;
  p = p * z - 0.333332986f;
  const F32 near = r + r * z * p;
  constexpr float half_pi = 1.57079637f, half_pi_rest = -4.37113883e-8f;
  const F32 y = a > 1.0f ? half_pi - (near - half_pi_rest) : near;
  return with_sign_of(y, x);
}

// Products of x with what vanishes faster: -infinity would make them NaN.
inline F32 x_times(F32 x, F32 factor) { return at_least(x, -1e30f) * factor; }

inline F32 gelu_dx(F32 x) {
  const F32 t = at_most(at_least(x, -40), 40);
  return simd::normal_cdf(t) + t * normal_density(t);
}

// The derivative of x logistic(k x), s + k x s (1 - s): the logistic function s and 1 - s from e^-|k x|,
// without cancellation.
inline F32 gated_dx(F32 x, float k) {
  const F32 t = at_most(at_least(x, -200), 200) * k;
  const F32 e = exponential(-absolute(t));
  const F32 r = 1.0f / (1.0f + e);
  return (t < 0.0f ? e * r : r) + t * (e * r * r);
}

inline F32 gelu_tanh(F32 x) {
  // 0.5 (1 + tanh u) is logistic(2 u); 2 sqrt(2 / pi) and 0.044715 times that.
  return x_times(x, logistic(x * (x * x * 0.0713548163f + 1.59576912f)));
}

inline F32 softplus(F32 x) {
  return simd::maximum(x, splat(0)) + logarithm_of_one_plus(exponential(-absolute(x)));
}

// tanh(ln(1 + e)) for e = e^x is n / (n + 2) with n = e (e + 2).
inline F32 mish(F32 x) {
  const F32 e = exponential(at_most(x, 20));
  const F32 n = e * (e + 2.0f);
  return x_times(x, n / (n + 2.0f));
}

struct All {
  static constexpr bool ranged = false;
};
struct Ranged {
  static constexpr bool ranged = true;
  ValidRange range;
};

// y = f(x * scale + bias) for n elements.
template <class Inputs, class F>
inline float map_row(const Inputs& inputs, const float* x, float scale, float bias, float* y, std::int64_t n,
                     const F& f) {
  const F32 factor = splat(scale), offset = splat(bias);
  F32 outside = splat(kNaN);
  const auto vector = [&](F32 value) {
    const F32 t = rounded(value * factor) + offset;
    if constexpr (Inputs::ranged) {
      const F32 key = inputs.range.of_magnitude ? absolute(t) : t;
      const I32 beyond = (key < inputs.range.low) | (key > inputs.range.high);
      outside = beyond ? t : outside;
    }
    return f(t);
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) simd::store(y + i, vector(simd::load(x + i)));
  // Lanes beyond the row repeat its last element, so that they add nothing to what lies outside.
  if (i < n) simd::store_first(y + i, vector(simd::load_first(x + i, n - i, x[n - 1])), n - i);
  if constexpr (Inputs::ranged) {
    for (int lane = 0; lane < kLanes; ++lane)
      if (outside[lane] == outside[lane]) return outside[lane];
  }
  return kNaN;
}

// Rows shorter than this are brought together into full vectors.
constexpr std::int64_t kShort = 64;
constexpr std::int64_t kTile = 1024;

// f(row, element) for all of them; single elements and multiples of eight, the usual short rows, in loops
// that unroll.
template <class F>
inline void each(std::int64_t rows, std::int64_t n, const F& f) {
  if (n == 1) {
    for (std::int64_t r = 0; r < rows; ++r) f(r, 0);
  } else if (n % 8 == 0) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < n; i += 8)
        for (std::int64_t j = i; j < i + 8; ++j) f(r, j);
  } else {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < n; ++i) f(r, i);
  }
}

struct Operands {
  Rows<float> x, scale, bias;
  RowsOut<float> y;
  std::int64_t rows, n;
};

template <class Inputs, class F>
inline float map(const Inputs& inputs, Operands a, const F& f) {
  float outside = kNaN;
  const auto keep = [&](float value) {
    if (outside != outside) outside = value;
  };
  const auto row = [&](std::int64_t r, const float* x, float* y, std::int64_t n) {
    keep(map_row(inputs, x, a.scale.at[r * a.scale.stride], a.bias.at[r * a.bias.stride], y, n, f));
  };
  if (a.x.single) {
    for (std::int64_t r = 0; r < a.rows; ++r) {
      float* y = a.y.at + r * a.y.stride;
      row(r, a.x.at + r * a.x.stride, y, 1);
      std::fill_n(y, a.n, *y);
    }
    return outside;
  }
  if (a.x.stride == a.n && a.y.stride == a.n && a.scale.stride == 0 && a.bias.stride == 0) {
    a.n *= a.rows;
    a.rows = 1;
  }
  if (a.n >= kShort || a.rows == 1) {
    for (std::int64_t r = 0; r < a.rows; ++r) row(r, a.x.at + r * a.x.stride, a.y.at + r * a.y.stride, a.n);
    return outside;
  }
  alignas(64) float tile[kTile];
  const std::int64_t together = kTile / a.n;
  for (std::int64_t first = 0; first < a.rows; first += together) {
    const std::int64_t count = std::min(together, a.rows - first);
    const float* x = a.x.at + first * a.x.stride;
    const float* scale = a.scale.at + first * a.scale.stride;
    const float* bias = a.bias.at + first * a.bias.stride;
    float* y = a.y.at + first * a.y.stride;
    each(count, a.n, [&](std::int64_t r, std::int64_t i) {
      tile[r * a.n + i] = x[r * a.x.stride + i] * scale[r * a.scale.stride];
    });
    asm("" : "+m"(tile));  // as `rounded`
    each(count, a.n, [&](std::int64_t r, std::int64_t i) { tile[r * a.n + i] += bias[r * a.bias.stride]; });
    keep(map_row(inputs, tile, 1, kNoBias, tile, count * a.n, f));
    each(count, a.n, [&](std::int64_t r, std::int64_t i) { y[r * a.y.stride + i] = tile[r * a.n + i]; });
  }
  return outside;
}

}  // namespace

float activation_rows(Function function, Rows<float> x, Rows<float> scale, Rows<float> bias, RowsOut<float> y,
                      std::int64_t rows, std::int64_t n) {
  const Operands operands{x, scale, bias, y, rows, n};
  const auto all = [&](const auto& f) { return map(All{}, operands, f); };
  const auto ranged = [&](const auto& f) { return map(Ranged{valid_range(function)}, operands, f); };
  switch (function) {
    case Function::copy:
      return all([](F32 t) { return t; });
    case Function::square:
      return all([](F32 t) { return t * t; });
    case Function::sigmoid:
      return all([](F32 t) { return logistic(t); });
    case Function::relu:
    case Function::prelu:  // its slope is activate2's relu_param, 0 by default
      return all([](F32 t) { return at_least(t, 0); });
    case Function::gelu:
      return all([](F32 t) { return x_times(t, normal(t)); });
    case Function::gelu_dx:
      return all([](F32 t) { return gelu_dx(t); });
    case Function::gelu_apprx_tanh:
      return all([](F32 t) { return gelu_tanh(t); });
    case Function::gelu_apprx_sigmoid:
      return all([](F32 t) { return x_times(t, logistic(t * 1.702f)); });
    case Function::gelu_apprx_sigmoid_dx:
      return all([](F32 t) { return gated_dx(t, 1.702f); });
    case Function::silu:
      return all([](F32 t) { return x_times(t, logistic(t)); });
    case Function::silu_dx:
      return all([](F32 t) { return gated_dx(t, 1); });
    case Function::tanh:
      return all([](F32 t) { return t == t ? simd::tanh(t) : t; });  // simd::tanh may lose a NaN
    case Function::softplus:
      return all([](F32 t) { return softplus(t); });
    case Function::mish:
      return all([](F32 t) { return mish(t); });
    case Function::erf:
      return all([](F32 t) { return error_function(t); });
    case Function::erf_dx:
      return all([](F32 t) { return error_function_dx(t); });
    case Function::exp:
      return all([](F32 t) { return exponential(t); });
    case Function::sign:
      return all([](F32 t) { return t > 0.0f ? splat(1) : t < 0.0f ? splat(-1) : t; });
    case Function::abs:
      return all([](F32 t) { return absolute(t); });
    case Function::log:
      return ranged([](F32 t) { return logarithm(t); });
    case Function::sin:
      return ranged([](F32 t) { return sine(t); });
    case Function::arctan:
      return ranged([](F32 t) { return arc_tangent(t); });
    case Function::sqrt:
      return ranged([](F32 t) { return simd::square_root(t); });
    case Function::rsqrt:
      return ranged([](F32 t) { return 1.0f / simd::square_root(t); });
    case Function::reciprocal:
      return ranged([](F32 t) { return 1.0f / t; });
  }
  return kNaN;
}

}  // namespace headway::chip
