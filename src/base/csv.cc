#include "base/csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace headway {

CsvReader::CsvReader(std::string_view text, std::string file, std::vector<std::string> heads)
    : text_(text), file_(std::move(file)), heads_(std::move(heads)) {
  std::vector<std::string> found;
  if (!read_line(found)) throw InputError(file_, "the table is empty");
  if (found != heads_)
    refuse(fmt::format("the heads are '{}', must be '{}'", fmt::join(found, ","), fmt::join(heads_, ",")));
}

bool CsvReader::next() {
  if (!read_line(cells_)) return false;
  if (cells_.size() != heads_.size())
    refuse(fmt::format("the line has {} cells, must have {}", cells_.size(), heads_.size()));
  return true;
}

bool CsvReader::read_line(std::vector<std::string>& cells) {
  if (at_ == text_.size()) return false;
  line_ = ++lines_read_;
  cells.assign(1, "");
  bool quoted = false;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c == '\n' && !quoted) {
      return true;
    } else {
      if (c == '\n') ++lines_read_;
      if (c != '\r') cells.back() += c;
    }
  }
  refuse(quoted ? "a quote stays open" : "the last line is cut off", "Whole tables end in a newline");
}

std::string CsvReader::where() const { return fmt::format("{}:{}", file_, line_); }

const std::string& CsvReader::cell(std::string_view head) const {
  const auto at = std::ranges::find(heads_, head);
  HEADWAY_CHECK(at != heads_.end());
  return cells_[static_cast<std::size_t>(at - heads_.begin())];
}

double CsvReader::number(std::string_view head) const {
  const std::string& text = cell(head);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    refuse(fmt::format("{} is '{}', must be a number", head, text));
  return value;
}

std::int64_t CsvReader::integer(std::string_view head, std::int64_t least, std::int64_t most) const {
  const std::string& text = cell(head);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    refuse(fmt::format("{} is '{}', must be an integer from {} to {}", head, text, least, most));
  return value;
}

void CsvReader::refuse(const std::string& rule, const std::string& remedy) const {
  throw InputError(where(), rule, remedy);
}

}  // namespace headway
