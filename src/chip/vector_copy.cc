#include "chip/vector_copy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "chip/alu_rules.h"
#include "chip/check.h"
#include "chip/core.h"
#include "chip/engine_cost.h"
#include "chip/pattern.h"
#include "chip/row_loop.h"
#include "chip/rows.h"
#include "chip/strided_copy.h"

namespace headway::chip {
namespace {

constexpr int kAside = 4;  // scratch slot of thread 0

// Whether each row is an array of T.
template <class T>
bool are_arrays(const Block& block) {
  return block.contiguous() && block.element_bytes == sizeof(T) && block.row_stride % sizeof(T) == 0 &&
         reinterpret_cast<std::uintptr_t>(block.base) % sizeof(T) == 0;
}

// Rows of another dtype, a few at a time, straight to where they belong if that is possible.
void convert(Core& core, const Block& from, const Block& to) {
  constexpr std::int64_t kTogether = 2048;
  const std::int64_t n = from.elements, together = std::max<std::int64_t>(1, kTogether / n);
  core.for_rows(from.rows, from.rows * n, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* const scratch = core.scratch(thread, std::min(together, end - begin) * n);
    for (std::int64_t r = begin; r < end; r += together) {
      const std::int64_t count = std::min(together, end - r);
      const RowsOut<float> target = rows_target(to, r, scratch);
      const Rows<float> rows = load_all(from, r, count, target.stride == n ? target.at : scratch);
      store_rows(to, r, count, {const_cast<float*>(rows.at), rows.stride});
    }
  });
}

// All of `from` before anything of `to`, in order.
void copy_aside(Core& core, const Pattern& from, const Pattern& to) {
  const std::int64_t count = from.elements(), bytes = count * to.element_bytes;
  auto* aside = reinterpret_cast<std::byte*>(core.scratch(0, (bytes + 3) / 4, kAside));
  move_range(merged(from), 0, packed_pattern(aside, to.dtype, count), 0, count);
  unpack(merged(to), 0, count, aside);
}

}  // namespace

// --- tensor_copy ---

void TensorCopy::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("src", src, Access::read);
}

void TensorCopy::check(Check& check) const {
  if (!engine_operand(check, "dst", dst) || !engine_operand(check, "src", src) ||
      !check.same_size("dst", dst, "src", src))
    return;
  if (dst.dtype != src.dtype) {
    check.computable("dst", dst);
    check.computable("src", src);
  }
  if (engine == Engine::scalar) check.generation(3, "tensor_copy on the Scalar engine");
  if (engine == Engine::gpsimd) {
    gpsimd_reaches(check, "dst", dst, "use the Vector or the Scalar engine");
    gpsimd_reaches(check, "src", src, "use the Vector or the Scalar engine");
  }
}

Engines TensorCopy::engines(const Check& check) const {
  Engines engines = Engine::vector;
  if (check.spec.generation >= 3) engines = engines | Engine::scalar;
  if (check.buffer(dst) != Buffer::psum && check.buffer(src) != Buffer::psum)
    engines = engines | Engine::gpsimd;
  return engines;
}

void TensorCopy::apply(Core& core) const {
  const Block from = core.read("src", src);
  const Block to = core.write("dst", dst);
  const bool same = core.same_place(dst, src);
  if (same && dst.dtype == src.dtype) return;
  // Elements that lie on each other keep what is written last.
  if (same || core.overlap(dst, src) || !distinct(dst, true)) {
    copy_aside(core, pattern_of(src, from), pattern_of(dst, to));
  } else if (dst.dtype == src.dtype) {
    copy_elements(core, pattern_of(src, from), pattern_of(dst, to));
  } else {
    convert(core, from, to);
  }
}

void tensor_copy(const Tile& dst, const Tile& src, const TensorCopyOptions& options, Here here) {
  record<TensorCopy>(dst, here, [&](TensorCopy& i) {
    i.dst = dst;
    i.src = src;
    i.engine = options.engine;
  });
}

Cost TensorCopy::cost(const Costing& costing) const {
  const std::int64_t n = dst.row_elements();
  return stream_cost(costing, {.elements = n,
                               .cycles = cycles_of_one(costing, dst, &src) * static_cast<double>(n),
                               .measured = costing.engine == Engine::scalar || !is_16_bit(src.dtype),
                               .dynamic = is_dynamic(dst) || is_dynamic(src)});
}

// --- tensor_copy_predicated ---

namespace {

using Bits = std::uint32_t;

// Arrays that lie apart: vectors can take them.
void find_true(const Bits* __restrict predicate, bool reversed, std::uint8_t* __restrict where,
               std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) where[i] = (predicate[i] != 0) != reversed;
}
void choose(const std::uint8_t* __restrict where, const Bits* __restrict a, Bits* __restrict out,
            std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Bits chosen = a[i], old = out[i];
    out[i] = where[i] ? chosen : old;
  }
}

}  // namespace

void TensorCopyPredicated::visit(Fields& fields) {
  fields.view("dst", dst, Access::update);
  fields.scalar("src", src);
  fields.view("predicate", predicate, Access::read);
  fields.flag("reverse_pred", reverse_pred);
}

void TensorCopyPredicated::check(Check& check) const {
  if (!engine_operand(check, "dst", dst) || !engine_operand(check, "predicate", predicate)) return;
  check.dtype("predicate", predicate, {DType::u8, DType::u16, DType::u32});
  check.same_size("dst", dst, "predicate", predicate);
  if (const View* tile = src.view()) {
    if (!engine_operand(check, "src", *tile)) return;
    check.same_size("dst", dst, "src", *tile);
    check.same_dtype("src", *tile, "dst", dst);
    check.not_both_psum("src", *tile, "predicate", predicate);
  } else {
    check.computable("dst", dst);
  }
}

Engines TensorCopyPredicated::engines(const Check&) const { return Engine::vector; }

void TensorCopyPredicated::apply(Core& core) const {
  const Block mask = core.read("predicate", predicate);
  const View* tile = src.view();
  const Block from = tile ? core.read("src", *tile) : Block{};
  const Block to = core.target("dst", dst);
  const std::int64_t n = to.elements, count = to.rows * n;
  Bits number = 0;
  if (!tile) {
    std::array<std::byte, 4> bytes{};
    write_element(dst.dtype, bytes.data(), src.number());
    std::memcpy(&number, bytes.data(), 4);
  }
  // What is chosen, then where: nothing is written before all is read.
  auto* const chosen = reinterpret_cast<Bits*>(core.scratch(0, count, kAside));
  auto* const where = reinterpret_cast<std::uint8_t*>(core.scratch(0, (count + 3) / 4, kAside + 1));
  core.for_rows(to.rows, count, [&](std::int64_t begin, std::int64_t end, int thread) {
    auto* const mask_scratch = reinterpret_cast<Bits*>(core.scratch(thread, n, 0));
    for (std::int64_t r = begin; r < end; ++r) {
      const Bits* m = load_all(mask, r, 1, mask_scratch).at;
      find_true(m, reverse_pred, where + r * n, n);
      Bits* c = chosen + r * n;
      if (!tile) {
        std::fill(c, c + n, number);
      } else if (const Bits* values = load_all(from, r, 1, c).at; values != c) {
        std::memcpy(c, values, static_cast<std::size_t>(n) * sizeof(Bits));
      }
    }
  });
  core.for_rows(to.rows, count, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::uint8_t* w = where + r * n;
      const Bits* c = chosen + r * n;
      std::byte* const row = to.row(r);
      if (are_arrays<Bits>(to)) {
        choose(w, c, reinterpret_cast<Bits*>(row), n);
      } else {
        std::int64_t i = 0;
        const auto bytes = static_cast<std::size_t>(to.element_bytes);
        for_each_element(to, [&](std::int64_t offset) {
          if (w[i]) std::memcpy(row + offset, &c[i], bytes);
          ++i;
        });
      }
    }
  });
  core.mark_elements(dst, {where, static_cast<std::size_t>(count)});
}

void tensor_copy_predicated(const Tile& dst, const Scalar& src, const Tile& predicate,
                            const TensorCopyPredicatedOptions& options, Here here) {
  record<TensorCopyPredicated>(dst, here, [&](TensorCopyPredicated& i) {
    i.dst = dst;
    i.src = src;
    i.predicate = predicate;
    i.reverse_pred = options.reverse_pred;
  });
}

Cost TensorCopyPredicated::cost(const Costing& costing) const {
  const std::int64_t n = dst.row_elements();
  const View* tile = src.view();
  // Two tensors in SBUF are read one after the other.
  const bool twice =
      tile && costing.buffer(*tile) == Buffer::sbuf && costing.buffer(predicate) == Buffer::sbuf;
  return stream_cost(
      costing, {.elements = n,
                .cycles = (twice ? 2 : 1) * cycles_of_any(costing, dst, predicate) * static_cast<double>(n),
                .dynamic = is_dynamic(dst) || is_dynamic(predicate) || (tile && is_dynamic(*tile))});
}

// --- memset ---

void Memset::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.scalar("value", value);
}

void Memset::check(Check& check) const {
  if (!engine_operand(check, "dst", dst)) return;
  if (engine == Engine::gpsimd) gpsimd_reaches(check, "dst", dst, "use the Vector engine");
  const std::string_view dtype = headway::name_of(dst.dtype);
  if (!check.require(!value.view(), "memset-value", "value", "must be a constant, not a tensor")) return;
  if (is_packed(dst.dtype)) {
    check.require(value.number() == 0, "memset-value", "value", "{} can only be set to 0, not to {}", dtype,
                  value.number());
  } else if (is_integer(dst.dtype)) {
    if (!check.require(std::holds_alternative<std::int32_t>(value), "memset-value", "value",
                       "{} needs an integer constant, {} is a float", dtype, value.number()))
      return;
    // Above the int32 range a uint32 is given by its bits.
    const int bits = 8 * size_of(dst.dtype);
    const std::int64_t number = std::get<std::int32_t>(value);
    const bool is_unsigned = dst.dtype == DType::u8 || dst.dtype == DType::u16;
    const std::int64_t low = is_unsigned ? 0 : -(std::int64_t{1} << (bits - 1));
    const std::int64_t high =
        is_unsigned || bits == 32 ? (std::int64_t{1} << bits) - 1 : (std::int64_t{1} << (bits - 1)) - 1;
    check.require(number >= low && number <= high, "memset-value", "value", "{} is not within {} to {} of {}",
                  number, low, high, dtype);
  }
}

Engines Memset::engines(const Check& check) const {
  return check.buffer(dst) == Buffer::psum ? Engines(Engine::vector) : Engine::vector | Engine::gpsimd;
}

void Memset::apply(Core& core) const {
  const Block to = core.write("dst", dst);
  std::array<std::byte, 4> element{};
  if (is_wide_integer(dst.dtype)) {
    const auto number = std::get<std::int32_t>(value);
    std::memcpy(element.data(), &number, 4);
  } else if (!is_packed(dst.dtype)) {
    write_element(dst.dtype, element.data(), value.number());
  }
  const auto fill_rows = [&](auto type) {
    using T = decltype(type);
    T number;
    std::memcpy(&number, element.data(), sizeof(T));
    core.for_rows(to.rows, to.rows * to.elements, [&](std::int64_t begin, std::int64_t end, int) {
      const bool arrays = are_arrays<T>(to);
      if (arrays && to.one_run()) {
        std::fill_n(reinterpret_cast<T*>(to.row(begin)), (end - begin) * to.elements, number);
        return;
      }
      for (std::int64_t r = begin; r < end; ++r) {
        std::byte* const row = to.row(r);
        if (arrays) {
          std::fill_n(reinterpret_cast<T*>(row), to.elements, number);
        } else {
          for_each_element(to, [&](std::int64_t offset) { std::memcpy(row + offset, &number, sizeof(T)); });
        }
      }
    });
  };
  switch (to.element_bytes) {
    case 1:
      return fill_rows(std::uint8_t{});
    case 2:
      return fill_rows(std::uint16_t{});
    default:
      return fill_rows(std::uint32_t{});
  }
}

void memset(const Tile& dst, const Scalar& value, const MemsetOptions& options, Here here) {
  record<Memset>(dst, here, [&](Memset& i) {
    i.dst = dst;
    i.value = value;
    i.engine = options.engine;
  });
}

Cost Memset::cost(const Costing& costing) const {
  const std::int64_t n = dst.row_elements();
  double cycles = cycles_of_one(costing, dst, nullptr);
  // Zeros of 16 bits are set two at a time wherever they are.
  const bool zero = is_16_bit(dst.dtype) && !is_packed(dst.dtype) && value.number() == 0;
  if (zero && costing.engine == Engine::vector) cycles = std::min(cycles, 0.5);
  return stream_cost(costing, {.elements = n,
                               .cycles = cycles * static_cast<double>(n),
                               .measured = !is_16_bit(dst.dtype),
                               .dynamic = is_dynamic(dst)});
}

std::span<const Kind> vector_copy_instructions() {
  static const Kind kinds[] = {kind<TensorCopy>(), kind<TensorCopyPredicated>(), kind<Memset>()};
  return kinds;
}

}  // namespace headway::chip
