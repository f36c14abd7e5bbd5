// Sums over whole tensors: taken in pieces of a fixed size and added up in order, so that the result doesn't
// depend on how many threads took part.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/threads.h"
#include "host/kernels/vectors.h"
#include "simd/lanes.h"

namespace headway::host {

inline constexpr std::int64_t kPiece = kElementGrain;

inline std::int64_t piece_count(std::int64_t count) { return (count + kPiece - 1) / kPiece; }

// sums[p] = f(begin, end) for every piece p of [0, count).
template <class F>
inline void sum_pieces(ThreadPool& pool, std::int64_t count, float* sums, const F& f) {
  pool.for_range(piece_count(count), [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t p = first; p < last; ++p) sums[p] = f(p * kPiece, std::min(count, (p + 1) * kPiece));
  });
}

inline double total(const float* sums, std::int64_t count) {
  double result = 0;
  for (std::int64_t i = 0; i < count; ++i) result += static_cast<double>(sums[i]);
  return result;
}

}  // namespace headway::host
