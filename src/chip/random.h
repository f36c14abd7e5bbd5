// Random numbers: Vector and GpSimd engines. Every lane has its own generator and takes one number of 32 bits
// for each element of its row, in the order of the view, whatever the dtype.
#pragma once

#include <span>

#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// dst [P, N] of an integer dtype gets the low bits of random numbers. VectorE: SBUF or PSUM; GpSimd
// (NeuronCore-v3): SBUF. The engine also chooses the generator; left open, it is VectorE. (nki.isa.rng)
struct Rng : Instruction {
  View dst;

  std::string_view name() const override { return "rng"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
struct RngOptions {
  Engine engine = Engine::vector;
};
void rng(const Tile& dst, const RngOptions& options = {}, Here here = Here::current());

// dst [P, N]: data's elements, bit for bit, each replaced by zero with probability `prob`: a number in [0, 1]
// or [P, 1], of float32 where data isn't floating point. dst has data's dtype. (nki.isa.dropout)
struct Dropout : Instruction {
  View dst, data;
  Scalar prob;

  std::string_view name() const override { return "dropout"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::vector; }
  Cost cost(const Costing& costing) const override;
};
void dropout(const Tile& dst, const Tile& data, const Scalar& prob, Here here = Here::current());

// Seeds VectorE's generators with the 32 bits of src_seeds [1, 1]. (nki.isa.set_rng_seed)
struct SetRngSeed : Instruction {
  View src_seeds;

  std::string_view name() const override { return "set_rng_seed"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::vector; }
  Cost cost(const Costing& costing) const override;
};
void set_rng_seed(const Tile& src_seeds, Here here = Here::current());

// The states of GpSimd's generators, uint32 [P, 6] in SBUF: xorwow's words x, y, z, w, v and its counter.
// Partition p is lane p's. From NeuronCore-v3 on. (nki.isa.rand_set_state, nki.isa.rand_get_state)
struct RandSetState : Instruction {
  View src_seeds;

  std::string_view name() const override { return "rand_set_state"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override;
  Cost cost(const Costing& costing) const override;
};
struct RandGetState : Instruction {
  View dst;

  std::string_view name() const override { return "rand_get_state"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override;
  Cost cost(const Costing& costing) const override;
};
struct RandStateOptions {
  Engine engine = Engine::gpsimd;
};
void rand_set_state(const Tile& src_seeds, const RandStateOptions& options = {}, Here here = Here::current());
void rand_get_state(const Tile& dst, const RandStateOptions& options = {}, Here here = Here::current());

std::span<const Kind> random_instructions();

}  // namespace headway::chip
