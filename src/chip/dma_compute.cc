#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "chip/dma_common.h"
#include "chip/dma_cost.h"
#include "chip/dma_engine.h"
#include "chip/strided_copy.h"

namespace headway::chip {
namespace {

// Whether two views are the same elements, dynamic offsets included, however often those were declared.
bool same_elements(const Program& program, const View& a, const View& b) {
  View fixed_a = a, fixed_b = b;
  fixed_a.dynamic = fixed_b.dynamic = -1;
  if (fixed_a != fixed_b) return false;
  const DynamicOffset *da = dynamic_of(program, a), *db = dynamic_of(program, b);
  return da && db ? *da == *db : da == db;
}

}  // namespace

void DmaCompute::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.views("srcs", srcs, Access::read);
  fields.choice("reduce_op", reduce_op);
  fields.numbers("scales", scales);
  fields.flag("unique_indices", unique_indices);
  fields.choice("oob_mode", oob_mode);
}

void DmaCompute::check(Check& check) const {
  check_dma_buffer(check, "dst", dst);
  check.computable("dst", dst);
  check_distinct(check, "dst", dst);
  if (!check.require(!srcs.empty() && srcs.size() <= 16, "sources", "srcs",
                     "has {} tensors; it may have 1 to 16", srcs.size()))
    return;
  for (const View& src : srcs) {
    check_dma_buffer(check, "srcs", src);
    check.computable("srcs", src);
    check.require(src.elements() == dst.elements(), "shape", "srcs", "has {} elements, but dst has {}",
                  src.elements(), dst.elements());
  }
  check.require(reduce_op == Alu::add, "reduce-op", "reduce_op", "is {}; DMA engines only add",
                names_of(reduce_op)[static_cast<std::size_t>(reduce_op)]);
  if (check.require(scales.empty() || scales.size() == srcs.size(), "scales", "scales",
                    "has {} values for {} sources", scales.size(), srcs.size()))
    for (float scale : scales)
      check.require(scale == 1.0f, "scales", "scales", "has {}; all must be 1", scale);

  bool indexed = by_index(check.program, dst);
  const auto moving = [&](std::string_view operand, const View& view) {
    if (view.dynamic < 0) return;
    if (check.require(by_index(check.program, view), "dge-mode", operand,
                      "{} moves by one offset; dma_compute takes fixed places or rows by index",
                      to_string(view, check.tensor_of(view)))) {
      check_index(check, operand, view);
      indexed = true;
    }
  };
  moving("dst", dst);
  for (const View& src : srcs) moving("srcs", src);
  check.require(oob_mode == OobMode::error || indexed, "oob-mode", "oob_mode", "skip needs rows by index");
  check.require(unique_indices, "unique-indices", "unique_indices",
                "rows that come up more than once are not supported; it must be true");
  if (!indexed) return;

  // Read, modify and write: dst is one of the two sources, and the rows are those of the tensor in HBM.
  if (!check.require(srcs.size() == 2, "sources", "srcs", "has {} tensors; with rows by index it must have 2",
                     srcs.size()))
    return;
  const bool first = same_elements(check.program, srcs[0], dst),
             second = same_elements(check.program, srcs[1], dst);
  if (!check.require(
          first || second, "sources", "srcs",
          "with rows by index one of the two must be dst itself, the same elements by the same index"))
    return;
  const View& other = first ? srcs[1] : srcs[0];
  const View& rows = by_index(check.program, dst) ? dst : other;
  const View& data = by_index(check.program, dst) ? other : dst;
  check.require(!by_index(check.program, data), "sources", "srcs",
                "only one of dst and the data may have an index");
  check.in_sbuf(by_index(check.program, dst) ? "srcs" : "dst", data);
  check.require(
      data.rows() == rows.rows() && data.row_elements() == rows.row_elements(), "shape", "srcs",
      "rows by index are {}, the data is {}", [&] { return to_string(rows.shape()); },
      [&] { return to_string(data.shape()); });
}

Engines DmaCompute::engines(const Check& check) const {
  const auto indexed = [&](const View& view) { return by_index(check.program, view); };
  const bool any = indexed(dst) || std::any_of(srcs.begin(), srcs.end(), indexed);
  return dma_triggers(any ? DgeMode::swdge : DgeMode::none, any);
}

Cost DmaCompute::cost(const Costing& costing) const {
  DmaWork work;
  Duration time;
  bool indexed = by_index(costing.program, dst);
  for (std::size_t s = 0; s < srcs.size(); ++s) {
    indexed = indexed || by_index(costing.program, srcs[s]);
    add_transfer(costing, dst, srcs[s], {.share = costing.timing.dma.compute_share, .reads_only = s > 0},
                 work, time);
  }
  Cost cost = dma_cost(costing, indexed ? DgeMode::swdge : DgeMode::none, indexed, work, time);
  cost.calibrated = false;  // none was measured
  return cost;
}

void DmaCompute::apply(Core& core) const {
  for (const View& view : {dst, srcs[0], srcs.back()})
    if (by_index(core.program(), view)) return apply_by_index(core, view);

  std::vector<Pattern> from;
  from.reserve(srcs.size());
  bool apart = true;
  for (const View& src : srcs) {
    from.push_back(merged(pattern_of(src, core.read("srcs", src))));
    apart &= !core.overlap(dst, src) || core.same_place(dst, src);
  }
  const Pattern to = merged(pattern_of(dst, core.write("dst", dst)));
  const std::int64_t count = dst.elements(), pieces = (count + kMovePiece - 1) / kMovePiece;
  // Where dst lies across a source, all is read before anything is written.
  std::vector<float> sums(apart ? 0 : static_cast<std::size_t>(count));
  core.for_rows(pieces, count, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* scratch = core.scratch(thread, 2 * kMovePiece);
    float* next = scratch + kMovePiece;
    for (std::int64_t at = begin * kMovePiece; at < std::min(end * kMovePiece, count); at += kMovePiece) {
      const std::int64_t n = std::min(kMovePiece, count - at);
      float* sum = apart ? scratch : sums.data() + at;
      load(from[0], at, n, sum);
      for (std::size_t s = 1; s < from.size(); ++s) {
        load(from[s], at, n, next);
        for (std::int64_t i = 0; i < n; ++i) sum[i] += next[i];
      }
      if (apart) store(to, at, n, sum);
    }
  });
  if (apart) return;
  core.for_rows(pieces, count, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t at = begin * kMovePiece; at < std::min(end * kMovePiece, count); at += kMovePiece)
      store(to, at, std::min(kMovePiece, count - at), sums.data() + at);
  });
}

void DmaCompute::apply_by_index(Core& core, const View& indirect) const {
  const bool scatter = by_index(core.program(), dst);
  const View& data = !scatter ? dst : by_index(core.program(), srcs[0]) ? srcs[1] : srcs[0];
  const Block rows = core.gather("srcs", indirect, oob_mode);
  const Block values = scatter ? core.read("srcs", data) : core.update("dst", data);
  const Block to = scatter ? core.target("dst", dst, oob_mode) : values;
  if (scatter) {
    const RowPair pair = meeting_rows(to);
    if (pair.first >= 0)
      core.report(Severity::kernel_error, "unique-indices", "dst",
                  fmt::format("rows {} and {} go to the same place, but unique_indices says that none do",
                              pair.first, pair.second));
  }
  core.for_rows(rows.rows, rows.rows * rows.elements, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* a = core.scratch(thread, 2 * kMovePiece);
    float* b = a + kMovePiece;
    for (std::int64_t r = begin; r < end; ++r) {
      if (rows.row_offsets[r] < 0) continue;
      const Pattern row = row_pattern(rows, r), value = row_pattern(values, r), out = row_pattern(to, r);
      for (std::int64_t at = 0; at < rows.elements; at += kMovePiece) {
        const std::int64_t n = std::min(kMovePiece, rows.elements - at);
        load(row, at, n, a);
        load(value, at, n, b);
        for (std::int64_t i = 0; i < n; ++i) a[i] += b[i];
        store(out, at, n, a);
      }
    }
  });
  if (scatter) core.mark_rows(dst, std::vector<std::uint8_t>(static_cast<std::size_t>(dst.rows()), 1));
}

void dma_compute(const Tile& dst, const std::vector<View>& srcs, Alu reduce_op,
                 const DmaComputeOptions& options, Here here) {
  record<DmaCompute>(dst, here, [&](DmaCompute& i) {
    i.dst = dst;
    i.srcs = srcs;
    i.reduce_op = reduce_op;
    i.scales = options.scales;
    i.unique_indices = options.unique_indices;
    i.oob_mode = options.oob_mode;
  });
}

}  // namespace headway::chip
