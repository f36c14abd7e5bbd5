// The vector registers of this processor, in the compiler's own vector types: one source for AVX-512, AVX2,
// SSE and NEON. Arithmetic on F32 is written with the usual operators; what they lack is here.
//
// For files that are compiled for the processor at hand (headway_for_this_processor in CMake). Whatever
// depends on the length of a vector is in the inline namespace HEADWAY_VECTORS, which keeps it apart from the
// same code in a file with other options, whose vectors may be shorter: the linker then finds nothing instead
// of the wrong thing.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define HEADWAY_VECTORS vectors_of_64_bytes
#elif defined(__AVX__)
#define HEADWAY_VECTORS vectors_of_32_bytes
#else
#define HEADWAY_VECTORS vectors_of_16_bytes
#endif

namespace headway::simd {
inline namespace HEADWAY_VECTORS {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif
inline constexpr int kLanes = kVectorBytes / 4;

using F32 = float __attribute__((vector_size(kVectorBytes)));
using I32 = std::int32_t __attribute__((vector_size(kVectorBytes)));
using U32 = std::uint32_t __attribute__((vector_size(kVectorBytes)));
using UnalignedF32 = float __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));

inline F32 load(const float* from) { return *reinterpret_cast<const UnalignedF32*>(from); }
inline void store(float* to, F32 value) { *reinterpret_cast<UnalignedF32*>(to) = value; }

// The first `count` lanes from memory, the others `fill`.
inline F32 load_first(const float* from, std::int64_t count, float fill = 0) {
  alignas(kVectorBytes) float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = i < count ? from[i] : fill;
  return load(lanes);
}
inline void store_first(float* to, F32 value, std::int64_t count) {
  alignas(kVectorBytes) float lanes[kLanes];
  store(lanes, value);
  std::memcpy(to, lanes, static_cast<std::size_t>(count) * sizeof(float));
}

inline F32 splat(float value) { return value - F32{}; }  // x - 0 folds to x, x + 0 would not: -0
inline F32 maximum(F32 a, F32 b) { return a > b ? a : b; }
inline I32 bits(F32 value) { return reinterpret_cast<I32>(value); }
inline F32 from_bits(I32 value) { return reinterpret_cast<F32>(value); }
inline F32 absolute(F32 value) { return from_bits(bits(value) & 0x7fffffff); }

inline F32 square_root(F32 value) {
#if defined(__AVX512F__)
  // The unmasked intrinsic starts from an undefined vector, of which g++ 12 warns.
  return reinterpret_cast<F32>(_mm512_maskz_sqrt_ps(0xffff, reinterpret_cast<__m512>(value)));
#elif defined(__AVX__)
  return reinterpret_cast<F32>(_mm256_sqrt_ps(reinterpret_cast<__m256>(value)));
#else
  for (int i = 0; i < kLanes; ++i) value[i] = std::sqrt(value[i]);
  return value;
#endif
}

// Horizontal sums and maxima, by halves: a fixed order.
inline float sum(F32 value) {
  alignas(kVectorBytes) float lanes[kLanes];
  store(lanes, value);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}
inline float largest(F32 value) {
  alignas(kVectorBytes) float lanes[kLanes];
  store(lanes, value);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] = lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half];
  return lanes[0];
}

// To bfloat16 and back, to nearest even; NaN stays NaN.
inline F32 round_to_bf16(F32 value) {
  const U32 raw = reinterpret_cast<U32>(value);
  const U32 rounded = (raw + 0x7fffu + ((raw >> 16) & 1u)) & 0xffff0000u;
  const U32 quiet = (raw | 0x00400000u) & 0xffff0000u;
  return reinterpret_cast<F32>((raw & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

}  // namespace HEADWAY_VECTORS
}  // namespace headway::simd
