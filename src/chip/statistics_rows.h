// Loops over a row of n float32 numbers that look at it as a whole.
#pragma once

#include <array>
#include <cstdint>

namespace headway::chip {

// Count, mean and sum of squared deviations of the elements at even places, then of those at odd places.
// Where there are none, all three are 0.
using BnStatsRow = std::array<float, 6>;
BnStatsRow bn_stats_row(const float* x, std::int64_t n);

using Eight = std::array<float, 8>;
// The largest numbers, descending; a number that is there twice counts twice. NaN is larger than nothing:
// rows with fewer than eight numbers are filled with -infinity.
Eight max8_row(const float* x, std::int64_t n);

// For each of eight values the place where it is in the row, or -1. Equal values (0 and -0 are) get one place
// each, from the first on: in the order of their columns, or against it where `descending`. NaN is nowhere.
std::array<std::int32_t, 8> find8_row(const float* x, std::int64_t n, const Eight& values, bool descending);

// y[i] = (predicate[i] != 0) != reversed ? on_true[i] : on_false. y may be any of the operands.
void select_row(const float* predicate, bool reversed, const float* on_true, float on_false, float* y,
                std::int64_t n);

}  // namespace headway::chip
