// Patterns: elements of memory at regular distances, as DMA descriptors walk them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "chip/block.h"
#include "chip/view.h"

namespace headway::chip {

// Element (i0, i1, ...) is at base + i0 strides[0] + i1 strides[1] + ..., outermost first; strides in bytes.
struct Pattern {
  std::byte* base = nullptr;
  DType dtype = DType::f32;
  std::int32_t element_bytes = 4;
  int rank = 0;
  std::array<std::int64_t, kMaxPairs> counts{}, strides{};

  std::int64_t elements() const;
};

// All elements of a view, its extents as they are. Not for indirect blocks.
Pattern pattern_of(const View& view, const Block& block);
// Those of row `r` alone, of any block; r must not be skipped.
Pattern row_pattern(const Block& block, std::int64_t r);
// The same elements in the same order with as few extents as possible: none of 1, none that another
// continues.
Pattern merged(const Pattern& pattern);
// `count` elements without gaps.
Pattern packed_pattern(std::byte* base, DType dtype, std::int64_t count);

// Whether all elements of a view are at different places. False where that would take too long to find out.
bool distinct(const View& view, bool on_chip);

// Bytes of memory at regular distances from `low`, positive, largest first; what is asked when two patterns
// may meet.
struct Footprint {
  std::int64_t low = 0, run = 0;  // the first byte, and bytes of a run
  int rank = 0;
  std::array<std::int64_t, kMaxPairs> counts{}, strides{};

  std::int64_t high() const;  // one past the last byte
  bool operator==(const Footprint&) const = default;
};
// The bytes of a pattern, counted from `origin`.
Footprint footprint_of(const Pattern& pattern, const std::byte* origin);
// Whether they share a byte. Exact, but for patterns that interleave in very many ways, for which it says
// yes.
bool overlap(const Footprint& a, const Footprint& b);

}  // namespace headway::chip
