#include "chip/vector_arithmetic.h"

namespace headway::chip {

std::span<const Kind> vector_arithmetic_instructions() { return {}; }

}  // namespace headway::chip
