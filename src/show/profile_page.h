// The page of a kernel's profile: docs/formats.md, "Profiles".
#pragma once

#include <string>

#include "chip/profile.h"

namespace headway::show {

// One HTML file that shows the profile, beside `other` where there is one.
std::string profile_page(const chip::Profile& profile, const chip::Profile* other = nullptr);

}  // namespace headway::show
