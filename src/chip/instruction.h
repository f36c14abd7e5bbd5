// One instruction: its operands, whether it is legal, what it means. Each is a small struct in the file of
// its engine; to add one, write the struct and add it to the list at the end of that file
// (docs/architecture.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "chip/engine.h"
#include "chip/fields.h"

namespace headway::chip {

class Check;
class Core;
class Costing;
struct Cost;
struct Meeting;

struct Instruction {
  virtual ~Instruction() = default;
  // NKI's name: "tensor_tensor".
  virtual std::string_view name() const = 0;
  // Shows every operand and parameter but `engine` to `fields`, which may change them (reading a program file
  // does).
  virtual void visit(Fields& fields) = 0;
  // Reports each rule of the hardware that the instruction breaks. The views themselves (rank, bounds,
  // partition starts, index operands) have been checked before and are sound.
  virtual void check(Check& check) const = 0;
  // Computes on a core's memory. Only after a check without reports.
  virtual void apply(Core& core) const = 0;
  // The engines that can run it, given its operands: those it names for itself, before `engine` narrows them
  // to one.
  virtual Engines engines(const Check& check) const = 0;
  // What it asks of the machine when `costing.engine` runs it (chip/cost.h). Never looks at data.
  virtual Cost cost(const Costing& costing) const;
  // 1 opens a register loop, -1 closes the innermost one.
  virtual int loop_change() const { return 0; }
  // Itself, where cores meet at it.
  virtual const Meeting* meeting() const { return nullptr; }

  Engine engine = Engine::unknown;  // the kernel's wish; unknown leaves it to the lowering
  SourceId source = 0;
  bool broken = false;  // reported while collecting diagnostics: running it poisons what it would write
};

// Visits for those who only look: nothing changes where `fields` changes nothing.
inline void show(const Instruction& instruction, Fields& fields) {
  const_cast<Instruction&>(instruction).visit(fields);
}

// Instructions at which cores of a launch meet. A core that reaches one waits until every core named by
// `participants` waits at one with the same key; then `meet` runs once for all and they go on.
struct Meeting : Instruction {
  struct Key {
    std::string_view kind;
    std::vector<std::int64_t> numbers;  // what must agree
    bool operator==(const Key&) const = default;
  };
  virtual Key key(const Core& core) const = 0;
  // Cores of the launch, by number, this one among them; ascending.
  virtual std::vector<int> participants(const Core& core) const = 0;
  // `cores` in the order of `participants`; `instructions` are theirs.
  virtual void meet(std::span<Core* const> cores, std::span<const Meeting* const> instructions) const = 0;
  const Meeting* meeting() const final { return this; }
  void apply(Core&) const final;  // throws Bug: the scheduler never calls it
};

// A kind of instruction: its name and how to make an empty one to be filled by `visit`.
struct Kind {
  std::string_view name;
  std::unique_ptr<Instruction> (*make)();
};
template <class I>
Kind kind() {
  return {I().name(), [] { return std::unique_ptr<Instruction>(std::make_unique<I>()); }};
}

// All kinds, in a fixed order.
std::span<const Kind> instruction_set();

// The same instruction again.
std::unique_ptr<Instruction> copy(const Instruction& instruction);

}  // namespace headway::chip
