// Instructions of the Vector engine that choose: by place, by predicate, and rows among partitions.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "chip/accumulator.h"
#include "chip/alu.h"
#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// The most negative float32: what range_select writes where it doesn't select.
inline constexpr float kFp32Min = std::numeric_limits<float>::lowest();

// dst [P, N]: element i of on_true_tile where (range_start + i) comp_op0 bound0 and (range_start + i)
// comp_op1 bound1, else on_false_value, which must be kFp32Min. Operators: equal, less, less_equal, greater,
// greater_equal; bounds float32 [P, 1]; range_start + i up to 2^24. on_true_tile of a floating-point dtype;
// NeuronCore-v3 and later.
//
// VectorE's registers take in the maximum of each row, in float32 before conversion to dst's dtype, as
// reduce_cmd says (they start from -infinity); then reduce_res [P, 1] gets what is in them.
// (nki.isa.range_select)
struct RangeSelect : Instruction {
  View dst, on_true_tile;
  Alu comp_op0 = Alu::greater_equal, comp_op1 = Alu::less;
  View bound0, bound1;
  ReduceCmd reduce_cmd = ReduceCmd::reset_reduce;
  std::optional<View> reduce_res;
  Alu reduce_op = Alu::maximum;
  std::int64_t range_start = 0;
  float on_false_value = kFp32Min;

  std::string_view name() const override { return "range_select"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::vector; }
  Cost cost(const Costing& costing) const override;
};
struct RangeSelectOptions {
  ReduceCmd reduce_cmd = ReduceCmd::reset_reduce;
  std::optional<View> reduce_res = {};
  Alu reduce_op = Alu::maximum;
  std::int64_t range_start = 0;
  float on_false_value = kFp32Min;
};
void range_select(const Tile& dst, const Tile& on_true_tile, Alu comp_op0, Alu comp_op1, const Tile& bound0,
                  const Tile& bound1, const RangeSelectOptions& options = {}, Here here = Here::current());

// dst [P, N]: on_true where predicate isn't zero (or is, where reverse_pred), else on_false, a number or [P,
// 1]. predicate: int8, uint8, int16 or uint16; on_true: any dtype but tfloat32, int32 and uint32; not both in
// PSUM. Registers and reduce_res as in range_select; reduce_res is floating point. (nki.isa.select_reduce)
struct SelectReduce : Instruction {
  View dst, predicate, on_true;
  Scalar on_false;
  std::optional<View> reduce_res;
  ReduceCmd reduce_cmd = ReduceCmd::idle;
  Alu reduce_op = Alu::maximum;
  bool reverse_pred = false;

  std::string_view name() const override { return "select_reduce"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::vector; }
  Cost cost(const Costing& costing) const override;
};
struct SelectReduceOptions {
  std::optional<View> reduce_res = {};
  ReduceCmd reduce_cmd = ReduceCmd::idle;
  Alu reduce_op = Alu::maximum;
  bool reverse_pred = false;
};
void select_reduce(const Tile& dst, const Tile& predicate, const Tile& on_true, const Scalar& on_false,
                   const SelectReduceOptions& options = {}, Here here = Here::current());

// Within each 32 partitions: partition i of dst gets partition shuffle_mask[i] of src, bit for bit; 255
// leaves it as it is. Both have the same dtype and elements a partition; their numbers of partitions, and
// where they start, may differ. (nki.isa.nc_stream_shuffle)
struct NcStreamShuffle : Instruction {
  View dst, src;
  std::vector<std::int64_t> shuffle_mask;  // 32

  std::string_view name() const override { return "nc_stream_shuffle"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::vector; }
  Cost cost(const Costing& costing) const override;
};
void nc_stream_shuffle(const Tile& dst, const Tile& src, const std::vector<std::int64_t>& shuffle_mask,
                       Here here = Here::current());

std::span<const Kind> vector_select_instructions();

}  // namespace headway::chip
