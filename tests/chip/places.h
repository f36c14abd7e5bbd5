// Where the elements of a view are, straight from its definition: what tests of data movement compare with.
#pragma once

#include <cstdint>
#include <vector>

#include "chip/program.h"
#include "chip/view.h"

namespace headway::chip {

// For each element of a view without dynamic offset, row-major, its place in the tensor's elements, partition
// after partition.
inline std::vector<std::int64_t> places(const Program& program, const View& view) {
  const Tensor& tensor = program.tensors[view.tensor];
  const bool chip = is_on_chip(tensor.buffer);
  const std::int64_t row = tensor.row_bytes() / size_of(tensor.dtype);
  std::vector<std::int64_t> all = {view.offset + (chip ? view.partition * row : 0)};
  for (int d = 0; d < view.rank; ++d) {
    const Pair& pair = view.pairs[static_cast<std::size_t>(d)];
    const std::int64_t step = chip && d == 0 ? row : pair.step;
    std::vector<std::int64_t> next;
    for (std::int64_t base : all)
      for (std::int32_t i = 0; i < pair.count; ++i) next.push_back(base + i * step);
    all = std::move(next);
  }
  return all;
}

}  // namespace headway::chip
