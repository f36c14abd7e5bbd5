// Random programs for the chip: anything that the instruction set can say, biased towards what is legal.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "chip/program.h"
#include "chip/spec.h"
#include "fuzz/draw.h"

namespace headway::fuzz {

// What runs together: one program a core.
struct Launch {
  const chip::Spec* spec = nullptr;
  int lnc = 1;
  std::vector<chip::Program> programs;
};

// How far a program strays from what is legal.
enum class Manner {
  legal,    // each instruction passed its check
  mutated,  // some of them have one field changed since
  wild      // fields, views and declarations at random
};

Launch random_launch(Draw& draw, const chip::Spec& spec, Manner manner);

// A copy of everything but the instructions' history.
chip::Program copy_of(const chip::Program& program);

}  // namespace headway::fuzz
