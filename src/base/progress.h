// Progress of long work on stderr: one rewritten line on a terminal, a plain line now and then elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace headway {

class Progress {
 public:
  // `total` in whatever units advance() counts; 0 when unknown. Quiet when `enabled` is false.
  Progress(std::string title, std::int64_t total, bool enabled = true);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of total, with a note ("loss 3.21, 21,400 tokens/s"). Time left is estimated from the pace so far
  // unless the caller knows better (`seconds_left` >= 0).
  void update(std::int64_t done, const std::string& note = "", double seconds_left = -1);
  // Writes the last state, ends the line.
  void finish(const std::string& note = "");

 private:
  void write(const std::string& line, bool last);

  std::string title_;
  std::int64_t total_;
  std::int64_t first_ = -1;
  bool enabled_;
  bool terminal_;
  bool finished_ = false;
  SteadyClock clock_;
  double started_;
  double last_write_ = -1e9;
};

// "3 s", "2 min 05 s", "1 h 12 min".
std::string duration_text(double seconds);
// 1234567 -> "1,234,567".
std::string grouped(std::int64_t value);

}  // namespace headway
