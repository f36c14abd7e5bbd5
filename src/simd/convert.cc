#include "simd/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/number_format.h"

// The functions of one element have no branches that depend on it, only selections, so that the compiler
// turns the loops over them into vectors of whatever length the processor has.

namespace headway::simd {
namespace {

constexpr std::uint32_t kInfinity = 0x7f800000, kNaN = 0x7fc00000;  // of float32
constexpr int kMantissaBits = 23, kBias = 127;

constexpr float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + kBias) << kMantissaBits);
}

template <DType dtype>
inline float decoded(std::uint32_t code) {
  constexpr FloatFormat format = float_format(dtype);
  code >>= format.unused_bits;
  const std::uint32_t magnitude = code & format.all_ones();
  const std::uint32_t sign = (code & ~format.all_ones()) << (32 - format.bits());
  const bool infinite = format.has_infinity && magnitude == format.infinity();
  const bool nan = magnitude > (format.has_infinity ? format.infinity() : format.largest());
  if constexpr (format.bias == kBias) {
    const std::uint32_t bits = magnitude << (kMantissaBits - format.mantissa_bits);
    return std::bit_cast<float>((nan ? kNaN : bits) | sign);
  } else {
    // A whole number times a power of two, neither of them subnormal in float32. What is special is made so
    // before the product: a selection behind it would become a branch around it, because it may raise a flag.
    const std::uint32_t exponent = magnitude >> format.mantissa_bits;
    const std::uint32_t implied = exponent > 0 ? 1u << format.mantissa_bits : 0;
    const std::uint32_t whole = (magnitude & ((1u << format.mantissa_bits) - 1)) | implied;
    constexpr std::uint32_t rebias = kBias - format.bias - format.mantissa_bits;
    std::uint32_t unit = (std::max(exponent, 1u) + rebias) << kMantissaBits;
    unit = infinite ? kInfinity : unit;
    unit = nan ? kNaN : unit;
    const float value = static_cast<float>(static_cast<std::int32_t>(whole)) * std::bit_cast<float>(unit);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
}

template <DType dtype>
inline std::uint32_t encoded(float value) {
  constexpr FloatFormat format = float_format(dtype);
  constexpr int shift = kMantissaBits - format.mantissa_bits;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t sign = bits >> 31 << (format.bits() - 1);
  const std::uint32_t rounded = (magnitude + (1u << (shift - 1)) - 1 + (magnitude >> shift & 1)) >> shift;
  std::uint32_t code = rounded - (static_cast<std::uint32_t>(kBias - format.bias) << format.mantissa_bits);
  if constexpr (format.bias < kBias) {
    // What is added has the format's smallest number as its last place, so that the sum rounds to multiples
    // of it.
    constexpr float anchor = power_of_two(1 - format.bias - format.mantissa_bits + kMantissaBits);
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + anchor) -
                                    std::bit_cast<std::uint32_t>(anchor);
    constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(kBias + 1 - format.bias)
                                              << kMantissaBits;
    code = magnitude < smallest_normal ? subnormal : code;
  }
  code = code > format.largest() ? format.overflow() : code;
  code = magnitude > kInfinity ? format.quiet_nan() : code;
  return (code | sign) << format.unused_bits;
}

inline float decoded_power(std::uint32_t code) {
  std::uint32_t bits = code << kMantissaBits;
  bits = code == 0 ? 1u << (kMantissaBits - 1) : bits;
  return std::bit_cast<float>(code == 0xff ? kNaN : bits);
}

inline std::uint32_t encoded_power(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t half = 1u << (kMantissaBits - 1);
  std::uint32_t code = (bits + half) >> kMantissaBits;
  // Subnormal float32: the smallest power is `half`, the next the smallest normal number.
  const std::uint32_t small = bits > half ? 1 : 0;
  code = bits < 1u << kMantissaBits ? small : code;
  // Zero less one, and all with a sign, are the largest.
  return bits - 1 >= kInfinity - 1 ? 0xff : code;
}

template <class T>
inline T encoded_integer(float value) {
  using Limits = std::numeric_limits<T>;
  const float rounded = std::rint(value);
  if constexpr (sizeof(T) < 4) {
    const float low = rounded < float{Limits::min()} ? float{Limits::min()} : rounded;
    const float high = low > float{Limits::max()} ? float{Limits::max()} : low;
    return static_cast<T>(static_cast<std::int32_t>(high == high ? high : 0));
  } else {
    // The largest integer is no float; the power of two above it is.
    constexpr float above = power_of_two(Limits::digits);
    constexpr auto below = static_cast<float>(Limits::min());
    const bool fits = rounded >= below && rounded < above;
    const T integer = static_cast<T>(fits ? rounded : 0);
    const T high = rounded >= above ? Limits::max() : integer;
    return rounded < below ? Limits::min() : high;
  }
}

template <class T, class F>
void over(const void* in, float* out, std::int64_t n, const F& f) {
  const T* __restrict__ from = static_cast<const T*>(in);
  float* __restrict__ to = out;
  for (std::int64_t i = 0; i < n; ++i) to[i] = f(from[i]);
}

template <class T, class F>
void over(const float* in, void* out, std::int64_t n, const F& f) {
  const float* __restrict__ from = in;
  T* __restrict__ to = static_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(f(from[i]));
}

template <class T>
void integers_to_float(const void* in, float* out, std::int64_t n) {
  over<T>(in, out, n, [](T value) { return static_cast<float>(value); });
}

}  // namespace

void to_float(DType from, const void* in, float* out, std::int64_t n) {
  switch (from) {
    case DType::f32:
      std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(float));
      return;
    case DType::tf32:
      return over<std::uint32_t>(in, out, n, decoded<DType::tf32>);
    case DType::bf16:
      return over<std::uint16_t>(in, out, n, decoded<DType::bf16>);
    case DType::f16:
      return over<std::uint16_t>(in, out, n, decoded<DType::f16>);
    case DType::f8e5m2:
      return over<std::uint8_t>(in, out, n, decoded<DType::f8e5m2>);
    case DType::f8e4m3:
      return over<std::uint8_t>(in, out, n, decoded<DType::f8e4m3>);
    case DType::f8e4m3fn:
      return over<std::uint8_t>(in, out, n, decoded<DType::f8e4m3fn>);
    case DType::f8e8m0fnu:
      return over<std::uint8_t>(in, out, n, decoded_power);
    case DType::i8:
      return integers_to_float<std::int8_t>(in, out, n);
    case DType::i16:
      return integers_to_float<std::int16_t>(in, out, n);
    case DType::i32:
      return integers_to_float<std::int32_t>(in, out, n);
    case DType::u8:
      return integers_to_float<std::uint8_t>(in, out, n);
    case DType::u16:
      return integers_to_float<std::uint16_t>(in, out, n);
    case DType::u32:
      return integers_to_float<std::uint32_t>(in, out, n);
    case DType::boolean:
      return over<std::uint8_t>(in, out, n, [](std::uint8_t value) { return value != 0 ? 1.0f : 0.0f; });
    default:
      throw Bug(std::string(name_of(from)) + " doesn't convert to float32");
  }
}

void from_float(DType to, const float* in, void* out, std::int64_t n) {
  switch (to) {
    case DType::f32:
      std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(float));
      return;
    case DType::tf32:
      return over<std::uint32_t>(in, out, n, encoded<DType::tf32>);
    case DType::bf16:
      return over<std::uint16_t>(in, out, n, encoded<DType::bf16>);
    case DType::f16:
      return over<std::uint16_t>(in, out, n, encoded<DType::f16>);
    case DType::f8e5m2:
      return over<std::uint8_t>(in, out, n, encoded<DType::f8e5m2>);
    case DType::f8e4m3:
      return over<std::uint8_t>(in, out, n, encoded<DType::f8e4m3>);
    case DType::f8e4m3fn:
      return over<std::uint8_t>(in, out, n, encoded<DType::f8e4m3fn>);
    case DType::f8e8m0fnu:
      return over<std::uint8_t>(in, out, n, encoded_power);
    case DType::i8:
      return over<std::int8_t>(in, out, n, encoded_integer<std::int8_t>);
    case DType::i16:
      return over<std::int16_t>(in, out, n, encoded_integer<std::int16_t>);
    case DType::i32:
      return over<std::int32_t>(in, out, n, encoded_integer<std::int32_t>);
    case DType::u8:
      return over<std::uint8_t>(in, out, n, encoded_integer<std::uint8_t>);
    case DType::u16:
      return over<std::uint16_t>(in, out, n, encoded_integer<std::uint16_t>);
    case DType::u32:
      return over<std::uint32_t>(in, out, n, encoded_integer<std::uint32_t>);
    case DType::boolean:
      return over<std::uint8_t>(in, out, n, [](float value) { return value != 0 ? 1 : 0; });
    default:
      throw Bug("float32 doesn't convert to " + std::string(name_of(to)));
  }
}

}  // namespace headway::simd
