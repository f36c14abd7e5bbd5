// Moving elements between patterns of different shapes: what DMA engines do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chip/core.h"
#include "chip/pattern.h"

namespace headway::chip {

// Elements [begin, begin + n) of a pattern, in row-major order, to and from `n` elements without gaps. The
// pattern is merged.
void pack(const Pattern& from, std::int64_t begin, std::int64_t n, std::byte* to);
void unpack(const Pattern& to, std::int64_t begin, std::int64_t n, const std::byte* from);

// The same as float32, converted as engines do. At most kMovePiece elements.
inline constexpr std::int64_t kMovePiece = 2048;
void load(const Pattern& from, std::int64_t begin, std::int64_t n, float* to);
void store(const Pattern& to, std::int64_t begin, std::int64_t n, const float* from);

// Elements [from_begin, + n) of `from` to [to_begin, + n) of `to`, converted through float32 where the dtypes
// differ. Both merged.
void move_range(const Pattern& from, std::int64_t from_begin, const Pattern& to, std::int64_t to_begin,
                std::int64_t n);

// Each element of `from` to the element of `to` at the same place in row-major order, over the core's
// threads. As many elements in both, those of `to` at different places, no byte of one in the other. Converts
// where the dtypes differ.
void copy_elements(Core& core, const Pattern& from, const Pattern& to);

}  // namespace headway::chip
