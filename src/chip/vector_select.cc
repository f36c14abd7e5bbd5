#include "chip/vector_select.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>

#include "chip/core.h"
#include "chip/engine_cost.h"
#include "chip/row_loop.h"
#include "chip/row_scalar.h"
#include "chip/rows.h"
#include "chip/statistics_rows.h"

namespace headway::chip {
namespace {

std::string_view word(Alu op) { return names_of(op)[static_cast<std::size_t>(op)]; }

// --- The maximum of each row, in the registers ---

void check_maximum(Check& check, Alu op, ReduceCmd cmd, const std::optional<View>& res,
                   std::int64_t partitions) {
  check.require(op == Alu::maximum, "reduce-op", "reduce_op", "must be maximum, not {}", word(op));
  check.require(
      cmd != ReduceCmd::load_reduce, "reduce-cmd", "reduce_cmd",
      "load_reduce needs a value to load; this instruction has idle, reset, reduce and reset_reduce");
  if (res && check.on_chip("reduce_res", *res) && check.computable("reduce_res", *res))
    check.row_of("reduce_res", *res, partitions, 1);
}

// The lanes' registers of the rows of `view`, reset where `cmd` says so.
float* registers_of(Core& core, const View& view, ReduceCmd cmd) {
  float* registers = core.vector_accumulator.data() + first_lane(core.program(), view);
  if (resets(cmd)) std::fill_n(registers, view.rows(), identity(Alu::maximum));
  return registers;
}

void reduce(const RowStep<float>& step, ReduceCmd cmd, float* registers) {
  float* const largest = registers + step.first;
  const Rows<float> results{step.out.at, step.out.stride};
  if (reduces(cmd)) reduce_rows(Alu::maximum, results, largest, {largest, 1}, step.rows, 1, step.n);
}

void read_out(Core& core, const std::optional<View>& reduce_res, float* registers) {
  if (!reduce_res) return;
  const Block res = core.write("reduce_res", *reduce_res);
  store_rows(res, 0, res.rows, RowsOut<float>{registers, 1});
}

// --- range_select ---

constexpr float kMostIndex = 0x1p24f;

bool compares(Alu op) {
  switch (op) {
    case Alu::equal:
    case Alu::less:
    case Alu::less_equal:
    case Alu::greater:
    case Alu::greater_equal:
      return true;
    default:
      return false;
  }
}

// Places [begin, end) of a row.
struct Interval {
  std::int64_t begin = 0, end = 0;
};

// The places i < n at which (start + i) op bound. Whole numbers of at most 24 bits are exact in float32, so
// comparing them there is comparing them with the bound rounded to a whole number.
Interval selected(Alu op, float bound, std::int64_t start, std::int64_t n) {
  if (std::isnan(bound)) return {};
  // Beyond what indices reach all bounds are alike, and all fit into integers.
  const double b = std::clamp(static_cast<double>(bound), -0x1p30, 0x1p30);
  const std::int64_t below =
      static_cast<std::int64_t>(std::floor(b)) - start;  // the last place not above the bound
  const std::int64_t above = static_cast<std::int64_t>(std::ceil(b)) - start;  // the first place not below it
  Interval places{0, n};
  switch (op) {
    case Alu::less:
      places.end = above;
      break;
    case Alu::less_equal:
      places.end = below + 1;
      break;
    case Alu::greater:
      places.begin = below + 1;
      break;
    case Alu::greater_equal:
      places.begin = above;
      break;
    default:  // equal: none where the bound isn't whole
      places = {above, below + 1};
      break;
  }
  return {std::clamp<std::int64_t>(places.begin, 0, n), std::clamp<std::int64_t>(places.end, 0, n)};
}

}  // namespace

void RangeSelect::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("on_true_tile", on_true_tile, Access::read);
  fields.choice("comp_op0", comp_op0);
  fields.choice("comp_op1", comp_op1);
  fields.view("bound0", bound0, Access::read);
  fields.view("bound1", bound1, Access::read);
  fields.choice("reduce_cmd", reduce_cmd);
  fields.optional_view("reduce_res", reduce_res, Access::write);
  fields.choice("reduce_op", reduce_op);
  fields.integer("range_start", range_start);
  fields.number("on_false_value", on_false_value);
}

void RangeSelect::check(Check& check) const {
  if (!check.generation(3, "range_select")) return;
  check.on_chip("dst", dst);
  check.computable("dst", dst);
  check.on_chip("on_true_tile", on_true_tile);
  if (check.computable("on_true_tile", on_true_tile))
    check.require(is_float(on_true_tile.dtype), "dtype", "on_true_tile", "must be floating point, not {}",
                  headway::name_of(on_true_tile.dtype));
  check.same_size("dst", dst, "on_true_tile", on_true_tile);
  const auto comparison = [&](std::string_view operand, Alu op) {
    check.require(compares(op), "compare-op", operand,
                  "must be equal, less, less_equal, greater or greater_equal, not {}", word(op));
  };
  comparison("comp_op0", comp_op0);
  comparison("comp_op1", comp_op1);
  const auto bound = [&](std::string_view operand, const View& view) {
    check.on_chip(operand, view);
    check.dtype(operand, view, {DType::f32});
    check.row_of(operand, view, on_true_tile.rows(), 1);
  };
  bound("bound0", bound0);
  bound("bound1", bound1);
  check_maximum(check, reduce_op, reduce_cmd, reduce_res, on_true_tile.rows());
  const std::int64_t last = on_true_tile.row_elements() - 1;
  const auto most = static_cast<std::int64_t>(kMostIndex);
  check.require(range_start >= -most && range_start <= most && range_start + last <= most, "range-start",
                "range_start", "indices {} to {} must lie within 2^24, where float32 counts exactly",
                range_start, static_cast<double>(range_start) + static_cast<double>(last));
  check.require(on_false_value == kFp32Min, "false-value", "on_false_value", "must be {}, not {}", kFp32Min,
                on_false_value);
}

void RangeSelect::apply(Core& core) const {
  const std::int64_t rows = on_true_tile.rows();
  const RowScalar<float> bounds0(core, "bound0", bound0, rows), bounds1(core, "bound1", bound1, rows);
  float* const registers = registers_of(core, on_true_tile, reduce_cmd);
  RowLoop<float> loop(core);
  loop.reads("on_true_tile", on_true_tile);
  loop.writes("dst", dst);
  loop.run([&](const RowStep<float>& step) {
    for (std::int64_t r = 0; r < step.rows; ++r) {
      const Interval a = selected(comp_op0, *bounds0.from(step.first + r).at, range_start, step.n);
      const Interval b = selected(comp_op1, *bounds1.from(step.first + r).at, range_start, step.n);
      const std::int64_t begin = std::max(a.begin, b.begin), end = std::max(begin, std::min(a.end, b.end));
      const float* x = step.in[0].at + r * step.in[0].stride;
      float* y = step.out.at + r * step.out.stride;
      if (step.in[0].single) {
        std::fill(y + begin, y + end, *x);
      } else if (x != y) {
        std::copy(x + begin, x + end, y + begin);
      }
      std::fill(y, y + begin, on_false_value);
      std::fill(y + end, y + step.n, on_false_value);
    }
    reduce(step, reduce_cmd, registers);
  });
  read_out(core, reduce_res, registers);
}

Cost RangeSelect::cost(const Costing& costing) const {
  const std::int64_t n = dst.row_elements();
  return stream_cost(costing, {.elements = n,
                               .cycles = cycles_of_any(costing, dst, on_true_tile) * static_cast<double>(n),
                               .pointer = true,
                               .dynamic = is_dynamic(dst) || is_dynamic(on_true_tile)});
}

void range_select(const Tile& dst, const Tile& on_true_tile, Alu comp_op0, Alu comp_op1, const Tile& bound0,
                  const Tile& bound1, const RangeSelectOptions& options, Here here) {
  record<RangeSelect>(dst, here, [&](RangeSelect& i) {
    i.dst = dst;
    i.on_true_tile = on_true_tile;
    i.comp_op0 = comp_op0;
    i.comp_op1 = comp_op1;
    i.bound0 = bound0;
    i.bound1 = bound1;
    i.reduce_cmd = options.reduce_cmd;
    i.reduce_res = options.reduce_res;
    i.reduce_op = options.reduce_op;
    i.range_start = options.range_start;
    i.on_false_value = options.on_false_value;
  });
}

// --- select_reduce ---

void SelectReduce::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("predicate", predicate, Access::read);
  fields.view("on_true", on_true, Access::read);
  fields.scalar("on_false", on_false);
  fields.optional_view("reduce_res", reduce_res, Access::write);
  fields.choice("reduce_cmd", reduce_cmd);
  fields.choice("reduce_op", reduce_op);
  fields.flag("reverse_pred", reverse_pred);
}

void SelectReduce::check(Check& check) const {
  check.on_chip("dst", dst);
  check.computable("dst", dst);
  check.on_chip("predicate", predicate);
  check.dtype("predicate", predicate, {DType::i8, DType::u8, DType::i16, DType::u16});
  check.on_chip("on_true", on_true);
  if (check.computable("on_true", on_true))
    check.require(on_true.dtype != DType::tf32 && on_true.dtype != DType::i32 && on_true.dtype != DType::u32,
                  "dtype", "on_true", "may have any dtype but tfloat32, int32 and uint32");
  check.same_size("dst", dst, "on_true", on_true);
  check.same_size("predicate", predicate, "on_true", on_true);
  check.not_both_psum("on_true", on_true, "predicate", predicate);
  check.scalar("on_false", on_false, on_true.rows());
  check_maximum(check, reduce_op, reduce_cmd, reduce_res, on_true.rows());
  if (reduce_res)
    check.require(is_float(reduce_res->dtype), "dtype", "reduce_res", "must be floating point, not {}",
                  headway::name_of(reduce_res->dtype));
}

void SelectReduce::apply(Core& core) const {
  const RowScalar<float> otherwise(core, "on_false", on_false, on_true.rows());
  float* const registers = registers_of(core, on_true, reduce_cmd);
  RowLoop<float> loop(core);
  loop.reads("predicate", predicate);
  loop.reads("on_true", on_true);
  loop.writes("dst", dst);
  loop.run([&](const RowStep<float>& step) {
    for (std::int64_t r = 0; r < step.rows; ++r) {
      const Rows<float>&p = step.in[0], &t = step.in[1];
      const float* x = t.at + r * t.stride;
      if (t.single) {
        std::fill_n(step.spare, step.n, *x);
        x = step.spare;
      }
      // A repeated predicate isn't float32 in memory, so it was written out.
      select_row(p.at + r * p.stride, reverse_pred, x, *otherwise.from(step.first + r).at,
                 step.out.at + r * step.out.stride, step.n);
    }
    reduce(step, reduce_cmd, registers);
  });
  read_out(core, reduce_res, registers);
}

// No formula is public: taken as tensor_copy_predicated.
Cost SelectReduce::cost(const Costing& costing) const {
  const std::int64_t n = dst.row_elements();
  const bool twice = costing.buffer(on_true) == Buffer::sbuf && costing.buffer(predicate) == Buffer::sbuf;
  return stream_cost(
      costing, {.elements = n,
                .cycles = (twice ? 2 : 1) * cycles_of_any(costing, dst, on_true) * static_cast<double>(n),
                .tag = Tag::assumed,
                .pointer = on_false.view() != nullptr,
                .dynamic = is_dynamic(dst) || is_dynamic(predicate) || is_dynamic(on_true),
                .reads_accumulator = reduce_res.has_value()});
}

void select_reduce(const Tile& dst, const Tile& predicate, const Tile& on_true, const Scalar& on_false,
                   const SelectReduceOptions& options, Here here) {
  record<SelectReduce>(dst, here, [&](SelectReduce& i) {
    i.dst = dst;
    i.predicate = predicate;
    i.on_true = on_true;
    i.on_false = on_false;
    i.reduce_res = options.reduce_res;
    i.reduce_cmd = options.reduce_cmd;
    i.reduce_op = options.reduce_op;
    i.reverse_pred = options.reverse_pred;
  });
}

// --- nc_stream_shuffle ---

namespace {

constexpr std::int64_t kQuadrant = 32;
constexpr std::int64_t kKeep = 255;

}  // namespace

void NcStreamShuffle::visit(Fields& fields) {
  const bool keeps = std::ranges::find(shuffle_mask, kKeep) != shuffle_mask.end();
  fields.view("dst", dst, keeps ? Access::update : Access::write);
  fields.view("src", src, Access::read);
  fields.integers("shuffle_mask", shuffle_mask);
}

void NcStreamShuffle::check(Check& check) const {
  check.on_chip("dst", dst);
  check.on_chip("src", src);
  check.same_dtype("dst", dst, "src", src);
  check.same_row("dst", dst, "src", src);
  if (!check.require(shuffle_mask.size() == kQuadrant, "shuffle-mask", "shuffle_mask",
                     "must have {} entries, not {}", kQuadrant, shuffle_mask.size()))
    return;
  for (std::int64_t r = 0; r < dst.rows(); ++r) {
    const std::int64_t entry = shuffle_mask[static_cast<std::size_t>(r % kQuadrant)];
    if (!check.require(entry == kKeep || (entry >= 0 && entry < kQuadrant), "shuffle-mask", "shuffle_mask",
                       "entry {} is {}; entries are 0 to 31, or 255 to leave a partition as it is",
                       r % kQuadrant, entry))
      return;
    const std::int64_t from = r / kQuadrant * kQuadrant + entry;
    if (!check.require(entry == kKeep || from < src.rows(), "shuffle-mask", "shuffle_mask",
                       "partition {} of dst takes partition {} of src, which has {}", r, from, src.rows()))
      return;
  }
  // Whole quadrants take part, of the wider operand.
  const std::int64_t active = (std::max(dst.rows(), src.rows()) + kQuadrant - 1) / kQuadrant * kQuadrant;
  const std::int64_t step = active > 64 ? 128 : active;
  const auto start = [&](std::string_view operand, const View& view) {
    const std::int64_t first = first_lane(check.program, view);
    check.require(first % step == 0, "start-partition", operand,
                  "{} active partitions must start at partition {}, not {}", active,
                  step == 128  ? "0"
                  : step == 64 ? "0 or 64"
                               : "0, 32, 64 or 96",
                  first);
  };
  start("dst", dst);
  start("src", src);
}

void NcStreamShuffle::apply(Core& core) const {
  // Which partition of src each of dst takes, or -1.
  std::array<std::int64_t, 128> from;
  std::array<bool, 128> used{};
  std::array<std::uint8_t, 128> written{};
  const std::int64_t rows = dst.rows(), n = dst.row_elements();
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t entry = shuffle_mask[static_cast<std::size_t>(r % kQuadrant)];
    const auto row = static_cast<std::size_t>(r);
    from[row] = entry == kKeep ? -1 : r / kQuadrant * kQuadrant + entry;
    written[row] = entry != kKeep;
    if (entry != kKeep) used[static_cast<std::size_t>(from[row])] = true;
  }
  // Partitions that nothing takes need not have been written.
  std::array<Block, 128> sources;
  const bool all_used = std::all_of(used.begin(), used.begin() + src.rows(), std::identity());
  const Block whole = all_used ? core.read("src", src) : Block{};
  for (std::int64_t r = 0; r < src.rows(); ++r) {
    const auto row = static_cast<std::size_t>(r);
    if (!used[row]) continue;
    if (all_used) {
      sources[row] = whole;
      sources[row].base = whole.row(r);
    } else {
      View one = src;
      one.partition += static_cast<std::int32_t>(r);
      one.pairs[0].count = 1;
      sources[row] = core.read("src", one);
    }
  }
  const bool all_written = std::all_of(written.begin(), written.begin() + rows, std::identity());
  const Block out = all_written ? core.write("dst", dst) : core.target("dst", dst);
  const bool aside = core.overlap(dst, src);
  auto* const results = reinterpret_cast<std::uint32_t*>(aside ? core.scratch(0, rows * n, 1) : nullptr);
  core.for_rows(rows, rows * n, [&](std::int64_t begin, std::int64_t end, int thread) {
    auto* scratch = reinterpret_cast<std::uint32_t*>(core.scratch(thread, n, 0));
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t source = from[static_cast<std::size_t>(r)];
      if (source < 0) continue;
      const std::uint32_t* row = read_bits(sources[static_cast<std::size_t>(source)], 0, scratch);
      if (aside) {
        std::copy_n(row, n, results + r * n);
      } else {
        write_bits(out, r, row);
      }
    }
  });
  if (aside) {
    for (std::int64_t r = 0; r < rows; ++r)
      if (written[static_cast<std::size_t>(r)]) write_bits(out, r, results + r * n);
  }
  if (!all_written) core.mark_rows(dst, std::span(written).first(static_cast<std::size_t>(rows)));
}

Cost NcStreamShuffle::cost(const Costing& costing) const {
  const std::int64_t n = dst.row_elements();
  return stream_cost(costing, {.elements = n,
                               .cycles = cycles_of_any(costing, dst, src) * static_cast<double>(n),
                               .dynamic = is_dynamic(dst) || is_dynamic(src)});
}

void nc_stream_shuffle(const Tile& dst, const Tile& src, const std::vector<std::int64_t>& shuffle_mask,
                       Here here) {
  record<NcStreamShuffle>(dst, here, [&](NcStreamShuffle& i) {
    i.dst = dst;
    i.src = src;
    i.shuffle_mask = shuffle_mask;
  });
}

std::span<const Kind> vector_select_instructions() {
  static const Kind kinds[] = {kind<RangeSelect>(), kind<SelectReduce>(), kind<NcStreamShuffle>()};
  return kinds;
}

}  // namespace headway::chip
