#include "chip/alu.h"

#include <array>
#include <limits>

#include "base/error.h"
#include "chip/alu_operators.h"

namespace headway::chip {

std::span<const std::string_view> names_of(Alu) {
  static constexpr std::array<std::string_view, 30> kNames = {
      "bypass",        "add",        "subtract",    "multiply",    "maximum",     "minimum",
      "power",         "abs_max",    "abs_min",     "equal",       "not_equal",   "greater",
      "greater_equal", "less",       "less_equal",  "logical_and", "logical_or",  "logical_xor",
      "bitwise_and",   "bitwise_or", "bitwise_xor", "left_shift",  "right_shift", "invert",
      "abs",           "square",     "relu",        "rsqrt",       "reciprocal",  "average"};
  static_assert(static_cast<std::size_t>(Alu::average) + 1 == kNames.size());
  return kNames;
}

bool is_bitwise(Alu op) { return op >= Alu::bitwise_and && op <= Alu::invert; }

bool is_unary(Alu op) { return op >= Alu::invert && op <= Alu::reciprocal; }

bool is_reduction(Alu op) {
  switch (op) {
    case Alu::add:
    case Alu::subtract:
    case Alu::multiply:
    case Alu::maximum:
    case Alu::minimum:
    case Alu::logical_and:
    case Alu::logical_or:
    case Alu::logical_xor:
    case Alu::bitwise_and:
    case Alu::bitwise_or:
    case Alu::bitwise_xor:
    case Alu::average:
      return true;
    default:
      return false;
  }
}

float apply_alu(Alu op, float a, float b) {
  return with_float_operator(op, [&](auto f) -> float { return f(a, b); });
}

float apply_alu(Alu op, float a) {
  return with_unary_operator(op, [&](auto f) -> float { return f(a); });
}

std::uint32_t apply_bits(Alu op, std::uint32_t a, std::uint32_t b, int bits) {
  return with_bit_operator(op, bits, [&](auto f) -> std::uint32_t { return f(a, b); });
}

std::uint32_t apply_integers(Alu op, std::uint32_t a, bool a_signed, std::uint32_t b, bool b_signed) {
  const auto value = [](std::uint32_t bits, bool is_signed) {
    return is_signed ? std::int64_t{static_cast<std::int32_t>(bits)} : std::int64_t{bits};
  };
  return with_integer_operator(op, [&](auto f) -> std::uint32_t {
    return static_cast<std::uint32_t>(f(value(a, a_signed), value(b, b_signed)));
  });
}

float identity(Alu op) {
  switch (op) {
    case Alu::multiply:
    case Alu::logical_and:
      return 1;
    case Alu::maximum:
      return -std::numeric_limits<float>::infinity();
    case Alu::minimum:
      return std::numeric_limits<float>::infinity();
    case Alu::add:
    case Alu::subtract:
    case Alu::logical_or:
    case Alu::logical_xor:
    case Alu::average:
      return 0;
    default:
      throw Bug("reductions of numbers only have an identity");
  }
}

}  // namespace headway::chip
