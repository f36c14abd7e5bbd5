// What would make a kernel faster, and by how much at most: rules over its critical path.
#pragma once

#include <vector>

#include "chip/profile.h"

namespace headway::chip {

// Each rule adds up what the links of the critical path that it is about would lose, by the formula in its
// comment, and never more than what the kernel can lose before another resource bounds it. Ranked by time;
// what is below 1% of the total is left out. `profile` has figures and bound.
std::vector<Advice> advise(const Profile& profile, const Timeline& timeline, const Timing& timing,
                           const CriticalPath& path);

}  // namespace headway::chip
