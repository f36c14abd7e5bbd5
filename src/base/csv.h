// Reading tables of comma-separated values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headway {

// Reads a table line by line. Cells in double quotes may hold commas and newlines; there is no quote within
// quotes. Everything that isn't as asked for throws InputError naming file and line: other heads than
// `heads`, lines of another length, and a last line without a newline, which is what a table that was cut
// looks like.
class CsvReader {
 public:
  // `text` must outlive the reader.
  CsvReader(std::string_view text, std::string file, std::vector<std::string> heads);

  // The next line; false at the end.
  bool next();
  int line() const { return line_; }
  std::string where() const;

  // Cells of the line, by head.
  const std::string& cell(std::string_view head) const;
  double number(std::string_view head) const;  // finite
  std::int64_t integer(std::string_view head, std::int64_t least, std::int64_t most) const;
  [[noreturn]] void refuse(const std::string& rule, const std::string& remedy = "") const;

 private:
  bool read_line(std::vector<std::string>& cells);

  std::string_view text_;
  std::size_t at_ = 0;
  std::string file_;
  int line_ = 0, lines_read_ = 0;
  std::vector<std::string> heads_, cells_;
};

}  // namespace headway
