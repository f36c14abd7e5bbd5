// Instructions of the Vector engine that look at a row as a whole: mean and variance, the eight largest
// values and where they are.
#pragma once

#include <optional>
#include <span>

#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// Operands lie in SBUF or PSUM; values are compared and computed in float32.

// dst [P, 6]: count, mean and variance * count of the elements of data [P, N] at even places, then of those
// at odd places. N <= 512. (nki.isa.bn_stats)
struct BnStats : Instruction {
  View dst, data;

  std::string_view name() const override { return "bn_stats"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::vector; }
  Cost cost(const Costing& costing) const override;
};
void bn_stats(const Tile& dst, const Tile& data, Here here = Here::current());

// dst [P, 2]: mean and variance of all that the triples of data [P, 3 k], results of bn_stats, stand for.
// (nki.isa.bn_aggr)
struct BnAggr : Instruction {
  View dst, data;

  std::string_view name() const override { return "bn_aggr"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::vector; }
  Cost cost(const Costing& costing) const override;
};
void bn_aggr(const Tile& dst, const Tile& data, Here here = Here::current());

// dst [P, 8]: the largest values of src [P, N], descending. 8 <= N <= 16384, src of at most 3 extents.
// (nki.isa.max8)
struct Max8 : Instruction {
  View dst, src;

  std::string_view name() const override { return "max8"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::vector; }
  Cost cost(const Costing& costing) const override;
};
void max8(const Tile& dst, const Tile& src, Here here = Here::current());

// dst [P, 8], uint16 or uint32: where in data [P, N] each of vals [P, 8] is first; all ones where it isn't.
// Equal values get successive places, in the order of their columns. 8 <= N <= 16384, data and vals of at
// most 3 extents. (nki.isa.nc_find_index8)
struct NcFindIndex8 : Instruction {
  View dst, data, vals;

  std::string_view name() const override { return "nc_find_index8"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::vector; }
  Cost cost(const Costing& costing) const override;
};
void nc_find_index8(const Tile& dst, const Tile& data, const Tile& vals, Here here = Here::current());

// dst [P, N]: data with `imm` where each of vals [P, 8] is first. Equal values take successive places, the
// last column the first one. dst_idx [P, 8], uint16 or uint32, gets the places as nc_find_index8 writes them.
// N <= 16384. (nki.isa.nc_match_replace8)
struct NcMatchReplace8 : Instruction {
  View dst, data, vals;
  float imm = 0;
  std::optional<View> dst_idx;

  std::string_view name() const override { return "nc_match_replace8"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::vector; }
  Cost cost(const Costing& costing) const override;
};
struct NcMatchReplace8Options {
  std::optional<View> dst_idx = {};
};
void nc_match_replace8(const Tile& dst, const Tile& data, const Tile& vals, float imm,
                       const NcMatchReplace8Options& options = {}, Here here = Here::current());

std::span<const Kind> vector_statistics_instructions();

}  // namespace headway::chip
