#include "chip/rows.h"

#include <cstring>

#include "base/error.h"
#include "base/number_format.h"
#include "simd/convert.h"

namespace headway::chip {
namespace {

constexpr std::int64_t kPiece = 512;  // elements that are brought together at a time, in 2 KiB

// Copies elements [first, first + n) of a scattered row, in order, between memory and `packed`.
template <class T, bool gather>
void pack(const Block& block, std::byte* row, T* packed) {
  for_each_element(block, [&](std::int64_t offset) {
    if constexpr (gather) {
      std::memcpy(packed++, row + offset, sizeof(T));
    } else {
      std::memcpy(row + offset, packed++, sizeof(T));
    }
  });
}

template <bool gather>
void pack_any(const Block& block, std::byte* row, std::byte* packed) {
  switch (block.element_bytes) {
    case 1:
      return pack<std::uint8_t, gather>(block, row, reinterpret_cast<std::uint8_t*>(packed));
    case 2:
      return pack<std::uint16_t, gather>(block, row, reinterpret_cast<std::uint16_t*>(packed));
    case 4:
      return pack<std::uint32_t, gather>(block, row, reinterpret_cast<std::uint32_t*>(packed));
    default:
      throw Bug("elements of a NeuronCore have 1, 2 or 4 bytes");
  }
}

bool aligned(const std::byte* p, int bytes) {
  return reinterpret_cast<std::uintptr_t>(p) % static_cast<unsigned>(bytes) == 0;
}

// Calls f(inner block of one run or evenly spaced elements, offset of its first element, index of its first
// element).
template <class F>
void for_each_inner(const Block& block, F&& f) {
  const auto last = static_cast<std::size_t>(block.rank - 1);
  Block outer = block;
  --outer.rank;
  std::int64_t index = 0;
  for_each_element(outer, [&](std::int64_t offset) {
    f(offset, index);
    index += block.counts[last];
  });
}

// Runs of 8- and 16-bit elements, as loops that become vector code.
template <class T>
void widen(const std::byte* row, std::uint32_t* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, row + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    to[i] = value;
  }
}
template <class T>
void narrow(const std::uint32_t* from, std::byte* row, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<T>(from[i]);
    std::memcpy(row + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
  }
}

}  // namespace

const float* read_row(const Block& block, std::int64_t r, float* scratch) {
  std::byte* row = block.row(r);
  const bool is_f32 = block.dtype == DType::f32;
  if (block.contiguous() && aligned(row, block.element_bytes)) {
    if (is_f32) return reinterpret_cast<const float*>(row);
    simd::to_float(block.dtype, row, scratch, block.elements);
    return scratch;
  }
  if (is_f32) {
    pack_any<true>(block, row, reinterpret_cast<std::byte*>(scratch));
    return scratch;
  }
  if (block.contiguous()) {  // not aligned
    alignas(64) std::byte packed[kPiece * 4];
    for (std::int64_t i = 0; i < block.elements; i += kPiece) {
      const std::int64_t n = block.elements - i < kPiece ? block.elements - i : kPiece;
      std::memcpy(packed, row + i * block.element_bytes, static_cast<std::size_t>(n * block.element_bytes));
      simd::to_float(block.dtype, packed, scratch + i, n);
    }
    return scratch;
  }
  // Runs of the innermost extent are converted where they lie; single elements are brought together first.
  const auto last = static_cast<std::size_t>(block.rank - 1);
  if (block.strides[last] == block.element_bytes && aligned(row, block.element_bytes)) {
    for_each_inner(block, [&](std::int64_t offset, std::int64_t index) {
      simd::to_float(block.dtype, row + offset, scratch + index, block.counts[last]);
    });
    return scratch;
  }
  alignas(64) std::byte packed[kPiece * 4];
  std::int64_t filled = 0, done = 0;
  for_each_element(block, [&](std::int64_t offset) {
    std::memcpy(packed + filled * block.element_bytes, row + offset,
                static_cast<std::size_t>(block.element_bytes));
    if (++filled == kPiece) {
      simd::to_float(block.dtype, packed, scratch + done, filled);
      done += filled;
      filled = 0;
    }
  });
  if (filled > 0) simd::to_float(block.dtype, packed, scratch + done, filled);
  return scratch;
}

float* row_target(const Block& block, std::int64_t r, float* scratch) {
  std::byte* row = block.row(r);
  const bool in_place = block.dtype == DType::f32 && block.contiguous() && aligned(row, 4);
  return in_place ? reinterpret_cast<float*>(row) : scratch;
}

void write_row(const Block& block, std::int64_t r, const float* values) {
  std::byte* row = block.row(r);
  if (block.contiguous() && aligned(row, block.element_bytes)) {
    if (block.dtype == DType::f32) {
      if (reinterpret_cast<const std::byte*>(values) != row)
        std::memmove(row, values, static_cast<std::size_t>(block.elements) * sizeof(float));
      return;
    }
    simd::from_float(block.dtype, values, row, block.elements);
    return;
  }
  alignas(64) std::byte packed[kPiece * 4];
  std::int64_t ready = 0, next = 0, done = 0;
  for_each_element(block, [&](std::int64_t offset) {
    if (next == ready) {
      ready = block.elements - done < kPiece ? block.elements - done : kPiece;
      simd::from_float(block.dtype, values + done, packed, ready);
      done += ready;
      next = 0;
    }
    std::memcpy(row + offset, packed + next++ * block.element_bytes,
                static_cast<std::size_t>(block.element_bytes));
  });
}

const std::uint32_t* read_bits(const Block& block, std::int64_t r, std::uint32_t* scratch) {
  std::byte* row = block.row(r);
  if (block.element_bytes == 4) {
    if (block.contiguous() && aligned(row, 4)) return reinterpret_cast<const std::uint32_t*>(row);
    pack_any<true>(block, row, reinterpret_cast<std::byte*>(scratch));
    return scratch;
  }
  if (block.contiguous()) {
    if (block.element_bytes == 2) {
      widen<std::uint16_t>(row, scratch, block.elements);
    } else {
      widen<std::uint8_t>(row, scratch, block.elements);
    }
    return scratch;
  }
  std::uint32_t* out = scratch;
  if (block.element_bytes == 2) {
    for_each_element(block, [&](std::int64_t offset) {
      std::uint16_t value;
      std::memcpy(&value, row + offset, 2);
      *out++ = value;
    });
  } else {
    for_each_element(block, [&](std::int64_t offset) { *out++ = static_cast<std::uint8_t>(row[offset]); });
  }
  return scratch;
}

void write_bits(const Block& block, std::int64_t r, const std::uint32_t* values) {
  std::byte* row = block.row(r);
  if (block.element_bytes == 4) {
    if (block.contiguous()) {
      if (reinterpret_cast<const std::byte*>(values) != row)
        std::memmove(row, values, static_cast<std::size_t>(block.elements) * 4);
      return;
    }
    for_each_element(block, [&](std::int64_t offset) { std::memcpy(row + offset, values++, 4); });
  } else if (block.contiguous()) {
    if (block.element_bytes == 2) {
      narrow<std::uint16_t>(values, row, block.elements);
    } else {
      narrow<std::uint8_t>(values, row, block.elements);
    }
  } else if (block.element_bytes == 2) {
    for_each_element(block, [&](std::int64_t offset) {
      const auto value = static_cast<std::uint16_t>(*values++);
      std::memcpy(row + offset, &value, 2);
    });
  } else {
    for_each_element(block, [&](std::int64_t offset) { row[offset] = static_cast<std::byte>(*values++); });
  }
}

void read_integers(const Block& block, std::int64_t r, std::int64_t* values) {
  std::byte* row = block.row(r);
  for_each_element(block, [&](std::int64_t offset) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, row + offset, static_cast<std::size_t>(block.element_bytes));
    switch (block.dtype) {
      case DType::i8:
        *values++ = static_cast<std::int8_t>(bits);
        break;
      case DType::i16:
        *values++ = static_cast<std::int16_t>(bits);
        break;
      case DType::i32:
        *values++ = static_cast<std::int32_t>(bits);
        break;
      default:
        *values++ = bits;
    }
  });
}

float read_element(DType dtype, const std::byte* p) { return decode(dtype, p); }
void write_element(DType dtype, std::byte* p, float value) { encode(dtype, value, p); }

}  // namespace headway::chip
