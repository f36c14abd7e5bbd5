// Races: cores of a logical core touching the same bytes of shared HBM while nothing orders the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "chip/block.h"
#include "chip/core.h"
#include "chip/pattern.h"
#include "chip/storage.h"
#include "chip/view.h"

namespace headway::chip {

// Keeps for each core a vector clock (Fidge 1988, Mattern 1989): how far it knows the others to be. Cores
// learn that where they meet. An access races with an earlier one of another core that the core doesn't know
// of, where bytes are shared and one of the two writes. Every core of a logical core is looked at only
// against the others of the same: HBM of different ranks is different memory.
//
// A write that leaves all bytes as they were can't be told from its absence: against that, a race is a
// warning. Kernels launched on two cores do write the same values twice.
class Races {
 public:
  Races(int cores, int lnc);

  // The instruction at core.position is about to access `block`, which lies in `storage`. Reports rule
  // "race": reads at once, writes when the instruction is done.
  void access(Core& core, std::string_view operand, const View& view, const Block& block,
              const Storage& storage, bool is_write);
  // The instruction that `access` was called for is done: were its writes races? `failed` ones are forgotten.
  void settle(bool failed);
  // What each of `cores` did is before what any of them will do.
  void meet(std::span<Core* const> cores);

 private:
  using Epoch = std::uint64_t;
  struct Access {
    Footprint bytes;
    int core = 0;
    Epoch epoch = 0;
    std::size_t position = 0;
    std::string_view operand;  // a field's name: a literal
    bool is_write = false;
  };
  // Those to one tensor that not every core knows of. Found by pages, of which a tensor has a few; an access
  // that spans many is in `wide`.
  struct History {
    std::vector<Access> accesses;
    std::vector<std::vector<std::uint32_t>> pages;
    std::vector<std::uint32_t> wide;
    std::int64_t page_bytes = 1;
  };
  struct PendingWrite {
    Core* core;
    std::string operand, message;
    const Storage* storage;
    std::int64_t low;
    std::vector<std::byte> before;
  };

  void access(Core& core, std::string_view operand, const View& view, const Footprint& bytes,
              History& history, const Storage& storage, bool is_write);
  bool knows(int core, const Access& access) const {
    return clocks_[static_cast<std::size_t>(core)][static_cast<std::size_t>(access.core)] >= access.epoch;
  }
  bool known_to_all(const Access& access) const;
  static void file(History& history, std::uint32_t index);

  int lnc_;
  std::vector<std::vector<Epoch>> clocks_;  // [core][of core]; a core's own is the epoch it is in
  std::unordered_map<const Storage*, History> histories_;
  std::vector<PendingWrite> pending_;
};

}  // namespace headway::chip
