// Rows of a block as arrays of numbers: how instructions read and write memory, and the arithmetic on them.
#pragma once

#include <cstdint>

#include "chip/block.h"

namespace headway::chip {

// Row `r` as float32, as the engines see any dtype. Returns where it is: in memory itself where it is
// contiguous float32, otherwise in `scratch` [elements].
const float* read_row(const Block& block, std::int64_t r, float* scratch);
// Converts (nearest even, each dtype's overflow rule) and stores a row. `values` may be the row itself.
void write_row(const Block& block, std::int64_t r, const float* values);
// Where results of row `r` may be computed in place: the row itself if it is contiguous float32, otherwise
// `scratch`; write_row puts them where they belong.
float* row_target(const Block& block, std::int64_t r, float* scratch);

// Row `r` as raw integers: 8- and 16-bit elements zero-extended, bit patterns as they are.
const std::uint32_t* read_bits(const Block& block, std::int64_t r, std::uint32_t* scratch);
void write_bits(const Block& block, std::int64_t r, const std::uint32_t* values);
// Row `r` of an integer (or bool) dtype as its values: sign-extended.
void read_integers(const Block& block, std::int64_t r, std::int64_t* values);

// One element at `p`.
float read_element(DType dtype, const std::byte* p);
void write_element(DType dtype, std::byte* p, float value);

}  // namespace headway::chip
