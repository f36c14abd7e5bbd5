#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "chip/dma_common.h"
#include "chip/dma_cost.h"
#include "chip/dma_engine.h"
#include "chip/strided_copy.h"

namespace headway::chip {

void DmaCopy::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.view("src", src, Access::read);
  fields.integer("priority", priority);
  fields.choice("oob_mode", oob_mode);
  fields.choice("dge_mode", dge_mode);
}

void DmaCopy::check(Check& check) const {
  check_dma_buffer(check, "dst", dst);
  check_dma_buffer(check, "src", src);
  check.require(dst.elements() == src.elements(), "shape", "dst", "has {} elements, but src has {}",
                dst.elements(), src.elements());
  if (dst.dtype != src.dtype) {
    check.require(dge_mode != DgeMode::hwdge, "dtype", "dst",
                  "is {}, but src is {}; hwdge doesn't convert, they must be the same",
                  headway::name_of(dst.dtype), headway::name_of(src.dtype));
    check.computable("dst", dst);
    check.computable("src", src);
  }
  const View operands[] = {dst, src};
  check_dge_mode(check, dge_mode, operands);
  check_index(check, "dst", dst);
  check_index(check, "src", src);
  if (by_index(check.program, dst) && by_index(check.program, src))
    check.require(
        dst.rows() == src.rows() && dst.row_elements() == src.row_elements(), "shape", "dst",
        "{} is not {} of src: where both sides have an index, rows go to rows",
        [&] { return to_string(dst.shape()); }, [&] { return to_string(src.shape()); });
  check_priority(check, priority);
  check.require(engine == Engine::unknown ||
                    (dge_mode == DgeMode::hwdge && (engine == Engine::scalar || engine == Engine::sync)),
                "engine", "engine", "may be scalar or sync with dge_mode hwdge, else it must be left open");
  check_distinct(check, "dst", dst);
}

Engines DmaCopy::engines(const Check& check) const {
  return dma_triggers(dge_mode, by_index(check.program, dst) || by_index(check.program, src));
}

Cost DmaCopy::cost(const Costing& costing) const {
  DmaWork work;
  Duration time;
  add_transfer(costing, dst, src, {}, work, time);
  const bool software =
      dst.dtype != src.dtype || by_index(costing.program, dst) || by_index(costing.program, src);
  return dma_cost(costing, dge_mode, software, work, time);
}

namespace {

// One side of a copy by rows: rows at an index, or equal shares of a pattern.
struct Side {
  const Block& block;
  Pattern all;  // where there is no index

  Side(const View& view, const Block& block) : block(block) {
    if (!block.row_offsets) all = merged(pattern_of(view, block));
  }
  bool skips(std::int64_t r) const { return block.row_offsets && block.row_offsets[r] < 0; }
};

void move_row(const Side& from, const Side& to, std::int64_t r, std::int64_t n) {
  const Pattern a = from.block.row_offsets ? row_pattern(from.block, r) : from.all;
  const Pattern b = to.block.row_offsets ? row_pattern(to.block, r) : to.all;
  move_range(a, from.block.row_offsets ? 0 : r * n, b, to.block.row_offsets ? 0 : r * n, n);
}

// Rows by index on one side or both; rows out of bounds are left out. Returns which were moved.
std::vector<std::uint8_t> copy_rows(Core& core, const Side& from, const Side& to, bool apart) {
  const Block& indexed = to.block.row_offsets ? to.block : from.block;
  const std::int64_t rows = indexed.rows, n = indexed.elements;
  std::vector<std::uint8_t> moved(static_cast<std::size_t>(rows));
  for (std::int64_t r = 0; r < rows; ++r) moved[static_cast<std::size_t>(r)] = !from.skips(r) && !to.skips(r);
  bool in_order = false;
  if (to.block.row_offsets) {
    const RowPair pair = meeting_rows(to.block);
    if (pair.first >= 0) {
      in_order = true;
      core.report(
          Severity::warning, "repeated-write", "dst",
          fmt::format("rows {} and {} go to the same place; the later one stays here, on the hardware that "
                      "depends on timing",
                      pair.first, pair.second));
    }
  }
  if (!apart) {
    // Read all, then write.
    std::vector<std::byte> bytes(static_cast<std::size_t>(rows * n * from.block.element_bytes));
    const Pattern packed = packed_pattern(bytes.data(), from.block.dtype, rows * n);
    for (std::int64_t r = 0; r < rows; ++r)
      if (moved[static_cast<std::size_t>(r)])
        move_range(from.block.row_offsets ? row_pattern(from.block, r) : from.all,
                   from.block.row_offsets ? 0 : r * n, packed, r * n, n);
    for (std::int64_t r = 0; r < rows; ++r)
      if (moved[static_cast<std::size_t>(r)])
        move_range(packed, r * n, to.block.row_offsets ? row_pattern(to.block, r) : to.all,
                   to.block.row_offsets ? 0 : r * n, n);
    return moved;
  }
  const auto move = [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t r = begin; r < end; ++r)
      if (moved[static_cast<std::size_t>(r)]) move_row(from, to, r, n);
  };
  if (in_order) {
    move(0, rows, 0);
  } else {
    core.for_rows(rows, rows * n, move);
  }
  return moved;
}

}  // namespace

void DmaCopy::apply(Core& core) const {
  // Moves nothing; kernels use it to wait for earlier transfers.
  if (dst.dtype == src.dtype && core.same_place(dst, src)) return;
  const bool skip = oob_mode == OobMode::skip && (dst.dynamic >= 0 || src.dynamic >= 0);
  const bool apart = !core.overlap(dst, src);
  const Block from = core.gather("src", src, oob_mode);
  const Block to = skip ? core.target("dst", dst, oob_mode) : core.write("dst", dst);
  if (from.row_offsets || to.row_offsets) {
    const std::vector<std::uint8_t> moved = copy_rows(core, Side(src, from), Side(dst, to), apart);
    if (!skip) return;
    const std::int64_t rows = static_cast<std::int64_t>(moved.size());
    if (rows == dst.rows()) return core.mark_rows(dst, moved);
    const std::int64_t n = dst.elements() / rows;
    std::vector<std::uint8_t> each(static_cast<std::size_t>(dst.elements()));
    for (std::int64_t r = 0; r < rows; ++r)
      std::memset(each.data() + r * n, moved[static_cast<std::size_t>(r)], static_cast<std::size_t>(n));
    return core.mark_elements(dst, each);
  }
  const Pattern a = pattern_of(src, from), b = pattern_of(dst, to);
  if (apart) {
    copy_elements(core, a, b);
  } else {
    std::vector<std::byte> bytes(static_cast<std::size_t>(src.elements() * from.element_bytes));
    const Pattern packed = packed_pattern(bytes.data(), src.dtype, src.elements());
    copy_elements(core, a, packed);
    copy_elements(core, packed, b);
  }
  if (skip) core.mark_rows(dst, std::vector<std::uint8_t>(static_cast<std::size_t>(dst.rows()), 1));
}

void dma_copy(const Tile& dst, const Tile& src, const DmaCopyOptions& options, Here here) {
  record<DmaCopy>(dst, here, [&](DmaCopy& i) {
    i.dst = dst;
    i.src = src;
    i.priority = options.priority;
    i.oob_mode = options.oob_mode;
    i.dge_mode = options.dge_mode;
    i.engine = options.engine;
  });
}

}  // namespace headway::chip
