#include "show/profile_page.h"

#include <cstddef>

#include "chip/profile_file.h"
#include "show/embedded_page.h"

namespace headway::show {

// The committed bundle web/dist/profile.html, generated into the binary by cmake/embed.cmake.
extern const unsigned char kProfileTemplate[];
extern const std::size_t kProfileTemplateSize;

std::string profile_page(const chip::Profile& profile, const chip::Profile* other) {
  std::string data = R"({"format":1,"profiles":[)" + chip::to_json(profile);
  if (other) data += "," + chip::to_json(*other);
  data += "]}";
  return page_with({reinterpret_cast<const char*>(kProfileTemplate), kProfileTemplateSize}, data);
}

}  // namespace headway::show
