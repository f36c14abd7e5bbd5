// Where the files that come with Headway live: recipes/, chips/, bench/.
#pragma once

#include <filesystem>

namespace headway {

// $HEADWAY_HOME, else the source tree that this was built from.
std::filesystem::path home();

}  // namespace headway
