#include "chip/vector_reduce.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "chip/alu_rules.h"
#include "chip/check.h"
#include "chip/core.h"
#include "chip/engine_cost.h"
#include "chip/row_loop.h"
#include "chip/row_scalar.h"

namespace headway::chip {
namespace {

using Bits = std::uint32_t;

// The Vector engine's accumulators of a view's rows while an instruction works on them.
class Accumulators {
 public:
  Accumulators(Core& core, const View& view)
      : core_(core), first_(static_cast<std::size_t>(first_lane(core.program(), view))), rows_(view.rows()) {}

  // `init` is what load_reduce loads.
  void start(ReduceCmd cmd, Alu op, std::string_view operand, const std::optional<Scalar>& init) {
    if (cmd == ReduceCmd::load_reduce) {
      core_.scalar(operand, *init, {values(), static_cast<std::size_t>(rows_)});
    } else if (resets(cmd)) {
      std::fill(values(), values() + rows_, identity(op));
    }
  }
  float* values() { return core_.vector_accumulator.data() + first_; }

 private:
  Core& core_;
  std::size_t first_;
  std::int64_t rows_;
};

// "reduce-cmd" and "reduce-init": the registers are reset, kept or loaded, and something is loaded only then.
bool check_accumulation(Check& check, ReduceCmd cmd, std::string_view init_name,
                        const std::optional<Scalar>& init, std::int64_t partitions) {
  const bool known = reduces(cmd) || cmd == ReduceCmd::load_reduce;
  if (!check.require(known, "reduce-cmd", "reduce_cmd", "must be reset_reduce, reduce or load_reduce, not {}",
                     names_of(cmd)[static_cast<std::size_t>(cmd)]))
    return false;
  const bool loads = cmd == ReduceCmd::load_reduce;
  if (!check.require(loads == init.has_value(), "reduce-init", init_name, "{}",
                     loads ? "load_reduce needs it" : "is only for load_reduce"))
    return false;
  return !init || float_scalar(check, init_name, *init, partitions);
}

}  // namespace

// --- tensor_reduce ---

std::int64_t TensorReduce::reduced() const {
  std::array<bool, kMaxPairs> chosen{};
  for (std::int64_t a : axis) {
    if (a < 0) a += data.rank;
    if (a < 1 || a >= data.rank || chosen[static_cast<std::size_t>(a)]) return 0;
    chosen[static_cast<std::size_t>(a)] = true;
  }
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < axis.size(); ++i) {
    const std::size_t dim = data.rank - 1 - i;
    if (!chosen[dim]) return 0;
    elements *= data.pairs[dim].count;
  }
  return axis.empty() ? 0 : elements;
}

void TensorReduce::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.choice("op", op);
  fields.view("data", data, Access::read);
  fields.integers("axis", axis);
  fields.flag("negate", negate);
  fields.flag("keepdims", keepdims);
}

void TensorReduce::check(Check& check) const {
  if (!engine_operand(check, "dst", dst) || !engine_operand(check, "data", data)) return;
  check.same_partitions("dst", dst, "data", data);
  const bool bits = is_bitwise(op);
  check.require(is_reduction(op) && op != Alu::average, "op", "op", "{} can't reduce", name_of(op));
  if (bits) {
    bit_pattern(check, "dst", dst, dst);
    bit_pattern(check, "data", data, dst);
    check.require(!negate, "negate", "negate", "is for arithmetic operators, {} works on bits", name_of(op));
  } else {
    check.computable("dst", dst);
    check.computable("data", data);
  }
  const std::int64_t n = reduced();
  if (!check.require(n > 0, "axis", "axis",
                     "must be the last extents of data, without the partitions; data is {}",
                     [&] { return to_string(data.shape()); }))
    return;
  check.require(dst.row_elements() * n == data.row_elements(), "shape", "dst",
                "has {} elements a partition, the reduction leaves {}", dst.row_elements(),
                data.row_elements() / n);
}

Engines TensorReduce::engines(const Check&) const { return Engine::vector; }

void TensorReduce::apply(Core& core) const {
  const Block from = core.read("data", data);
  const Block to = core.write("dst", dst);
  const std::int64_t n = reduced(), groups = to.elements, rows = to.rows;
  // Results are few: they are kept aside until all is read.
  const auto reduce_all = [&](auto type, auto&& reduce) {
    using T = decltype(type);
    constexpr std::int64_t kTogether = 2048;
    constexpr int kAside = 4;
    auto* const results = reinterpret_cast<T*>(core.scratch(0, rows * groups, kAside));
    const std::int64_t together = std::max<std::int64_t>(1, kTogether / from.elements);
    core.for_rows(rows, rows * from.elements, [&](std::int64_t begin, std::int64_t end, int thread) {
      auto* const scratch =
          reinterpret_cast<T*>(core.scratch(thread, std::min(together, end - begin) * from.elements));
      for (std::int64_t r = begin; r < end; r += together) {
        const std::int64_t count = std::min(together, end - r);
        reduce(load_all(from, r, count, scratch), RowsOut<T>{results + r * groups, groups}, count);
      }
    });
    store_rows(to, 0, rows, RowsOut<T>{results, groups});
  };
  if (is_bitwise(op)) {
    reduce_all(Bits{}, [&](Rows<Bits> in, RowsOut<Bits> out, std::int64_t count) {
      reduce_bits_rows(op, in, out, count, groups, n);
    });
    return;
  }
  reduce_all(float{}, [&](Rows<float> in, RowsOut<float> out, std::int64_t count) {
    reduce_rows(op, in, nullptr, out, count, groups, n);
    if (negate) alu_rows(Alu::multiply, {out.at, groups, false}, same_value(-1.0f), out, count, groups);
  });
}

Cost TensorReduce::cost(const Costing& costing) const {
  const std::int64_t n = data.row_elements();
  const bool fast =
      data.dtype == DType::bf16 && dst.dtype == DType::bf16 && (op == Alu::add || op == Alu::maximum);
  return stream_cost(
      costing, {.elements = n,
                .cycles = (fast ? 0.5 : 1) * cycles_of_any(costing, data, data) * static_cast<double>(n),
                .measured = !is_16_bit(data.dtype),
                .dynamic = is_dynamic(dst) || is_dynamic(data)});
}

void tensor_reduce(const Tile& dst, Alu op, const Tile& data, const std::vector<std::int64_t>& axis,
                   const TensorReduceOptions& options, Here here) {
  record<TensorReduce>(dst, here, [&](TensorReduce& i) {
    i.dst = dst;
    i.op = op;
    i.data = data;
    i.axis = axis;
    i.negate = options.negate;
    i.keepdims = options.keepdims;
  });
}

// --- tensor_scalar_reduce ---

void TensorScalarReduce::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("data", data, Access::read);
  fields.choice("op0", op0);
  fields.scalar("operand0", operand0);
  fields.choice("reduce_op", reduce_op);
  fields.optional_view("reduce_res", reduce_res, Access::write);
  fields.flag("reverse0", reverse0);
  fields.choice("reduce_cmd", reduce_cmd);
  fields.optional_scalar("reduce_init", reduce_init);
  fields.flag("reduce_res_negate", reduce_res_negate);
}

void TensorScalarReduce::check(Check& check) const {
  if (!engine_operand(check, "dst", dst) || !engine_operand(check, "data", data)) return;
  check.same_size("dst", dst, "data", data);
  check.computable("dst", dst);
  check.computable("data", data);
  if (any_arithmetic(check, "op0", op0, true)) {
    check.require(op0 != Alu::power && op0 != Alu::rsqrt, "op", "op0",
                  "{} runs on the GpSimd engine, tensor_scalar_reduce on the Vector engine", name_of(op0));
    is_unary(op0) ? unused_operand(check, "operand0", operand0, op0)
                  : float_scalar(check, "operand0", operand0, data.rows());
  }
  const bool accumulates = reduce_op == Alu::add || reduce_op == Alu::multiply || reduce_op == Alu::maximum ||
                           reduce_op == Alu::minimum;
  check.require(accumulates, "op", "reduce_op", "must be add, multiply, maximum or minimum, not {}",
                name_of(reduce_op));
  check.require(!reverse0, "reverse0", "reverse0", "is not supported by tensor_scalar_reduce");
  check_accumulation(check, reduce_cmd, "reduce_init", reduce_init, data.rows());
  if (reduce_res && check.on_chip("reduce_res", *reduce_res) && check.computable("reduce_res", *reduce_res))
    check.row_of("reduce_res", *reduce_res, data.rows(), 1);
}

Engines TensorScalarReduce::engines(const Check&) const { return Engine::vector; }

void TensorScalarReduce::apply(Core& core) const {
  RowLoop<float> loop(core);
  loop.reads("data", data);
  const RowScalar<float> s0(core, "operand0", operand0, data.rows());
  Accumulators accumulators(core, data);
  accumulators.start(reduce_cmd, reduce_op, "reduce_init", reduce_init);
  loop.writes("dst", dst);
  float* const values = accumulators.values();
  loop.run([&](const RowStep<float>& step) {
    if (is_unary(op0)) {
      alu_rows(op0, step.in[0], step.out, step.rows, step.n);
    } else {
      alu_rows(op0, step.in[0], s0.from(step.first), step.out, step.rows, step.n);
    }
    reduce_rows(reduce_op, {step.out.at, step.out.stride, false}, values + step.first,
                {values + step.first, 1}, step.rows, 1, step.n);
  });
  if (!reduce_res) return;
  // Last: it may lie on dst.
  const Block to = core.write("reduce_res", *reduce_res);
  std::array<float, 128> results{};
  const std::int64_t rows = data.rows();
  for (std::int64_t r = 0; r < rows; ++r)
    results[static_cast<std::size_t>(r)] = reduce_res_negate ? -values[r] : values[r];
  store_rows(to, 0, rows, RowsOut<float>{results.data(), 1});
}

Cost TensorScalarReduce::cost(const Costing& costing) const {
  const std::int64_t n = dst.row_elements();
  return stream_cost(costing, {.elements = n,
                               .cycles = cycles_of_any(costing, dst, data) * static_cast<double>(n),
                               .pointer = operand0.view() != nullptr,
                               .dynamic = is_dynamic(dst) || is_dynamic(data),
                               .reads_accumulator = true});
}

void tensor_scalar_reduce(const Tile& dst, const Tile& data, Alu op0, const Scalar& operand0, Alu reduce_op,
                          const std::optional<View>& reduce_res, const TensorScalarReduceOptions& options,
                          Here here) {
  record<TensorScalarReduce>(dst, here, [&](TensorScalarReduce& i) {
    i.dst = dst;
    i.data = data;
    i.op0 = op0;
    i.operand0 = operand0;
    i.reduce_op = reduce_op;
    i.reduce_res = reduce_res;
    i.reverse0 = options.reverse0;
    i.reduce_cmd = options.reduce_cmd;
    i.reduce_init = options.reduce_init;
    i.reduce_res_negate = options.reduce_res_negate;
  });
}

// --- tensor_scalar_cumulative ---

void TensorScalarCumulative::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("src", src, Access::read);
  fields.choice("op0", op0);
  fields.choice("op1", op1);
  fields.scalar("imm0", imm0);
  fields.optional_scalar("imm1", imm1);
  fields.choice("reduce_cmd", reduce_cmd);
}

void TensorScalarCumulative::check(Check& check) const {
  if (!engine_operand(check, "dst", dst) || !engine_operand(check, "src", src)) return;
  check.same_size("dst", dst, "src", src);
  for (const auto& [name, view] : {std::pair{"dst", &dst}, std::pair{"src", &src}})
    check.dtype(name, *view,
                {DType::bf16, DType::f16, DType::f32, DType::f8e4m3, DType::f8e4m3fn, DType::f8e5m2,
                 DType::u8, DType::u16, DType::i8, DType::i16});
  if (binary_arithmetic(check, "op0", op0))
    check.require(op0 != Alu::power, "op", "op0",
                  "power runs on the GpSimd engine, tensor_scalar_cumulative on the Vector engine");
  const bool cumulates = op1 == Alu::add || op1 == Alu::subtract || op1 == Alu::multiply ||
                         op1 == Alu::maximum || op1 == Alu::minimum;
  check.require(cumulates, "op", "op1", "must be add, subtract, multiply, maximum or minimum, not {}",
                name_of(op1));
  float_scalar(check, "imm0", imm0, src.rows());
  check_accumulation(check, reduce_cmd, "imm1", imm1, src.rows());
}

Engines TensorScalarCumulative::engines(const Check&) const { return Engine::vector; }

void TensorScalarCumulative::apply(Core& core) const {
  RowLoop<float> loop(core);
  loop.reads("src", src);
  const RowScalar<float> s0(core, "imm0", imm0, src.rows());
  Accumulators accumulators(core, src);
  accumulators.start(reduce_cmd, op1, "imm1", imm1);
  loop.writes("dst", dst);
  float* const values = accumulators.values();
  loop.run(
      [&](const RowStep<float>& step) {
        alu_rows(op0, step.in[0], s0.from(step.first), step.out, step.rows, step.n);
        cumulate_rows(op1, {step.out.at, step.out.stride, false}, values + step.first, step.out, step.rows,
                      step.n);
      },
      kScanRows);
}

// No formula is public: taken as one pass, as of an operation with a scalar.
Cost TensorScalarCumulative::cost(const Costing& costing) const {
  const std::int64_t n = dst.row_elements();
  return stream_cost(costing, {.elements = n,
                               .cycles = cycles_of_any(costing, dst, src) * static_cast<double>(n),
                               .tag = Tag::assumed,
                               .pointer = imm0.view() || (imm1 && imm1->view()),
                               .dynamic = is_dynamic(dst) || is_dynamic(src)});
}

void tensor_scalar_cumulative(const Tile& dst, const Tile& src, Alu op0, Alu op1, const Scalar& imm0,
                              const TensorScalarCumulativeOptions& options, Here here) {
  record<TensorScalarCumulative>(dst, here, [&](TensorScalarCumulative& i) {
    i.dst = dst;
    i.src = src;
    i.op0 = op0;
    i.op1 = op1;
    i.imm0 = imm0;
    i.imm1 = options.imm1;
    i.reduce_cmd = options.reduce_cmd;
  });
}

// --- tensor_tensor_scan ---

void TensorTensorScan::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("data0", data0, Access::read);
  fields.view("data1", data1, Access::read);
  fields.scalar("initial", initial);
  fields.choice("op0", op0);
  fields.choice("op1", op1);
  fields.flag("reverse0", reverse0);
  fields.flag("reverse1", reverse1);
}

void TensorTensorScan::check(Check& check) const {
  if (!engine_operand(check, "dst", dst) || !engine_operand(check, "data0", data0) ||
      !engine_operand(check, "data1", data1))
    return;
  check.same_size("dst", dst, "data0", data0);
  check.same_size("data0", data0, "data1", data1);
  check.not_both_psum("data0", data0, "data1", data1);
  check.computable("dst", dst);
  check.computable("data0", data0);
  check.computable("data1", data1);
  for (const auto& [name, op] : {std::pair{"op0", op0}, std::pair{"op1", op1}})
    if (binary_arithmetic(check, name, op))
      check.require(op != Alu::power, "op", name,
                    "power runs on the GpSimd engine, tensor_tensor_scan on the Vector engine");
  check.scalar("initial", initial, data0.rows());
}

Engines TensorTensorScan::engines(const Check&) const { return Engine::vector; }

void TensorTensorScan::apply(Core& core) const {
  RowLoop<float> loop(core);
  loop.reads("data0", data0);
  loop.reads("data1", data1);
  std::array<float, 128> state;
  core.scalar("initial", initial, {state.data(), static_cast<std::size_t>(data0.rows())});
  loop.writes("dst", dst);
  const OpPair ops{op0, op1, reverse0, reverse1};
  loop.run(
      [&](const RowStep<float>& step) {
        scan_rows(ops, step.in[0], step.in[1], state.data() + step.first, step.out, step.rows, step.n);
      },
      kScanRows);
}

Cost TensorTensorScan::cost(const Costing& costing) const {
  const std::int64_t n = dst.row_elements();
  return stream_cost(costing, {.elements = n,
                               .cycles = 2 * cycles_of_any(costing, dst, data0) * static_cast<double>(n),
                               .pointer = initial.view() != nullptr,
                               .dynamic = is_dynamic(dst) || is_dynamic(data0) || is_dynamic(data1)});
}

void tensor_tensor_scan(const Tile& dst, const Tile& data0, const Tile& data1, const Scalar& initial, Alu op0,
                        Alu op1, const TensorTensorScanOptions& options, Here here) {
  record<TensorTensorScan>(dst, here, [&](TensorTensorScan& i) {
    i.dst = dst;
    i.data0 = data0;
    i.data1 = data1;
    i.initial = initial;
    i.op0 = op0;
    i.op1 = op1;
    i.reverse0 = options.reverse0;
    i.reverse1 = options.reverse1;
  });
}

std::span<const Kind> vector_reduce_instructions() {
  static const Kind kinds[] = {kind<TensorReduce>(), kind<TensorScalarReduce>(),
                               kind<TensorScalarCumulative>(), kind<TensorTensorScan>()};
  return kinds;
}

}  // namespace headway::chip
