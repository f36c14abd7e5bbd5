#include "chip/cores.h"

namespace headway::chip {

std::span<const Kind> cores_instructions() { return {}; }

}  // namespace headway::chip
