// What the vendor's compiler does with a program before it runs: places for tensors that have none, reuse of
// memory, spills. Engines that the kernel left open and DMA queues are chosen by the timeline, which knows
// who is free first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chip/program.h"
#include "chip/spec.h"

namespace headway::chip {

// Where a tensor on chip lies, and from which instruction to which it lives (of the program as recorded).
struct Placement {
  TensorId tensor = 0;
  std::int32_t partition = 0;
  std::int64_t byte = 0, bytes = 0;  // of each partition
  std::int32_t partitions = 0;
  std::uint32_t first = 0, last = 0;  // instructions
  bool spilled = false;               // didn't fit: lives in HBM, is saved once and loaded for each use
};

struct Lowered {
  std::vector<Placement> placements;  // one a tensor; `bytes` 0 for those in HBM and those never used
  // Tensors whose memory tensor t takes over: it must wait for their last uses. Flat lists: those of t are
  // predecessors[predecessors_from[t] .. predecessors_from[t + 1]).
  std::vector<std::uint32_t> predecessors_from;
  std::vector<TensorId> predecessors;
  std::int64_t sbuf_peak = 0, psum_peak = 0;  // bytes of a partition
  std::vector<TensorId> spilled;
  std::vector<std::string> warnings;  // "SBUF overflows: ..., the largest live tensors are ..."
};

// Memory is handed out as by a first-in-first-out free list: what was freed longest ago is used first, so
// that buffers rotate. Throws KernelError for one tensor larger than its memory, and where PSUM overflows.
Lowered lower(const Program& program, const Spec& spec);

}  // namespace headway::chip
