// The clock of the tensor engine's array: slow after idling, full speed after sustained work (dI/dt limit).
//
// Recorded profiles show a grid of windows that runs by itself: a window full of work makes the next one
// fast, an idle one makes it slow, and in between nothing changes. Its phase is chance, so work is taken to
// begin in the middle of a window: as on average, full speed comes after one and a half.
#pragma once

#include <optional>
#include <vector>

#include "chip/timing.h"

namespace headway::chip {

class ArrayClock {
 public:
  struct Step {
    Picoseconds start;
    double share;  // of full speed, from `start` on
  };

  // `window`: when one begins, where that is known.
  explicit ArrayClock(const Timing::Tensor& timing, std::optional<Picoseconds> window = {})
      : hertz_(timing.clock.value),
        cold_(timing.cold_share.value),
        warm_(timing.warm_share.value),
        rearm_(timing.rearm_share.value),
        window_(picoseconds(timing.warm_up.value)) {
    steps_.push_back({0, window_ > 0 ? cold_ : 1.0});
    began_ = window && window_ > 0;
    if (began_) begin_ = (*window % window_ - window_) % window_;  // the last one up to 0
  }

  // When `cycles` that begin at `start` are done. Calls come in order of time. `activity`: as how much work
  // they count; products of one row of the array, which copy it to all partitions, ran at half speed
  // throughout a kernel that did nothing else (mamba-v2 of chips/measured: 1.73 us for 512 columns of
  // float32).
  Picoseconds run(Picoseconds start, double cycles, double activity = 1);
  double share() const { return steps_.back().share; }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  void pass_until(Picoseconds time);
  void close_window();

  double hertz_, cold_, warm_, rearm_;
  Picoseconds window_;
  bool began_ = false;
  Picoseconds begin_ = 0, busy_ = 0;  // of the window that runs, and the work in it
  std::vector<Step> steps_;
};

}  // namespace headway::chip
