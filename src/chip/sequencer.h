// Which instruction of a program comes next: registers and loops, without data.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "chip/program.h"

namespace headway::chip {

class Sequencer {
 public:
  explicit Sequencer(const Program& program) : program_(program), registers_(program.registers) {}

  bool ended() const { return next_ >= program_.instructions.size(); }
  std::size_t position() const { return next_; }
  const Instruction& at() const { return *program_.instructions[next_]; }
  void advance() { ++next_; }
  // Notes what the instruction at hand does to registers. If it begins or ends a loop, goes on to whatever
  // comes next and returns true.
  bool steps_through_loop();

  // The values known without data.
  const std::vector<std::optional<std::int32_t>>& registers() const { return registers_; }
  // Whether a loop's bounds depended on data; its body was then run once.
  bool guessed() const { return guessed_; }

 private:
  struct Loop {
    std::size_t begin;
    std::int64_t rounds, step;
  };
  std::optional<std::int32_t> value(const RegisterOr& value) const;
  void leave();  // past the loop that begins at next_
  void enter(std::int64_t rounds, std::int64_t step);
  void repeat_or_leave(bool again);

  const Program& program_;
  std::vector<std::optional<std::int32_t>> registers_;
  std::vector<Loop> loops_;
  std::size_t next_ = 0;
  bool guessed_ = false;
};

}  // namespace headway::chip
