// What two engines of a core can't use at the same time: a bank of PSUM (Vector and Scalar), the bus between
// SBUF and Vector's performance modes (Vector and GpSimd). The guides say who takes turns, not what it costs
// beyond the turn.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "chip/engine.h"
#include "chip/timing.h"

namespace headway::chip {

class Conflicts {
 public:
  // What an instruction uses: banks of PSUM, one bit each, and the bus.
  struct Use {
    std::uint64_t banks = 0;
    bool bus = false;
    bool any() const { return banks != 0 || bus; }
  };
  struct Other {
    Picoseconds free = 0;  // when the other engine is done; 0: nobody is in the way
    std::int32_t event = -1;
  };

  explicit Conflicts(std::int64_t banks) : banks_(static_cast<std::size_t>(banks)) {}

  // Who is in the way of `engine` in [start, start + busy).
  Other against(Engine engine, const Use& use, Picoseconds start, Picoseconds busy) const {
    Other other;
    const auto look = [&](const Turn& turn) {
      if (turn.engine != engine && turn.start < start + busy && start < turn.free && turn.free > other.free)
        other = {turn.free, turn.event};
    };
    for (std::uint64_t banks = use.banks; banks != 0; banks &= banks - 1)
      for (const Turn& turn : banks_[static_cast<std::size_t>(std::countr_zero(banks))]) look(turn);
    if (use.bus)
      for (const Turn& turn : bus_) look(turn);
    return other;
  }

  void take(Engine engine, const Use& use, Picoseconds start, Picoseconds free, std::int32_t event) {
    const auto keep = [&](std::array<Turn, 2>& turns) {
      Turn& turn = turns[0].engine == engine || turns[0].engine == Engine::unknown ? turns[0] : turns[1];
      if (free >= turn.free) turn = {start, free, event, engine};
    };
    for (std::uint64_t banks = use.banks; banks != 0; banks &= banks - 1)
      keep(banks_[static_cast<std::size_t>(std::countr_zero(banks))]);
    if (use.bus) keep(bus_);
  }

 private:
  struct Turn {  // the latest of an engine
    Picoseconds start = 0, free = 0;
    std::int32_t event = -1;
    Engine engine = Engine::unknown;
  };
  std::vector<std::array<Turn, 2>> banks_;  // Vector's and Scalar's
  std::array<Turn, 2> bus_;                 // Vector's and GpSimd's
};

}  // namespace headway::chip
