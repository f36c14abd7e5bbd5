#include "chip/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "simd/convert.h"

namespace headway::chip {
namespace {

// Calls f(address, distance, count) for each run of evenly spaced elements of [begin, begin + n).
template <class F>
void for_runs(const Pattern& p, std::int64_t begin, std::int64_t n, F&& f) {
  if (p.rank == 0) {
    if (n > 0) f(p.base, std::int64_t{0}, n);
    return;
  }
  const auto last = static_cast<std::size_t>(p.rank - 1);
  std::array<std::int64_t, kMaxPairs> at{};
  std::byte* row = p.base;
  std::int64_t rest = begin;
  for (std::size_t d = last + 1; d-- > 0;) {
    at[d] = rest % p.counts[d];
    rest /= p.counts[d];
    if (d != last) row += at[d] * p.strides[d];
  }
  while (n > 0) {
    const std::int64_t run = std::min(n, p.counts[last] - at[last]);
    f(row + at[last] * p.strides[last], p.strides[last], run);
    n -= run;
    at[last] = 0;
    for (std::size_t d = last; d-- > 0;) {
      row += p.strides[d];
      if (++at[d] < p.counts[d]) break;
      row -= p.counts[d] * p.strides[d];
      at[d] = 0;
    }
  }
}

constexpr std::int64_t kBlock = 32;  // rows and columns of a block

// n elements `from_step` and `to_step` bytes apart.
template <class T>
void move_run(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
              std::int64_t n) {
  constexpr std::int64_t kSize = sizeof(T);
  if (from_step == kSize && to_step == kSize) {
    std::memcpy(to, from, static_cast<std::size_t>(n * kSize));
    return;
  }
  T value;
  if (from_step == 0) {
    std::memcpy(&value, from, kSize);
    for (std::int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_step, &value, kSize);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    std::memcpy(&value, from + i * from_step, kSize);
    std::memcpy(to + i * to_step, &value, kSize);
  }
}

// A block of `rows` x `n` elements whose near elements in memory are the far ones of the other side. It goes
// through a tile that the nearest cache holds, so that both sides are walked along their lines, whatever the
// distance of those.
template <class T>
void move_block(const std::byte* from, std::int64_t from_row, std::int64_t from_step, std::byte* to,
                std::int64_t to_row, std::int64_t to_step, std::int64_t rows, std::int64_t n, T* tile) {
  for (std::int64_t i = 0; i < n; ++i)
    move_run<T>(from + i * from_step, from_row, reinterpret_cast<std::byte*>(tile + i * kBlock), sizeof(T),
                rows);
  for (std::int64_t r = 0; r < rows; ++r)
    move_run<T>(reinterpret_cast<const std::byte*>(tile + r), kBlock * static_cast<std::int64_t>(sizeof(T)),
                to + r * to_row, to_step, n);
}

// Rows of elements.
template <class T>
void move_rows(const std::byte* from, std::int64_t from_row, std::int64_t from_step, std::byte* to,
               std::int64_t to_row, std::int64_t to_step, std::int64_t rows, std::int64_t n) {
  const bool from_crossed = std::abs(from_row) < std::abs(from_step);
  const bool to_crossed = std::abs(to_row) < std::abs(to_step);
  if (from_crossed == to_crossed || rows < 4 || n < 4) {
    for (std::int64_t r = 0; r < rows; ++r)
      move_run<T>(from + r * from_row, from_step, to + r * to_row, to_step, n);
    return;
  }
  if (to_crossed) {  // the same elements, walked the other way
    std::swap(from_row, from_step);
    std::swap(to_row, to_step);
    std::swap(rows, n);
  }
  alignas(64) T tile[kBlock * kBlock];
  for (std::int64_t r = 0; r < rows; r += kBlock)
    for (std::int64_t i = 0; i < n; i += kBlock)
      move_block<T>(from + r * from_row + i * from_step, from_row, from_step, to + r * to_row + i * to_step,
                    to_row, to_step, std::min(kBlock, rows - r), std::min(kBlock, n - i), tile);
}

template <class F>
void with_element(int bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      throw Bug("elements of a NeuronCore have 1, 2 or 4 bytes");
  }
}

// The loops that walk two patterns together, innermost first.
struct Walk {
  struct Loop {
    std::int64_t count, from, to;
  };
  std::array<Loop, 2 * kMaxPairs> loops{};
  std::size_t depth = 0;

  void add(std::int64_t count, std::int64_t from, std::int64_t to) {
    if (count == 1) return;
    if (depth > 0) {
      Loop& inner = loops[depth - 1];
      if (from == inner.from * inner.count && to == inner.to * inner.count) {
        inner.count *= count;
        return;
      }
    }
    loops[depth++] = {count, from, to};
  }
};

// Splits the extents of both so that they agree. False where no extents do, as for 6 x 2 and 4 x 3.
bool walk_together(const Pattern& from, const Pattern& to, Walk& walk) {
  int i = from.rank - 1, j = to.rank - 1;
  std::int64_t from_count = 1, from_stride = 0, to_count = 1, to_stride = 0;
  for (;;) {
    while (from_count == 1 && i >= 0) {
      from_count = from.counts[static_cast<std::size_t>(i)];
      from_stride = from.strides[static_cast<std::size_t>(i--)];
    }
    while (to_count == 1 && j >= 0) {
      to_count = to.counts[static_cast<std::size_t>(j)];
      to_stride = to.strides[static_cast<std::size_t>(j--)];
    }
    if (from_count == 1 || to_count == 1) return from_count == to_count;
    const std::int64_t count = std::min(from_count, to_count);
    if (from_count % count != 0 || to_count % count != 0) return false;
    walk.add(count, from_stride, to_stride);
    from_count /= count;
    from_stride *= count;
    to_count /= count;
    to_stride *= count;
  }
}

void copy_same_dtype(Core& core, const Pattern& from, const Pattern& to, Walk walk) {
  if (walk.depth == 0) walk.loops[walk.depth++] = {1, 0, 0};
  if (walk.depth == 1) {
    // One long run is divided like rows.
    constexpr std::int64_t kPiece = 4096;
    const Walk::Loop all = walk.loops[0];
    core.for_rows((all.count + kPiece - 1) / kPiece, all.count,
                  [&](std::int64_t begin, std::int64_t end, int) {
                    const std::int64_t first = begin * kPiece, n = std::min(end * kPiece, all.count) - first;
                    with_element(from.element_bytes, [&](auto element) {
                      move_run<decltype(element)>(from.base + first * all.from, all.from,
                                                  to.base + first * all.to, all.to, n);
                    });
                  });
    return;
  }
  std::int64_t rows = 1;
  for (std::size_t d = 1; d < walk.depth; ++d) rows *= walk.loops[d].count;
  const Walk::Loop inner = walk.loops[0], row = walk.loops[1];
  core.for_rows(rows, rows * inner.count, [&](std::int64_t begin, std::int64_t end, int) {
    while (begin < end) {
      const std::int64_t first = begin % row.count, n = std::min(row.count - first, end - begin);
      std::int64_t from_at = first * row.from, to_at = first * row.to, rest = begin / row.count;
      for (std::size_t d = 2; d < walk.depth; ++d) {
        const std::int64_t at = rest % walk.loops[d].count;
        rest /= walk.loops[d].count;
        from_at += at * walk.loops[d].from;
        to_at += at * walk.loops[d].to;
      }
      with_element(from.element_bytes, [&](auto element) {
        move_rows<decltype(element)>(from.base + from_at, row.from, inner.from, to.base + to_at, row.to,
                                     inner.to, n, inner.count);
      });
      begin += n;
    }
  });
}

}  // namespace

void pack(const Pattern& from, std::int64_t begin, std::int64_t n, std::byte* to) {
  with_element(from.element_bytes, [&](auto element) {
    using T = decltype(element);
    for_runs(from, begin, n, [&](const std::byte* p, std::int64_t step, std::int64_t count) {
      move_run<T>(p, step, to, sizeof(T), count);
      to += count * static_cast<std::int64_t>(sizeof(T));
    });
  });
}

void unpack(const Pattern& to, std::int64_t begin, std::int64_t n, const std::byte* from) {
  with_element(to.element_bytes, [&](auto element) {
    using T = decltype(element);
    for_runs(to, begin, n, [&](std::byte* p, std::int64_t step, std::int64_t count) {
      move_run<T>(from, sizeof(T), p, step, count);
      from += count * static_cast<std::int64_t>(sizeof(T));
    });
  });
}

void load(const Pattern& from, std::int64_t begin, std::int64_t n, float* to) {
  if (from.dtype == DType::f32 || from.dtype == DType::tf32)
    return pack(from, begin, n, reinterpret_cast<std::byte*>(to));
  alignas(64) std::byte packed[kMovePiece * 4];
  pack(from, begin, n, packed);
  simd::to_float(from.dtype, packed, to, n);
}

void store(const Pattern& to, std::int64_t begin, std::int64_t n, const float* from) {
  if (to.dtype == DType::f32) return unpack(to, begin, n, reinterpret_cast<const std::byte*>(from));
  alignas(64) std::byte packed[kMovePiece * 4];
  simd::from_float(to.dtype, from, packed, n);
  unpack(to, begin, n, packed);
}

void move_range(const Pattern& from, std::int64_t from_begin, const Pattern& to, std::int64_t to_begin,
                std::int64_t n) {
  alignas(64) std::byte packed[kMovePiece * 4];
  for (std::int64_t done = 0; done < n; done += kMovePiece) {
    const std::int64_t piece = std::min(kMovePiece, n - done);
    if (from.dtype == to.dtype) {
      pack(from, from_begin + done, piece, packed);
      unpack(to, to_begin + done, piece, packed);
    } else {
      auto* values = reinterpret_cast<float*>(packed);
      load(from, from_begin + done, piece, values);
      store(to, to_begin + done, piece, values);
    }
  }
}

void copy_elements(Core& core, const Pattern& from, const Pattern& to) {
  Walk walk;
  if (from.dtype == to.dtype && walk_together(from, to, walk)) return copy_same_dtype(core, from, to, walk);
  const Pattern from_merged = merged(from), to_merged = merged(to);
  const std::int64_t count = from_merged.elements(), pieces = (count + kMovePiece - 1) / kMovePiece;
  core.for_rows(pieces, count, [&](std::int64_t begin, std::int64_t end, int) {
    const std::int64_t first = begin * kMovePiece;
    move_range(from_merged, first, to_merged, first, std::min(end * kMovePiece, count) - first);
  });
}

}  // namespace headway::chip
