#include "chip/gpsimd_engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "base/error.h"
#include "chip/check.h"
#include "chip/core.h"
#include "chip/engine_cost.h"
#include "chip/gpsimd_gather.h"
#include "chip/row_loop.h"
#include "chip/rows.h"

namespace headway::chip {
namespace {

constexpr std::size_t kPatternPairs = 4;

bool is_word(DType dtype) { return dtype == DType::i32 || dtype == DType::u32; }

void check_int32(Check& check, std::string_view operand, std::int64_t value) {
  check.require(
      value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max(),
      "int32", operand, "{} doesn't fit into int32", value);
}

void check_pattern(Check& check, std::span<const std::int64_t> pattern, const View& dst) {
  if (!check.require(pattern.size() % 2 == 0 && pattern.size() >= 2 && pattern.size() <= 2 * kPatternPairs,
                     "affine-pattern", "pattern",
                     "a pattern has 1 to {} pairs of step and count, not {} numbers", kPatternPairs,
                     pattern.size()))
    return;
  const std::int64_t wanted = dst.row_elements();
  std::int64_t count = 1;
  for (std::size_t i = 0; i < pattern.size(); i += 2) {
    check_int32(check, "pattern", pattern[i]);
    if (!check.require(pattern[i + 1] >= 1, "affine-pattern", "pattern", "a count of {} is not at least 1",
                       pattern[i + 1]))
      return;
    // A product that has passed what is wanted stays there: it must not overflow.
    count = pattern[i + 1] > wanted / count ? wanted + 1 : count * pattern[i + 1];
    if (count > wanted) break;
  }
  check.require(count == wanted, "affine-pattern", "pattern", "has {} elements, but dst has {} a partition",
                count > wanted ? "more" : std::to_string(count), wanted);
}

// The pattern over one row, without offset and channel.
void pattern_row(std::span<const std::int64_t> pattern, std::uint32_t* out) {
  std::array<std::uint32_t, kPatternPairs> step{};
  std::array<std::int64_t, kPatternPairs> count{1, 1, 1, 1};
  const std::size_t pairs = pattern.size() / 2;
  for (std::size_t i = 0; i < pairs; ++i) {
    step[kPatternPairs - pairs + i] = static_cast<std::uint32_t>(pattern[2 * i]);
    count[kPatternPairs - pairs + i] = pattern[2 * i + 1];
  }
  for (std::uint32_t w = 0; w < count[0]; ++w)
    for (std::uint32_t z = 0; z < count[1]; ++z)
      for (std::uint32_t y = 0; y < count[2]; ++y) {
        const std::uint32_t base = w * step[0] + z * step[1] + y * step[2];
        for (std::int64_t x = 0; x < count[3]; ++x) out[x] = base + static_cast<std::uint32_t>(x) * step[3];
        out += count[3];
      }
}

std::uint32_t* bits_scratch(Core& core, int thread, std::int64_t n, int slot) {
  return reinterpret_cast<std::uint32_t*>(core.scratch(thread, n, slot));
}

constexpr int kPatternSlot = 7;  // RowLoop has the first ones

// Calls compute(step, r, add) for each row r of each step: the row's pattern values are `pattern[j] + add`.
template <class T, class Compute>
void for_pattern_rows(Core& core, RowLoop<T>& loop, std::span<const std::int64_t> pattern,
                      const RegisterOr& offset, std::int64_t channel_multiplier, const Compute& compute) {
  std::uint32_t* row = bits_scratch(core, 0, loop.out().elements, kPatternSlot);
  pattern_row(pattern, row);
  const auto start = static_cast<std::uint32_t>(core.value(offset));
  const auto multiplier = static_cast<std::uint32_t>(channel_multiplier);
  loop.run([&](const RowStep<T>& step) {
    for (std::int64_t r = 0; r < step.rows; ++r)
      compute(step, r, row, start + static_cast<std::uint32_t>(step.first + r) * multiplier);
  });
}

// Rows may lie on each other element by element, which is no dependency between elements.
template <class T, class Compare>
void select_row(Compare compare, const std::uint32_t* pattern, std::uint32_t add, const T* in, bool single,
                T otherwise, T* out, std::int64_t n) {
  if (single) {
    const T value = *in;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = compare(static_cast<std::int32_t>(pattern[i] + add), 0) ? value : otherwise;
    return;
  }
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const T value = in[i];
    out[i] = compare(static_cast<std::int32_t>(pattern[i] + add), 0) ? value : otherwise;
  }
}

template <class T>
void select_row(Alu op, const std::uint32_t* pattern, std::uint32_t add, const T* in, bool single,
                T otherwise, T* out, std::int64_t n) {
  switch (op) {
    case Alu::equal:
      return select_row(std::equal_to<>(), pattern, add, in, single, otherwise, out, n);
    case Alu::not_equal:
      return select_row(std::not_equal_to<>(), pattern, add, in, single, otherwise, out, n);
    case Alu::greater:
      return select_row(std::greater<>(), pattern, add, in, single, otherwise, out, n);
    case Alu::greater_equal:
      return select_row(std::greater_equal<>(), pattern, add, in, single, otherwise, out, n);
    case Alu::less:
      return select_row(std::less<>(), pattern, add, in, single, otherwise, out, n);
    case Alu::less_equal:
      return select_row(std::less_equal<>(), pattern, add, in, single, otherwise, out, n);
    default:
      throw Bug("affine_select compares with no comparison");
  }
}

bool is_comparison(Alu op) {
  return op == Alu::equal || op == Alu::not_equal || op == Alu::greater || op == Alu::greater_equal ||
         op == Alu::less || op == Alu::less_equal;
}

template <class T>
void select(Core& core, const AffineSelect& i, T otherwise) {
  RowLoop<T> loop(core);
  loop.reads("on_true_tile", i.on_true_tile);
  loop.writes("dst", i.dst);
  for_pattern_rows(
      core, loop, i.pattern, i.offset, i.channel_multiplier,
      [&](const RowStep<T>& step, std::int64_t r, const std::uint32_t* pattern, std::uint32_t add) {
        const Rows<T>& in = step.in[0];
        select_row(i.cmp_op, pattern, add, in.at + r * in.stride, in.single, otherwise,
                   step.out.at + r * step.out.stride, step.n);
      });
}

template <class T>
void generate(Core& core, const Iota& i) {
  RowLoop<T> loop(core);
  loop.writes("dst", i.dst);
  for_pattern_rows(
      core, loop, i.pattern, i.offset, i.channel_multiplier,
      [&](const RowStep<T>& step, std::int64_t r, const std::uint32_t* pattern, std::uint32_t add) {
        T* out = step.out.at + r * step.out.stride;
        for (std::int64_t j = 0; j < step.n; ++j)
          out[j] = static_cast<T>(static_cast<std::int32_t>(pattern[j] + add));
      });
}

// Rows [first, first + count) of an on-chip view.
View rows_of(View view, std::int64_t first, std::int64_t count) {
  view.partition += static_cast<std::int32_t>(first);
  view.pairs[0].count = static_cast<std::int32_t>(count);
  return view;
}

// `passes` over a row, an element of a partition a cycle.
Cost row_cost(const Costing& costing, const View& row, double passes, Tag tag) {
  const std::int64_t n = row.row_elements();
  return stream_cost(
      costing,
      {.elements = n, .cycles = passes * static_cast<double>(n), .tag = tag, .dynamic = is_dynamic(row)});
}

}  // namespace

std::vector<std::int64_t> flat(std::initializer_list<Pair> pattern) {
  std::vector<std::int64_t> numbers;
  for (const Pair& pair : pattern) {
    numbers.push_back(pair.step);
    numbers.push_back(pair.count);
  }
  return numbers;
}

// --- iota ---

void Iota::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.integers("pattern", pattern);
  fields.register_or("offset", offset);
  fields.integer("channel_multiplier", channel_multiplier);
}

void Iota::check(Check& check) const {
  check.in_sbuf("dst", dst);
  check.computable("dst", dst);
  check_pattern(check, pattern, dst);
  check_int32(check, "channel_multiplier", channel_multiplier);
}

void Iota::apply(Core& core) const {
  is_word(dst.dtype) ? generate<std::uint32_t>(core, *this) : generate<float>(core, *this);
}

Cost Iota::cost(const Costing& costing) const { return row_cost(costing, dst, 1, Tag::documented); }

void iota(const Tile& dst, std::initializer_list<Pair> pattern, const IotaOptions& options, Here here) {
  record<Iota>(dst, here, [&](Iota& i) {
    i.dst = dst;
    i.pattern = flat(pattern);
    i.offset = options.offset;
    i.channel_multiplier = options.channel_multiplier;
  });
}

// --- affine_select ---

void AffineSelect::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.integers("pattern", pattern);
  fields.integer("channel_multiplier", channel_multiplier);
  fields.view("on_true_tile", on_true_tile, Access::read);
  fields.number("on_false_value", on_false_value);
  fields.choice("cmp_op", cmp_op);
  fields.register_or("offset", offset);
}

void AffineSelect::check(Check& check) const {
  check.in_sbuf("dst", dst);
  check.in_sbuf("on_true_tile", on_true_tile);
  check.computable("dst", dst);
  check.computable("on_true_tile", on_true_tile);
  check.same_size("on_true_tile", on_true_tile, "dst", dst);
  check_pattern(check, pattern, dst);
  check_int32(check, "channel_multiplier", channel_multiplier);
  check.require(is_comparison(cmp_op), "op", "cmp_op", "{} is no comparison (equal to less_equal)",
                name_of(cmp_op));
}

void AffineSelect::apply(Core& core) const {
  if (dst.dtype != on_true_tile.dtype) return select<float>(core, *this, on_false_value);
  std::uint32_t bits = 0;
  write_element(dst.dtype, reinterpret_cast<std::byte*>(&bits), on_false_value);
  select(core, *this, bits);
}

Cost AffineSelect::cost(const Costing& costing) const { return row_cost(costing, dst, 1, Tag::documented); }

void affine_select(const Tile& dst, std::initializer_list<Pair> pattern, std::int32_t channel_multiplier,
                   const Tile& on_true_tile, float on_false_value, const AffineSelectOptions& options,
                   Here here) {
  record<AffineSelect>(dst, here, [&](AffineSelect& i) {
    i.dst = dst;
    i.pattern = flat(pattern);
    i.channel_multiplier = channel_multiplier;
    i.on_true_tile = on_true_tile;
    i.on_false_value = on_false_value;
    i.cmp_op = options.cmp_op;
    i.offset = options.offset;
  });
}

// --- tensor_partition_reduce ---

void TensorPartitionReduce::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.choice("op", op);
  fields.view("data", data, Access::read);
}

void TensorPartitionReduce::check(Check& check) const {
  check.in_sbuf("dst", dst);
  check.in_sbuf("data", data);
  check.require(dst.rows() == 1, "partitions", "dst", "has {} partitions, a reduction over them leaves 1",
                dst.rows());
  check.same_row("dst", dst, "data", data);
  const bool allowed = op == Alu::add || op == Alu::average || op == Alu::maximum || op == Alu::bitwise_and ||
                       op == Alu::bitwise_or;
  if (!check.require(allowed, "op", "op", "{} is none of add, average, maximum, bitwise_and, bitwise_or",
                     name_of(op)))
    return;
  if (is_bitwise(op)) {
    check.require(is_integer(data.dtype) || data.dtype == DType::boolean, "dtype", "data",
                  "{} needs integers, not {}", name_of(op), headway::name_of(data.dtype));
    check.same_dtype("dst", dst, "data", data);
  } else {
    check.computable("dst", dst);
    check.computable("data", data);
  }
}

namespace {

// sum = the first row, then take(sum, row) for each other one. Partition by partition: the order of float32
// sums is part of the result.
template <class T, class Take>
T* reduce_partitions(Core& core, const Block& in, const Take& take) {
  constexpr std::int64_t kTogether = 4096;  // elements brought together at a time
  const std::int64_t n = in.elements, together = std::max<std::int64_t>(1, kTogether / n);
  T* sum = reinterpret_cast<T*>(core.scratch(0, n, 0));
  T* scratch = reinterpret_cast<T*>(core.scratch(0, together * n, 1));
  for (std::int64_t first = 0; first < in.rows; first += together) {
    const std::int64_t count = std::min(together, in.rows - first);
    const Rows<T> rows = load_all(in, first, count, scratch);
    for (std::int64_t r = 0; r < count; ++r) {
      const T* row = rows.at + r * rows.stride;
      if (first + r == 0) {
        std::copy(row, row + n, sum);
      } else {
        take(sum, row);
      }
    }
  }
  return sum;
}

std::uint32_t* reduce_bits(Core& core, const Block& in, Alu op) {
  const std::int64_t n = in.elements;
  const auto reduce = [&](const auto& combine) {
    return reduce_partitions<std::uint32_t>(core, in, [&](std::uint32_t* sum, const std::uint32_t* row) {
      for (std::int64_t j = 0; j < n; ++j) sum[j] = combine(sum[j], row[j]);
    });
  };
  // Flipping the sign bit orders int32 as uint32.
  const std::uint32_t flip = in.dtype == DType::i32 ? 0x80000000u : 0u;
  switch (op) {
    case Alu::add:
      return reduce(std::plus<>());
    case Alu::bitwise_and:
      return reduce(std::bit_and<>());
    case Alu::bitwise_or:
      return reduce(std::bit_or<>());
    case Alu::maximum:
      return reduce([=](std::uint32_t a, std::uint32_t b) { return std::max(a ^ flip, b ^ flip) ^ flip; });
    default:
      throw Bug("no reduction of integers over partitions: " + std::string(name_of(op)));
  }
}

}  // namespace

void TensorPartitionReduce::apply(Core& core) const {
  const Block in = core.read("data", data);
  const Block out = core.write("dst", dst);
  const std::int64_t n = in.elements;
  if (is_bitwise(op) || (is_word(data.dtype) && data.dtype == dst.dtype && op != Alu::average)) {
    write_bits(out, 0, reduce_bits(core, in, op));
    return;
  }
  float* sum = reduce_partitions<float>(core, in, [&](float* so_far, const float* row) {
    if (op == Alu::maximum) return alu_row(Alu::maximum, so_far, row, so_far, n);
    for (std::int64_t j = 0; j < n; ++j) so_far[j] += row[j];
  });
  if (op == Alu::average) {
    const auto count = static_cast<float>(in.rows);
    for (std::int64_t j = 0; j < n; ++j) sum[j] /= count;
  }
  write_row(out, 0, sum);
}

// No formula is public: taken that each core reduces its partitions in one pass, and one core their results.
Cost TensorPartitionReduce::cost(const Costing& costing) const {
  return row_cost(costing, dst, 1 + costing.timing.gpsimd.cores.value, Tag::assumed);
}

void tensor_partition_reduce(const Tile& dst, Alu op, const Tile& data, Here here) {
  record<TensorPartitionReduce>(dst, here, [&](TensorPartitionReduce& i) {
    i.dst = dst;
    i.op = op;
    i.data = data;
  });
}

// --- sequence_bounds ---

void SequenceBounds::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("segment_ids", segment_ids, Access::read);
}

void SequenceBounds::check(Check& check) const {
  check.in_sbuf("dst", dst);
  check.in_sbuf("segment_ids", segment_ids);
  check.dtype("dst", dst, {DType::f32, DType::i32});
  check.dtype("segment_ids", segment_ids, {DType::f32, DType::i32});
  check.require(segment_ids.rows() == 1, "partitions", "segment_ids", "has {} partitions, it must have 1",
                segment_ids.rows());
  check.row_of("dst", dst, 1, 2 * segment_ids.row_elements());
}

void SequenceBounds::apply(Core& core) const {
  const Block in = core.read("segment_ids", segment_ids);
  const std::int64_t n = in.elements;
  // As double: exact for both dtypes, so that large ids stay apart.
  auto* ids = reinterpret_cast<double*>(core.scratch(0, 2 * n, 0));
  if (segment_ids.dtype == DType::i32) {
    const std::uint32_t* bits = read_bits(in, 0, bits_scratch(core, 0, n, 1));
    std::transform(bits, bits + n, ids, [](std::uint32_t b) { return static_cast<std::int32_t>(b); });
  } else {
    const float* values = read_row(in, 0, core.scratch(0, n, 1));
    std::copy(values, values + n, ids);
  }
  for (std::int64_t i = 0; i < n; ++i)
    if (!(std::isfinite(ids[i]) && ids[i] >= 0 && std::floor(ids[i]) == ids[i]))
      core.report(Severity::kernel_error, "segment-id", "segment_ids",
                  fmt::format("element {} is {}; ids are whole numbers of at least 0", i, ids[i]));
  float* begins = core.scratch(0, 2 * n, 2);
  float* ends = begins + n;
  for (std::int64_t begin = 0; begin < n;) {
    std::int64_t end = begin + 1;
    while (end < n && ids[end] == ids[begin]) ++end;
    const bool padding = ids[begin] == 0;
    std::fill(begins + begin, begins + end, static_cast<float>(padding ? n : begin));
    std::fill(ends + begin, ends + end, padding ? -1.0f : static_cast<float>(end));
    begin = end;
  }
  write_row(core.write("dst", dst), 0, begins);
}

// No formula is public: taken as one pass for the starts and one, backwards, for the ends.
Cost SequenceBounds::cost(const Costing& costing) const {
  return row_cost(costing, segment_ids, 2, Tag::assumed);
}

void sequence_bounds(const Tile& dst, const Tile& segment_ids, Here here) {
  record<SequenceBounds>(dst, here, [&](SequenceBounds& i) {
    i.dst = dst;
    i.segment_ids = segment_ids;
  });
}

// --- nonzero_with_count ---

void NonzeroWithCount::visit(Fields& fields) {
  fields.view("dst", dst, Access::update);  // other partitions keep what they have
  fields.view("src", src, Access::read);
  fields.integer("index_offset", index_offset);
  fields.integer("padding_val", padding_val);
}

void NonzeroWithCount::check(Check& check) const {
  if (!check.generation(3, "nonzero_with_count")) return;
  check.in_sbuf("dst", dst);
  check.in_sbuf("src", src);
  check.dtype("dst", dst, {DType::i32});
  check.dtype("src", src, {DType::f32, DType::i32});
  check.same_partitions("dst", dst, "src", src);
  check.require(dst.row_elements() == src.row_elements() + 1, "shape", "dst",
                "must have one element a partition more than src: {}, not {}", src.row_elements() + 1,
                dst.row_elements());
  check_int32(check, "index_offset", index_offset);
  check_int32(check, "padding_val", padding_val);
}

void NonzeroWithCount::apply(Core& core) const {
  const std::int64_t n = src.row_elements(), cores = (src.rows() + kGpsimdLanes - 1) / kGpsimdLanes;
  const auto first = static_cast<std::uint32_t>(index_offset);
  // A float32 counts as zero with either sign.
  const std::uint32_t mask = src.dtype == DType::f32 ? 0x7fffffffu : 0xffffffffu;
  std::uint32_t* found = bits_scratch(core, 0, cores * (n + 1), 0);
  for (std::int64_t c = 0; c < cores; ++c) {
    const Block in = core.read("src", rows_of(src, c * kGpsimdLanes, 1));
    const std::uint32_t* bits = read_bits(in, 0, bits_scratch(core, 0, n, 1));
    std::uint32_t* out = found + c * (n + 1);
    std::uint32_t count = 0;
    for (std::int64_t j = 0; j < n; ++j)
      if (bits[j] & mask) out[count++] = first + static_cast<std::uint32_t>(j);
    std::fill(out + count, out + n, static_cast<std::uint32_t>(padding_val));
    out[n] = count;
  }
  for (std::int64_t c = 0; c < cores; ++c)
    write_bits(core.write("dst", rows_of(dst, c * kGpsimdLanes, 1)), 0, found + c * (n + 1));
}

// No formula is public: taken as one pass.
Cost NonzeroWithCount::cost(const Costing& costing) const { return row_cost(costing, src, 1, Tag::assumed); }

void nonzero_with_count(const Tile& dst, const Tile& src, const NonzeroWithCountOptions& options, Here here) {
  record<NonzeroWithCount>(dst, here, [&](NonzeroWithCount& i) {
    i.dst = dst;
    i.src = src;
    i.index_offset = options.index_offset;
    i.padding_val = options.padding_val;
  });
}

std::span<const Kind> gpsimd_engine_instructions() {
  static const Kind kinds[] = {kind<Iota>(),
                               kind<AffineSelect>(),
                               kind<TensorPartitionReduce>(),
                               kind<SequenceBounds>(),
                               kind<NonzeroWithCount>(),
                               kind<LocalGather>(),
                               kind<NcNGather>(),
                               kind<Topk>()};
  return kinds;
}

}  // namespace headway::chip
