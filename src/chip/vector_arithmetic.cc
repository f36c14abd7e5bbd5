#include "chip/vector_arithmetic.h"

#include <cmath>
#include <utility>

#include "chip/alu_rules.h"
#include "chip/check.h"
#include "chip/core.h"
#include "chip/engine_cost.h"
#include "chip/row_loop.h"
#include "chip/row_scalar.h"

namespace headway::chip {
namespace {

using Bits = std::uint32_t;

bool in_psum(const Program& program, const View& view) {
  return program.tensors[view.tensor].buffer == Buffer::psum;
}

bool is_signed(const View& view) { return view.dtype == DType::i32; }
int bits_of(const View& view) { return 8 * size_of(view.dtype); }

// a op b with its sides exchanged where `reversed`; of a unary operator only `a` counts.
void apply_op(Alu op, bool reversed, Rows<float> a, Rows<float> b, const RowStep<float>& step,
              RowsOut<float> out) {
  if (is_unary(op)) {
    alu_rows(op, a, out, step.rows, step.n);
  } else if (reversed) {
    alu_rows(op, b, a, out, step.rows, step.n);
  } else {
    alu_rows(op, a, b, out, step.rows, step.n);
  }
}

Rows<float> again(RowsOut<float> rows) { return {rows.at, rows.stride, false}; }

}  // namespace

// --- tensor_tensor ---

bool TensorTensor::exact(const Program& program) const {
  if (engine == Engine::vector || is_bitwise(op) || op == Alu::power || op == Alu::abs_max ||
      op == Alu::abs_min)
    return false;
  for (const View* view : {&dst, &data1, &data2})
    if (!is_wide_integer(view->dtype) || in_psum(program, *view)) return false;
  return true;
}

void TensorTensor::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("data1", data1, Access::read);
  fields.view("data2", data2, Access::read);
  fields.choice("op", op);
}

void TensorTensor::check(Check& check) const {
  if (!engine_operand(check, "dst", dst) || !engine_operand(check, "data1", data1) ||
      !engine_operand(check, "data2", data2))
    return;
  check.same_size("dst", dst, "data1", data1);
  check.same_size("data1", data1, "data2", data2);
  check.not_both_psum("data1", data1, "data2", data2);
  if (is_bitwise(op)) {
    check.require(op != Alu::invert, "op", "op", "must be a binary operator, invert is none");
    bit_pattern(check, "dst", dst, dst);
    bit_pattern(check, "data1", data1, dst);
    bit_pattern(check, "data2", data2, dst);
  } else {
    binary_arithmetic(check, "op", op);
    check.computable("dst", dst);
    check.computable("data1", data1);
    check.computable("data2", data2);
  }
  if (engine != Engine::gpsimd && op != Alu::power) return;
  const std::string_view why = op == Alu::power ? "power runs on it" : "use the Vector engine";
  gpsimd_reaches(check, "dst", dst, why);
  gpsimd_reaches(check, "data1", data1, why);
  gpsimd_reaches(check, "data2", data2, why);
}

Engines TensorTensor::engines(const Check& check) const {
  if (is_bitwise(op) || op == Alu::abs_max || op == Alu::abs_min) return Engine::vector;
  if (op == Alu::power || exact(check.program)) return Engine::gpsimd;
  const bool psum =
      in_psum(check.program, dst) || in_psum(check.program, data1) || in_psum(check.program, data2);
  // Where all are 32-bit integers only the Vector engine is left: the other one would compute something else.
  const bool vector = engine == Engine::vector || psum;
  return vector ? Engines(Engine::vector) : Engine::vector | Engine::gpsimd;
}

void TensorTensor::apply(Core& core) const {
  if (is_bitwise(op) || exact(core.program())) {
    RowLoop<Bits> loop(core);
    loop.reads("data1", data1);
    loop.reads("data2", data2);
    loop.writes("dst", dst);
    loop.run([&](const RowStep<Bits>& step) {
      if (is_bitwise(op)) {
        alu_bits_rows(op, step.in[0], step.in[1], step.out, step.rows, step.n, bits_of(dst));
      } else {
        alu_integer_rows(op, step.in[0], is_signed(data1), step.in[1], is_signed(data2), step.out, step.rows,
                         step.n);
      }
    });
    return;
  }
  RowLoop<float> loop(core);
  loop.reads("data1", data1);
  loop.reads("data2", data2);
  loop.writes("dst", dst);
  loop.run(
      [&](const RowStep<float>& step) { alu_rows(op, step.in[0], step.in[1], step.out, step.rows, step.n); });
}

void tensor_tensor(const Tile& dst, const Tile& data1, const Tile& data2, Alu op,
                   const TensorTensorOptions& options, Here here) {
  record<TensorTensor>(dst, here, [&](TensorTensor& i) {
    i.dst = dst;
    i.data1 = data1;
    i.data2 = data2;
    i.op = op;
    i.engine = options.engine;
  });
}

Cost TensorTensor::cost(const Costing& costing) const {
  const std::int64_t n = dst.row_elements();
  const bool function = op == Alu::power && costing.engine == Engine::gpsimd;
  const Constant& each = costing.timing.gpsimd.function_cycles;
  const double cycles = function ? each.value : cycles_of_two(costing, dst, data1, data2);
  return stream_cost(costing, {.elements = n,
                               .cycles = cycles * static_cast<double>(n),
                               .tag = function ? each.tag : Tag::documented,
                               .measured = in_psum(costing.program, data1) || in_psum(costing.program, data2),
                               .dynamic = is_dynamic(dst) || is_dynamic(data1) || is_dynamic(data2)});
}

// --- tensor_scalar ---

// The documents name the pattern without saying it. Taken: everything is a 32-bit integer, and an operand is
// a tile of them, which arithmetic in float32 would not accept.
bool TensorScalar::addresses() const {
  const auto fits = [](Alu op, const Scalar& scalar) {
    if (op != Alu::add && op != Alu::subtract && op != Alu::multiply) return false;
    if (const View* view = scalar.view()) return is_wide_integer(view->dtype);
    return std::holds_alternative<std::int32_t>(scalar) ||
           (std::trunc(scalar.number()) == scalar.number() && std::abs(scalar.number()) < 4294967296.0f);
  };
  if (!is_wide_integer(dst.dtype) || !is_wide_integer(data.dtype) || !fits(op0, operand0)) return false;
  if (op1 && !(operand1 && fits(*op1, *operand1))) return false;
  return operand0.view() || (operand1 && operand1->view());
}

// NeuronCore-v3's Scalar engine multiplies and adds; v4's does what the Vector engine does.
bool TensorScalar::scalar_engine_can(int generation) const {
  if (generation < 3 || on_bits() || addresses()) return false;
  if (generation >= 4) return !has(Alu::power) && !has(Alu::abs_max) && !has(Alu::abs_min);
  return op1 ? op0 == Alu::multiply && op1 == Alu::add : op0 == Alu::multiply || op0 == Alu::add;
}

void TensorScalar::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("data", data, Access::read);
  fields.choice("op0", op0);
  fields.scalar("operand0", operand0);
  fields.flag("reverse0", reverse0);
  fields.optional_choice("op1", op1);
  fields.optional_scalar("operand1", operand1);
  fields.flag("reverse1", reverse1);
}

void TensorScalar::check(Check& check) const {
  if (!engine_operand(check, "dst", dst) || !engine_operand(check, "data", data)) return;
  check.same_size("dst", dst, "data", data);
  if (!check.require(!op1 || is_bitwise(*op1) == is_bitwise(op0), "op-mix", "op1",
                     "{} and {}: both must work on bits or both be arithmetic", name_of(op0),
                     name_of(op1.value_or(op0))))
    return;
  if (!check.require(op1 || !operand1, "operand", "operand1", "is given, but op1 isn't")) return;
  const bool needs_operand1 = op1 && !is_unary(*op1);
  if (!check.require(!needs_operand1 || operand1, "operand", "operand1", "op1 needs it")) return;
  const auto operand = [&](std::string_view op_name, std::string_view name, Alu op, const Scalar& scalar) {
    if (on_bits()) {
      if (is_unary(op)) {
        unused_operand(check, name, scalar, op);
      } else if (const View* view = scalar.view()) {
        check.on_chip(name, *view) && check.row_of(name, *view, data.rows(), 1) &&
            bit_pattern(check, name, *view, dst);
      } else {
        bit_immediate(check, name, scalar, dst);
      }
      return;
    }
    if (!any_arithmetic(check, op_name, op, op_name == "op0")) return;
    if (is_unary(op)) {
      unused_operand(check, name, scalar, op);
    } else if (addresses()) {
      check.scalar(name, scalar, data.rows());
    } else {
      float_scalar(check, name, scalar, data.rows());
    }
  };
  if (on_bits()) {
    bit_pattern(check, "dst", dst, dst);
    bit_pattern(check, "data", data, dst);
  } else {
    check.computable("dst", dst);
    check.computable("data", data);
  }
  operand("op0", "operand0", op0, operand0);
  if (op1) operand("op1", "operand1", *op1, operand1.value_or(Scalar(0.0f)));
  if (engine == Engine::scalar) check.generation(3, "tensor_scalar on the Scalar engine");
  const bool only_gpsimd = has(Alu::power) || addresses() || (has(Alu::rsqrt) && check.spec.generation < 4);
  if (!only_gpsimd && engine != Engine::gpsimd) return;
  const std::string_view why = has(Alu::power)   ? "power runs on it"
                               : has(Alu::rsqrt) ? "rsqrt runs on it; activation has it on the Scalar engine"
                               : addresses()     ? "arithmetic with int32 operands runs on it"
                                                 : "use the Vector engine";
  gpsimd_reaches(check, "dst", dst, why);
  gpsimd_reaches(check, "data", data, why);
  if (const View* view = operand0.view()) gpsimd_reaches(check, "operand0", *view, why);
  if (const View* view = operand1 ? operand1->view() : nullptr) gpsimd_reaches(check, "operand1", *view, why);
}

Engines TensorScalar::engines(const Check& check) const {
  if (on_bits()) return Engine::vector;
  if (addresses() || has(Alu::power)) return Engine::gpsimd;
  const Engines scalar = scalar_engine_can(check.spec.generation) ? Engines(Engine::scalar) : Engines();
  if (!has(Alu::rsqrt)) return scalar | Engine::vector;
  const bool psum = in_psum(check.program, dst) || in_psum(check.program, data);
  return psum ? scalar : scalar | Engine::gpsimd;
}

void TensorScalar::apply(Core& core) const {
  const std::int64_t rows = data.rows();
  const Scalar second = operand1.value_or(Scalar(0.0f));
  if (on_bits() || addresses()) {
    const bool bitwise = on_bits();
    const auto combine = [&](Alu op, bool reversed, Rows<Bits> a, Rows<Bits> b, const RowStep<Bits>& step) {
      if (reversed && !is_unary(op)) std::swap(a, b);
      if (bitwise) return alu_bits_rows(op, a, b, step.out, step.rows, step.n, bits_of(dst));
      // Modulo 2^32 it is the same for signed and unsigned addresses.
      alu_integer_rows(op, a, false, b, false, step.out, step.rows, step.n);
    };
    RowLoop<Bits> loop(core);
    loop.reads("data", data);
    RowScalar<Bits> s0(core, "operand0", operand0, rows), s1(core, "operand1", second, rows);
    s0.keep_low(bits_of(dst));
    s1.keep_low(bits_of(dst));
    loop.writes("dst", dst);
    loop.run([&](const RowStep<Bits>& step) {
      combine(op0, reverse0, step.in[0], s0.from(step.first), step);
      if (op1) combine(*op1, reverse1, {step.out.at, step.out.stride, false}, s1.from(step.first), step);
    });
    return;
  }
  RowLoop<float> loop(core);
  loop.reads("data", data);
  const RowScalar<float> s0(core, "operand0", operand0, rows), s1(core, "operand1", second, rows);
  loop.writes("dst", dst);
  loop.run([&](const RowStep<float>& step) {
    if (op1 && alu_pair_rows({op0, *op1, reverse0, reverse1}, step.in[0], s0.from(step.first),
                             s1.from(step.first), step.out, step.rows, step.n))
      return;
    apply_op(op0, reverse0, step.in[0], s0.from(step.first), step, step.out);
    if (op1) apply_op(*op1, reverse1, again(step.out), s1.from(step.first), step, step.out);
  });
}

void tensor_scalar(const Tile& dst, const Tile& data, Alu op0, const Scalar& operand0,
                   const TensorScalarOptions& options, Here here) {
  record<TensorScalar>(dst, here, [&](TensorScalar& i) {
    i.dst = dst;
    i.data = data;
    i.op0 = op0;
    i.operand0 = operand0;
    i.reverse0 = options.reverse0;
    i.op1 = options.op1;
    i.operand1 = options.operand1;
    i.reverse1 = options.reverse1;
    i.engine = options.engine;
  });
}

Cost TensorScalar::cost(const Costing& costing) const {
  const std::int64_t n = dst.row_elements();
  const bool function = costing.engine == Engine::gpsimd && (has(Alu::power) || has(Alu::rsqrt));
  const Constant& each = costing.timing.gpsimd.function_cycles;
  return stream_cost(costing, {.elements = n,
                               .cycles = (function ? each.value : cycles_of_one(costing, dst, &data)) *
                                         static_cast<double>(n),
                               .tag = function ? each.tag : Tag::documented,
                               .measured = costing.engine == Engine::vector && !is_16_bit(data.dtype),
                               .pointer = operand0.view() || (operand1 && operand1->view()),
                               .dynamic = is_dynamic(dst) || is_dynamic(data)});
}

// --- scalar_tensor_tensor ---

void ScalarTensorTensor::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("data", data, Access::read);
  fields.choice("op0", op0);
  fields.scalar("operand0", operand0);
  fields.choice("op1", op1);
  fields.view("operand1", operand1, Access::read);
  fields.flag("reverse0", reverse0);
  fields.flag("reverse1", reverse1);
}

void ScalarTensorTensor::check(Check& check) const {
  if (!engine_operand(check, "dst", dst) || !engine_operand(check, "data", data) ||
      !engine_operand(check, "operand1", operand1))
    return;
  check.same_size("dst", dst, "data", data);
  check.same_size("data", data, "operand1", operand1);
  check.not_both_psum("data", data, "operand1", operand1);
  check.computable("dst", dst);
  check.computable("data", data);
  check.computable("operand1", operand1);
  binary_arithmetic(check, "op0", op0);
  binary_arithmetic(check, "op1", op1);
  check.require(op0 != Alu::power && op1 != Alu::power, "op", op0 == Alu::power ? "op0" : "op1",
                "power runs on the GpSimd engine, scalar_tensor_tensor on the Vector engine");
  check.scalar("operand0", operand0, data.rows());
}

Engines ScalarTensorTensor::engines(const Check&) const { return Engine::vector; }

void ScalarTensorTensor::apply(Core& core) const {
  RowLoop<float> loop(core);
  loop.reads("data", data);
  loop.reads("operand1", operand1);
  const RowScalar<float> s0(core, "operand0", operand0, data.rows());
  loop.writes("dst", dst);
  loop.run([&](const RowStep<float>& step) {
    if (alu_pair_rows({op0, op1, reverse0, reverse1}, step.in[0], s0.from(step.first), step.in[1], step.out,
                      step.rows, step.n))
      return;
    // Not into dst: operand1 may lie there.
    const RowsOut<float> first{step.spare, step.n};
    apply_op(op0, reverse0, step.in[0], s0.from(step.first), step, first);
    apply_op(op1, reverse1, again(first), step.in[1], step, step.out);
  });
}

void scalar_tensor_tensor(const Tile& dst, const Tile& data, Alu op0, const Scalar& operand0, Alu op1,
                          const Tile& operand1, const ScalarTensorTensorOptions& options, Here here) {
  record<ScalarTensorTensor>(dst, here, [&](ScalarTensorTensor& i) {
    i.dst = dst;
    i.data = data;
    i.op0 = op0;
    i.operand0 = operand0;
    i.op1 = op1;
    i.operand1 = operand1;
    i.reverse0 = options.reverse0;
    i.reverse1 = options.reverse1;
  });
}

Cost ScalarTensorTensor::cost(const Costing& costing) const {
  const std::int64_t n = dst.row_elements();
  // The one pair of operators for which the documents have a fast mode.
  const bool fast = data.dtype == DType::bf16 && operand1.dtype == DType::bf16 && op0 == Alu::subtract &&
                    op1 == Alu::multiply && n % 2 == 0;
  return stream_cost(costing,
                     {.elements = n,
                      .cycles = (fast ? 1 : 2) * cycles_of_any(costing, dst, data) * static_cast<double>(n),
                      .pointer = operand0.view() != nullptr,
                      .dynamic = is_dynamic(dst) || is_dynamic(data) || is_dynamic(operand1)});
}

// --- reciprocal ---

void Reciprocal::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("data", data, Access::read);
}

void Reciprocal::check(Check& check) const {
  if (!engine_operand(check, "dst", dst) || !engine_operand(check, "data", data)) return;
  check.same_size("dst", dst, "data", data);
  check.computable("dst", dst);
  check.computable("data", data);
}

Engines Reciprocal::engines(const Check&) const { return Engine::vector; }

void Reciprocal::apply(Core& core) const {
  RowLoop<float> loop(core);
  loop.reads("data", data);
  loop.writes("dst", dst);
  loop.run([&](const RowStep<float>& step) {
    alu_rows(Alu::reciprocal, step.in[0], step.out, step.rows, step.n);
  });
}

Cost Reciprocal::cost(const Costing& costing) const {
  const std::int64_t n = dst.row_elements();
  const Timing::Vector& vector = costing.timing.vector;
  return stream_cost(costing, {.elements = n,
                               .cycles = vector.reciprocal_cycles.value * static_cast<double>(n),
                               .tag = vector.reciprocal_cycles.tag,
                               .measured = near_measured(vector.measured_reciprocals, static_cast<double>(n)),
                               .dynamic = is_dynamic(dst) || is_dynamic(data)});
}

void reciprocal(const Tile& dst, const Tile& data, Here here) {
  record<Reciprocal>(dst, here, [&](Reciprocal& i) {
    i.dst = dst;
    i.data = data;
  });
}

std::span<const Kind> vector_arithmetic_instructions() {
  static const Kind kinds[] = {kind<TensorTensor>(), kind<TensorScalar>(), kind<ScalarTensorTensor>(),
                               kind<Reciprocal>()};
  return kinds;
}

}  // namespace headway::chip
