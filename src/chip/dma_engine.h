// The DMA engines: they move memory, transpose, and add. Their element order is row-major over a view's
// extents, in HBM and SBUF alike. Partition starts are free. Documents: nki.isa reference and the DGE deep
// dive, NKI 0.6; decisions in docs/chip/dma.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "chip/alu.h"
#include "chip/core.h"
#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// Who makes the descriptors: GpSimd's software while the kernel runs, the DGE hardware (NeuronCore-v3,
// started by Scalar or Sync), or the host before it runs.
enum class DgeMode : std::uint8_t { unknown, swdge, hwdge, none };
std::span<const std::string_view> names_of(DgeMode);

// dst = src, as many elements in both; dtypes that differ are converted through float32. HBM or SBUF on
// either side.
struct DmaCopy : Instruction {
  View dst, src;
  std::int64_t priority = -1;  // of NeuronCore-v4: 0 (highest) to 3; -1: not given
  OobMode oob_mode = OobMode::error;
  DgeMode dge_mode = DgeMode::unknown;
  std::string_view name() const override { return "dma_copy"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
struct DmaCopyOptions {
  std::int64_t priority = -1;
  OobMode oob_mode = OobMode::error;
  DgeMode dge_mode = DgeMode::unknown;
  Engine engine = Engine::unknown;  // scalar or sync, of hwdge
};
void dma_copy(const Tile& dst, const Tile& src, const DmaCopyOptions& options = {},
              Here here = Here::current());

// dst = src with its axes permuted: (1, 0), (2, 1, 0) or (3, 1, 2, 0). dst in SBUF, same dtype. Where the
// rows of src are given by an index [I, K], row r is index[r % I, r / I].
struct DmaTranspose : Instruction {
  View dst, src;
  std::vector<std::int64_t> axes;  // empty: those of the rank
  std::int64_t priority = -1;
  DgeMode dge_mode = DgeMode::unknown;
  OobMode oob_mode = OobMode::error;
  std::string_view name() const override { return "dma_transpose"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
struct DmaTransposeOptions {
  std::vector<std::int64_t> axes = {};
  std::int64_t priority = -1;
  DgeMode dge_mode = DgeMode::unknown;
  OobMode oob_mode = OobMode::error;
};
void dma_transpose(const Tile& dst, const Tile& src, const DmaTransposeOptions& options = {},
                   Here here = Here::current());

// dst = srcs[0] + srcs[1] + ..., in float32, in that order. With rows by index it reads, modifies and writes:
// dst (HBM) [index] += src (SBUF), or dst (SBUF) += src (HBM) [index].
struct DmaCompute : Instruction {
  View dst;
  std::vector<View> srcs;  // at most 16
  Alu reduce_op = Alu::add;
  std::vector<float> scales;  // one a source, all 1; empty: all 1
  bool unique_indices = true;
  OobMode oob_mode = OobMode::error;
  std::string_view name() const override { return "dma_compute"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;

 private:
  void apply_by_index(Core& core, const View& indirect) const;
};
struct DmaComputeOptions {
  std::vector<float> scales = {};
  bool unique_indices = true;
  OobMode oob_mode = OobMode::error;
};
void dma_compute(const Tile& dst, const std::vector<View>& srcs, Alu reduce_op,
                 const DmaComputeOptions& options = {}, Here here = Here::current());

std::span<const Kind> dma_engine_instructions();

}  // namespace headway::chip
