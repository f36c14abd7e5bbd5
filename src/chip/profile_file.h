// Profiles as files: JSON, in docs/formats.md. The page of a profile gets the same text.
#pragma once

#include <string>
#include <string_view>

#include "chip/profile.h"

namespace headway::chip {

// The whole profile.
std::string to_json(const Profile& profile);

// The same in one line without events, transfers and counters: what `--json` ends with.
std::string summary_json(const Profile& profile);

// Reads what `to_json` wrote. Throws InputError naming `where` and the place in it for anything else: what is
// cut off, of another format or version, incomplete, or contradicts itself.
Profile parse_profile(std::string_view text, const std::string& where);

}  // namespace headway::chip
