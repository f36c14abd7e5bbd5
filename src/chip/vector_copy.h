// Moving and setting elements within a NeuronCore: tensor_copy, tensor_copy_predicated, memset.
#pragma once

#include <optional>
#include <span>

#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// dst = src. The same dtype: bits, on every engine; another one: through float32. As many partitions and
// elements a partition; the shapes of the free extents may differ. Both may have a dynamic offset
// (`.ap(scalar_offset=)`).
struct TensorCopy : Instruction {
  View dst, src;

  std::string_view name() const override { return "tensor_copy"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
struct TensorCopyOptions {
  Engine engine = Engine::unknown;  // vector, scalar (from NeuronCore-v3 on) or gpsimd (not PSUM)
};
void tensor_copy(const Tile& dst, const Tile& src, const TensorCopyOptions& options = {},
                 Here here = Here::current());

// dst = src where `predicate` isn't 0 (where it is, reversed); elsewhere dst stays, written or not. `src` is
// a tile of dst's dtype and size, or a number; `predicate` is uint8, uint16 or uint32.
struct TensorCopyPredicated : Instruction {
  View dst;
  Scalar src;  // a view of dst's size, not of [P, 1]
  View predicate;
  bool reverse_pred = false;

  std::string_view name() const override { return "tensor_copy_predicated"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
struct TensorCopyPredicatedOptions {
  bool reverse_pred = false;
};
void tensor_copy_predicated(const Tile& dst, const Scalar& src, const Tile& predicate,
                            const TensorCopyPredicatedOptions& options = {}, Here here = Here::current());

// dst = value, everywhere. Integer dtypes take an int, float dtypes either; packed x4 dtypes only 0.
struct Memset : Instruction {
  View dst;
  Scalar value;

  std::string_view name() const override { return "memset"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
struct MemsetOptions {
  Engine engine = Engine::unknown;  // vector or gpsimd (not PSUM)
};
void memset(const Tile& dst, const Scalar& value, const MemsetOptions& options = {},
            Here here = Here::current());

std::span<const Kind> vector_copy_instructions();

}  // namespace headway::chip
