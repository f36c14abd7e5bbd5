#pragma once

#include <span>

#include "chip/instruction.h"

namespace headway::chip {

std::span<const Kind> vector_select_instructions();

}  // namespace headway::chip
