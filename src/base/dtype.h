// Element types and shapes of tensors.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headway {

enum class DType { f64, f32, bf16, i32 };

// Bytes per element.
int size_of(DType dtype);
// "float64", "float32", "bfloat16", "int32".
std::string_view name_of(DType dtype);

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
