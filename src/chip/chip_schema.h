// Every key that a chip file may have, with its unit and what values are plausible. A new number of a machine
// begins with a line here.
#pragma once

#include <span>
#include <string_view>

namespace headway::chip {

enum class Kind { count, number, text, flag };  // a count is a whole number

struct Rule {
  std::string_view key;  // "section.name"
  Kind kind;
  std::string_view unit;  // SI without prefixes; "1" for a pure number; "" for text and flags
  double low, high;       // of counts and numbers, both included
  bool optional;          // a machine may lack it
  std::string_view meaning;
};

// In the order in which a chip is described.
std::span<const Rule> schema();

// The rule of that key, or null.
const Rule* rule_of(std::string_view key);

}  // namespace headway::chip
