// Elementary functions of vectors. Coefficients are minimax fits (iteratively reweighted least squares) of
// the relative error; each function states its largest relative error against the exact value, rounding
// included.
#pragma once

#include "simd/simd.h"

namespace headway::simd {
inline namespace HEADWAY_VECTORS {

// e^x to 9e-8. 0 below -87.3, and saturates at 2.4e38 above 88.3. NaN stays NaN.
inline F32 exp(F32 x) {
  const F32 magic = splat(12582912.0f);  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const F32 zero_below = splat(-87.33f);
  const I32 vanishes = x < zero_below;
  const F32 largest_x = splat(88.376f);
  x = largest_x < x ? largest_x : x;
  const F32 shifted = x * 1.44269504f + magic;
  const F32 n = shifted - magic;
  const F32 r =
      (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two pieces, the first exact in 10 bits
  F32 p = r * 0.00138142216f + 0.00836889911f;
  p = p * r + 0.0416684039f;
  p = p * r + 0.166665196f;
  p = p * r + 0.49999994f;
  p = p * (r * r) + r + 1.0f;
  // Unsigned: what is shifted out is meant to be lost.
  const F32 scaled = reinterpret_cast<F32>(reinterpret_cast<U32>(p) + (reinterpret_cast<U32>(shifted) << 23));
  return vanishes ? splat(0) : scaled;
}

// tanh x to 1.5e-7.
inline F32 tanh(F32 x) {
  const F32 a = absolute(x);
  const F32 square = x * x;
  F32 p = square * -0.00589515967f + 0.020795973f;
  p = p * square - 0.0537838303f;
  p = p * square + 0.133319244f;
  p = p * square - 0.333332986f;
  const F32 near = x + x * square * p;
  const F32 far = 1.0f - 2.0f / (exp(a + a) + 1.0f);
  const F32 signed_far = from_bits(bits(far) | (bits(x) & static_cast<std::int32_t>(0x80000000)));
  return a < 0.6f ? near : signed_far;
}

// 1 / (1 + e^-x) to 1.5e-7.
inline F32 sigmoid(F32 x) { return 1.0f / (1.0f + exp(-x)); }

// e^(-x^2 / 2): the exponent is squared in two pieces, whose rounding error would otherwise be multiplied by
// it.
inline F32 gaussian(F32 x) {
  const F32 high = from_bits(bits(x) & ~0xfff);
  const F32 low = x - high;
  return exp(high * high * -0.5f) * exp((x + high) * low * -0.5f);
}

// The distribution function of the standard normal, to 5e-7 relative down to x = -13.
inline F32 normal_cdf(F32 x) {
  const F32 a = absolute(x);
  const F32 t = 1.0f / (a * 0.3f + 1.0f);
  F32 p = t * -0.0206234939f + 0.112435751f;
  p = p * t - 0.228213921f;
  p = p * t + 0.191784948f;
  p = p * t - 0.0794238374f;
  p = p * t + 0.0961570144f;
  p = p * t + 0.078389585f;
  p = p * t + 0.110235438f;
  p = p * t + 0.119571812f;
  p = p * t + 0.119686693f;
  const F32 tail = p * t * gaussian(a);
  return x < 0.0f ? tail : 1.0f - tail;
}

}  // namespace HEADWAY_VECTORS
}  // namespace headway::simd
