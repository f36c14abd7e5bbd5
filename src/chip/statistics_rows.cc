#include "chip/statistics_rows.h"

#include <algorithm>
#include <limits>

#include "simd/lanes.h"

namespace headway::chip {
namespace {

using simd::F32;
using simd::I32;
using simd::kLanes;
using simd::splat;

// Partial sums of elements 16 apart, whatever a vector holds: even places go to even lanes.
constexpr std::int64_t kPartial = 16;
using Partial = std::array<float, kPartial>;

// Adds f(x[i], i % 2) into the lane of each element.
template <class F>
Partial partial_sums(const float* x, std::int64_t n, const F& f) {
  Partial sums{};
  std::int64_t i = 0;
  for (; i + kPartial <= n; i += kPartial)
    for (std::int64_t l = 0; l < kPartial; ++l) sums[static_cast<std::size_t>(l)] += f(x[i + l], l % 2);
  for (std::int64_t l = 0; i + l < n; ++l) sums[static_cast<std::size_t>(l)] += f(x[i + l], l % 2);
  return sums;
}

// The sum of the even or odd lanes, by halves.
float sum_of(Partial sums, std::size_t parity) {
  for (std::size_t half = kPartial / 2; half >= 2; half /= 2)
    for (std::size_t l = 0; l < half; ++l) sums[l] += sums[l + half];
  return sums[parity];
}

bool any(I32 mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(mask), reinterpret_cast<__m512i>(mask)) != 0;
#elif defined(__AVX__)
  return _mm256_movemask_ps(reinterpret_cast<__m256>(mask)) != 0;
#elif defined(__SSE__)
  return _mm_movemask_ps(reinterpret_cast<__m128>(mask)) != 0;
#else
  for (int l = 0; l < kLanes; ++l)
    if (mask[l]) return true;
  return false;
#endif
}

// The first place from `from` on that holds `value`, or -1.
std::int64_t find(const float* x, std::int64_t n, std::int64_t from, float value) {
  std::int64_t i = from;
  while (i + kLanes <= n && !any(simd::load(x + i) == splat(value))) i += kLanes;
  for (; i < n; ++i)
    if (x[i] == value) return i;
  return -1;
}

}  // namespace

BnStatsRow bn_stats_row(const float* x, std::int64_t n) {
  // Two passes: the deviations are from the mean itself, so that a large mean costs no digits.
  const Partial sums = partial_sums(x, n, [](float v, std::int64_t) { return v; });
  BnStatsRow stats{};
  std::array<float, 2> means{};
  for (std::size_t parity = 0; parity < 2; ++parity) {
    const auto count = static_cast<float>((n + 1 - static_cast<std::int64_t>(parity)) / 2);
    means[parity] = count == 0 ? 0 : sum_of(sums, parity) / count;
    stats[3 * parity] = count;
    stats[3 * parity + 1] = means[parity];
  }
  const Partial squares = partial_sums(x, n, [&](float v, std::int64_t parity) {
    const float deviation = v - means[static_cast<std::size_t>(parity)];
    return deviation * deviation;
  });
  for (std::size_t parity = 0; parity < 2; ++parity) stats[3 * parity + 2] = sum_of(squares, parity);
  return stats;
}

Eight max8_row(const float* x, std::int64_t n) {
  Eight largest;
  largest.fill(-std::numeric_limits<float>::infinity());
  const auto take = [&](float value) {
    if (!(value > largest[7])) return;
    std::size_t at = 7;
    for (; at > 0 && value > largest[at - 1]; --at) largest[at] = largest[at - 1];
    largest[at] = value;
  };
  // Most of a long row is smaller than what was found before: some vectors at a time are passed over.
  constexpr std::int64_t kBlock = 4 * kLanes;
  std::int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    const F32 bound = splat(largest[7]);
    I32 larger{};
    for (std::int64_t v = 0; v < kBlock; v += kLanes) larger |= simd::load(x + i + v) > bound;
    if (!any(larger)) continue;
    for (std::int64_t v = 0; v < kBlock; v += kLanes) {
      if (!any(simd::load(x + i + v) > splat(largest[7]))) continue;
      for (std::int64_t l = 0; l < kLanes; ++l) take(x[i + v + l]);
    }
  }
  for (; i < n; ++i) take(x[i]);
  return largest;
}

std::array<std::int32_t, 8> find8_row(const float* x, std::int64_t n, const Eight& values, bool descending) {
  std::array<std::int32_t, 8> places;
  for (std::size_t k = 0; k < 8; ++k) {
    const std::size_t column = descending ? 7 - k : k;
    // Where the last equal value was found; when it wasn't, neither is this one.
    std::int64_t from = 0;
    for (std::size_t earlier = 0; earlier < k; ++earlier) {
      const std::size_t other = descending ? 7 - earlier : earlier;
      if (values[other] == values[column]) from = places[other] < 0 ? n : places[other] + 1;
    }
    places[column] = static_cast<std::int32_t>(find(x, n, from, values[column]));
  }
  return places;
}

void select_row(const float* predicate, bool reversed, const float* on_true, float on_false, float* y,
                std::int64_t n) {
  const I32 flip = splat(reversed ? 1.0f : 0.0f) != F32{};
  simd::for_lanes(0, n, [&](std::int64_t i, auto at) {
    const I32 chosen = (at.load(predicate + i) != F32{}) ^ flip;
    at.store(y + i, chosen ? at.load(on_true + i) : splat(on_false));
  });
}

}  // namespace headway::chip
