// A plain table for terminals: aligned columns under a line of heads.
#pragma once

#include <string>
#include <vector>

namespace headway::show {

class TextTable {
 public:
  enum Side { left, right };

  // As many sides as heads.
  TextTable(std::vector<std::string> heads, std::vector<Side> sides);
  // As many cells as heads.
  void add(std::vector<std::string> cells);
  // All lines, each ending in a newline, none in a blank.
  std::string text() const;

 private:
  std::vector<Side> sides_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace headway::show
