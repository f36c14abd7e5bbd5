#include "chip/scalar_engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "chip/core.h"
#include "chip/engine_cost.h"
#include "chip/machine.h"
#include "chip/row_loop.h"
#include "chip/row_scalar.h"

namespace headway::chip {
namespace {

// Once an instruction and function: the values of a loop's rounds would say nothing new.
void warn_of_range(Core& core, Function function, float value) {
  const ValidRange range = valid_range(function);
  const std::string_view name = names_of(function)[static_cast<std::size_t>(function)];
  const std::string start = fmt::format("{} is valid for {}{:.6g} to {:.6g} only", name,
                                        range.of_magnitude ? "magnitudes of " : "", range.low, range.high);
  const Instruction& instruction = *core.program().instructions[core.position];
  const std::string where = core.program().where(instruction.source);
  for (const Diagnostic& said : core.machine().diagnostics().all())
    if (said.rule == "activation-range" && said.where == where && said.message.starts_with(start)) return;
  core.report(Severity::warning, "activation-range", "data",
              fmt::format("{}; data * scale + bias is {:.9g}", start, value));
}

}  // namespace

void Activation::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.choice("op", op);
  fields.view("data", data, Access::read);
  fields.scalar("bias", bias);
  fields.scalar("scale", scale);
  fields.optional_choice("reduce_op", reduce_op);
  fields.optional_view("reduce_res", reduce_res, Access::write);
  fields.choice("reduce_cmd", reduce_cmd);
}

void ActivationReduce::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.choice("op", op);
  fields.view("data", data, Access::read);
  Alu reduction = reduce_op.value_or(Alu::add);
  fields.choice("reduce_op", reduction);
  reduce_op = reduction;
  fields.optional_view("reduce_res", reduce_res, Access::write);
  fields.scalar("bias", bias);
  fields.scalar("scale", scale);
}

void Activation::check(Check& check) const {
  check.on_chip("dst", dst);
  check.on_chip("data", data);
  check.computable("dst", dst);
  check.computable("data", data);
  check.same_size("dst", dst, "data", data);
  if (check.scalar("scale", scale, data.rows()) && scale.view())
    check.dtype("scale", *scale.view(), {DType::f32});
  if (check.scalar("bias", bias, data.rows()) && bias.view())
    check.require(bias.view()->dtype != DType::tf32, "dtype", "bias", "may have any dtype but tfloat32");
  const bool biased = bias.view() || bias.number() != 0;
  if (check.spec.generation < 3) {
    check.require(bias.view() || !biased, "bias-vector", "bias", "must be [{}, 1] on {}, not the number {}",
                  data.rows(), check.spec.core_name, bias.view() ? 0 : bias.number());
    check.require(op != Function::reciprocal || !biased, "reciprocal-bias", "bias",
                  "reciprocal takes no bias on {}", check.spec.core_name);
  }
  if (reduce_op)
    check.require(*reduce_op == Alu::add, "reduce-op", "reduce_op", "must be add, not {}",
                  names_of(*reduce_op)[static_cast<std::size_t>(*reduce_op)]);
  check.require(reduce_op || !reduces(reduce_cmd), "reduce-op", "reduce_op",
                "must be add with reduce_cmd {}, it is none",
                names_of(reduce_cmd)[static_cast<std::size_t>(reduce_cmd)]);
  check.require(
      reduce_cmd != ReduceCmd::load_reduce, "reduce-cmd", "reduce_cmd",
      "load_reduce is for the Vector engine; the Scalar engine has idle, reset, reduce and reset_reduce");
  if (reduce_res && check.on_chip("reduce_res", *reduce_res) && check.computable("reduce_res", *reduce_res))
    check.row_of("reduce_res", *reduce_res, data.rows(), 1);
  if (reduce_res && reduce_op && reduce_cmd == ReduceCmd::idle)
    check.broken(Severity::warning, "reduce-idle", "reduce_cmd",
                 "idle leaves the registers alone: reduce_res gets what was in them, not the sum of dst "
                 "(reset_reduce)");
}

void Activation::apply(Core& core) const {
  const std::int64_t rows = data.rows();
  const RowScalar<float> scales(core, "scale", scale, rows);
  const bool biased = bias.view() || bias.number() != 0;
  const RowScalar<float> biases(core, "bias", biased ? bias : Scalar(kNoBias), rows);
  // What lies outside the valid range, by the first row of each step.
  std::array<float, 128> outside;
  outside.fill(std::numeric_limits<float>::quiet_NaN());
  float* const sums = core.scalar_accumulator.data() + first_lane(core.program(), data);
  if (resets(reduce_cmd)) std::fill_n(sums, rows, 0.0f);
  RowLoop<float> loop(core);
  loop.reads("data", data);
  loop.writes("dst", dst);
  loop.run([&](const RowStep<float>& step) {
    outside[static_cast<std::size_t>(step.first)] = activation_rows(
        op, step.in[0], scales.from(step.first), biases.from(step.first), step.out, step.rows, step.n);
    float* const sum = sums + step.first;
    if (reduces(reduce_cmd))
      reduce_rows(Alu::add, {step.out.at, step.out.stride}, sum, {sum, 1}, step.rows, 1, step.n);
  });
  // After dst: where the two share memory, the sum stays.
  if (reduce_res) store_rows(core.write("reduce_res", *reduce_res), 0, rows, RowsOut<float>{sums, 1});
  for (const float value : outside) {
    if (std::isnan(value)) continue;
    warn_of_range(core, op, value);
    break;
  }
}

Cost Activation::cost(const Costing& costing) const {
  const Timing& t = costing.timing;
  const std::int64_t n = dst.row_elements();
  const double cycles = cycles_of_any(costing, dst, data) * static_cast<double>(t.spec.partitions) /
                        t.scalar.elements.value * static_cast<double>(n);
  Cost cost = stream_cost(costing, {.elements = n,
                                    .cycles = cycles,
                                    .measured = true,
                                    .pointer = scale.view() || bias.view(),
                                    .dynamic = is_dynamic(dst) || is_dynamic(data),
                                    .reads_accumulator = reduce_res.has_value(),
                                    .function = op != Function::copy});
  cost.table = table_of(op);
  return cost;
}

void activation(const Tile& dst, Function op, const Tile& data, const ActivationOptions& options, Here here) {
  record<Activation>(dst, here, [&](Activation& i) {
    i.dst = dst;
    i.op = op;
    i.data = data;
    i.bias = options.bias;
    i.scale = options.scale;
    i.reduce_op = options.reduce_op;
    i.reduce_res = options.reduce_res;
    i.reduce_cmd = options.reduce_cmd;
  });
}

void activation_reduce(const Tile& dst, Function op, const Tile& data, Alu reduce_op,
                       const std::optional<View>& reduce_res, const ActivationReduceOptions& options,
                       Here here) {
  record<ActivationReduce>(dst, here, [&](ActivationReduce& i) {
    i.dst = dst;
    i.op = op;
    i.data = data;
    i.bias = options.bias;
    i.scale = options.scale;
    i.reduce_op = reduce_op;
    i.reduce_res = reduce_res;
  });
}

std::span<const Kind> scalar_engine_instructions() {
  static const Kind kinds[] = {kind<Activation>(), kind<ActivationReduce>()};
  return kinds;
}

}  // namespace headway::chip
