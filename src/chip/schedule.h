// Which core runs: one at a time, the lowest that can, until it meets others or ends (or an instruction each in turn,
// Machine::in_step). The order changes no result unless the kernel has a race (chip/races.h), and makes those come out
// the same every time.
#pragma once

namespace headway::chip {

class Machine;

// Runs all cores of a machine to the end of their programs. Reports "deadlock" where none can go on, naming
// who waits where for whom, and "endless" where the cores have run more than Machine::max_instructions.
// Collecting, the cores concerned stop there.
void run_cores(Machine& machine);

}  // namespace headway::chip
