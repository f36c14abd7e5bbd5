#include "chip/row_loop.h"

#include <cstring>

#include "chip/rows.h"

namespace headway::chip {
namespace {

template <class T>
bool holds(const Block& block) {
  return std::is_same_v<T, float> ? block.dtype == DType::f32 : block.element_bytes == 4;
}

// Whether rows can be used where they are.
template <class T>
bool in_place(const Block& block, bool each_element) {
  return holds<T>(block) && !block.row_offsets && block.row_stride % 4 == 0 &&
         reinterpret_cast<std::uintptr_t>(block.base) % 4 == 0 &&
         (block.contiguous() || (!each_element && block.repeated()));
}

// `count` rows that are one run of bytes, as one row.
Block as_one_row(const Block& block, std::int64_t first, std::int64_t count) {
  Block one = block;
  one.base = block.row(first);
  one.rows = 1;
  one.rank = 1;
  one.elements = one.counts[0] = count * block.elements;
  one.strides[0] = block.element_bytes;
  return one;
}

const float* read(const Block& block, std::int64_t r, float* scratch) { return read_row(block, r, scratch); }
void write(const Block& block, std::int64_t r, const float* values) { write_row(block, r, values); }

template <class T>
void widen(const std::byte* from, std::int64_t n, std::uint32_t* to) {
  for (std::int64_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    to[i] = value;
  }
}
template <class T>
void narrow(const std::uint32_t* from, std::int64_t n, std::byte* to) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T value = static_cast<T>(from[i]);
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
  }
}

const std::uint32_t* read(const Block& block, std::int64_t r, std::uint32_t* scratch) {
  if (!block.contiguous() || block.element_bytes == 4) return read_bits(block, r, scratch);
  block.element_bytes == 1 ? widen<std::uint8_t>(block.row(r), block.elements, scratch)
                           : widen<std::uint16_t>(block.row(r), block.elements, scratch);
  return scratch;
}
void write(const Block& block, std::int64_t r, const std::uint32_t* values) {
  if (!block.contiguous() || block.element_bytes == 4) return write_bits(block, r, values);
  block.element_bytes == 1 ? narrow<std::uint8_t>(values, block.elements, block.row(r))
                           : narrow<std::uint16_t>(values, block.elements, block.row(r));
}

// Short rows are brought together in here, so that they are converted in one go.
constexpr std::int64_t kPacked = 16384, kShort = 256;  // bytes
bool short_rows(const Block& block, std::int64_t count) {
  const std::int64_t bytes = block.elements * block.element_bytes;
  return count > 1 && block.contiguous() && bytes <= kShort && count * bytes <= kPacked;
}

// The same rows without gaps, at `packed`.
Block as_packed(const Block& block, std::int64_t count, std::byte* packed) {
  Block dense = block;
  dense.base = packed;
  dense.row_offsets = nullptr;
  dense.row_stride = block.elements * block.element_bytes;
  return as_one_row(dense, 0, count);
}

// A few bytes, without a call.
void copy_short(const std::byte* from, std::int64_t bytes, std::byte* to) {
  for (; bytes >= 8; bytes -= 8, from += 8, to += 8) std::memcpy(to, from, 8);
  for (; bytes > 0; --bytes) *to++ = *from++;
}

template <class T>
Rows<T> load(const Block& block, std::int64_t first, std::int64_t count, T* scratch, bool each_element) {
  if (in_place<T>(block, each_element))
    return {reinterpret_cast<const T*>(block.row(first)), block.row_stride / 4, block.repeated()};
  const std::int64_t n = block.elements;
  if (block.one_run() && count > 1) {
    read(as_one_row(block, first, count), 0, scratch);
  } else if (short_rows(block, count)) {
    alignas(64) std::byte packed[kPacked];
    const std::int64_t bytes = n * block.element_bytes;
    for (std::int64_t i = 0; i < count; ++i) copy_short(block.row(first + i), bytes, packed + i * bytes);
    const T* from = read(as_packed(block, count, packed), 0, scratch);
    if (from != scratch) std::memcpy(scratch, from, static_cast<std::size_t>(count * n) * sizeof(T));
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      T* to = scratch + i * n;
      const T* from = read(block, first + i, to);
      if (from != to) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
    }
  }
  return {scratch, n, false};
}

template <class T>
RowsOut<T> target(const Block& block, std::int64_t first, T* scratch) {
  if (in_place<T>(block, true)) return {reinterpret_cast<T*>(block.row(first)), block.row_stride / 4};
  return {scratch, block.elements};
}

template <class T>
void store(const Block& block, std::int64_t first, std::int64_t count, RowsOut<T> values) {
  if (reinterpret_cast<std::byte*>(values.at) == block.row(first)) return;
  const bool dense = values.stride == block.elements;
  if (dense && block.one_run() && count > 1) {
    write(as_one_row(block, first, count), 0, values.at);
  } else if (dense && short_rows(block, count)) {
    alignas(64) std::byte packed[kPacked];
    const std::int64_t bytes = block.elements * block.element_bytes;
    write(as_packed(block, count, packed), 0, values.at);
    for (std::int64_t i = 0; i < count; ++i) copy_short(packed + i * bytes, bytes, block.row(first + i));
  } else {
    for (std::int64_t i = 0; i < count; ++i) write(block, first + i, values.at + i * values.stride);
  }
}

}  // namespace

Rows<float> load_rows(const Block& block, std::int64_t first, std::int64_t count, float* scratch) {
  return load(block, first, count, scratch, false);
}
Rows<std::uint32_t> load_rows(const Block& block, std::int64_t first, std::int64_t count,
                              std::uint32_t* scratch) {
  return load(block, first, count, scratch, false);
}
Rows<float> load_all(const Block& block, std::int64_t first, std::int64_t count, float* scratch) {
  return load(block, first, count, scratch, true);
}
Rows<std::uint32_t> load_all(const Block& block, std::int64_t first, std::int64_t count,
                             std::uint32_t* scratch) {
  return load(block, first, count, scratch, true);
}
RowsOut<float> rows_target(const Block& block, std::int64_t first, float* scratch) {
  return target(block, first, scratch);
}
RowsOut<std::uint32_t> rows_target(const Block& block, std::int64_t first, std::uint32_t* scratch) {
  return target(block, first, scratch);
}
void store_rows(const Block& block, std::int64_t first, std::int64_t count, RowsOut<float> values) {
  store(block, first, count, values);
}
void store_rows(const Block& block, std::int64_t first, std::int64_t count, RowsOut<std::uint32_t> values) {
  store(block, first, count, values);
}

}  // namespace headway::chip
