#include "chip/alu_rules.h"

#include <cmath>

namespace headway::chip {
namespace {

bool in_this_generation(Check& check, Alu op) {
  return (op != Alu::abs_max && op != Alu::abs_min) || check.generation(4, name_of(op));
}

}  // namespace

bool engine_operand(Check& check, std::string_view operand, const View& view) {
  if (!check.on_chip(operand, view)) return false;
  const bool psum = check.buffer(view) == Buffer::psum;
  // Of PSUM the limit is the memory itself: what a step of 0 repeats is there once.
  const std::int64_t limit = psum ? check.spec.psum_bytes / size_of(view.dtype) : std::int64_t{1} << 16;
  std::int64_t elements = 1;
  for (const Pair& pair : view.free_pairs())
    if (!psum || pair.step != 0) elements *= pair.count;
  return check.require(elements <= limit && view.row_elements() <= std::int64_t{1} << 16, "free-size", operand,
                       "has {} elements a partition ({} of them different), an operand in {} may have {}",
                       view.row_elements(), elements, psum ? "PSUM" : "SBUF", limit);
}

bool binary_arithmetic(Check& check, std::string_view operand, Alu op) {
  const bool arithmetic = !is_bitwise(op) && !is_unary(op) && op != Alu::bypass && op != Alu::average;
  return check.require(arithmetic, "op", operand, "must be a binary operator of arithmetic, {} is none",
                       name_of(op)) &&
         in_this_generation(check, op);
}

bool any_arithmetic(Check& check, std::string_view operand, Alu op, bool first) {
  if (!is_unary(op) || op == Alu::invert) return binary_arithmetic(check, operand, op);
  if (op != Alu::square && op != Alu::relu) return true;
  return check.require(first, "op", operand, "{} can only be the first operator", name_of(op)) &&
         check.generation(4, name_of(op));
}

bool unused_operand(Check& check, std::string_view operand, const Scalar& scalar, Alu op) {
  const bool zero = !scalar.view() && scalar.number() == 0;
  return check.require(zero, "unary-operand", operand, "{} has one operand; the scalar must be absent or 0",
                       name_of(op));
}

bool bit_pattern(Check& check, std::string_view operand, const View& view, const View& like) {
  if (!check.require(is_integer(view.dtype), "dtype", operand, "operators on bits need integers, {} is none",
                     headway::name_of(view.dtype)))
    return false;
  if (size_of(view.dtype) == size_of(like.dtype)) return true;
  // Bits are not converted, and no document says what becomes of those that are missing or left over.
  check.broken(
      Severity::unsupported, "bit-width", operand,
      fmt::format("{} and {} differ in width; operators on bits are modelled for operands of one width",
                  headway::name_of(view.dtype), headway::name_of(like.dtype)));
  return false;
}

bool bit_immediate(Check& check, std::string_view operand, const Scalar& scalar, const View& like) {
  const auto* real = std::get_if<float>(&scalar);
  if (real && !check.require(std::trunc(*real) == *real, "bit-immediate", operand,
                             "operators on bits need a whole number, not {}", *real))
    return false;
  const int bits = 8 * size_of(like.dtype);
  const double value =
      real ? static_cast<double>(*real) : static_cast<double>(std::get<std::int32_t>(scalar));
  return check.require(value >= -std::ldexp(1.0, bits - 1) && value < std::ldexp(1.0, bits), "bit-immediate",
                       operand, "{} doesn't fit into the {} bits of {}", value, bits,
                       headway::name_of(like.dtype));
}

bool float_scalar(Check& check, std::string_view operand, const Scalar& scalar, std::int64_t partitions) {
  if (!check.scalar(operand, scalar, partitions)) return false;
  const View* view = scalar.view();
  return check.require(!view || view->dtype == DType::f32, "scalar-dtype", operand,
                       "one value a partition must be float32, not {}",
                       headway::name_of(view ? view->dtype : DType::f32));
}

bool gpsimd_reaches(Check& check, std::string_view operand, const View& view, std::string_view why) {
  return check.require(check.buffer(view) != Buffer::psum, "gpsimd-psum", operand,
                       "lies in PSUM, which the GpSimd engine can't reach; {}", why);
}

}  // namespace headway::chip
