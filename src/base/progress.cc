#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace headway {

std::string duration_text(double seconds) {
  const auto s = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s % 3600 / 60);
}

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value < 0 ? -value : value);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<std::size_t>(i), ",");
  return value < 0 ? "-" + digits : digits;
}

Progress::Progress(std::string title, std::int64_t total, bool enabled)
    : title_(std::move(title)),
      total_(total),
      enabled_(enabled),
      terminal_(isatty(STDERR_FILENO) == 1),
      started_(clock_.seconds()) {}

Progress::~Progress() {
  if (enabled_ && terminal_ && !finished_ && last_write_ > 0) std::fputc('\n', stderr);
}

void Progress::write(const std::string& line, bool last) {
  if (terminal_) {
    std::fprintf(stderr, "\r\033[K%s%s", line.c_str(), last ? "\n" : "");
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  std::fflush(stderr);
}

void Progress::update(std::int64_t done, const std::string& note, double seconds_left) {
  if (!enabled_) return;
  if (first_ < 0) first_ = done;
  const double now = clock_.seconds();
  if (now - last_write_ < (terminal_ ? 0.1 : 10.0)) return;
  last_write_ = now;
  std::string line = title_;
  if (total_ > 0) {
    line += fmt::format(" {}/{}", grouped(done), grouped(total_));
    const double elapsed = now - started_;
    if (seconds_left < 0 && done > first_) {
      seconds_left = elapsed * static_cast<double>(total_ - done) / static_cast<double>(done - first_);
    }
    if (seconds_left >= 0) line += ", " + duration_text(seconds_left) + " left";
  } else {
    line += " " + grouped(done);
  }
  if (!note.empty()) line += ", " + note;
  write(line, false);
}

void Progress::finish(const std::string& note) {
  if (!enabled_ || finished_) return;
  finished_ = true;
  std::string line = title_ + ": done in " + duration_text(clock_.seconds() - started_);
  if (!note.empty()) line += ", " + note;
  write(line, true);
}

}  // namespace headway
