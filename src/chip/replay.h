// Replaying recorded timelines: the model's times for what a real chip ran, beside the recorded ones.
//
// Of a recording the replay takes what ran and in which order on each engine, with operands, and which
// semaphore each instruction waited for; never a time. Costs are the model's (chip/cost.h) and so are the
// latencies between producer and consumer. All engines are released together at time 0.
#pragma once

#include <string>
#include <vector>

#include "chip/replay_file.h"
#include "chip/timing.h"

namespace headway::chip {

struct ReplayBar {
  Picoseconds start = 0, end = 0;
};

struct Replayed {
  std::vector<ReplayBar> instructions;  // as Recording::instructions
  std::vector<ReplayBar> transfers;     // as Recording::transfers: first to last byte
};

// The windows after which the array's clock changes run by themselves; where they stand when a kernel begins
// is chance (chip/array_clock.h). Either as on average, or where the recording has them: the one thing that
// is taken from its times.
enum class ClockPhase { average, recorded };

// Throws InputError naming the recording's line for an instruction that the model has no counterpart of and
// for waits that nothing ever ends.
Replayed replay(const Recording& recording, const Timing& timing, ClockPhase phase = ClockPhase::average);

// Times in which an engine has at least one bar. Of Engine::dma: at least one packet moves.
struct BusyTime {
  Engine engine = Engine::unknown;
  Picoseconds predicted = 0, measured = 0;
};

// Both timelines are aligned at the first DMA trigger.
struct ReplayScore {
  std::string name;
  Picoseconds predicted = 0, measured = 0;                      // first trigger to last packet
  Picoseconds median_start_error = 0, largest_start_error = 0;  // of instructions, without sign
  int largest_line = 0;                                         // of the recording: where
  std::size_t instructions = 0, transfers = 0;
  std::vector<BusyTime> busy;  // engines that ran something
};
ReplayScore score(const Recording& recording, const Replayed& replayed);

}  // namespace headway::chip
