#include <algorithm>
#include <array>
#include <vector>

#include "chip/dma_common.h"
#include "chip/dma_cost.h"
#include "chip/dma_engine.h"
#include "chip/strided_copy.h"

namespace headway::chip {
namespace {

// The one permutation of each rank: axis d of dst is axis axes[d] of src. In all of them the first axis of
// src becomes the last of dst.
std::vector<std::int64_t> axes_of(int rank) {
  switch (rank) {
    case 2:
      return {1, 0};
    case 3:
      return {2, 1, 0};
    case 4:
      return {3, 1, 2, 0};
    default:
      return {};
  }
}

// Rules of transposes that gather their rows (swdge).
void check_indirect(Check& check, const View& src) {
  check.generation(3, "transposing rows by index");
  const View& index = dynamic_of(check.program, src)->index;
  check.require(size_of(src.dtype) == 2, "dtype", "src", "is {}; rows by index need a dtype of 2 bytes",
                headway::name_of(src.dtype));
  const std::int32_t last = src.pairs[src.rank - 1u].count;
  check.require(last <= 128, "transpose-last", "src",
                "has a last extent of {}; rows by index have at most 128", last);
  check.require(src.rows() % 16 == 0, "transpose-rows", "src",
                "has {} rows; rows by index come in multiples of 16", src.rows());
  check.require(src.rank != 4 || src.pairs[1].count == 1 || src.pairs[2].count == 1, "transpose-middle",
                "src", "is {}; with rows by index one of its middle extents must be 1",
                [&] { return to_string(src.shape()); });
  check.require(index.dtype == DType::u32, "index", "src", "the index is {}; it must be uint32",
                headway::name_of(index.dtype));
  check.require(index.rank == 2, "index", "src", "the index has {} extents; it must have 2", index.rank);
  check.require(index.rows() >= 16 && index.rows() <= 128 && index.rows() % 16 == 0, "index", "src",
                "the index has {} partitions; it must have 16 to 128, a multiple of 16", index.rows());
  check.require(index.row_elements() == 1 || index.rows() == 128, "index", "src",
                "the index is {}; with several columns it must have 128 partitions",
                [&] { return to_string(index.shape()); });
}

// Rules of transposes by the DGE hardware.
void check_hardware(Check& check, const View& src) {
  check.require(size_of(src.dtype) == 2, "dtype", "src", "is {}; hwdge transposes dtypes of 2 bytes",
                headway::name_of(src.dtype));
  const std::int32_t last = src.pairs[src.rank - 1u].count;
  check.require(last <= 128, "transpose-last", "src", "has a last extent of {}; hwdge takes at most 128",
                last);
  const std::int64_t rows = src.rows();
  if (src.rank == 2) {
    check.require(rows == 16, "transpose-rows", "src", "has {} rows; hwdge takes 16 of a 2-D source", rows);
    return;
  }
  check.require(rows == 1 || rows == 2 || rows == 4 || rows == 8 || rows == 16, "transpose-rows", "src",
                "has {} rows; hwdge takes 1, 2, 4, 8 or 16", rows);
  const std::int64_t columns = src.pairs[src.rank - 2u].count;
  check.require(rows * columns % 16 == 0, "transpose-rows", "src",
                "has {} x {} rows and columns before the last extent; hwdge needs a multiple of 16", rows,
                columns);
}

void check_direct(Check& check, const DmaTranspose& i) {
  check.require(size_of(i.src.dtype) >= 2, "dtype", "src", "is {}; DMA transposes elements of 2 or 4 bytes",
                headway::name_of(i.src.dtype));
  check.require(i.dge_mode != DgeMode::swdge || i.src.dynamic >= 0, "dge-mode", "dge_mode",
                "a transpose without index or offset may be unknown, none or hwdge, not swdge");
  if (i.dge_mode == DgeMode::hwdge) check_hardware(check, i.src);
}

}  // namespace

void DmaTranspose::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("src", src, Access::read);
  fields.integers("axes", axes);
  fields.integer("priority", priority);
  fields.choice("dge_mode", dge_mode);
  fields.choice("oob_mode", oob_mode);
}

void DmaTranspose::check(Check& check) const {
  check.in_sbuf("dst", dst);
  check_dma_buffer(check, "src", src);
  const std::vector<std::int64_t> order = axes_of(src.rank);
  if (!check.require(!order.empty(), "axes", "src", "has {} extents; transposes take 2, 3 or 4", src.rank))
    return;
  check.require(axes.empty() || axes == order, "axes", "axes",
                "{} is not {}, the one permutation of {} extents", to_string(Shape(axes)),
                to_string(Shape(order)), src.rank);
  check.same_dtype("dst", dst, "src", src);
  const View operands[] = {dst, src};
  check_dge_mode(check, dge_mode, operands);
  check_priority(check, priority);
  check_distinct(check, "dst", dst);
  check.require(oob_mode == OobMode::error || src.dynamic >= 0, "oob-mode", "oob_mode",
                "skip needs a dynamic offset or index of src");
  // These come first: a source that no transpose takes has no fitting dst either.
  if (by_index(check.program, src)) {
    check_indirect(check, src);
  } else {
    check_direct(check, *this);
  }
  Shape expected;
  for (std::int64_t axis : order) expected.push_back(src.pairs[static_cast<std::size_t>(axis)].count);
  check.require(
      dst.shape() == expected, "shape", "dst", "is {}, but src {} transposed is {}",
      [&] { return to_string(dst.shape()); }, [&] { return to_string(src.shape()); }, to_string(expected));
}

Engines DmaTranspose::engines(const Check& check) const {
  return dma_triggers(dge_mode, by_index(check.program, src));
}

Cost DmaTranspose::cost(const Costing& costing) const {
  const Timing::Dma& t = costing.timing.dma;
  const bool hbm = is_hbm(costing.buffer(src));
  DmaWork work;
  Duration time;
  add_transfer(costing, dst, src,
               {.share = hbm ? t.transpose_share : t.sbuf_transpose_share, .transpose = true}, work, time);
  Cost cost = dma_cost(costing, dge_mode, by_index(costing.program, src), work, time);
  cost.calibrated = false;  // none was measured
  return cost;
}

void DmaTranspose::apply(Core& core) const {
  const bool skip = oob_mode == OobMode::skip;
  const bool apart = !core.overlap(dst, src);
  const Block from = core.gather("src", src, oob_mode);
  const Block to = skip ? core.target("dst", dst) : core.write("dst", dst);
  const Pattern plain = pattern_of(src, from);
  Pattern a = plain, b = pattern_of(dst, to);
  const std::vector<std::int64_t> order = axes_of(src.rank);
  for (std::size_t d = 0; d < order.size(); ++d) {
    a.counts[d] = plain.counts[static_cast<std::size_t>(order[d])];
    a.strides[d] = plain.strides[static_cast<std::size_t>(order[d])];
  }
  const std::int64_t rows = src.rows();
  if (from.row_offsets) {
    // Row r of src is the last index r of dst.
    const std::size_t last = order.size() - 1;
    a.counts[last] = b.counts[last] = 1;
    const std::int64_t step = b.strides[last], n = from.elements;
    core.for_rows(rows, rows * n, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t r = begin; r < end; ++r) {
        if (from.row_offsets[r] < 0) continue;
        Pattern row = a, column = b;
        row.base = from.row(r);
        column.base = b.base + r * step;
        move_range(merged(row), 0, merged(column), 0, n);
      }
    });
  } else if (apart) {
    copy_elements(core, a, b);
  } else {
    std::vector<std::byte> bytes(static_cast<std::size_t>(src.elements() * from.element_bytes));
    const Pattern packed = packed_pattern(bytes.data(), src.dtype, src.elements());
    copy_elements(core, a, packed);
    copy_elements(core, packed, b);
  }
  if (!skip) return;
  std::vector<std::uint8_t> moved(static_cast<std::size_t>(dst.elements()), 1);
  if (from.row_offsets)
    for (std::size_t i = 0; i < moved.size(); ++i)
      moved[i] = from.row_offsets[i % static_cast<std::size_t>(rows)] >= 0;
  core.mark_elements(dst, moved);
}

void dma_transpose(const Tile& dst, const Tile& src, const DmaTransposeOptions& options, Here here) {
  record<DmaTranspose>(dst, here, [&](DmaTranspose& i) {
    i.dst = dst;
    i.src = src;
    i.axes = options.axes;
    i.priority = options.priority;
    i.dge_mode = options.dge_mode;
    i.oob_mode = options.oob_mode;
  });
}

}  // namespace headway::chip
