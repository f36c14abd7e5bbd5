// Reductions along rows and scans: tensor_reduce, tensor_scalar_reduce, tensor_scalar_cumulative,
// tensor_tensor_scan.
//
// All compute in float32 (operators on bits aside); sums have the fixed order of reduce_row (chip/alu.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "chip/accumulator.h"
#include "chip/alu.h"
#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// dst = data reduced over `axis`, the last one or more extents of `data`, never the partitions; negative ones
// count from the end. dst has as many elements a partition as the other extents make. `negate` multiplies the
// result by -1 (arithmetic only).
struct TensorReduce : Instruction {
  View dst;
  Alu op = Alu::add;
  View data;
  std::vector<std::int64_t> axis;
  bool negate = false;
  bool keepdims = false;  // says how NKI shapes dst; nothing here depends on it

  std::string_view name() const override { return "tensor_reduce"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;

 private:
  // Elements that become one; 0 where `axis` is not the last extents.
  std::int64_t reduced() const;
};
struct TensorReduceOptions {
  bool negate = false, keepdims = false;
};
void tensor_reduce(const Tile& dst, Alu op, const Tile& data, const std::vector<std::int64_t>& axis,
                   const TensorReduceOptions& options = {}, Here here = Here::current());

// dst = data op0 operand0, and its rows reduced with add, multiply, maximum or minimum into the Vector
// engine's accumulators, in float32 before dst rounds them; `reduce_res`, if there is one, gets the
// accumulators, negated where asked.
struct TensorScalarReduce : Instruction {
  View dst, data;
  Alu op0 = Alu::add;
  Scalar operand0;
  Alu reduce_op = Alu::add;
  std::optional<View> reduce_res = {};
  bool reverse0 = false;  // not supported by NKI either
  ReduceCmd reduce_cmd = ReduceCmd::reset_reduce;
  std::optional<Scalar> reduce_init = {};
  bool reduce_res_negate = false;

  std::string_view name() const override { return "tensor_scalar_reduce"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
struct TensorScalarReduceOptions {
  bool reverse0 = false;
  ReduceCmd reduce_cmd = ReduceCmd::reset_reduce;
  std::optional<Scalar> reduce_init = {};
  bool reduce_res_negate = false;
};
void tensor_scalar_reduce(const Tile& dst, const Tile& data, Alu op0, const Scalar& operand0, Alu reduce_op,
                          const std::optional<View>& reduce_res = {},
                          const TensorScalarReduceOptions& options = {}, Here here = Here::current());

// reg = (src[i] op0 imm0) op1 reg and dst[i] = reg, for each element of a row in turn; reg is the lane's
// accumulator. op1 is add, subtract, multiply, maximum or minimum.
struct TensorScalarCumulative : Instruction {
  View dst, src;
  Alu op0 = Alu::add, op1 = Alu::add;
  Scalar imm0;
  std::optional<Scalar> imm1 = {};  // the first reg, where reduce_cmd is load_reduce
  ReduceCmd reduce_cmd = ReduceCmd::reset_reduce;

  std::string_view name() const override { return "tensor_scalar_cumulative"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
struct TensorScalarCumulativeOptions {
  std::optional<Scalar> imm1 = {};
  ReduceCmd reduce_cmd = ReduceCmd::reset_reduce;
};
void tensor_scalar_cumulative(const Tile& dst, const Tile& src, Alu op0, Alu op1, const Scalar& imm0,
                              const TensorScalarCumulativeOptions& options = {}, Here here = Here::current());

// dst[i] = (data0[i] op0 dst[i - 1]) op1 data1[i], where dst[-1] is `initial`; reversed: sides exchanged. The
// state is float32, whatever dst's dtype. Not both data in PSUM. `initial` is an immediate or [P, 1].
struct TensorTensorScan : Instruction {
  View dst, data0, data1;
  Scalar initial;
  Alu op0 = Alu::multiply, op1 = Alu::add;
  bool reverse0 = false, reverse1 = false;

  std::string_view name() const override { return "tensor_tensor_scan"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
struct TensorTensorScanOptions {
  bool reverse0 = false, reverse1 = false;
};
void tensor_tensor_scan(const Tile& dst, const Tile& data0, const Tile& data1, const Scalar& initial, Alu op0,
                        Alu op1, const TensorTensorScanOptions& options = {}, Here here = Here::current());

std::span<const Kind> vector_reduce_instructions();

}  // namespace headway::chip
