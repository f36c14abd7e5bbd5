// Scalar operands as rows: an immediate, or one value a partition.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "chip/alu.h"
#include "chip/core.h"
#include "chip/row_loop.h"

namespace headway::chip {

// T is float, or uint32_t for bits. Reads all values at once, before anything is written.
template <class T>
class RowScalar {
 public:
  RowScalar(Core& core, std::string_view operand, const Scalar& scalar, std::int64_t rows)
      : one_a_row_(scalar.view() != nullptr), count_(one_a_row_ ? static_cast<std::size_t>(rows) : 1) {
    if (const View* view = scalar.view()) {
      const Rows<T> column = load_all(core.read(operand, *view), 0, rows, values_.data());
      if (column.at == values_.data()) return;
      for (std::int64_t r = 0; r < rows; ++r)
        values_[static_cast<std::size_t>(r)] = column.at[r * column.stride];
    } else if constexpr (std::is_same_v<T, float>) {
      values_[0] = scalar.number();
    } else {
      values_[0] = scalar.integer();
    }
  }
  // From row `first` on.
  Rows<T> from(std::int64_t first) const {
    return one_a_row_ ? one_a_row(values_.data() + first) : same_value(values_[0]);
  }
  // Of immediates that are wider than the elements.
  void keep_low(int bits) requires std::is_same_v<T, std::uint32_t> {
    const T mask = bits == 32 ? ~T{0} : (T{1} << bits) - 1;
    for (std::size_t i = 0; i < count_; ++i) values_[i] &= mask;
  }

 private:
  bool one_a_row_;
  std::size_t count_;
  std::array<T, 128> values_;
};

}  // namespace headway::chip
