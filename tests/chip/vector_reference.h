// What the Vector engine's instructions should compute, from the documents: in float64, rounded to float32
// after each operation (which for sums, products, quotients and square roots of float32 numbers is the
// correctly rounded float32 result). And operands to try it on.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "chip/alu.h"
#include "chip/harness.h"

namespace headway::chip::reference {

inline double f32(double number) { return static_cast<double>(static_cast<float>(number)); }

inline double binary(Alu op, double a, double b) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const bool any_nan = std::isnan(a) || std::isnan(b), ta = a != 0, tb = b != 0;
  switch (op) {
    case Alu::add:
      return f32(a + b);
    case Alu::subtract:
      return f32(a - b);
    case Alu::multiply:
      return f32(a * b);
    case Alu::maximum:
      return any_nan ? nan : std::max(a, b);
    case Alu::minimum:
      return any_nan ? nan : std::min(a, b);
    case Alu::power:
      return f32(std::pow(a, b));
    case Alu::abs_max:
      return std::abs(a) > std::abs(b) ? a : b;
    case Alu::abs_min:
      return std::abs(a) < std::abs(b) ? a : b;
    case Alu::equal:
      return a == b;
    case Alu::not_equal:
      return a != b;
    case Alu::greater:
      return a > b;
    case Alu::greater_equal:
      return a >= b;
    case Alu::less:
      return a < b;
    case Alu::less_equal:
      return a <= b;
    case Alu::logical_and:
      return ta && tb;
    case Alu::logical_or:
      return ta || tb;
    case Alu::logical_xor:
      return ta != tb;
    default:
      ADD_FAILURE() << "no binary operator";
      return nan;
  }
}

inline double unary(Alu op, double a) {
  switch (op) {
    case Alu::abs:
      return std::abs(a);
    case Alu::square:
      return f32(a * a);
    case Alu::relu:
      return std::isnan(a) ? a : std::max(a, 0.0);
    case Alu::rsqrt:
      return f32(1 / f32(std::sqrt(a)));
    case Alu::reciprocal:
      return f32(1 / a);
    default:
      ADD_FAILURE() << "no unary operator";
      return 0;
  }
}

// a op b, or b op a; of a unary operator b doesn't count.
inline double either(Alu op, double a, double b, bool reversed = false) {
  if (op >= Alu::abs && op <= Alu::reciprocal) return unary(op, a);
  return reversed ? binary(op, b, a) : binary(op, a, b);
}

// The order that chip/alu.h promises.
inline double reduce(Alu op, std::vector<double> row, const double* init = nullptr) {
  const bool logical = op == Alu::logical_and || op == Alu::logical_or || op == Alu::logical_xor;
  const double start = init ? *init : op == Alu::logical_and ? 1 : 0;
  if (op == Alu::subtract) {
    if (init) return f32(*init - reduce(Alu::add, row));
    if (row.size() == 1) return row[0];
    return f32(row[0] - reduce(Alu::add, {row.begin() + 1, row.end()}));
  }
  std::size_t lanes = 1;
  while (lanes < 64 && lanes * 2 <= row.size()) lanes *= 2;
  for (std::size_t i = lanes; i < row.size(); ++i) row[i % lanes] = binary(op, row[i % lanes], row[i]);
  for (std::size_t half = lanes / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) row[l] = binary(op, row[l], row[l + half]);
  return init || logical ? binary(op, start, row[0]) : row[0];
}

// The same bits of every width.
inline std::uint64_t bitwise(Alu op, std::uint64_t a, std::uint64_t b, int bits) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1, width = static_cast<std::uint64_t>(bits);
  switch (op) {
    case Alu::bitwise_and:
      return a & b;
    case Alu::bitwise_or:
      return a | b;
    case Alu::bitwise_xor:
      return a ^ b;
    case Alu::left_shift:
      return b < width ? (a << b) & mask : 0;
    case Alu::right_shift:
      return b < width ? a >> b : 0;
    case Alu::invert:
      return ~a & mask;
    default:
      ADD_FAILURE() << "no operator on bits";
      return 0;
  }
}

// Ways in which `n` elements of a partition may lie in memory.
enum class Lie { whole, part, strided, crossed, padded, repeated };
inline constexpr Lie kLies[] = {Lie::whole,   Lie::part,   Lie::strided,
                                Lie::crossed, Lie::padded, Lie::repeated};
inline constexpr int kWritable = 5;  // the first of them

// A tile of `rows` partitions with `n` elements each. Where n doesn't divide as needed, the whole tensor.
inline Tile tile(Harness& h, Buffer buffer, DType dtype, std::int64_t rows, std::int64_t n, Lie lie) {
  const auto declare = [&](const Shape& shape) {
    return buffer == Buffer::psum ? h.nki.psum(dtype, shape) : h.nki.sbuf(dtype, shape);
  };
  switch (lie) {
    case Lie::part: {
      const std::int64_t first = rows <= 32 ? 32 : rows <= 64 ? 64 : 0;
      return declare({first + rows, n + 5})(ds(first, rows), ds(3, n));
    }
    case Lie::strided:
      return declare({rows, 2 * n + 1})(ds(0, rows), range(1, 2 * n + 1, 2));
    case Lie::crossed:
      if (n % 2 == 0) return declare({rows, n / 2, 2}).permute({0, 2, 1});
      break;
    case Lie::padded:
      if (n % 4 == 0) return declare({rows, 4, n / 4 + 1})(ds(0, rows), ds(0, 4), ds(1, n / 4));
      break;
    case Lie::repeated:
      return declare({rows, 1}).broadcast(1, n);
    case Lie::whole:
      break;
  }
  return declare({rows, n});
}

// Choices of a test that tries many combinations, the same in every run.
class Choices {
 public:
  explicit Choices(unsigned seed) : random_(seed) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  template <class List>
  auto of(const List& list) {
    return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(std::size(list))))];
  }
  bool flip() { return below(2) == 1; }
  std::int64_t rows() { return of(std::vector<std::int64_t>{1, 5, 16, 32, 33, 64, 100, 128}); }
  std::int64_t elements() { return of(std::vector<std::int64_t>{1, 2, 7, 8, 12, 16, 36, 63, 64, 129, 260}); }
  Buffer buffer() { return flip() ? Buffer::psum : Buffer::sbuf; }

 private:
  std::mt19937_64 random_;
};

// What a float32 number is after storing it, without the detour over float32 of the harness: 32-bit integers
// have more digits.
inline double kept(DType dtype, double number) {
  if (dtype != DType::i32 && dtype != DType::u32) return stored(dtype, number);
  if (std::isnan(number)) return 0;
  const double low = dtype == DType::i32 ? -2147483648.0 : 0,
               high = dtype == DType::i32 ? 2147483647.0 : 4294967295.0;
  return std::min(std::max(std::nearbyint(number), low), high);
}

// Numbers that every dtype of a kind can hold a good part of.
inline std::vector<double> fill(Harness& h, const Tile& tile) {
  const DType dtype = tile.dtype();
  if (dtype == DType::boolean) return h.fill(tile, 0, 1.999);
  if (dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32) return h.fill(tile, 0, 100);
  if (is_integer(dtype)) return h.fill(tile, -100, 100);
  return h.fill(tile, -4, 4);
}

inline constexpr std::uint64_t kAll = ~std::uint64_t{0};

// Random bits of integers, kept in doubles (32 bits at most).
inline std::vector<double> fill_bits(Harness& h, const Tile& tile, Choices& choose,
                                     std::uint64_t below = kAll) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < tile.view().elements(); ++i) {
    const std::uint64_t range = std::uint64_t{1} << (8 * size_of(tile.dtype()));
    std::uint64_t bits = static_cast<std::uint64_t>(choose.below(1 << 30)) * 7919 % range % below;
    double number = static_cast<double>(bits);
    const bool is_signed =
        tile.dtype() == DType::i8 || tile.dtype() == DType::i16 || tile.dtype() == DType::i32;
    if (is_signed && bits >= range / 2) number -= static_cast<double>(range);
    numbers.push_back(number);
  }
  h.set(tile, numbers);
  return h.numbers(tile);
}

inline constexpr Alu kBinary[] = {Alu::add,           Alu::subtract,   Alu::multiply,   Alu::maximum,
                                  Alu::minimum,       Alu::equal,      Alu::not_equal,  Alu::greater,
                                  Alu::greater_equal, Alu::less,       Alu::less_equal, Alu::logical_and,
                                  Alu::logical_or,    Alu::logical_xor};
inline constexpr Alu kBitwise[] = {Alu::bitwise_and, Alu::bitwise_or, Alu::bitwise_xor, Alu::left_shift,
                                   Alu::right_shift};

}  // namespace headway::chip::reference
