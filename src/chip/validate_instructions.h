// The model of instructions against measured ones: chips/measured/instructions.csv.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chip/timing.h"

namespace headway::chip {

struct InstructionRow {
  std::string id;
  double measured = 0, predicted = 0;  // nanoseconds
  double error() const { return (predicted - measured) / measured; }
};

// Predicts every row of a table with the constants of `timing`: the instruction that the row describes is
// recorded and its cost asked for; rows about parts of one (a load of the array, a pass, a packet, a
// satisfied semaphore) compare what the model has for that part. `file` names the table in errors. Throws
// InputError for a table of another form, for an opcode, dtype, buffer or size that no instruction has.
std::vector<InstructionRow> validate_instructions(const Timing& timing, std::string_view table,
                                                  const std::string& file);

}  // namespace headway::chip
