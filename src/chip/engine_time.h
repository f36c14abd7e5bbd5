// When an engine is free.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "chip/timing.h"

namespace headway::chip {

// An engine's time. Instructions take it in program order, but one whose operands are there may fill the time
// in which the engine waited for an earlier one: the vendor's compiler schedules, within what data and memory
// allow.
class EngineTime {
 public:
  struct Slot {
    Picoseconds start;
    std::int32_t after;  // the event before it on the engine, -1: none
  };
  // The earliest start from `ready` on for `busy`.
  Slot find(Picoseconds ready, Picoseconds busy) const {
    for (std::size_t i = 0; i < gaps_.size(); ++i) {
      const Picoseconds start = std::max(gaps_[i].start, ready);
      if (start + busy <= gaps_[i].end) return {start, gaps_[i].after};
    }
    return {std::max(free_, ready), last_};
  }
  void take(Picoseconds start, Picoseconds free, std::int32_t event) {
    for (std::size_t i = 0; i < gaps_.size(); ++i) {
      Gap& gap = gaps_[i];
      if (start < gap.start || free > gap.end) continue;
      const Gap rest{free, gap.end, event};
      gap.end = start;
      if (gap.end <= gap.start) {
        gap = rest;
        if (rest.end <= rest.start) gaps_.erase(gaps_.begin() + static_cast<std::ptrdiff_t>(i));
      } else if (rest.end > rest.start) {
        gaps_.insert(gaps_.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
        if (gaps_.size() > kMostGaps) gaps_.erase(gaps_.begin());
      }
      return;
    }
    if (start > free_) {
      gaps_.push_back({free_, start, last_});
      if (gaps_.size() > kMostGaps) gaps_.erase(gaps_.begin());
    }
    free_ = free;
    last_ = event;
  }

 private:
  static constexpr std::size_t kMostGaps = 16;  // how far ahead a scheduler looks
  struct Gap {
    Picoseconds start, end;
    std::int32_t after;
  };
  std::vector<Gap> gaps_;  // in order of time
  Picoseconds free_ = 0;
  std::int32_t last_ = -1;
};

}  // namespace headway::chip
