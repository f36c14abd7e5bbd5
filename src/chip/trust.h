// How far a time can be trusted: what it rests on, and how wrong it may be.
#pragma once

#include "chip/timeline.h"

namespace headway::chip {

// Fills in the timeline's basis, low and high. The total is what the critical path took; each of its links
// counts for the numbers that its cost is made of, in proportion. The interval is the sum of their relative
// errors, by tag, as the chip file has them (section trust): about nine of ten kernels that were measured lie
// within. Shapes outside what was measured count as assumed.
void weigh(Timeline& timeline, const Timing& timing);

}  // namespace headway::chip
