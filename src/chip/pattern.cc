#include "chip/pattern.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace headway::chip {

std::int64_t Pattern::elements() const {
  std::int64_t n = 1;
  for (int d = 0; d < rank; ++d) n *= counts[static_cast<std::size_t>(d)];
  return n;
}

Pattern pattern_of(const View& view, const Block& block) {
  Pattern p;
  p.base = block.base;
  p.dtype = view.dtype;
  p.element_bytes = block.element_bytes;
  p.rank = view.rank;
  for (std::size_t d = 0; d < view.rank; ++d) {
    p.counts[d] = view.pairs[d].count;
    p.strides[d] = std::int64_t{view.pairs[d].step} * block.element_bytes;
  }
  p.strides[0] = block.row_stride;
  return p;
}

Pattern row_pattern(const Block& block, std::int64_t r) {
  Pattern p;
  p.base = block.row(r);
  p.dtype = block.dtype;
  p.element_bytes = block.element_bytes;
  p.rank = block.rank;
  for (std::size_t d = 0; d < static_cast<std::size_t>(block.rank); ++d) {
    p.counts[d] = block.counts[d];
    p.strides[d] = block.strides[d];
  }
  return p;
}

Pattern merged(const Pattern& pattern) {
  Pattern result = pattern;
  result.rank = 0;
  for (std::size_t d = 0; d < static_cast<std::size_t>(pattern.rank); ++d) {
    const std::int64_t count = pattern.counts[d], stride = pattern.strides[d];
    if (count == 1) continue;
    auto top = static_cast<std::size_t>(result.rank);
    if (top > 0 && result.strides[top - 1] == stride * count) {
      result.counts[top - 1] *= count;
      result.strides[top - 1] = stride;
    } else {
      result.counts[top] = count;
      result.strides[top] = stride;
      ++result.rank;
    }
  }
  return result;
}

Pattern packed_pattern(std::byte* base, DType dtype, std::int64_t count) {
  Pattern p;
  p.base = base;
  p.dtype = dtype;
  p.element_bytes = size_of(dtype);
  p.rank = 1;
  p.counts[0] = count;
  p.strides[0] = p.element_bytes;
  return p;
}

namespace {

// Extents from the smallest stride to the largest; strides without sign.
struct Extents {
  struct Extent {
    std::int64_t stride, count;
  };
  std::array<Extent, kMaxPairs> all{};
  std::size_t n = 0;

  void insert(std::int64_t stride, std::int64_t count) {
    stride = std::abs(stride);
    std::size_t at = n++;
    for (; at > 0 && all[at - 1].stride > stride; --at) all[at] = all[at - 1];
    all[at] = {stride, count};
  }
};

}  // namespace

bool distinct(const View& view, bool on_chip) {
  Extents extents;
  for (std::size_t d = on_chip ? 1 : 0; d < view.rank; ++d)
    if (view.pairs[d].count > 1) extents.insert(view.pairs[d].step, view.pairs[d].count);
  std::int64_t reach = 0;  // of the extents so far
  bool nested = true;
  for (std::size_t d = 0; d < extents.n; ++d) {
    if (extents.all[d].stride == 0) return false;
    nested &= extents.all[d].stride > reach;
    reach += extents.all[d].stride * (extents.all[d].count - 1);
  }
  if (nested) return true;
  // Extents that reach into each other may still miss each other, as steps 2 and 3 do for a while.
  constexpr std::int64_t kMost = 1 << 22;
  if (reach >= kMost) return false;
  std::vector<bool> taken(static_cast<std::size_t>(reach) + 1);
  std::vector<std::int64_t> places = {0};
  for (std::size_t d = 0; d < extents.n; ++d) {
    const auto [stride, count] = extents.all[d];
    const std::size_t inner = places.size();
    if (static_cast<std::int64_t>(inner) * count > reach + 1) return false;
    for (std::int64_t i = 1; i < count; ++i)
      for (std::size_t k = 0; k < inner; ++k) places.push_back(places[k] + i * stride);
  }
  for (std::int64_t place : places) {
    if (taken[static_cast<std::size_t>(place)]) return false;
    taken[static_cast<std::size_t>(place)] = true;
  }
  return true;
}

std::int64_t Footprint::high() const {
  std::int64_t end = low + run;
  for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d) end += strides[d] * (counts[d] - 1);
  return end;
}

Footprint footprint_of(const Pattern& pattern, const std::byte* origin) {
  Footprint f;
  f.low = pattern.base - origin;
  f.run = pattern.element_bytes;
  Extents extents;
  for (std::size_t d = 0; d < static_cast<std::size_t>(pattern.rank); ++d) {
    const std::int64_t count = pattern.counts[d], stride = pattern.strides[d];
    if (count == 1 || stride == 0) continue;
    if (stride < 0) f.low += stride * (count - 1);
    extents.insert(stride, count);
  }
  for (std::size_t d = 0; d < extents.n; ++d) {
    const auto [stride, count] = extents.all[d];
    const auto top = static_cast<std::size_t>(f.rank);
    if (f.rank == 0 && stride <= f.run) {
      f.run += stride * (count - 1);
    } else if (f.rank > 0 && f.strides[top - 1] * f.counts[top - 1] == stride) {
      f.counts[top - 1] *= count;
    } else {
      f.strides[top] = stride;
      f.counts[top] = count;
      ++f.rank;
    }
  }
  std::reverse(f.strides.begin(), f.strides.begin() + f.rank);
  std::reverse(f.counts.begin(), f.counts.begin() + f.rank);
  return f;
}

namespace {

// What is left of a footprint when its first `level` extents are fixed.
struct Rest {
  const Footprint* f;
  int level;
  std::int64_t reach;  // bytes from its first to one past its last

  bool done() const { return level == f->rank; }
  std::int64_t stride() const { return f->strides[static_cast<std::size_t>(level)]; }
  std::int64_t count() const { return f->counts[static_cast<std::size_t>(level)]; }
  Rest inner() const { return {f, level + 1, reach - stride() * (count() - 1)}; }
};

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// Whether a, `delta` bytes after b, shares a byte with it. Fixes the extent with the largest stride, in the
// few ways in which what is left can meet; extents of equal strides are fixed together, as only the
// difference of their positions counts.
bool meet(const Rest& a, const Rest& b, std::int64_t delta, int& budget) {
  if (delta >= b.reach || delta + a.reach <= 0) return false;
  if (a.done() && b.done()) return true;
  if (--budget < 0) return true;
  const std::int64_t sa = a.done() ? 0 : a.stride(), sb = b.done() ? 0 : b.stride();
  Rest ia = a, ib = b;
  std::int64_t least = 0, most = 0;  // of the shift in strides that `delta` gets
  const std::int64_t stride = std::max(sa, sb);
  if (sa == stride) {
    ia = a.inner();
    most = a.count() - 1;
  }
  if (sb == stride) {
    ib = b.inner();
    least = -(b.count() - 1);
  }
  // -ia.reach < delta + d * stride < ib.reach
  least = std::max(least, floor_div(-ia.reach - delta, stride) + 1);
  most = std::min(most, floor_div(ib.reach - delta - 1, stride));
  for (std::int64_t d = least; d <= most; ++d)
    if (meet(ia, ib, delta + d * stride, budget)) return true;
  return false;
}

}  // namespace

bool overlap(const Footprint& a, const Footprint& b) {
  int budget = 1 << 16;
  return meet({&a, 0, a.high() - a.low}, {&b, 0, b.high() - b.low}, a.low - b.low, budget);
}

}  // namespace headway::chip
