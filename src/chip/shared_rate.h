// Rates that many share over time: the DMA engines of a core, the HBM of a stack. Time is cut into short
// bins; each bin has so much to give. Who comes later in the program, but earlier in time, finds the gaps
// that others left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "chip/timing.h"

namespace headway::chip {

class SharedRate {
 public:
  static constexpr Picoseconds kBin = 256'000;

  // `rate`: what a picosecond gives, in whatever unit demands are in.
  explicit SharedRate(double rate) : per_bin_(rate * kBin) {}

  double left(std::size_t bin) const {
    return bin < taken_.size() ? per_bin_ - static_cast<double>(taken_[bin]) : per_bin_;
  }
  double per_bin() const { return per_bin_; }
  double rate() const { return per_bin_ / kBin; }
  void take(std::size_t bin, double amount) {
    if (bin >= taken_.size()) taken_.resize(std::max(bin + 1, taken_.size() * 2), 0.0f);
    taken_[bin] += static_cast<float>(amount);
  }
  // The first bin from `bin` on that has something to give.
  std::size_t open(std::size_t bin) {
    std::size_t found = bin;
    while (found < next_.size() && next_[found] != 0) found += next_[found];
    while (found < taken_.size() && left(found) <= per_bin_ * 1e-3) ++found;
    // What was walked over is walked over once.
    if (found > bin + 1 && found <= taken_.size()) {
      if (next_.size() < taken_.size()) next_.resize(taken_.size(), 0);
      for (std::size_t at = bin; at < found;) {
        const std::size_t step = next_[at] ? next_[at] : 1;
        next_[at] = static_cast<std::uint32_t>(found - at);
        at += step;
      }
    }
    return found;
  }

 private:
  double per_bin_;
  std::vector<float> taken_;
  std::vector<std::uint32_t> next_;  // bins to skip, 0: not known to be full
};

// Part of a transfer's need of one shared rate: `amount` in all, at most `most` a picosecond.
struct Demand {
  SharedRate* rate;
  double amount, most;
};

struct Span {
  Picoseconds start, end;
};

// The earliest span from `from` on in which all demands are met in step with each other.
Span serve(std::span<const Demand> demands, Picoseconds from);

}  // namespace headway::chip
