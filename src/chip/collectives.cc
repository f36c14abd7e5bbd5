#include "chip/collectives.h"

namespace headway::chip {

std::span<const Kind> collectives_instructions() { return {}; }

}  // namespace headway::chip
