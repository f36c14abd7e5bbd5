// Instructions of the GpSimd engine that generate, select, reduce and search. It has eight cores of 16
// partitions each and reaches SBUF only. Gathers and top-k are in chip/gpsimd_gather.h. Source of shapes,
// dtypes and limits: the NKI 0.6 reference; what it leaves open is decided in docs/chip/gpsimd.md.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "chip/alu.h"
#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// A pattern of integers over a row, outermost first: up to four pairs {step, count}. Element (w, z, y, x) of
// row p is
//   offset + p channel_multiplier + w step_w + z step_z + y step_y + x step_x
// in 32-bit integers that wrap around. It is kept flat: step, count, step, count ...
std::vector<std::int64_t> flat(std::initializer_list<Pair> pattern);

// dst[p, i] = pattern value (p, i). dst: SBUF, any dtype that can be computed with, as many elements a
// partition as the pattern. int32 and uint32 keep the 32 bits; others get the value as float32, converted.
struct Iota : Instruction {
  View dst;
  std::vector<std::int64_t> pattern;
  RegisterOr offset = 0;
  std::int64_t channel_multiplier = 0;  // int32

  std::string_view name() const override { return "iota"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::gpsimd; }
  Cost cost(const Costing& costing) const override;
};
struct IotaOptions {
  RegisterOr offset = 0;
  std::int32_t channel_multiplier = 0;
};
void iota(const Tile& dst, std::initializer_list<Pair> pattern, const IotaOptions& options = {},
          Here here = Here::current());

// dst[p, i] = cmp_op(pattern value (p, i), 0) ? on_true_tile[p, i] : on_false_value. SBUF both; the same
// number of partitions and of elements a partition. Elements keep their bits where the dtypes agree and go
// through float32 where they don't.
struct AffineSelect : Instruction {
  View dst;
  std::vector<std::int64_t> pattern;
  std::int64_t channel_multiplier = 0;  // int32
  View on_true_tile;
  float on_false_value = 0;
  Alu cmp_op = Alu::equal;  // a comparison
  RegisterOr offset = 0;

  std::string_view name() const override { return "affine_select"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::gpsimd; }
  Cost cost(const Costing& costing) const override;
};
struct AffineSelectOptions {
  Alu cmp_op = Alu::equal;
  RegisterOr offset = 0;
};
void affine_select(const Tile& dst, std::initializer_list<Pair> pattern, std::int32_t channel_multiplier,
                   const Tile& on_true_tile, float on_false_value, const AffineSelectOptions& options = {},
                   Here here = Here::current());

// dst[0, i] = op over all partitions p of data[p, i]. op: add, average, maximum, bitwise_and, bitwise_or; the
// bitwise ones on integers of one dtype. SBUF both; dst has one partition.
struct TensorPartitionReduce : Instruction {
  View dst;
  Alu op = Alu::add;
  View data;

  std::string_view name() const override { return "tensor_partition_reduce"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::gpsimd; }
  Cost cost(const Costing& costing) const override;
};
void tensor_partition_reduce(const Tile& dst, Alu op, const Tile& data, Here here = Here::current());

// For each element of segment_ids [1, n] where its run of equal ids begins, dst[0, 0, i], and one past where
// it ends, dst[0, 1, i]: dst is [1, 2, n]. Id 0 is padding and gets n and -1. SBUF, float32 or int32; ids are
// whole and not negative (checked when it runs).
struct SequenceBounds : Instruction {
  View dst;
  View segment_ids;

  std::string_view name() const override { return "sequence_bounds"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::gpsimd; }
  Cost cost(const Costing& costing) const override;
};
void sequence_bounds(const Tile& dst, const Tile& segment_ids, Here here = Here::current());

// For partitions 0, 16, 32 ... of the tiles: the positions of the elements of src [P, T] that aren't 0, each
// plus index_offset, then padding_val up to T, then their number: dst [P, T + 1]. Other partitions are
// neither read nor written. SBUF; src float32 or int32, dst int32. From NeuronCore-v3.
struct NonzeroWithCount : Instruction {
  View dst;
  View src;
  std::int64_t index_offset = 0;  // int32
  std::int64_t padding_val = -1;  // int32

  std::string_view name() const override { return "nonzero_with_count"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::gpsimd; }
  Cost cost(const Costing& costing) const override;
};
struct NonzeroWithCountOptions {
  std::int32_t index_offset = 0;
  std::int32_t padding_val = -1;
};
void nonzero_with_count(const Tile& dst, const Tile& src, const NonzeroWithCountOptions& options = {},
                        Here here = Here::current());

// Those above and those of chip/gpsimd_gather.h.
std::span<const Kind> gpsimd_engine_instructions();

}  // namespace headway::chip
