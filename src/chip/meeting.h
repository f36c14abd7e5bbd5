// What meetings share: who is in a logical core, and copies of what cores send.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "chip/core.h"
#include "chip/pattern.h"

namespace headway::chip {

// The cores of the core's logical core, ascending, and which of them it is.
std::vector<int> cores_of_logical_core(const Core& core);
int rank_of(const Core& core);       // of its logical core
int local_number(const Core& core);  // within its logical core

// The position of a tensor among those that all cores of a logical core see, or -1: the same for the same
// memory in each program.
std::int64_t shared_position(const Program& program, TensorId tensor);

// The elements of a view in row-major order, as they were.
struct Sent {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> bytes;

  std::int64_t elements() const { return headway::elements(shape); }
  Pattern pattern() const;
};
Sent send(Core& core, std::string_view operand, const View& view);
// To a view of as many elements.
void receive(Core& core, std::string_view operand, const View& view, const Pattern& from);

}  // namespace headway::chip
