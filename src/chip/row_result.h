// Where an instruction leaves its float32 rows when its result may lie on an operand: results that would destroy what is still to be
// read are kept aside until everything is computed. The meaning is always "read all, then write".
#pragma once

#include <cstdint>
#include <initializer_list>

#include "chip/core.h"
#include "chip/rows.h"

namespace headway::chip {

class RowResult {
 public:
  // Scratch slots of Core that it uses: the results kept aside belong to thread 0, a row at a time to its thread.
  static constexpr int kAside = 6, kRow = 7;

  // For `dst`, which `view` resolved to. Each of `operands` is read row by row, row r before row r of the result is stored.
  RowResult(Core& core, const View& view, const Block& dst, std::initializer_list<const View*> operands)
      : core_(core), dst_(dst) {
    for (const View* operand : operands)
      if (core.overlap(view, *operand) && !core.same_place(view, *operand)) aside_ = core.scratch(0, dst.rows * dst.elements, kAside);
  }

  // Where to compute row `r`, then to be passed to `store`. It may be memory that an operand's row `r` lies in.
  float* row(std::int64_t r, int thread) {
    if (aside_) return aside_ + r * dst_.elements;
    return dst_.contiguous() && dst_.dtype == DType::f32
               ? row_target(dst_, r, nullptr)
               : row_target(dst_, r, core_.scratch(thread, dst_.elements, kRow));
  }
  void store(std::int64_t r, const float* values) {
    if (!aside_) write_row(dst_, r, values);
  }
  // After all rows.
  void finish() {
    if (!aside_) return;
    core_.for_rows(dst_.rows, dst_.rows * dst_.elements, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t r = begin; r < end; ++r) write_row(dst_, r, aside_ + r * dst_.elements);
    });
  }

 private:
  Core& core_;
  const Block& dst_;
  float* aside_ = nullptr;
};

}  // namespace headway::chip
