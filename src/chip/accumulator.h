// The accumulator registers of the Scalar and Vector engines: one float32 a lane, which some instructions
// reduce a row's results into and which stay between instructions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "chip/program.h"

namespace headway::chip {

// What an instruction does with the registers. Numbers are NKI's.
enum class ReduceCmd : std::uint8_t { idle, reset, reduce, reset_reduce, load_reduce };
inline std::span<const std::string_view> names_of(ReduceCmd) {
  static constexpr std::array<std::string_view, 5> names{"idle", "reset", "reduce", "reset_reduce",
                                                         "load_reduce"};
  return names;
}
inline bool resets(ReduceCmd cmd) { return cmd == ReduceCmd::reset || cmd == ReduceCmd::reset_reduce; }
inline bool reduces(ReduceCmd cmd) { return cmd == ReduceCmd::reduce || cmd == ReduceCmd::reset_reduce; }

// The lane that works on the first row of an on-chip view: its partition. Tensors without an address count
// from partition 0.
inline std::int32_t first_lane(const Program& program, const View& view) {
  const Tensor& tensor = program.tensors[view.tensor];
  return view.partition + (tensor.address ? tensor.address->partition : 0);
}

}  // namespace headway::chip
