#include "show/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace headway::show {
namespace {

// Columns on a terminal: characters, not the bytes that UTF-8 takes for them.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

TextTable::TextTable(std::vector<std::string> heads, std::vector<Side> sides)
    : sides_(std::move(sides)), rows_{std::move(heads)} {
  HEADWAY_CHECK(rows_[0].size() == sides_.size());
}

void TextTable::add(std::vector<std::string> cells) {
  HEADWAY_CHECK(cells.size() == sides_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths(sides_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string blanks(widths[c] - width_of(row[c]), ' ');
      if (c > 0) line += "  ";
      line += sides_[c] == left ? row[c] + blanks : blanks + row[c];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace headway::show
