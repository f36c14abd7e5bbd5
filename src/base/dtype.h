// Element types and shapes of tensors.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headway {

// Host computations use the first four. The others are what a NeuronCore stores: tf32 in 32 bits, bool as a
// byte of 0 or 1, and the packed x4 types, of which only the storage is known here.
enum class DType : std::uint8_t {
  f64,
  f32,
  bf16,
  i32,
  tf32,
  f16,
  f8e4m3,
  f8e4m3fn,
  f8e5m2,
  f8e8m0fnu,
  i8,
  i16,
  u8,
  u16,
  u32,
  boolean,
  f8e4m3fn_x4,
  f8e5m2_x4,
  f4e2m1fn_x4,
};
inline constexpr int kDTypes = 19;

// Bytes per element; a packed x4 type is one element.
int size_of(DType dtype);
// NumPy's and NKI's name: "float32", "bfloat16", "float8_e4m3fn", "bool", "float8_e5m2_x4".
std::string_view name_of(DType dtype);
// The dtype of that name, or nothing.
std::optional<DType> dtype_named(std::string_view name);

bool is_integer(DType dtype);  // signed and unsigned, not bool
bool is_float(DType dtype);    // not the packed types
bool is_packed(DType dtype);

// float -> bfloat16 -> float, rounding to nearest even; NaN stays NaN.
inline float round_to_bf16(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return std::bit_cast<float>((bits | 0x00400000u) & 0xffff0000u);
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return std::bit_cast<float>(bits & 0xffff0000u);
}

// Row-major extents, outermost first. A scalar has no dimensions.
using Shape = std::vector<std::int64_t>;

std::int64_t elements(const Shape& shape);
// "[8, 1024]"
std::string to_string(const Shape& shape);

}  // namespace headway
