// Profiles for Perfetto's trace viewer (ui.perfetto.dev): a .pftrace file. The part of its format that is
// written is docs/perfetto/headway_trace.proto.
#pragma once

#include <string>

#include "chip/profile.h"

namespace headway::chip {

// One process a core; a track for each engine, each DMA queue (as many lanes as it has transfers at a time),
// the critical path, and each counter. Arrows lead from the DMA's trigger to its transfer.
std::string to_perfetto(const Profile& profile);

}  // namespace headway::chip
