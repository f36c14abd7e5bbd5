// Timelines written by hand: programs of real instructions with the times a test wants.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "chip/harness.h"
#include "chip/timeline.h"
#include "chip/timing.h"

namespace headway::chip {

inline const Timing& trn2_timing() {
  static const Timing timing(trn2());
  return timing;
}

// Records one core's instructions and gives each its times, in ns.
class TimelineBuilder {
 public:
  explicit TimelineBuilder(const std::string& kernel = "by_hand") : nki(kernel, trn2()) {}

  Recorder nki;

  // The event of the instruction recorded last: on `engine` from `start` for `busy`, readable `latency` after
  // that.
  Event& event(Engine engine, double start, double busy, double latency, Cause cause = Cause::nothing,
               int cause_event = -1) {
    Event e;
    e.instruction = static_cast<std::uint32_t>(nki.program().instructions.size() - 1);
    e.engine = engine;
    e.start = picoseconds(start * 1e-9);
    e.free = picoseconds((start + busy) * 1e-9);
    e.end = picoseconds((start + busy + latency) * 1e-9);
    e.cause = cause;
    e.cause_event = cause_event;
    timeline.events.push_back(e);
    return timeline.events.back();
  }
  // The same of a DMA: its bytes move from `from` to `to`, are known `completion` later.
  Transfer& dma(Engine engine, double start, double busy, double from, double to, double completion,
                std::int64_t bytes, int descriptors, Cause cause = Cause::nothing, int cause_event = -1) {
    Event& e = event(engine, start, busy, 0, cause, cause_event);
    e.transfer = static_cast<std::int32_t>(timeline.transfers.size());
    Transfer t;
    t.event = static_cast<std::uint32_t>(timeline.events.size() - 1);
    t.engines = 16;
    t.dge = Dge::software;
    t.descriptors = descriptors;
    t.descriptor_bytes = static_cast<std::int32_t>(bytes / descriptors);
    t.bytes = bytes;
    t.start = picoseconds(from * 1e-9);
    t.end = picoseconds(to * 1e-9);
    t.engine_time = 16 * (t.end - t.start);
    t.visible = picoseconds((to + completion) * 1e-9);
    e.end = t.visible;
    timeline.transfers.push_back(t);
    return timeline.transfers.back();
  }
  // The program and the timeline; nothing can be added afterwards.
  const Timeline& finish() {
    program_ = nki.finish();
    timeline.cores.resize(1);
    timeline.cores[0].program = &program_;
    timeline.cores[0].lowered = lower(program_, trn2());
    timeline.core_from = {0, timeline.events.size()};
    timeline.queues = {"gpsimd software"};
    for (const Event& e : timeline.events)
      timeline.total = std::max({timeline.total, e.free, e.transfer >= 0 ? Picoseconds{0} : e.end});
    for (const Transfer& t : timeline.transfers) timeline.total = std::max(timeline.total, t.end);
    return timeline;
  }

  Timeline timeline;

 private:
  Program program_;
};

}  // namespace headway::chip
