#include "base/home.h"

#include <cstdlib>

namespace headway {

std::filesystem::path home() {
  if (const char* folder = std::getenv("HEADWAY_HOME")) return folder;
  return HEADWAY_SOURCE_DIR;
}

}  // namespace headway
