// Profiles for a terminal.
#pragma once

#include <string>

#include "chip/profile.h"

namespace headway::show {

// "31.4 us, between 29 and 34 us; rests on 12% documented, ... numbers": what is printed wherever a time is.
// Times in seconds.
std::string trust_text(double total, const chip::Trust& trust);

std::string profile_text(const chip::Profile& profile);
// The figures of both, and how the first differs from the other.
std::string comparison_text(const chip::Profile& profile, const chip::Profile& other);

}  // namespace headway::show
