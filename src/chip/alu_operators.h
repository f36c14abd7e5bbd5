// What each operator of the ALU means, once: the scalar functions of alu.cc and the rows of alu_rows.cc are
// both made from this. `with_...` calls f with the operator as a function object.
//
// Float32 arithmetic is IEEE 754: each operation rounds once, to nearest even; subnormals are kept. NaN:
// maximum and minimum give NaN when either operand is one, as numpy.maximum does, which the documents refer
// to; comparisons with NaN are false and not_equal true; NaN is a true logical value; abs_max and abs_min
// give b unless a is strictly larger or smaller, hence b for NaN. Which NaN (sign and payload) is not
// defined. maximum(0, -0) and minimum(0, -0) give b.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/error.h"
#include "chip/alu.h"

namespace headway::chip {

// Operators whose function objects also take vectors of floats.
template <class F>
decltype(auto) with_plain_operator(Alu op, F&& f) {
  switch (op) {
    case Alu::add:
    case Alu::average:  // adds; whoever averages divides in the end
      return f([](auto a, auto b) { return a + b; });
    case Alu::subtract:
      return f([](auto a, auto b) { return a - b; });
    case Alu::multiply:
      return f([](auto a, auto b) { return a * b; });
    case Alu::maximum:
      return f([](auto a, auto b) {
        const auto larger = a > b ? a : b;  // b where one is NaN
        return a != a ? a : larger;
      });
    case Alu::minimum:
      return f([](auto a, auto b) {
        const auto smaller = a < b ? a : b;
        return a != a ? a : smaller;
      });
    default:
      throw Bug("not a plain operator");
  }
}
inline bool is_plain(Alu op) {
  return op == Alu::add || op == Alu::average || op == Alu::subtract || op == Alu::multiply ||
         op == Alu::maximum || op == Alu::minimum;
}

template <class F>
decltype(auto) with_float_operator(Alu op, F&& f) {
  switch (op) {
    case Alu::bypass:
      return f([](float a, float) { return a; });
    case Alu::power:
      return f([](float a, float b) { return std::pow(a, b); });
    case Alu::abs_max:
      return f([](float a, float b) { return std::fabs(a) > std::fabs(b) ? a : b; });
    case Alu::abs_min:
      return f([](float a, float b) { return std::fabs(a) < std::fabs(b) ? a : b; });
    case Alu::equal:
      return f([](float a, float b) { return a == b ? 1.0f : 0.0f; });
    case Alu::not_equal:
      return f([](float a, float b) { return a != b ? 1.0f : 0.0f; });
    case Alu::greater:
      return f([](float a, float b) { return a > b ? 1.0f : 0.0f; });
    case Alu::greater_equal:
      return f([](float a, float b) { return a >= b ? 1.0f : 0.0f; });
    case Alu::less:
      return f([](float a, float b) { return a < b ? 1.0f : 0.0f; });
    case Alu::less_equal:
      return f([](float a, float b) { return a <= b ? 1.0f : 0.0f; });
    case Alu::logical_and:
      return f([](float a, float b) { return (a != 0) & (b != 0) ? 1.0f : 0.0f; });
    case Alu::logical_or:
      return f([](float a, float b) { return (a != 0) | (b != 0) ? 1.0f : 0.0f; });
    case Alu::logical_xor:
      return f([](float a, float b) { return (a != 0) != (b != 0) ? 1.0f : 0.0f; });
    default:
      return with_plain_operator(op, std::forward<F>(f));
  }
}

// rsqrt rounds twice: its square root and its division are each correctly rounded.
template <class F>
decltype(auto) with_unary_operator(Alu op, F&& f) {
  switch (op) {
    case Alu::bypass:
      return f([](float a) { return a; });
    case Alu::abs:
      return f([](float a) { return std::fabs(a); });
    case Alu::square:
      return f([](float a) { return a * a; });
    case Alu::relu:
      return f([](float a) { return a < 0 ? 0.0f : a + 0.0f; });  // NaN stays, -0 becomes 0
    case Alu::rsqrt:
      return f([](float a) { return 1.0f / std::sqrt(a); });
    case Alu::reciprocal:
      return f([](float a) { return 1.0f / a; });
    default:
      throw Bug("not a unary operator of arithmetic");
  }
}

// On 32-bit integers as 64-bit values: what GpSimd computes. The result's low 32 bits are stored, so add,
// subtract and multiply are exact modulo 2^32 and comparisons are of the values, whatever the signs of the
// two types.
template <class F>
decltype(auto) with_integer_operator(Alu op, F&& f) {
  using I = std::int64_t;
  switch (op) {
    case Alu::add:
      return f([](I a, I b) { return a + b; });
    case Alu::subtract:
      return f([](I a, I b) { return a - b; });
    case Alu::multiply:  // unsigned: two uint32 may pass 2^63
      return f([](I a, I b) {
        return static_cast<I>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      });
    case Alu::maximum:
      return f([](I a, I b) { return a > b ? a : b; });
    case Alu::minimum:
      return f([](I a, I b) { return a < b ? a : b; });
    case Alu::equal:
      return f([](I a, I b) { return I{a == b}; });
    case Alu::not_equal:
      return f([](I a, I b) { return I{a != b}; });
    case Alu::greater:
      return f([](I a, I b) { return I{a > b}; });
    case Alu::greater_equal:
      return f([](I a, I b) { return I{a >= b}; });
    case Alu::less:
      return f([](I a, I b) { return I{a < b}; });
    case Alu::less_equal:
      return f([](I a, I b) { return I{a <= b}; });
    case Alu::logical_and:
      return f([](I a, I b) { return I{(a != 0) & (b != 0)}; });
    case Alu::logical_or:
      return f([](I a, I b) { return I{(a != 0) | (b != 0)}; });
    case Alu::logical_xor:
      return f([](I a, I b) { return I{(a != 0) != (b != 0)}; });
    default:
      throw Bug("not an operator of integers");
  }
}

// On patterns of `bits` bits, zero-extended to 32.
template <class F>
decltype(auto) with_bit_operator(Alu op, int bits, F&& f) {
  using U = std::uint32_t;
  const U mask = bits == 32 ? ~U{0} : (U{1} << bits) - 1;
  const auto width = static_cast<U>(bits);
  switch (op) {
    case Alu::bitwise_and:
      return f([](U a, U b) { return a & b; });
    case Alu::bitwise_or:
      return f([](U a, U b) { return a | b; });
    case Alu::bitwise_xor:
      return f([](U a, U b) { return a ^ b; });
    case Alu::left_shift:
      return f([=](U a, U b) { return b < width ? (a << (b & 31)) & mask : 0; });
    case Alu::right_shift:
      return f([=](U a, U b) { return b < width ? a >> (b & 31) : 0; });
    case Alu::invert:
      return f([=](U a, U) { return ~a & mask; });
    default:
      throw Bug("not an operator of bit patterns");
  }
}

}  // namespace headway::chip
