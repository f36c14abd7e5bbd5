// Spans of time that may overlap, as busy times are made of.
#pragma once

#include <utility>
#include <vector>

#include "chip/timing.h"

namespace headway::chip {

using Interval = std::pair<Picoseconds, Picoseconds>;
// The length of what at least one covers. Sorts them and joins those that touch.
Picoseconds length_of_union(std::vector<Interval>& intervals);

}  // namespace headway::chip
