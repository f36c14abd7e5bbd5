// Who read and wrote a tensor last, where: what an instruction must wait for.
#pragma once

#include <cstdint>
#include <vector>

#include "chip/program.h"
#include "chip/timing.h"

namespace headway::chip {

// The partitions and bytes that enclose a view; in HBM one partition and the bytes of the tensor. With an
// address, as the memory counts them.
struct Box {
  std::int32_t partition = 0, partition_end = 0;
  std::int64_t byte = 0, byte_end = 0;
  bool dense = false;  // the view fills it

  bool operator==(const Box&) const = default;
  bool meets(const Box& other) const {
    return partition < other.partition_end && other.partition < partition_end && byte < other.byte_end &&
           other.byte < byte_end;
  }
  bool holds(const Box& other) const {
    return partition <= other.partition && other.partition_end <= partition_end && byte <= other.byte &&
           other.byte_end <= byte_end;
  }
};
Box box_of(const Program& program, const View& view);

// The accesses to a tensor (or to a memory, by tensors with addresses) that later ones may have to wait for.
class Accesses {
 public:
  struct Past {
    Box box;
    const View* view = nullptr;
    Picoseconds done = 0;  // the bytes are read, or can be read
    std::uint32_t event = 0;
    std::uint8_t by = 0;  // engine or queue; whatever it does ends in order
    bool write = false;
  };

  // Calls f(past) for each access that one to `view` has to wait for: writes, and for a write reads too.
  // Exact where boxes say that they meet but views needn't (chip/check.h, may_overlap).
  template <class F>
  void before(const Program& program, const View& view, const Box& box, bool write, F&& f) const {
    for (const Past& past : all_)
      if ((write || past.write) && box.meets(past.box) && really_meet(program, view, box, past)) f(past);
  }
  // Afterwards: forgets what a write covers, for whoever waits for the write has waited for that.
  void add(const Past& past);
  void clear() { std::vector<Past>().swap(all_); }

 private:
  static bool really_meet(const Program& program, const View& view, const Box& box, const Past& past);
  std::vector<Past> all_;
};

}  // namespace headway::chip
