// Arrays of elements to float32 and back, to the bit as base/number_format.h defines it.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace headway::simd {

// out[i] = decode(from, in[i]) and out[i] = encode(to, in[i]) for i < n, for every dtype but float64 and the
// packed ones, for which they throw Bug. `in` and `out` are aligned to their elements and don't overlap.
void to_float(DType from, const void* in, float* out, std::int64_t n);
void from_float(DType to, const float* in, void* out, std::int64_t n);

}  // namespace headway::simd
