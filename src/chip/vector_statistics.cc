#include "chip/vector_statistics.h"

namespace headway::chip {

std::span<const Kind> vector_statistics_instructions() { return {}; }

}  // namespace headway::chip
