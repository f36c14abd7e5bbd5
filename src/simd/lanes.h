// Loops over arrays, a vector at a time, with the rest treated alike: f(i, at) is called with `at` a Whole or
// a First, which load and store as many elements from i on as there are.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/threads.h"
#include "simd/simd.h"

namespace headway::simd {
inline namespace HEADWAY_VECTORS {

struct Whole {
  F32 load(const float* from) const { return simd::load(from); }
  void store(float* to, F32 value) const { simd::store(to, value); }
};

struct First {
  std::int64_t count;
  F32 load(const float* from) const { return load_first(from, count); }
  void store(float* to, F32 value) const { store_first(to, value, count); }
};

template <class F>
inline void for_lanes(std::int64_t begin, std::int64_t end, const F& f) {
  std::int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) f(i, Whole{});
  if (i < end) f(i, First{end - i});
}

// Elements that are worth waking another thread for, and the grain of division.
inline constexpr std::int64_t kElementGrain = 4096;

template <class F>
inline void for_lanes(ThreadPool& pool, std::int64_t count, const F& f) {
  pool.for_range(
      count, [&](std::int64_t begin, std::int64_t end, int) { for_lanes(begin, end, f); }, kElementGrain);
}

// Rows of `width` elements, as many to a thread as make kElementGrain.
template <class F>
inline void for_rows(ThreadPool& pool, std::int64_t rows, std::int64_t width, const F& f) {
  pool.for_range(
      rows,
      [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t r = begin; r < end; ++r) f(r);
      },
      std::max<std::int64_t>(1, kElementGrain / std::max<std::int64_t>(1, width)));
}

// a . b
inline float dot(const float* a, const float* b, std::int64_t count) {
  F32 even{}, odd{};
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    even += load(a + i) * load(b + i);
    odd += load(a + i + kLanes) * load(b + i + kLanes);
  }
  for_lanes(i, count, [&](std::int64_t j, auto at) { even += at.load(a + j) * at.load(b + j); });
  return sum(even + odd);
}

}  // namespace HEADWAY_VECTORS
}  // namespace headway::simd
