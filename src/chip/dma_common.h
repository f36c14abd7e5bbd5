// What the DMA instructions share: rules, and rows given by an index.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "chip/check.h"
#include "chip/core.h"
#include "chip/dma_engine.h"

namespace headway::chip {

// The dynamic offset of a view, or none.
const DynamicOffset* dynamic_of(const Program& program, const View& view);
// Whether the rows of a view are given by an index.
bool by_index(const Program& program, const View& view);

// "buffer": SBUF or HBM.
bool check_dma_buffer(Check& check, std::string_view operand, const View& view);
// "repeated-write": all elements at different places.
void check_distinct(Check& check, std::string_view operand, const View& view);
// "dge-mode", "generation": what a mode can't do with these operands.
void check_dge_mode(Check& check, DgeMode mode, std::span<const View> operands);
// "index": [rows, 1], NeuronCore-v3.
void check_index(Check& check, std::string_view operand, const View& view);
// "priority", "generation"
void check_priority(Check& check, std::int64_t priority);
// Who triggers a transfer, besides the DMA engines that do it.
Engines dma_triggers(DgeMode mode, bool by_index);

// Two rows of an indirect block that share bytes, as {earlier, later}; {-1, -1} where there are none.
struct RowPair {
  std::int64_t first = -1, second = -1;
};
RowPair meeting_rows(const Block& block);

}  // namespace headway::chip
