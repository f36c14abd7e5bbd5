// What a timeline says about a kernel: figures, what bounds it, what its time is made of, what would make it
// faster. A profile stands for itself: it refers to no program, can be saved and read again
// (chip/profile_file.h), and every way to show it (text, JSON, Perfetto, page) starts from it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chip/interval.h"
#include "chip/timeline.h"

namespace headway::chip {

// "31.4 us", "28.198 ms": a time in seconds as people read it.
std::string time_text(double seconds);

inline std::int64_t whole_ns(Picoseconds time) { return (time + 500) / 1000; }

// Numbers by name, in the order they were set. Where Neuron Explorer's summary table has a figure, the name
// is its and so is the unit: seconds, bytes, and names that end in _percent are shares from 0 to 1.
class Figures {
 public:
  void set(std::string_view name, double value);
  // Throws Bug for a name that wasn't set.
  double operator[](std::string_view name) const;
  bool has(std::string_view name) const;
  const std::vector<std::pair<std::string, double>>& all() const { return all_; }

 private:
  std::vector<std::pair<std::string, double>> all_;
};

// An instruction that ran. Times in whole ns. The engine is occupied from `start` for `busy`; the result can
// be read `latency` later.
struct ProfileEvent {
  std::int64_t start = 0, busy = 0, latency = 0;
  std::int32_t operation = 0, source = 0;  // indices into Profile's names
  std::int32_t by = 0;                     // own index minus that of the event it waited for; 0: none
  std::int32_t transfer = 0;               // index into transfers + 1; 0: none
  Engine engine = Engine::unknown;
  Cause cause = Cause::nothing;
  bool calibrated = true;
};

// What a DMA moved: bytes from `start` for `length`, and `arrival` later the consumer knows.
struct ProfileTransfer {
  std::int64_t start = 0, length = 0, arrival = 0, bytes = 0;
  std::int32_t event = 0, queue = 0, descriptors = 0, descriptor_bytes = 0;
  std::int32_t engines = 0;
  Dge mode = Dge::static_ring;
  Buffer from = Buffer::private_hbm, to = Buffer::sbuf;
};

// A step function: value[i] from time[i] (ns) to the next.
struct Counter {
  std::string name, unit;
  std::int32_t core = 0;
  double limit = 0;  // the largest it could be; 0: none
  std::vector<std::int64_t> time;
  std::vector<double> value;
};

struct EngineFigures {
  std::string engine;
  double active = 0;            // s: union of bars, from start to the result
  double instruction_time = 0;  // s: sum of bars
  double occupied = 0;          // s: in which it can't begin another instruction
  std::int64_t instructions = 0;
};

// The share of a total that rests on numbers of each tag, and the interval it lies in with about 90%
// confidence.
struct Trust {
  double low = 0, high = 0;        // s
  std::array<double, 4> shares{};  // by Tag; their sum is 1, or 0 where nothing ran
  std::int64_t uncalibrated = 0;   // instructions whose shapes lie outside what was measured
};

// One resource: the time the kernel would take if nothing else mattered.
struct Limit {
  std::string by, name;
  double time = 0;   // s
  double share = 0;  // of the total
};

struct Bound {
  std::string by, name;  // "dma_descriptors", "DMA descriptors"
  std::string reason;
  double share = 0;
  std::vector<Limit> limits;  // largest first
};

// A part of the critical path: what ran, and why the next waited for it. The parts' times add up to the
// total.
struct PathPart {
  std::string what;
  Cause cause = Cause::nothing;
  double time = 0, share = 0;
  std::int64_t count = 0;
};

struct Advice {
  std::string id, title, text;
  double time = 0;   // s that it could save at most, by the formula of its rule (chip/advice.cc)
  double share = 0;  // of the total
  std::vector<std::string> sources;  // lines concerned, most time first
  // Events concerned, those on the critical path: runs of a first event and how many, in order.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> events;
};

// What the machine allows all cores of a launch together.
struct Roofline {
  double bandwidth = 0;                               // B/s of HBM
  double mfu_peak = 0;                                // FLOP/s that MFU refers to
  std::string dtype;                                  // whose peak that is
  std::vector<std::pair<std::string, double>> peaks;  // FLOP/s of the tensor engine by dtype
};

// A line of the kernel's source.
struct LineFigures {
  std::string source, operations;
  double time = 0;      // s on engines, of all its instructions
  double critical = 0;  // s of the critical path
  std::int64_t count = 0;
};

struct Profile {
  std::string kernel, chip, chip_hash, core;  // the hash is that of the chip file
  std::int32_t generation = 0, cores = 1;
  std::vector<std::string> arguments;
  Figures figures;
  Trust trust;
  Bound bound;
  Roofline roofline;
  std::vector<PathPart> critical_path;         // most time first
  std::vector<std::uint32_t> critical_events;  // in order of time
  std::vector<Advice> advice;                  // most time first
  std::vector<LineFigures> lines;              // most critical first
  std::vector<std::string> warnings;

  std::vector<std::array<std::string, 2>>
      operations;  // name and what it writes: "nc_matmul", "float32[128, 512] psum"
  std::vector<double>
      operation_flops;               // of one such instruction, as MFU counts them: products, no transposes
  std::vector<std::string> sources;  // entry 0 is ""
  std::vector<std::string> queues;
  std::vector<std::size_t> core_from;  // first event of each core, and the number of events at the end
  std::vector<ProfileEvent> events;
  std::vector<ProfileTransfer> transfers;
  std::vector<Counter> counters;
  std::vector<std::vector<EngineFigures>> engines;  // of each core
};

// `arguments` are kept as they are. The timeline's programs must be there still.
Profile profile(const Timeline& timeline, const Timing& timing, std::vector<std::string> arguments = {});

// The part of a timeline that says how far to believe it.
Trust trust_of(const Timeline& timeline);

// --- Parts of the work, in the order they build on each other. ---

// Time on the critical path that each event is to blame for, by what it did then.
struct Blame {
  Picoseconds engine = 0;    // it occupied its engine (of a DMA: its trigger did)
  Picoseconds latency = 0;   // its result was on the way
  Picoseconds transfer = 0;  // its bytes moved
  Picoseconds backlog = 0;   // its transfer waited for those before it
  Picoseconds queue =
      0;  // the fixed time between its trigger and its bytes, and between those and the consumer
  Picoseconds other = 0;  // semaphores, tables, other cores: whatever passed before the next began
  Picoseconds total() const { return engine + latency + transfer + backlog + queue + other; }
};
struct CriticalPath {
  std::vector<std::uint32_t> events;  // in order of time
  std::vector<Blame> blame;           // of each of them
  std::vector<PathPart> parts;
};
CriticalPath divide_critical_path(const Timeline& timeline, const Timing& timing);
void add_figures(Profile& profile, const Timeline& timeline, const Timing& timing);
void add_counters(Profile& profile, const Timeline& timeline, const Timing& timing);
// After add_figures.
Bound find_bound(const Profile& profile, const Timeline& timeline, const Timing& timing);

}  // namespace headway::chip
