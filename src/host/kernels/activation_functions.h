// Activations and their slopes, a vector at a time.
#pragma once

#include "graph/operators/elementwise.h"
#include "host/kernels/vectors.h"
#include "simd/simd_math.h"

namespace headway::host {

template <graph::ActivationKind kind>
inline F32 activated(F32 x) {
  // This way round, NaN stays NaN.
  const F32 positive = x < 0.0f ? splat(0) : x;
  if constexpr (kind == graph::ActivationKind::relu) return positive;
  if constexpr (kind == graph::ActivationKind::relu2) return positive * positive;
  if constexpr (kind == graph::ActivationKind::gelu) return x * normal_cdf(x);
  if constexpr (kind == graph::ActivationKind::silu) return x * sigmoid(x);
}

template <graph::ActivationKind kind>
inline F32 activation_slope(F32 x) {
  if constexpr (kind == graph::ActivationKind::relu) return x > 0.0f ? splat(1) : splat(0);
  if constexpr (kind == graph::ActivationKind::relu2) return 2.0f * (x < 0.0f ? splat(0) : x);
  if constexpr (kind == graph::ActivationKind::gelu) {
    return normal_cdf(x) + x * gaussian(x) * 0.39894228f;  // 1 / sqrt(2 pi)
  }
  if constexpr (kind == graph::ActivationKind::silu) {
    const F32 s = sigmoid(x);
    return s * (1.0f + x * (1.0f - s));
  }
}

}  // namespace headway::host
