#include "chip/dma_engine.h"

#include <algorithm>
#include <array>
#include <vector>

#include "chip/dma_common.h"
#include "chip/pattern.h"

namespace headway::chip {

std::span<const std::string_view> names_of(DgeMode) {
  static constexpr std::array<std::string_view, 4> kNames = {"unknown", "swdge", "hwdge", "none"};
  return kNames;
}

const DynamicOffset* dynamic_of(const Program& program, const View& view) {
  // Engines are asked for before views are checked: a file's view may name an offset that isn't there.
  const auto index = static_cast<std::size_t>(view.dynamic);
  return view.dynamic < 0 || index >= program.dynamic_offsets.size() ? nullptr
                                                                     : &program.dynamic_offsets[index];
}

bool by_index(const Program& program, const View& view) {
  const DynamicOffset* dynamic = dynamic_of(program, view);
  return dynamic && dynamic->kind == DynamicOffset::Kind::from_vector;
}

bool check_dma_buffer(Check& check, std::string_view operand, const View& view) {
  return check.in(operand, view, {Buffer::sbuf, Buffer::private_hbm, Buffer::shared_hbm});
}

void check_distinct(Check& check, std::string_view operand, const View& view) {
  View places = view;
  if (by_index(check.program, view)) places.pairs[0] = {0, 1};  // which rows, shows when it runs
  check.require(distinct(places, is_on_chip(check.buffer(view))), "repeated-write", operand,
                "elements of {} share their place; which of them would stay depends on timing",
                to_string(view, check.tensor_of(view)));
}

void check_dge_mode(Check& check, DgeMode mode, std::span<const View> operands) {
  if (mode == DgeMode::hwdge) check.generation(3, "dge_mode hwdge");
  for (const View& view : operands) {
    if (view.dynamic < 0) continue;
    check.require(
        mode != DgeMode::none, "dge-mode", "dge_mode",
        "descriptors made before the kernel runs (none) can't follow a dynamic offset; swdge and hwdge can");
    if (by_index(check.program, view))
      check.require(mode == DgeMode::unknown || mode == DgeMode::swdge, "dge-mode", "dge_mode",
                    "rows by index need swdge (or unknown), not {}",
                    names_of(mode)[static_cast<std::size_t>(mode)]);
  }
}

void check_index(Check& check, std::string_view operand, const View& view) {
  if (!by_index(check.program, view)) return;
  check.generation(3, "moving rows by index");
  const View& index = dynamic_of(check.program, view)->index;
  check.require(index.rows() == view.rows() && index.row_elements() == 1, "index", operand,
                "the index must be [{}, 1], one for each row, not {}", view.rows(),
                [&] { return to_string(index.shape()); });
}

void check_priority(Check& check, std::int64_t priority) {
  if (priority == -1) return;
  check.generation(4, "priority");
  check.require(priority >= 0 && priority <= 3, "priority", "priority", "must be 0 to 3, not {}", priority);
}

Engines dma_triggers(DgeMode mode, bool by_index) {
  const Engines dma = Engine::dma;
  if (by_index || mode == DgeMode::swdge) return dma | Engine::gpsimd;
  if (mode == DgeMode::hwdge) return dma | Engine::scalar | Engine::sync;
  if (mode == DgeMode::none) return dma;
  return dma | Engine::gpsimd | Engine::scalar | Engine::sync;
}

RowPair meeting_rows(const Block& block) {
  // Bytes from a row's first element: the same for all, so that sorted rows meet where neighbours do.
  std::int64_t bytes = block.element_bytes;
  for (std::size_t d = 0; d < static_cast<std::size_t>(block.rank); ++d)
    bytes += std::abs(block.strides[d]) * (block.counts[d] - 1);
  std::vector<std::pair<std::int64_t, std::int64_t>> rows;
  for (std::int64_t r = 0; r < block.rows; ++r)
    if (block.row_offsets[r] >= 0) rows.emplace_back(block.row_offsets[r], r);
  std::sort(rows.begin(), rows.end());
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].first - rows[i - 1].first < bytes) {
      const auto [first, second] = std::minmax(rows[i - 1].second, rows[i].second);
      return {first, second};
    }
  return {};
}

std::span<const Kind> dma_engine_instructions() {
  static const Kind kinds[] = {kind<DmaCopy>(), kind<DmaTranspose>(), kind<DmaCompute>()};
  return kinds;
}

}  // namespace headway::chip
