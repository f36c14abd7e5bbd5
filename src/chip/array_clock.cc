#include "chip/array_clock.h"

#include <algorithm>
#include <cmath>

namespace headway::chip {

// At the end of each window the work in it decides about the speed in the next.
void ArrayClock::close_window() {
  const double work = static_cast<double>(busy_) / static_cast<double>(window_);
  const double before = steps_.back().share, share = work >= warm_ ? 1.0 : work < rearm_ ? cold_ : before;
  begin_ += window_;
  busy_ = 0;
  if (share != before) steps_.push_back({begin_, share});
}

void ArrayClock::pass_until(Picoseconds time) {
  if (window_ <= 0) return;
  while (time >= begin_ + window_) {
    close_window();
    // Idle windows change nothing once it is cold.
    if (busy_ == 0 && steps_.back().share == cold_ && time >= begin_ + window_)
      begin_ += (time - begin_) / window_ * window_;
  }
}

Picoseconds ArrayClock::run(Picoseconds start, double cycles, double activity) {
  const auto work = [&](Picoseconds time) {
    return static_cast<Picoseconds>(std::llround(static_cast<double>(time) * activity));
  };
  if (!began_) begin_ = start - window_ / 2;
  began_ = true;
  pass_until(start);
  Picoseconds now = start;
  while (cycles > 0) {
    const double per_picosecond = hertz_ * share() * 1e-12;
    const auto needed = static_cast<Picoseconds>(std::ceil(cycles / per_picosecond));
    const Picoseconds until = window_ > 0 ? begin_ + window_ : now + needed;
    if (now + needed < until || window_ <= 0) {
      busy_ += work(needed);
      return now + needed;
    }
    busy_ += work(until - now);
    cycles -= static_cast<double>(until - now) * per_picosecond;
    now = until;
    close_window();
  }
  return now;
}

}  // namespace headway::chip
