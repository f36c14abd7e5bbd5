// Instructions of the GpSimd engine that gather by index, and top-k. SBUF only; a core of the engine reaches
// 16 partitions. Source of shapes, dtypes and limits: the NKI 0.6 reference; what it leaves open is decided
// in docs/chip/gpsimd.md.
#pragma once

#include <cstdint>

#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// Partitions of one core of the GpSimd engine.
inline constexpr std::int64_t kGpsimdLanes = 16;

// Each group of 16 partitions for itself: its indices, taken partition by partition and then column by
// column, say which elements of every one of its partitions to take, num_elem_per_idx at a time:
//   dst[p, j num_elem_per_idx + e] = src_buffer[p, index[16 (p / 16) + j % 16, j / 16] + e]
// for j below num_valid_indices. Indices count elements. src_buffer and dst [P, ...] of one dtype, index [P,
// ...] uint16, P a multiple of 16. An index out of bounds is a kernel error when it runs.
struct LocalGather : Instruction {
  View dst;
  View src_buffer;
  View index;
  std::int64_t num_elem_per_idx = 1;   // 1, 2, 4, 8, 16 or 32
  std::int64_t num_valid_indices = 0;  // of a group, at most 4096; 0: all of them

  std::int64_t indices() const {
    return num_valid_indices ? num_valid_indices : index.row_elements() * kGpsimdLanes;
  }

  std::string_view name() const override { return "local_gather"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::gpsimd; }
  Cost cost(const Costing& costing) const override;
};
struct LocalGatherOptions {
  std::int32_t num_elem_per_idx = 1;
  std::int32_t num_valid_indices = 0;
};
void local_gather(const Tile& dst, const Tile& src_buffer, const Tile& index,
                  const LocalGatherOptions& options = {}, Here here = Here::current());

// dst[p, j] = data[p, indices[p, j]], free extents flattened. data and dst of one dtype, indices uint32 with
// as many elements as dst. An index out of bounds is a kernel error when it runs.
struct NcNGather : Instruction {
  View dst;
  View data;
  View indices;

  std::string_view name() const override { return "nc_n_gather"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::gpsimd; }
  Cost cost(const Costing& costing) const override;
};
void nc_n_gather(const Tile& dst, const Tile& data, const Tile& indices, Here here = Here::current());

// Each group of 16 partitions for itself: element s of its snake is src[s % 16, s / 16], for s below n. Its K
// largest, ascending, and their places s in the snake, are laid out the same way: result j at partition j %
// 16, column j / 16 of val_dst and idx_dst. K is the free extent of these, [P, K]; only their first ceil(K /
// 16) columns are written, the places after K with NaN and 2^32 - 1. Among equals the lower place counts as
// larger; NaN counts as smaller than all numbers. src and val_dst bfloat16, idx_dst uint32, P a multiple
// of 16. From NeuronCore-v3.
struct Topk : Instruction {
  View val_dst;
  View idx_dst;
  View src;
  std::int64_t n = 0;  // 8 to 65535

  std::string_view name() const override { return "topk"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::gpsimd; }
  Cost cost(const Costing& costing) const override;
};
void topk(const Tile& val_dst, const Tile& idx_dst, const Tile& src, std::int64_t n,
          Here here = Here::current());

}  // namespace headway::chip
