#include "chip/cost.h"

#include "base/error.h"

namespace headway::chip {

// Instructions that take no time of their own: loops and what only the machine's model knows.
Cost Instruction::cost(const Costing&) const { return {}; }

Cost cost_of(const Instruction& instruction, Engine engine, const Program& program, const Timing& timing) {
  return instruction.cost(Costing(timing, program, engine));
}

}  // namespace headway::chip
