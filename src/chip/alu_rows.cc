// The ALU on rows. Compiled for the processor at hand and without contraction, so that every operation rounds
// as in alu.cc.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "chip/alu.h"
#include "chip/alu_operators.h"
#include "simd/simd.h"

namespace headway::chip {
namespace {

using Bits = std::uint32_t;

// Whether row after row is one row.
template <class T>
bool dense(const Rows<T>& a, std::int64_t n) {
  return a.stride == (a.single ? 0 : n);
}

// out = op(a, b), element by element. `ivdep`: results may lie on an operand, but only in the same place.
template <class T, class Op>
void combine(const Op& op, Rows<T> a, Rows<T> b, RowsOut<T> out, std::int64_t rows, std::int64_t n) {
  if (n == 1) {
#pragma GCC ivdep
    for (std::int64_t r = 0; r < rows; ++r)
      out.at[r * out.stride] = op(a.at[r * a.stride], b.at[r * b.stride]);
    return;
  }
  if (out.stride == n && dense(a, n) && dense(b, n)) {
    n *= rows;
    rows = 1;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* x = a.at + r * a.stride;
    const T* y = b.at + r * b.stride;
    T* o = out.at + r * out.stride;
    if (b.single) {
      const T s = *y;
      if (a.single) {
        const T value = op(*x, s);
        for (std::int64_t i = 0; i < n; ++i) o[i] = value;
      } else {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < n; ++i) o[i] = op(x[i], s);
      }
    } else if (a.single) {
      const T s = *x;
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) o[i] = op(s, y[i]);
    } else {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) o[i] = op(x[i], y[i]);
    }
  }
}

// --- Pairs of operators ---

// Those that are compiled in pairs. Where sides are exchanged, sums and products don't change; of maxima and
// minima the sign of a zero may.
bool in_pairs(Alu op, bool reversed) {
  return op == Alu::add || op == Alu::multiply || op == Alu::subtract ||
         ((op == Alu::maximum || op == Alu::minimum) && !reversed);
}

template <class F>
void with_pair_operator(Alu op, bool reversed, const F& f) {
  if (op == Alu::subtract && reversed) return f([](auto a, auto b) { return b - a; });
  with_plain_operator(op, f);
}

// Calls f with both operators; false where they aren't compiled.
template <class F>
bool with_pair(const OpPair& ops, const F& f) {
  if (!in_pairs(ops.op0, ops.reverse0) || !in_pairs(ops.op1, ops.reverse1)) return false;
  with_pair_operator(ops.op0, ops.reverse0, [&](auto op0) {
    with_pair_operator(ops.op1, ops.reverse1, [&](auto op1) { f(op0, op1); });
  });
  return true;
}

// out = op1(op0(a, s), b), s and perhaps b single.
template <class F, class G>
void combine_twice(const F& op0, const G& op1, Rows<float> a, Rows<float> s, Rows<float> b,
                   RowsOut<float> out, std::int64_t rows, std::int64_t n) {
  if (n == 1) {
#pragma GCC ivdep
    for (std::int64_t r = 0; r < rows; ++r)
      out.at[r * out.stride] = op1(op0(a.at[r * a.stride], s.at[r * s.stride]), b.at[r * b.stride]);
    return;
  }
  if (out.stride == n && dense(a, n) && dense(s, n) && dense(b, n)) {
    n *= rows;
    rows = 1;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* x = a.at + r * a.stride;
    const float* y = b.at + r * b.stride;
    float* o = out.at + r * out.stride;
    const float first = s.at[r * s.stride];
    if (b.single) {
      const float second = *y;
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) o[i] = op1(op0(x[i], first), second);
    } else {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) o[i] = op1(op0(x[i], first), y[i]);
    }
  }
}

// --- Reductions: the lanes of alu.h ---

constexpr int kMostLanes = 64;

// More lanes than a vector has: a few vectors.
template <int kL, class Op>
float reduce_vectors(const Op& op, const float* a, std::int64_t n) {
  using simd::F32;
  constexpr int kWide = simd::kLanes, kVectors = kL / kWide;
  F32 lanes[kVectors];
  for (int v = 0; v < kVectors; ++v) lanes[v] = simd::load(a + v * kWide);
  std::int64_t i = kL;
  for (; i + kL <= n; i += kL)
    for (int v = 0; v < kVectors; ++v) lanes[v] = op(lanes[v], simd::load(a + i + v * kWide));
  alignas(64) float each[kL];
  for (int v = 0; v < kVectors; ++v) simd::store(each + v * kWide, lanes[v]);
  if (i < n) {
    for (int l = 0; i < n; ++i, ++l) each[l] = op(each[l], a[i]);
    for (int v = 0; v < kVectors; ++v) lanes[v] = simd::load(each + v * kWide);
  }
  for (int half = kVectors / 2; half > 0; half /= 2)
    for (int v = 0; v < half; ++v) lanes[v] = op(lanes[v], lanes[v + half]);
  simd::store(each, lanes[0]);
  for (int half = kWide / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) each[l] = op(each[l], each[l + half]);
  return each[0];
}

template <int kL, class Op>
float reduce_lanes(const Op& op, const float* a, std::int64_t n) {
  if constexpr (kL >= simd::kLanes) {
    return reduce_vectors<kL>(op, a, n);
  } else {
    float lanes[kL];
    for (int l = 0; l < kL; ++l) lanes[l] = a[l];
    std::int64_t i = kL;
    for (; i < n; ++i) lanes[i - kL] = op(lanes[i - kL], a[i]);  // n < 2 kL
    for (int half = kL / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) lanes[l] = op(lanes[l], lanes[l + half]);
    return lanes[0];
  }
}

template <class Op>
float reduce(const Op& op, const float* a, std::int64_t n) {
  switch (n >= kMostLanes ? kMostLanes : static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(n)))) {
    case 1:
      return a[0];
    case 2:
      return reduce_lanes<2>(op, a, n);
    case 4:
      return reduce_lanes<4>(op, a, n);
    case 8:
      return reduce_lanes<8>(op, a, n);
    case 16:
      return reduce_lanes<16>(op, a, n);
    case 32:
      return reduce_lanes<32>(op, a, n);
    default:
      return reduce_lanes<kMostLanes>(op, a, n);
  }
}

// Calls f(elements of a group, where its result goes, row).
template <class T, class F>
void for_groups(Rows<T> a, RowsOut<T> out, std::int64_t rows, std::int64_t groups, std::int64_t n,
                const F& f) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t g = 0; g < groups; ++g) f(a.at + r * a.stride + g * n, out.at[r * out.stride + g], r);
}

bool is_logical(Alu op) { return op == Alu::logical_and || op == Alu::logical_or || op == Alu::logical_xor; }

// Of logic only the number of true elements matters.
float reduce_logic(Alu op, const float* a, std::int64_t n, float init) {
  std::int32_t trues = 0;
  for (std::int64_t i = 0; i < n; ++i) trues += a[i] != 0;
  const bool first = init != 0;
  if (op == Alu::logical_and) return first && trues == n;
  if (op == Alu::logical_or) return first || trues > 0;
  return first != (trues % 2 != 0);
}

// --- Scans ---

// Rows side by side, so that their chains of operations run at the same time. Pieces of them are brought
// together first: rows that are a power of two apart would drive each other out of the cache.
template <int kRows, class F, class G>
void scan_some(const F& f, const G& g, Rows<float> a, Rows<float> b, float* state, RowsOut<float> out,
               std::int64_t n) {
  constexpr std::int64_t kPiece = 64;
  alignas(64) float x[kRows][kPiece], y[kRows][kPiece], o[kRows][kPiece];
  const auto bring = [](const Rows<float>& rows, int k, std::int64_t first, std::int64_t count,
                        float* piece) {
    const float* row = rows.at + k * rows.stride;
    if (!rows.single) {
      std::copy(row + first, row + first + count, piece);
    } else if (first == 0) {
      std::fill(piece, piece + kPiece, *row);
    }
  };
  float s[kRows];
  for (int k = 0; k < kRows; ++k) s[k] = state[k];
  for (std::int64_t first = 0; first < n; first += kPiece) {
    const std::int64_t count = n - first < kPiece ? n - first : kPiece;
    for (int k = 0; k < kRows; ++k) {
      bring(a, k, first, count, x[k]);
      bring(b, k, first, count, y[k]);
    }
    for (std::int64_t i = 0; i < count; ++i)
      for (int k = 0; k < kRows; ++k) {
        s[k] = g(f(x[k][i], s[k]), y[k][i]);
        o[k][i] = s[k];
      }
    for (int k = 0; k < kRows; ++k) std::copy(o[k], o[k] + count, out.at + k * out.stride + first);
  }
  for (int k = 0; k < kRows; ++k) state[k] = s[k];
}

template <class F, class G>
void scan(const F& f, const G& g, Rows<float> a, Rows<float> b, float* state, RowsOut<float> out,
          std::int64_t rows, std::int64_t n) {
  const auto next = [&](std::int64_t count) {
    a.at += count * a.stride;
    b.at += count * b.stride;
    out.at += count * out.stride;
    state += count;
    rows -= count;
  };
  for (; rows >= kScanRows; next(kScanRows)) scan_some<kScanRows>(f, g, a, b, state, out, n);
  for (; rows > 0; next(1)) scan_some<1>(f, g, a, b, state, out, n);
}

using Function2 = float (*)(float, float);

Function2 function_of(Alu op, bool reversed) {
  return with_float_operator(op, [&](auto f) -> Function2 {
    using F = decltype(f);
    static constexpr F kF{};
    return reversed ? Function2([](float a, float b) -> float { return kF(b, a); })
                    : Function2([](float a, float b) -> float { return kF(a, b); });
  });
}

}  // namespace

void alu_rows(Alu op, Rows<float> a, Rows<float> b, RowsOut<float> out, std::int64_t rows, std::int64_t n) {
  with_float_operator(op, [&](auto f) { combine<float>(f, a, b, out, rows, n); });
}

bool alu_pair_rows(const OpPair& ops, Rows<float> a, Rows<float> s, Rows<float> b, RowsOut<float> out,
                   std::int64_t rows, std::int64_t n) {
  return !a.single &&
         with_pair(ops, [&](auto op0, auto op1) { combine_twice(op0, op1, a, s, b, out, rows, n); });
}

void alu_rows(Alu op, Rows<float> a, RowsOut<float> out, std::int64_t rows, std::int64_t n) {
  with_unary_operator(op, [&](auto f) {
    combine<float>([f](float x, float) { return f(x); }, a, same_value(0.0f), out, rows, n);
  });
}

void alu_bits_rows(Alu op, Rows<Bits> a, Rows<Bits> b, RowsOut<Bits> out, std::int64_t rows, std::int64_t n,
                   int bits) {
  with_bit_operator(op, bits, [&](auto f) { combine<Bits>(f, a, b, out, rows, n); });
}

void alu_integer_rows(Alu op, Rows<Bits> a, bool a_signed, Rows<Bits> b, bool b_signed, RowsOut<Bits> out,
                      std::int64_t rows, std::int64_t n) {
  // What the top bit counts for: 2^31 of an unsigned number, minus that of a signed one.
  const std::int64_t a_top = a_signed ? std::int64_t{1} << 31 : 0,
                     b_top = b_signed ? std::int64_t{1} << 31 : 0;
  const auto value = [](Bits bits, std::int64_t top) { return bits - 2 * (bits & top); };
  with_integer_operator(op, [&](auto f) {
    combine<Bits>([=](Bits x, Bits y) { return static_cast<Bits>(f(value(x, a_top), value(y, b_top))); }, a,
                  b, out, rows, n);
  });
}

void alu_row(Alu op, const float* a, const float* b, float* out, std::int64_t n) {
  alu_rows(op, {a, n, false}, {b, n, false}, {out, n}, 1, n);
}

void alu_row(Alu op, const float* a, float s, bool reversed, float* out, std::int64_t n) {
  const Rows<float> row{a, n, false};
  reversed ? alu_rows(op, same_value(s), row, {out, n}, 1, n)
           : alu_rows(op, row, same_value(s), {out, n}, 1, n);
}

void alu_row(Alu op, const float* a, float* out, std::int64_t n) {
  alu_rows(op, {a, n, false}, {out, n}, 1, n);
}

void alu_bits_row(Alu op, const Bits* a, const Bits* b, Bits* out, std::int64_t n, int bits) {
  alu_bits_rows(op, {a, n, false}, {b, n, false}, {out, n}, 1, n, bits);
}

void alu_bits_row(Alu op, const Bits* a, Bits s, bool reversed, Bits* out, std::int64_t n, int bits) {
  const Rows<Bits> row{a, n, false};
  reversed ? alu_bits_rows(op, same_value(s), row, {out, n}, 1, n, bits)
           : alu_bits_rows(op, row, same_value(s), {out, n}, 1, n, bits);
}

float reduce_row(Alu op, const float* a, std::int64_t n, float init) {
  if (n == 0) return init;
  float result;
  reduce_rows(op, {a, n, false}, &init, {&result, 1}, 1, 1, n);
  return result;
}

Bits reduce_bits_row(Alu op, const Bits* a, std::int64_t n, Bits init) {
  return with_bit_operator(op, 32, [&](auto f) -> Bits {
    Bits result = init;
    for (std::int64_t i = 0; i < n; ++i) result = f(result, a[i]);
    return result;
  });
}

void reduce_rows(Alu op, Rows<float> a, const float* init, RowsOut<float> out, std::int64_t rows,
                 std::int64_t groups, std::int64_t n) {
  if (is_logical(op)) {
    for_groups(a, out, rows, groups, n, [&](const float* x, float& result, std::int64_t r) {
      result = reduce_logic(op, x, n, init ? init[r] : identity(op));
    });
  } else if (op == Alu::subtract) {
    const auto sum = [](const float* x, std::int64_t count) {
      return reduce([](auto p, auto q) { return p + q; }, x, count);
    };
    for_groups(a, out, rows, groups, n, [&](const float* x, float& result, std::int64_t r) {
      result = init ? init[r] - sum(x, n) : n > 1 ? x[0] - sum(x + 1, n - 1) : x[0];
    });
  } else {
    with_plain_operator(op, [&](auto f) {
      if (init) {
        for_groups(a, out, rows, groups, n, [&](const float* x, float& result, std::int64_t r) {
          result = f(init[r], reduce(f, x, n));
        });
      } else {
        for_groups(a, out, rows, groups, n,
                   [&](const float* x, float& result, std::int64_t) { result = reduce(f, x, n); });
      }
    });
  }
}

void reduce_bits_rows(Alu op, Rows<Bits> a, RowsOut<Bits> out, std::int64_t rows, std::int64_t groups,
                      std::int64_t n) {
  for_groups(a, out, rows, groups, n, [&](const Bits* x, Bits& result, std::int64_t) {
    result = reduce_bits_row(op, x + 1, n - 1, x[0]);
  });
}

void scan_rows(const OpPair& ops, Rows<float> a, Rows<float> b, float* state, RowsOut<float> out,
               std::int64_t rows, std::int64_t n) {
  if (with_pair(ops, [&](auto op0, auto op1) { scan(op0, op1, a, b, state, out, rows, n); })) return;
  // The others cost two calls an element.
  scan(function_of(ops.op0, ops.reverse0), function_of(ops.op1, ops.reverse1), a, b, state, out, rows, n);
}

void cumulate_rows(Alu op, Rows<float> a, float* state, RowsOut<float> out, std::int64_t rows,
                   std::int64_t n) {
  with_plain_operator(op, [&](auto f) {
    scan(
        f, [](float t, float) { return t; }, a, same_value(0.0f), state, out, rows, n);
  });
}

}  // namespace headway::chip
