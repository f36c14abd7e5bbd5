// A view, resolved to memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace headway::chip {

// Rows (partitions on chip, the leading extent in HBM) of up to four free extents. Adjacent free extents that continue each other
// are merged, and extents of one are gone, so that most rows are a single run.
struct Block {
  std::byte* base = nullptr;
  DType dtype = DType::f32;
  std::int32_t element_bytes = 4;
  std::int64_t rows = 0;
  std::int64_t row_stride = 0;  // bytes
  int rank = 0;                 // extents left, 0 to 4
  std::array<std::int64_t, 4> counts{}, strides{};  // outermost first; strides in bytes
  std::int64_t elements = 1;                        // of a row
  // Indirect views: row r is at base + row_offsets[r] instead; a negative one is out of bounds and to be skipped.
  const std::int64_t* row_offsets = nullptr;

  std::byte* row(std::int64_t r) const { return base + (row_offsets ? row_offsets[r] : r * row_stride); }
  // Whether a row is one run of bytes.
  bool contiguous() const { return rank == 0 || (rank == 1 && strides[0] == element_bytes); }
  // Whether a row is one value repeated.
  bool repeated() const { return elements > 1 && rank == 1 && strides[0] == 0; }
  // Whether all rows together are one run of bytes.
  bool one_run() const { return contiguous() && !row_offsets && (rows == 1 || row_stride == elements * element_bytes); }
};

// Calls f(byte offset from the row's start) for each element of a row, in order.
template <class F>
void for_each_element(const Block& block, F&& f) {
  std::array<std::int64_t, 4> n{1, 1, 1, 1}, s{};
  for (int d = 0; d < block.rank; ++d) {
    n[static_cast<std::size_t>(4 - block.rank + d)] = block.counts[static_cast<std::size_t>(d)];
    s[static_cast<std::size_t>(4 - block.rank + d)] = block.strides[static_cast<std::size_t>(d)];
  }
  for (std::int64_t a = 0; a < n[0]; ++a)
    for (std::int64_t b = 0; b < n[1]; ++b)
      for (std::int64_t c = 0; c < n[2]; ++c)
        for (std::int64_t d = 0; d < n[3]; ++d) f(a * s[0] + b * s[1] + c * s[2] + d * s[3]);
}

}  // namespace headway::chip
