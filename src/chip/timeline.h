// When the instructions of a program run, on which engine, and what each waited for.
//
// Engines run beside each other. Each takes its instructions in program order, but for those that can fill
// the time in which it would wait (the vendor's compiler schedules); the tensor engine keeps the order. An
// instruction begins when its engine is free and what it depends on is done: read after write, write after
// read, write after write, by partition range and bytes. DMA instructions are triggered by an engine, wait in
// a queue, and share 16 DMA engines and the HBM of a stack.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "chip/cost.h"
#include "chip/lower.h"
#include "chip/program.h"

namespace headway::chip {

// What kept an instruction from starting earlier.
enum class Cause : std::uint8_t {
  nothing,    // it is the first
  engine,     // its engine ran `cause_event`
  operand,    // it reads what `cause_event` wrote
  overwrite,  // it writes what `cause_event` read or wrote
  memory,     // its tensor takes the place of one that `cause_event` used
  table,      // a table of functions was loaded before it
  queue,      // the queue was full
  meeting,    // another core came later
  conflict,   // `cause_event` used the same bank of PSUM, or the bus
  edge        // the kernel asked for that order
};
std::span<const std::string_view> names_of(Cause);

// One instruction that ran. `start` to `end`: from the moment it begins to the moment its result can be read;
// the engine goes on at `free`. Of a DMA: its trigger; the rest is its transfer.
struct Event {
  std::uint32_t instruction = 0;  // of the core's program
  std::int32_t cause_event = -1;  // index into the timeline's events
  std::int32_t transfer = -1;     // index into the timeline's transfers
  std::uint8_t core = 0;
  Engine engine = Engine::unknown;
  Cause cause = Cause::nothing;
  bool calibrated = true;
  Picoseconds start = 0, free = 0, end = 0;
};

// What a DMA moves. `start` to `end` is the time in which its bytes move; `visible` is when the consumer
// knows.
struct Transfer {
  std::uint32_t event = 0;
  std::uint8_t core = 0;
  std::uint8_t queue = 0;  // index into the timeline's queues
  std::uint8_t engines = 0;
  Dge dge = Dge::static_ring;
  Buffer from = Buffer::private_hbm, to = Buffer::sbuf;
  std::int32_t descriptors = 0, descriptor_bytes = 0;
  std::int64_t bytes = 0;
  Picoseconds engine_time = 0;  // of all engines together
  Picoseconds start = 0, end = 0, visible = 0;
};

// The tensor engine's clock over time: from `start` on, `share` of full speed.
struct ClockStep {
  std::uint8_t core = 0;
  double share = 1;
  Picoseconds start = 0;
};

// Totals that only the run of the timeline sees.
struct Traffic {
  std::int64_t hbm_read = 0, hbm_written = 0, sbuf_read = 0, sbuf_written = 0, psum_read = 0,
               psum_written = 0;
  std::int64_t spill_saved = 0, spill_loaded = 0;
  double flops = 0, transpose_flops = 0;  // of the tensor engine: 2 K M N a product
};

struct CoreTimeline {
  const Program* program = nullptr;
  Lowered lowered;
  Traffic traffic;
};

struct Timeline {
  std::vector<Event> events;           // core after core, each in program order (not of time), loops unrolled
  std::vector<std::size_t> core_from;  // first event of each core, and the number of events at the end
  std::vector<Transfer> transfers;
  std::vector<std::string> queues;  // "gpsimd software", "sync hardware" ...
  std::vector<ClockStep> clock;
  std::vector<CoreTimeline> cores;
  Picoseconds total = 0;   // from the first instruction to the last byte, without the launch
  Picoseconds launch = 0;  // what the runtime adds, as the contest's clock sees it
  // Trust: `total` lies in [low, high] with about 90% confidence; `basis` divides the critical path.
  Picoseconds low = 0, high = 0;
  Basis basis;
  std::int64_t uncalibrated = 0;  // instructions whose shapes lie outside what was measured
  std::vector<std::string> warnings;
};

struct TimeOptions {
  std::uint64_t max_instructions = 1ull << 32;  // unrolled, of all cores; more is an InputError
};

// The programs of the cores of one logical core (or of a launch), in order. The programs must outlive the
// timeline. Throws KernelError where a tensor doesn't fit, InputError where a loop's bounds depend on data.
Timeline time(std::span<const Program* const> programs, const Timing& timing,
              const TimeOptions& options = {});
Timeline time(const Program& program, const Timing& timing, const TimeOptions& options = {});

// Events from the first to the one that ended last, each the cause of the next: what the total is made of.
std::vector<std::uint32_t> critical_path(const Timeline& timeline);

}  // namespace headway::chip
