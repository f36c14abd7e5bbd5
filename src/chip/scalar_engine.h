#pragma once

#include <span>

#include "chip/instruction.h"

namespace headway::chip {

std::span<const Kind> scalar_engine_instructions();

}  // namespace headway::chip
