// Where intermediate values live: offsets into one arena, so that values alive at the same time never
// overlap.
#pragma once

#include <cstdint>
#include <vector>

namespace headway::host {

// A block of memory needed from step `first` to step `last`, both included.
struct Block {
  std::int64_t bytes = 0;
  int first = 0;
  int last = 0;
  std::int64_t offset = 0;  // filled by place()
};

// Assigns offsets (multiples of 64), largest block first, each at the lowest offset that is free during its
// life. Returns the arena's size. Within a few percent of the peak of live bytes on training graphs.
std::int64_t place(std::vector<Block>& blocks);

}  // namespace headway::host
