#include "chip/accesses.h"

#include <algorithm>

#include "chip/check.h"

namespace headway::chip {

Box box_of(const Program& program, const View& view) {
  const Tensor& t = program.tensors[view.tensor];
  const bool chip = is_on_chip(t.buffer);
  const std::int64_t size = size_of(view.dtype);
  Box box;
  if (chip) {
    box.partition = view.partition;
    box.partition_end = view.partition + static_cast<std::int32_t>(view.rows());
  } else {
    box.partition_end = 1;
  }
  if (view.dynamic >= 0) {
    box.byte_end = t.row_bytes();
  } else {
    std::int64_t low = view.offset, high = view.offset, places = 1;
    for (int d = chip ? 1 : 0; d < view.rank; ++d) {
      const Pair& p = view.pairs[static_cast<std::size_t>(d)];
      const std::int64_t reach = std::int64_t{p.step} * (p.count - 1);
      (reach < 0 ? low : high) += reach;
      if (p.step != 0) places *= p.count;
    }
    box.byte = low * size;
    box.byte_end = (high + 1) * size;
    box.dense = places == high + 1 - low;
  }
  if (t.address) {
    box.partition += t.address->partition;
    box.partition_end += t.address->partition;
    box.byte += t.address->byte;
    box.byte_end += t.address->byte;
  }
  return box;
}

bool Accesses::really_meet(const Program& program, const View& view, const Box& box, const Past& past) {
  return (box.dense && past.box.dense) || may_overlap(program, view, *past.view);
}

void Accesses::add(const Past& past) {
  if (past.write && past.box.dense) {
    std::erase_if(all_, [&](const Past& old) { return past.box.holds(old.box); });
  } else {
    // The same engine over the same bytes: it ends in order.
    for (Past& old : all_)
      if (old.by == past.by && old.write == past.write && old.box == past.box) {
        if (past.done >= old.done) old = past;
        return;
      }
  }
  if (all_.empty()) all_.reserve(2);  // most tensors are written and read
  all_.push_back(past);
}

}  // namespace headway::chip
