// Rules about operators and their scalar operands that several instructions share. Each returns whether it
// held.
#pragma once

#include <cstdint>
#include <string_view>

#include "chip/alu.h"
#include "chip/check.h"
#include "chip/fields.h"

namespace headway::chip {

// "buffer" and "free-size": a tile on chip of at most 64K elements a partition, in PSUM of as many as it can
// hold.
bool engine_operand(Check& check, std::string_view operand, const View& view);
// "op": a binary operator of arithmetic.
bool binary_arithmetic(Check& check, std::string_view operand, Alu op);
// "op": an operator of arithmetic with one or two operands. `relu` and `square` only where `first` and on
// NeuronCore-v4.
bool any_arithmetic(Check& check, std::string_view operand, Alu op, bool first);
// "unary-operand": an operator with one operand leaves its scalar absent or 0.
bool unused_operand(Check& check, std::string_view operand, const Scalar& scalar, Alu op);
// "dtype" and "bit-width": integers as wide as `like`.
bool bit_pattern(Check& check, std::string_view operand, const View& view, const View& like);
// "bit-immediate": a whole number that fits into elements of `like`, signed or not.
bool bit_immediate(Check& check, std::string_view operand, const Scalar& scalar, const View& like);
// "scalar-dtype": immediate, or float32 [partitions, 1].
bool float_scalar(Check& check, std::string_view operand, const Scalar& scalar, std::int64_t partitions);
// "gpsimd-psum": GpSimd, which `why` names, doesn't reach PSUM.
bool gpsimd_reaches(Check& check, std::string_view operand, const View& view, std::string_view why);

inline bool is_wide_integer(DType dtype) { return dtype == DType::i32 || dtype == DType::u32; }

}  // namespace headway::chip
