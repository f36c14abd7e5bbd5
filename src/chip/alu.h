// The arithmetic of the Vector, Scalar and GpSimd engines: NKI's `op` values.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "chip/engine.h"

namespace headway::chip {

enum class Alu : std::uint8_t {
  bypass,
  add,
  subtract,
  multiply,
  maximum,
  minimum,
  power,
  abs_max,
  abs_min,
  equal,
  not_equal,
  greater,
  greater_equal,
  less,
  less_equal,
  logical_and,
  logical_or,
  logical_xor,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  left_shift,
  right_shift,
  invert,  // unary, on bits
  abs,
  square,
  relu,
  rsqrt,
  reciprocal,  // unary, arithmetic
  average      // reductions over partitions only
};
std::span<const std::string_view> names_of(Alu);
inline std::string_view name_of(Alu op) { return names_of(op)[static_cast<std::size_t>(op)]; }

// On bit patterns of integer dtypes, without conversion; all others on float32.
bool is_bitwise(Alu op);
bool is_unary(Alu op);
// Whether a reduction may use it.
bool is_reduction(Alu op);

// Float32: a op b; comparisons and logic give 1 or 0; `bypass` gives a. Not for bitwise ones. alu_operators.h
// says what each operator means, NaN and rounding included.
float apply_alu(Alu op, float a, float b);
float apply_alu(Alu op, float a);  // unary
// Bits of elements of `bits` width (8, 16, 32); shifts by that many or more give 0.
std::uint32_t apply_bits(Alu op, std::uint32_t a, std::uint32_t b, int bits);
// Exact arithmetic, comparisons and logic of 32-bit integers: the low 32 bits of the result.
std::uint32_t apply_integers(Alu op, std::uint32_t a, bool a_signed, std::uint32_t b, bool b_signed);

// Rows of n: out may be a or b. The fast ones; the same numbers as apply_alu, to the bit.
void alu_row(Alu op, const float* a, const float* b, float* out, std::int64_t n);
// (a op s), or (s op a) where reversed.
void alu_row(Alu op, const float* a, float s, bool reversed, float* out, std::int64_t n);
void alu_row(Alu op, const float* a, float* out, std::int64_t n);  // unary
void alu_bits_row(Alu op, const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* out, std::int64_t n,
                  int bits);
void alu_bits_row(Alu op, const std::uint32_t* a, std::uint32_t s, bool reversed, std::uint32_t* out,
                  std::int64_t n, int bits);
// init op a[0] op a[1] ...: in a fixed order that depends on n alone. With L the largest power of two up to
// n, at most 64, lane l < L starts with a[l] and takes in a[l + L], a[l + 2 L] ...; then lane l takes in lane
// l + L/2, l + L/4 ...; init comes last, on the left. subtract takes the sum of the row from init; `average`
// adds.
float reduce_row(Alu op, const float* a, std::int64_t n, float init);
std::uint32_t reduce_bits_row(Alu op, const std::uint32_t* a, std::int64_t n, std::uint32_t init);
// What a reduction starts from: 0, 1, -inf, +inf ...
float identity(Alu op);

// Many rows at once: row r begins at at[r * stride]. A `single` row is one value, repeated; with a stride of
// 0 it is the same one for all rows. Results may lie where an operand lies if they lie there element by
// element.
template <class T>
struct Rows {
  const T* at = nullptr;
  std::int64_t stride = 0;
  bool single = false;
};
template <class T>
struct RowsOut {
  T* at = nullptr;
  std::int64_t stride = 0;
};
template <class T>
Rows<T> same_value(const T& value) {
  return {&value, 0, true};
}
template <class T>
Rows<T> one_a_row(const T* values) {
  return {values, 1, true};
}

void alu_rows(Alu op, Rows<float> a, Rows<float> b, RowsOut<float> out, std::int64_t rows, std::int64_t n);
void alu_rows(Alu op, Rows<float> a, RowsOut<float> out, std::int64_t rows, std::int64_t n);  // unary
void alu_bits_rows(Alu op, Rows<std::uint32_t> a, Rows<std::uint32_t> b, RowsOut<std::uint32_t> out,
                   std::int64_t rows, std::int64_t n, int bits);
void alu_integer_rows(Alu op, Rows<std::uint32_t> a, bool a_signed, Rows<std::uint32_t> b, bool b_signed,
                      RowsOut<std::uint32_t> out, std::int64_t rows, std::int64_t n);
// Two operators, one after the other, each with its sides exchanged or not.
struct OpPair {
  Alu op0 = Alu::multiply, op1 = Alu::add;
  bool reverse0 = false, reverse1 = false;
};
// out = (a op0 s) op1 b in one pass over memory, where s is single; for the pairs of operators for which
// there is one, else it returns false and does nothing.
bool alu_pair_rows(const OpPair& ops, Rows<float> a, Rows<float> s, Rows<float> b, RowsOut<float> out,
                   std::int64_t rows, std::int64_t n);

// out[r * stride + g] = (init op) the reduction of elements [g n, (g + 1) n) of row r, for g < groups; `init`
// has one value a row or is null: then nothing is put before the first element. Rows aren't single.
void reduce_rows(Alu op, Rows<float> a, const float* init, RowsOut<float> out, std::int64_t rows,
                 std::int64_t groups, std::int64_t n);
void reduce_bits_rows(Alu op, Rows<std::uint32_t> a, RowsOut<std::uint32_t> out, std::int64_t rows,
                      std::int64_t groups, std::int64_t n);

// Rows that are worth giving to one call: their scans run side by side.
inline constexpr std::int64_t kScanRows = 8;
// state = (a op0 state) op1 b for each element in turn: out[r][i] is row r's state after a[r][i] and b[r][i];
// state[r] is the first and becomes the last.
void scan_rows(const OpPair& ops, Rows<float> a, Rows<float> b, float* state, RowsOut<float> out,
               std::int64_t rows, std::int64_t n);
// The same with state = a op state.
void cumulate_rows(Alu op, Rows<float> a, float* state, RowsOut<float> out, std::int64_t rows,
                   std::int64_t n);

}  // namespace headway::chip
