#pragma once

#include <span>

#include "chip/instruction.h"

namespace headway::chip {

std::span<const Kind> cores_instructions();

}  // namespace headway::chip
