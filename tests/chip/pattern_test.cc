#include "chip/pattern.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "chip/view.h"

namespace headway::chip {
namespace {

std::byte memory[4096];  // only its addresses matter

Pattern random_pattern(std::mt19937& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  Pattern p;
  p.element_bytes = 1 << pick(0, 2);
  p.rank = static_cast<int>(pick(0, 3));
  p.base = memory + 2048 + pick(-40, 40);
  for (std::size_t d = 0; d < static_cast<std::size_t>(p.rank); ++d) {
    p.counts[d] = pick(1, 5);
    p.strides[d] = pick(-30, 30);
    if (pick(0, 3) == 0) p.strides[d] = p.element_bytes;
  }
  return p;
}

std::set<std::int64_t> bytes_of(const Pattern& p) {
  std::set<std::int64_t> starts = {p.base - memory}, bytes;
  for (std::size_t d = 0; d < static_cast<std::size_t>(p.rank); ++d) {
    std::set<std::int64_t> next;
    for (std::int64_t start : starts)
      for (std::int64_t i = 0; i < p.counts[d]; ++i) next.insert(start + i * p.strides[d]);
    starts = next;
  }
  for (std::int64_t start : starts)
    for (std::int64_t i = 0; i < p.element_bytes; ++i) bytes.insert(start + i);
  return bytes;
}

TEST(Pattern, FootprintsMeetWhereBytesAreShared) {
  std::mt19937 random(1);
  int met = 0;
  for (int i = 0; i < 20000; ++i) {
    const Pattern a = random_pattern(random), b = random_pattern(random);
    const std::set<std::int64_t> x = bytes_of(a), y = bytes_of(b);
    bool shared = false;
    for (std::int64_t byte : x) shared |= y.contains(byte);
    const Footprint fa = footprint_of(a, memory), fb = footprint_of(b, memory);
    ASSERT_EQ(fa.low, *x.begin());
    ASSERT_EQ(fa.high(), *x.rbegin() + 1);
    ASSERT_EQ(overlap(fa, fb), shared) << i;
    ASSERT_EQ(overlap(fb, fa), shared) << i;
    met += shared;
  }
  EXPECT_GT(met, 1000);
  EXPECT_LT(met, 19000);
}

// Columns of a matrix: rows apart by the same stride, next to each other, many of them.
TEST(Pattern, NeighbouringColumnsDontMeet) {
  Pattern left;
  left.base = memory + 8;
  left.rank = 2;
  left.counts = {100000, 256};
  left.strides = {4096, 4};
  Pattern right = left;
  right.base += 1024;
  EXPECT_FALSE(overlap(footprint_of(left, memory), footprint_of(right, memory)));
  right.base -= 4;
  EXPECT_TRUE(overlap(footprint_of(left, memory), footprint_of(right, memory)));
}

TEST(Pattern, DistinctIsWhatCountingSays) {
  std::mt19937 random(2);
  int repeated = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto pick = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    View view;
    view.rank = static_cast<std::uint8_t>(pick(1, 4));
    std::vector<std::int64_t> places = {0};
    for (std::size_t d = 0; d < view.rank; ++d) {
      view.pairs[d] = {pick(-6, 40), pick(1, 4)};
      std::vector<std::int64_t> next;
      for (std::int64_t place : places)
        for (int k = 0; k < view.pairs[d].count; ++k) next.push_back(place + k * view.pairs[d].step);
      places = next;
    }
    const bool all_different = std::set<std::int64_t>(places.begin(), places.end()).size() == places.size();
    ASSERT_EQ(distinct(view, false), all_different) << i;
    repeated += !all_different;
  }
  EXPECT_GT(repeated, 1000);
}

TEST(Pattern, MergedHasTheSameElementsInTheSameOrder) {
  std::mt19937 random(3);
  int shorter = 0;
  for (int i = 0; i < 5000; ++i) {
    Pattern p = random_pattern(random);
    if (p.rank >= 2 && i % 2) p.strides[0] = p.strides[1] * p.counts[1];
    const Pattern m = merged(p);
    const auto order = [](const Pattern& pattern) {
      std::vector<std::int64_t> all = {0};
      for (std::size_t d = 0; d < static_cast<std::size_t>(pattern.rank); ++d) {
        std::vector<std::int64_t> next;
        for (std::int64_t base : all)
          for (std::int64_t k = 0; k < pattern.counts[d]; ++k) next.push_back(base + k * pattern.strides[d]);
        all = next;
      }
      return all;
    };
    ASSERT_EQ(order(m), order(p));
    ASSERT_LE(m.rank, p.rank);
    shorter += m.rank < p.rank;
  }
  EXPECT_GT(shorter, 1000);
}

}  // namespace
}  // namespace headway::chip
