#include "base/home.h"

#include <cstdlib>

namespace headway {

namespace {
std::filesystem::path& installed() {
  static std::filesystem::path folder;
  return folder;
}
}  // namespace

std::filesystem::path home() {
  if (const char* folder = std::getenv("HEADWAY_HOME")) return folder;
  return installed().empty() ? HEADWAY_SOURCE_DIR : installed();
}

void set_home(const std::filesystem::path& folder) { installed() = folder; }

}  // namespace headway
