// Where the files that come with Headway live: recipes/, chips/, bench/.
#pragma once

#include <filesystem>

namespace headway {

// $HEADWAY_HOME, else the folder that `set_home` named, else the source tree that this was built from.
std::filesystem::path home();
// For installed packages, which bring their files along. Before other threads run.
void set_home(const std::filesystem::path& folder);

}  // namespace headway
