// Chip files with one thing changed.
#pragma once

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "base/files.h"

namespace headway::chip {

inline std::string chip_text(const std::string& name) {
  return read_file(std::filesystem::path(HEADWAY_ROOT) / "chips" / (name + ".toml"));
}

// chips/NAME.toml with the only line that begins with `beginning` in [section] replaced, and that line's
// number. Without a section: the line before any.
struct Changed {
  std::string text;
  std::size_t line = 0;

  Changed(const std::string& name, const std::string& section, const std::string& beginning,
          const std::string& replacement)
      : text(chip_text(name)) {
    const std::size_t from = section.empty() ? 0 : text.find("[" + section + "]\n");
    const std::size_t at = from == std::string::npos ? from : text.find("\n" + beginning, from);
    if (at == std::string::npos) throw std::runtime_error("no line " + section + " " + beginning);
    line = static_cast<std::size_t>(
               std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
           2;
    text.replace(at + 1, text.find('\n', at + 1) - at - 1, replacement);
  }
};

}  // namespace headway::chip
