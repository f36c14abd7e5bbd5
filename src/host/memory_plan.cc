#include "host/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace headway::host {

std::int64_t place(std::vector<Block>& blocks) {
  constexpr std::int64_t kAlignment = 64;
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<std::size_t> placed;  // by offset
  std::int64_t size = 0;
  for (std::size_t index : order) {
    Block& block = blocks[index];
    const std::int64_t bytes = (block.bytes + kAlignment - 1) / kAlignment * kAlignment;
    std::int64_t offset = 0;
    for (std::size_t other : placed) {
      const Block& neighbour = blocks[other];
      if (neighbour.last < block.first || block.last < neighbour.first) continue;
      if (offset + bytes <= neighbour.offset) break;
      offset =
          std::max(offset, neighbour.offset + (neighbour.bytes + kAlignment - 1) / kAlignment * kAlignment);
    }
    block.offset = offset;
    size = std::max(size, offset + bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), index,
                         [&](std::size_t a, std::size_t b) { return blocks[a].offset < blocks[b].offset; }),
        index);
  }
  return size;
}

}  // namespace headway::host
