#include "show/embedded_page.h"

#include "base/error.h"

namespace headway::show {

std::string page_with(std::string_view page, std::string_view data) {
  constexpr std::string_view kStart = "<script type=\"application/json\" id=\"headway-data\">";
  const std::size_t start = page.find(kStart);
  HEADWAY_CHECK(start != std::string_view::npos);
  const std::size_t end = page.find("</script>", start);
  HEADWAY_CHECK(end != std::string_view::npos);
  std::string out(page.substr(0, start + kStart.size()));
  out.reserve(page.size() + data.size() + data.size() / 100);
  // Inside a script element only "</" and "<!--" are special, and in JSON "<" stands in texts alone.
  for (const char c : data) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out += page.substr(end);
}

}  // namespace headway::show
