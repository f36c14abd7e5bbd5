// What the bits of an element mean, for every DType but float64 and the packed ones: the plain definition,
// one element at a time. src/simd/convert.h is the fast form.
//
// Floating point. An element is sign, exponent e (biased) and mantissa m, in this order from the top:
//     e > 0: 2^(e - bias) (1 + m / 2^mantissa_bits)      e = 0: 2^(1 - bias) (m / 2^mantissa_bits)
// so subnormals are kept, float32's too. Encoding rounds to the nearest, of two equally near to the one whose
// last mantissa bit is 0; zero keeps its sign.
//
//                   exponent  mantissa  bias   largest   infinity   NaN
//   float32             8        23      127   3.4e38    yes        exponent all ones, m > 0
//   tfloat32            8        10      127   3.4e38    yes        the same; the low 13 of its 32 bits are
//                                                                   written 0 and not read
//   bfloat16            8         7      127   3.39e38   yes        the same
//   float16             5        10       15   65504     yes        the same
//   float8_e5m2         5         2       15   57344     yes        the same
//   float8_e4m3         4         3        7   240       yes        the same
//   float8_e4m3fn       4         3        7   448       no         exponent and mantissa all ones
//   float8_e8m0fnu      8         -      127   2^127     no         all ones; no sign, no zero: byte e is
//   2^(e - 127)
//
// What is larger than the largest after rounding becomes infinity, or NaN where there is none. A NaN becomes
// the quiet NaN of its sign, and loses what else it carried; only float32 keeps all bits.
//
// float8_e8m0fnu: zero, negative numbers, infinity and NaN become NaN. Others go to the nearest power of two
// in value, the middle (3 between 2 and 4) upward; but what is below the smallest power, 2^-127, becomes it,
// and everything between 2^-127 and 2^-126 becomes 2^-126.
//
// Integers: half to even, saturating; NaN is 0. Decoding int32 and uint32 rounds to float32.
// bool: 0 and -0 are 0, everything else (NaN too) 1; decoding, every byte but 0 is 1.
//
// Sources: IEEE 754-2008; OCP 8-bit Floating Point Specification 1.0; OCP Microscaling Formats 1.0; and for
// what these leave open ml_dtypes 0.6, with which tests/fixtures/numbers.safetensors was made.
#pragma once

#include "base/dtype.h"

namespace headway {

// A floating-point format of the table; meaningless for float8_e8m0fnu, integers and bool.
struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity = true;
  int unused_bits = 0;  // below the mantissa

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  // Codes without their sign: a larger code is a larger number.
  constexpr std::uint32_t all_ones() const { return (1u << (bits() - 1)) - 1; }
  constexpr std::uint32_t infinity() const { return all_ones() >> mantissa_bits << mantissa_bits; }
  constexpr std::uint32_t largest() const { return (has_infinity ? infinity() : all_ones()) - 1; }
  constexpr std::uint32_t quiet_nan() const {
    return has_infinity ? infinity() | 1u << (mantissa_bits - 1) : all_ones();
  }
  constexpr std::uint32_t overflow() const { return has_infinity ? infinity() : quiet_nan(); }
};

constexpr FloatFormat float_format(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {8, 23, 127};
    case DType::tf32:
      return {8, 10, 127, true, 13};
    case DType::bf16:
      return {8, 7, 127};
    case DType::f16:
      return {5, 10, 15};
    case DType::f8e5m2:
      return {5, 2, 15};
    case DType::f8e4m3:
      return {4, 3, 7};
    case DType::f8e4m3fn:
      return {4, 3, 7, false};
    default:
      return {0, 0, 0};
  }
}

// `element` has size_of(dtype) bytes at any address. Both throw Bug for a dtype that has no such meaning.
float decode(DType dtype, const void* element);
void encode(DType dtype, float value, void* element);

}  // namespace headway
