#include "base/number_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace headway {
namespace {

float quiet_nan(bool negative) { return std::bit_cast<float>(negative ? 0xffc00000u : 0x7fc00000u); }

float decode_float(const FloatFormat& format, std::uint32_t code) {
  code >>= format.unused_bits;
  const bool negative = code > format.all_ones();
  const std::uint32_t magnitude = code & format.all_ones();
  double value;
  if (magnitude > format.largest()) {
    if (!format.has_infinity || magnitude != format.infinity()) return quiet_nan(negative);
    value = std::numeric_limits<double>::infinity();
  } else {
    const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
    const double mantissa = std::ldexp(static_cast<double>(magnitude & ((1u << format.mantissa_bits) - 1)),
                                       -format.mantissa_bits);
    value = exponent > 0 ? std::ldexp(1 + mantissa, exponent - format.bias)
                         : std::ldexp(mantissa, 1 - format.bias);
  }
  return static_cast<float>(negative ? -value : value);
}

std::uint32_t encode_float(const FloatFormat& format, float value) {
  const double magnitude = std::abs(double{value});
  std::uint32_t code = format.quiet_nan();
  if (std::isinf(magnitude)) {
    code = format.overflow();
  } else if (!std::isnan(magnitude)) {
    // Neighbours of the same exponent are 2^unit apart. A mantissa that rounds up to the next power of two
    // carries into the exponent, which is what the sum below makes of it.
    const int exponent = std::max(magnitude > 0 ? std::ilogb(magnitude) : 1 - format.bias, 1 - format.bias);
    const int unit = exponent - format.mantissa_bits;
    const auto mantissa = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, -unit)));
    code = (static_cast<std::uint32_t>(exponent + format.bias - 1) << format.mantissa_bits) + mantissa;
    if (code > format.largest()) code = format.overflow();
  }
  if (std::signbit(value)) code |= 1u << (format.bits() - 1);
  return code << format.unused_bits;
}

float decode_power(std::uint8_t code) {
  return code == 0xff ? quiet_nan(false) : static_cast<float>(std::ldexp(1.0, code - 127));
}

std::uint8_t encode_power(float value) {
  if (!(value > 0) || std::isinf(value)) return 0xff;
  const double smallest = 0x1p-127;
  if (value <= smallest) return 0;
  if (value < 2 * smallest) return 1;
  int exponent = std::ilogb(value);
  if (std::ldexp(double{value}, -exponent) >= 1.5) ++exponent;
  return static_cast<std::uint8_t>(exponent + 127);  // 2^128 would be 255, which is NaN
}

template <class T>
float decode_integer(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return static_cast<float>(value);
}

template <class T>
void encode_integer(float value, void* element) {
  using Limits = std::numeric_limits<T>;
  const double rounded = std::isnan(value) ? 0.0 : std::nearbyint(double{value});
  const T integer = static_cast<T>(std::clamp(rounded, double{Limits::min()}, double{Limits::max()}));
  std::memcpy(element, &integer, sizeof integer);
}

}  // namespace

float decode(DType dtype, const void* element) {
  std::uint32_t code = 0;
  static_assert(std::endian::native == std::endian::little);
  if (is_float(dtype)) std::memcpy(&code, element, std::min<std::size_t>(sizeof code, size_of(dtype)));
  switch (dtype) {
    case DType::f32:
      return std::bit_cast<float>(code);
    case DType::tf32:
    case DType::bf16:
    case DType::f16:
    case DType::f8e5m2:
    case DType::f8e4m3:
    case DType::f8e4m3fn:
      return decode_float(float_format(dtype), code);
    case DType::f8e8m0fnu:
      return decode_power(static_cast<std::uint8_t>(code));
    case DType::i8:
      return decode_integer<std::int8_t>(element);
    case DType::i16:
      return decode_integer<std::int16_t>(element);
    case DType::i32:
      return decode_integer<std::int32_t>(element);
    case DType::u8:
      return decode_integer<std::uint8_t>(element);
    case DType::u16:
      return decode_integer<std::uint16_t>(element);
    case DType::u32:
      return decode_integer<std::uint32_t>(element);
    case DType::boolean:
      return decode_integer<std::uint8_t>(element) != 0 ? 1 : 0;
    default:
      throw Bug("an element of " + std::string(name_of(dtype)) + " is no float");
  }
}

void encode(DType dtype, float value, void* element) {
  std::uint32_t code = 0;
  switch (dtype) {
    case DType::f32:
      code = std::bit_cast<std::uint32_t>(value);
      break;
    case DType::tf32:
    case DType::bf16:
    case DType::f16:
    case DType::f8e5m2:
    case DType::f8e4m3:
    case DType::f8e4m3fn:
      code = encode_float(float_format(dtype), value);
      break;
    case DType::f8e8m0fnu:
      code = encode_power(value);
      break;
    case DType::i8:
      return encode_integer<std::int8_t>(value, element);
    case DType::i16:
      return encode_integer<std::int16_t>(value, element);
    case DType::i32:
      return encode_integer<std::int32_t>(value, element);
    case DType::u8:
      return encode_integer<std::uint8_t>(value, element);
    case DType::u16:
      return encode_integer<std::uint16_t>(value, element);
    case DType::u32:
      return encode_integer<std::uint32_t>(value, element);
    case DType::boolean:
      code = value == 0 ? 0 : 1;
      break;
    default:
      throw Bug("a float is no element of " + std::string(name_of(dtype)));
  }
  std::memcpy(element, &code, static_cast<std::size_t>(size_of(dtype)));
}

}  // namespace headway
