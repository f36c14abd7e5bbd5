#pragma once

#include <span>

#include "chip/instruction.h"

namespace headway::chip {

std::span<const Kind> dma_engine_instructions();

}  // namespace headway::chip
