// Building blocks of the costs of DMA.
//
// A transfer is a list of descriptors, each a run of bytes that is contiguous on both sides. An engine takes
// a fixed time and that of the bytes for each, and once a fixed time for its part of an instruction that
// reads HBM. Which engine moves what follows the partitions: each serves an equal share of them (8 of 128),
// so that a tile of few partitions keeps few engines busy. Between two places in HBM, packets are dealt out
// evenly.
#pragma once

#include <cstdint>

#include "chip/cost.h"
#include "chip/engine_cost.h"

namespace headway::chip {

enum class DgeMode : std::uint8_t;

// How elements of `dst`, in order, come from those of `src`.
struct Runs {
  std::int64_t count = 0;
  double elements = 0;  // of one, on average
};
Runs common_runs(const Program& program, const View& dst, const View& src);

// One descriptor of an engine: its bar, and the time until the next one's, where another follows at once.
double descriptor_seconds(const Timing& timing, double bytes);
double descriptor_interval(const Timing& timing, double bytes);

struct TransferOptions {
  Constant share = {1, Tag::documented};  // of an engine's bandwidth
  bool reads_only = false;                // what arrives was counted before
  bool transpose = false;                 // a descriptor is a row of the source's last extent
};
// Adds the descriptors that move `src` to `dst` to `work`, and the time of the engine that has the most to
// `time`.
void add_transfer(const Costing& costing, const View& dst, const View& src, const TransferOptions& options,
                  DmaWork& work, Duration& time);

// Finishes the cost of a DMA instruction: who makes the descriptors (`needs_software`: only GpSimd can), and
// how long the trigger keeps the engine that gives it, costing.engine, or the one that goes with the mode.
Cost dma_cost(const Costing& costing, DgeMode mode, bool needs_software, const DmaWork& work,
              const Duration& time);

// Software writes descriptors one by one: from a semaphore to the trigger, and from trigger to trigger. Grows
// from the least with the descriptors, up to one a partition; longer lists are written while others move.
Picoseconds software_wait(const Timing& timing, std::int64_t descriptors);
Picoseconds software_issue(const Timing& timing, std::int64_t descriptors);
// From one trigger of an engine to its next; none for rings that the host has prepared.
Picoseconds issue_interval(const Timing& timing, Dge dge, std::int64_t descriptors);
// The latency from a trigger to the bytes that goes with how descriptors come about.
const Constant& start_constant(const Timing& timing, Dge dge);
// From a trigger to the bytes: the engines start one after another, and this is when their middle does.
Picoseconds start_latency(const Timing& timing, Dge dge, int engines);
// What HBM is read for comes to some engines later than to others, and stalls them: how much later than its
// descriptors take the last of them ends. Not longer than they work: short loads have little to stall.
Picoseconds load_spread(const Timing& timing, const DmaWork& work);

}  // namespace headway::chip
