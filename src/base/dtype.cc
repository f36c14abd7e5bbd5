#include "base/dtype.h"

#include <fmt/ranges.h>

#include <array>

namespace headway {

namespace {

enum class Family { floating, integer, boolean, packed };

struct Facts {
  std::string_view name;
  int bytes;
  Family family;
};

// In the order of DType.
constexpr std::array<Facts, kDTypes> kFacts = {{
    {"float64", 8, Family::floating},
    {"float32", 4, Family::floating},
    {"bfloat16", 2, Family::floating},
    {"int32", 4, Family::integer},
    {"tfloat32", 4, Family::floating},
    {"float16", 2, Family::floating},
    {"float8_e4m3", 1, Family::floating},
    {"float8_e4m3fn", 1, Family::floating},
    {"float8_e5m2", 1, Family::floating},
    {"float8_e8m0fnu", 1, Family::floating},
    {"int8", 1, Family::integer},
    {"int16", 2, Family::integer},
    {"uint8", 1, Family::integer},
    {"uint16", 2, Family::integer},
    {"uint32", 4, Family::integer},
    {"bool", 1, Family::boolean},
    {"float8_e4m3fn_x4", 4, Family::packed},
    {"float8_e5m2_x4", 4, Family::packed},
    {"float4_e2m1fn_x4", 2, Family::packed},
}};

const Facts& facts(DType dtype) { return kFacts[static_cast<std::size_t>(dtype)]; }

}  // namespace

int size_of(DType dtype) { return facts(dtype).bytes; }

std::string_view name_of(DType dtype) { return facts(dtype).name; }

std::optional<DType> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < kFacts.size(); ++i)
    if (kFacts[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

bool is_integer(DType dtype) { return facts(dtype).family == Family::integer; }
bool is_float(DType dtype) { return facts(dtype).family == Family::floating; }
bool is_packed(DType dtype) { return facts(dtype).family == Family::packed; }

std::int64_t elements(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t extent : shape) n *= extent;
  return n;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace headway
