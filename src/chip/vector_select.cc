#include "chip/vector_select.h"

namespace headway::chip {

std::span<const Kind> vector_select_instructions() { return {}; }

}  // namespace headway::chip
