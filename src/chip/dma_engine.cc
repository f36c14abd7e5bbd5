#include "chip/dma_engine.h"

namespace headway::chip {

std::span<const Kind> dma_engine_instructions() { return {}; }

}  // namespace headway::chip
