#include "chip/scalar_engine.h"

namespace headway::chip {

std::span<const Kind> scalar_engine_instructions() { return {}; }

}  // namespace headway::chip
