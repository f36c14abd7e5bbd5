// What changes over time: memory occupied, bandwidth used, the tensor engine's clock, DMAs under way.
#include <algorithm>
#include <limits>
#include <map>

#include "chip/profile.h"

namespace headway::chip {
namespace {

constexpr std::int64_t kMostPoints = 4000;  // of a counter: more than a screen shows

// The running sum of changes.
void add_steps(Counter& counter, const std::map<Picoseconds, double>& changes) {
  double value = 0;
  for (const auto& [time, change] : changes) {
    value += change;
    const std::int64_t at = whole_ns(time);
    if (!counter.time.empty() && counter.time.back() == at) {
      counter.value.back() = value;
    } else {
      counter.time.push_back(at);
      counter.value.push_back(value);
    }
  }
}

// Keeps the largest value of each of kMostPoints equal times where there are more points.
void thin(Counter& counter, std::int64_t total) {
  if (static_cast<std::int64_t>(counter.time.size()) <= kMostPoints) return;
  Counter thinned = counter;
  thinned.time.clear();
  thinned.value.clear();
  std::int64_t last = -1;
  for (std::size_t i = 0; i < counter.time.size(); ++i) {
    const std::int64_t bin = counter.time[i] * kMostPoints / std::max<std::int64_t>(total, 1);
    if (bin == last) {
      thinned.value.back() = std::max(thinned.value.back(), counter.value[i]);
    } else {
      thinned.time.push_back(counter.time[i]);
      thinned.value.push_back(counter.value[i]);
    }
    last = bin;
  }
  counter = std::move(thinned);
}

// Bytes of tensors between the first time an instruction touches them and the last.
Counter occupancy(const Timeline& timeline, std::size_t core, Buffer buffer, const Spec& spec) {
  const CoreTimeline& c = timeline.cores[core];
  const std::size_t instructions = c.program->instructions.size();
  // In a loop an instruction runs more than once.
  std::vector<Picoseconds> first(instructions, std::numeric_limits<Picoseconds>::max()),
      last(instructions, -1);
  for (std::size_t i = timeline.core_from[core]; i < timeline.core_from[core + 1]; ++i) {
    const Event& e = timeline.events[i];
    const Picoseconds end = std::max(e.free, e.end);
    first[e.instruction] = std::min(first[e.instruction], e.start);
    last[e.instruction] = std::max(last[e.instruction], end);
  }
  std::map<Picoseconds, double> changes;
  for (const Placement& p : c.lowered.placements) {
    if (p.bytes == 0 || p.spilled || c.program->tensors[p.tensor].buffer != buffer || p.last >= instructions)
      continue;
    if (last[p.first] < 0 || last[p.last] < first[p.first]) continue;  // never ran
    const double bytes = static_cast<double>(p.bytes) * p.partitions;
    changes[first[p.first]] += bytes;
    changes[last[p.last]] -= bytes;
  }
  Counter counter;
  counter.name = buffer == Buffer::sbuf ? "SBUF" : "PSUM";
  counter.unit = "B";
  counter.core = static_cast<std::int32_t>(core);
  counter.limit = static_cast<double>(spec.partitions) *
                  static_cast<double>(buffer == Buffer::sbuf ? spec.sbuf_usable_bytes : spec.psum_bytes);
  add_steps(counter, changes);
  thin(counter, whole_ns(timeline.total));
  return counter;
}

// Bytes a second, as means over equal times: what a transfer moves is spread over its length.
Counter throughput(const Timeline& timeline, std::size_t core, bool read, double limit) {
  Counter counter;
  counter.name = read ? "HBM read" : "HBM write";
  counter.unit = "B/s";
  counter.core = static_cast<std::int32_t>(core);
  counter.limit = limit;
  const auto bins =
      static_cast<std::size_t>(std::clamp<std::int64_t>(timeline.total / 100000, 1, kMostPoints / 4));
  const double width =
      static_cast<double>(std::max<Picoseconds>(timeline.total, 1)) / static_cast<double>(bins);
  std::vector<double> bytes(bins, 0);
  for (const Transfer& t : timeline.transfers) {
    if (t.core != core || !is_hbm(read ? t.from : t.to)) continue;
    const double start = static_cast<double>(t.start),
                 length = std::max(1.0, static_cast<double>(t.end - t.start));
    const auto from = std::min(bins - 1, static_cast<std::size_t>(start / width));
    for (std::size_t b = from; b < bins && static_cast<double>(b) * width < start + length; ++b) {
      const double inside = std::min(start + length, static_cast<double>(b + 1) * width) -
                            std::max(start, static_cast<double>(b) * width);
      bytes[b] += static_cast<double>(t.bytes) * std::max(0.0, inside) / length;
    }
  }
  for (std::size_t b = 0; b < bins; ++b) {
    const double rate = bytes[b] / (width * 1e-12);
    if (b > 0 && rate == counter.value.back()) continue;
    counter.time.push_back(whole_ns(static_cast<Picoseconds>(static_cast<double>(b) * width)));
    counter.value.push_back(rate);
  }
  counter.time.push_back(whole_ns(timeline.total));
  counter.value.push_back(0);
  return counter;
}

}  // namespace

void add_counters(Profile& p, const Timeline& timeline, const Timing& timing) {
  for (std::size_t core = 0; core < timeline.cores.size(); ++core) {
    p.counters.push_back(occupancy(timeline, core, Buffer::sbuf, timing.spec));
    p.counters.push_back(occupancy(timeline, core, Buffer::psum, timing.spec));
    p.counters.push_back(throughput(timeline, core, true, timing.stack_bandwidth.value));
    p.counters.push_back(throughput(timeline, core, false, timing.stack_bandwidth.value));

    Counter clock;
    clock.name = "tensor clock";
    clock.unit = "1";
    clock.core = static_cast<std::int32_t>(core);
    clock.limit = 1;
    for (const ClockStep& step : timeline.clock) {
      if (step.core != core) continue;
      clock.time.push_back(whole_ns(step.start));
      clock.value.push_back(step.share);
    }
    thin(clock, whole_ns(timeline.total));
    p.counters.push_back(std::move(clock));

    Counter pending;
    pending.name = "pending DMA";
    pending.unit = "count";
    pending.core = static_cast<std::int32_t>(core);
    std::map<Picoseconds, double> changes;
    for (const Transfer& t : timeline.transfers) {
      if (t.core != core) continue;
      changes[timeline.events[t.event].start] += 1;
      changes[t.visible] -= 1;
    }
    add_steps(pending, changes);
    thin(pending, whole_ns(timeline.total));
    p.counters.push_back(std::move(pending));
  }
}

}  // namespace headway::chip
