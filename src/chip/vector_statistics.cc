#include "chip/vector_statistics.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "chip/core.h"
#include "chip/engine_cost.h"
#include "chip/row_loop.h"
#include "chip/rows.h"
#include "chip/statistics_rows.h"

namespace headway::chip {
namespace {

constexpr std::int64_t kMatchElements = 16384;

bool check_operand(Check& check, std::string_view operand, const View& view) {
  return check.on_chip(operand, view) && check.computable(operand, view);
}

void check_row_length(Check& check, std::string_view operand, const View& view, std::int64_t least,
                      std::int64_t most) {
  check.require(view.row_elements() >= least && view.row_elements() <= most, "row-length", operand,
                "must have {} to {} elements a partition, not {}", least, most, view.row_elements());
}

void check_rank(Check& check, std::string_view operand, const View& view, int most) {
  check.require(view.rank <= most, "rank", operand, "may have {} extents, partitions included, not {}", most,
                view.rank);
}

void check_places(Check& check, std::string_view operand, const View& view, std::int64_t partitions) {
  check.on_chip(operand, view);
  check.dtype(operand, view, {DType::u16, DType::u32});
  check.row_of(operand, view, partitions, 8);
}

// Few numbers from each row of `source`, compute(row, n, r) -> array, stored into `dst` once all rows are
// read.
template <class Compute>
void summarise(Core& core, const View& source, std::string_view source_name, const View& dst,
               const Compute& compute) {
  const Block in = core.read(source_name, source);
  const Block out = core.write("dst", dst);
  const std::int64_t width = out.elements;
  float* all = core.scratch(0, in.rows * width, 2);
  core.for_rows(in.rows, in.rows * in.elements, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* scratch = core.scratch(thread, in.elements, 0);
    for (std::int64_t r = begin; r < end; ++r)
      std::ranges::copy(compute(read_row(in, r, scratch), in.elements), all + r * width);
  });
  store_rows(out, 0, out.rows, RowsOut<float>{all, width});
}

std::array<Eight, 128> values_of(Core& core, const View& vals) {
  const Block block = core.read("vals", vals);
  std::array<Eight, 128> values;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    Eight& of_row = values[static_cast<std::size_t>(r)];
    const float* row = read_row(block, r, of_row.data());
    if (row != of_row.data()) std::copy_n(row, of_row.size(), of_row.begin());
  }
  return values;
}

void write_places(const Block& out, std::int64_t r, const std::array<std::int32_t, 8>& places) {
  // -1 is all ones in 16 bits as in 32.
  std::array<std::uint32_t, 8> bits;
  std::ranges::transform(places, bits.begin(),
                         [](std::int32_t place) { return static_cast<std::uint32_t>(place); });
  write_bits(out, r, bits.data());
}

// One pass over the row.
Cost row_cost(const Costing& costing, const View& dst, const View& row) {
  const std::int64_t n = row.row_elements();
  return stream_cost(costing, {.elements = n,
                               .cycles = cycles_of_any(costing, row, row) * static_cast<double>(n),
                               .dynamic = is_dynamic(dst) || is_dynamic(row)});
}

}  // namespace

// --- bn_stats ---

void BnStats::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("data", data, Access::read);
}

void BnStats::check(Check& check) const {
  check_operand(check, "dst", dst);
  check_operand(check, "data", data);
  check_row_length(check, "data", data, 1, check.spec.bn_stats_elements);
  check.row_of("dst", dst, data.rows(), 6);
}

void BnStats::apply(Core& core) const { summarise(core, data, "data", dst, bn_stats_row); }

Cost BnStats::cost(const Costing& costing) const { return row_cost(costing, dst, data); }

void bn_stats(const Tile& dst, const Tile& data, Here here) {
  record<BnStats>(dst, here, [&](BnStats& i) {
    i.dst = dst;
    i.data = data;
  });
}

// --- bn_aggr ---

void BnAggr::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("data", data, Access::read);
}

void BnAggr::check(Check& check) const {
  check_operand(check, "dst", dst);
  check_operand(check, "data", data);
  check.require(
      data.row_elements() % 3 == 0, "row-length", "data",
      "must have triples (count, mean, variance * count): {} elements a partition aren't a multiple of 3",
      data.row_elements());
  check.row_of("dst", dst, data.rows(), 2);
}

void BnAggr::apply(Core& core) const {
  summarise(core, data, "data", dst, [](const float* triples, std::int64_t n) {
    float count = 0, sum = 0;
    for (std::int64_t i = 0; i < n; i += 3) {
      count += triples[i];
      sum += triples[i] * triples[i + 1];
    }
    const float mean = sum / count;
    float squares = 0;
    for (std::int64_t i = 0; i < n; i += 3) {
      const float deviation = triples[i + 1] - mean;
      squares += triples[i + 2] + triples[i] * (deviation * deviation);
    }
    return std::array{mean, squares / count};
  });
}

Cost BnAggr::cost(const Costing& costing) const {
  constexpr double kTriple = 3;
  const std::int64_t n = data.row_elements();
  const Constant& each = costing.timing.vector.bn_aggr_cycles;
  return stream_cost(costing, {.elements = n,
                               .cycles = each.value * static_cast<double>(n) / kTriple,
                               .tag = each.tag,
                               .dynamic = is_dynamic(dst) || is_dynamic(data)});
}

void bn_aggr(const Tile& dst, const Tile& data, Here here) {
  record<BnAggr>(dst, here, [&](BnAggr& i) {
    i.dst = dst;
    i.data = data;
  });
}

// --- max8 ---

void Max8::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("src", src, Access::read);
}

void Max8::check(Check& check) const {
  check_operand(check, "dst", dst);
  check_operand(check, "src", src);
  check_rank(check, "src", src, 3);
  check_rank(check, "dst", dst, 2);
  check_row_length(check, "src", src, 8, kMatchElements);
  check.row_of("dst", dst, src.rows(), 8);
}

void Max8::apply(Core& core) const { summarise(core, src, "src", dst, max8_row); }

Cost Max8::cost(const Costing& costing) const { return row_cost(costing, dst, src); }

void max8(const Tile& dst, const Tile& src, Here here) {
  record<Max8>(dst, here, [&](Max8& i) {
    i.dst = dst;
    i.src = src;
  });
}

// --- nc_find_index8 ---

void NcFindIndex8::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("data", data, Access::read);
  fields.view("vals", vals, Access::read);
}

void NcFindIndex8::check(Check& check) const {
  check_operand(check, "data", data);
  check_rank(check, "data", data, 3);
  check_rank(check, "dst", dst, 2);
  check_row_length(check, "data", data, 8, kMatchElements);
  check_operand(check, "vals", vals);
  check_rank(check, "vals", vals, 3);
  check.row_of("vals", vals, data.rows(), 8);
  check_places(check, "dst", dst, data.rows());
}

void NcFindIndex8::apply(Core& core) const {
  const Block in = core.read("data", data);
  const std::array<Eight, 128> values = values_of(core, vals);
  const Block out = core.write("dst", dst);
  std::array<std::array<std::int32_t, 8>, 128> places;
  core.for_rows(in.rows, in.rows * in.elements, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* scratch = core.scratch(thread, in.elements, 0);
    for (std::int64_t r = begin; r < end; ++r) {
      const auto row = static_cast<std::size_t>(r);
      places[row] = find8_row(read_row(in, r, scratch), in.elements, values[row], false);
    }
  });
  for (std::int64_t r = 0; r < out.rows; ++r) write_places(out, r, places[static_cast<std::size_t>(r)]);
}

Cost NcFindIndex8::cost(const Costing& costing) const { return row_cost(costing, dst, data); }

void nc_find_index8(const Tile& dst, const Tile& data, const Tile& vals, Here here) {
  record<NcFindIndex8>(dst, here, [&](NcFindIndex8& i) {
    i.dst = dst;
    i.data = data;
    i.vals = vals;
  });
}

// --- nc_match_replace8 ---

void NcMatchReplace8::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("data", data, Access::read);
  fields.view("vals", vals, Access::read);
  fields.number("imm", imm);
  fields.optional_view("dst_idx", dst_idx, Access::write);
}

void NcMatchReplace8::check(Check& check) const {
  check_operand(check, "dst", dst);
  check_operand(check, "data", data);
  check_row_length(check, "data", data, 1, kMatchElements);
  check.same_size("dst", dst, "data", data);
  check_operand(check, "vals", vals);
  check.row_of("vals", vals, data.rows(), 8);
  if (!dst_idx) return;
  check_places(check, "dst_idx", *dst_idx, data.rows());
  check.disjoint("dst_idx", *dst_idx, "dst", dst);
}

void NcMatchReplace8::apply(Core& core) const {
  const std::array<Eight, 128> values = values_of(core, vals);
  std::array<std::array<std::int32_t, 8>, 128> places;
  RowLoop<float> loop(core);
  loop.reads("data", data);
  loop.writes("dst", dst);
  loop.run([&](const RowStep<float>& step) {
    for (std::int64_t r = 0; r < step.rows; ++r) {
      const auto row = static_cast<std::size_t>(step.first + r);
      const float* x = step.in[0].at + r * step.in[0].stride;
      float* y = step.out.at + r * step.out.stride;
      if (step.in[0].single) {
        std::fill_n(y, step.n, *x);
      } else if (x != y) {
        std::copy_n(x, step.n, y);
      }
      places[row] = find8_row(y, step.n, values[row], true);
      for (const std::int32_t place : places[row])
        if (place >= 0) y[place] = imm;
    }
  });
  if (!dst_idx) return;
  const Block out = core.write("dst_idx", *dst_idx);
  for (std::int64_t r = 0; r < out.rows; ++r) write_places(out, r, places[static_cast<std::size_t>(r)]);
}

Cost NcMatchReplace8::cost(const Costing& costing) const { return row_cost(costing, dst, data); }

void nc_match_replace8(const Tile& dst, const Tile& data, const Tile& vals, float imm,
                       const NcMatchReplace8Options& options, Here here) {
  record<NcMatchReplace8>(dst, here, [&](NcMatchReplace8& i) {
    i.dst = dst;
    i.data = data;
    i.vals = vals;
    i.imm = imm;
    i.dst_idx = options.dst_idx;
  });
}

std::span<const Kind> vector_statistics_instructions() {
  static const Kind kinds[] = {kind<BnStats>(), kind<BnAggr>(), kind<Max8>(), kind<NcFindIndex8>(),
                               kind<NcMatchReplace8>()};
  return kinds;
}

}  // namespace headway::chip
