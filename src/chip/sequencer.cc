#include "chip/sequencer.h"

#include "chip/sync_engine.h"

namespace headway::chip {

std::optional<std::int32_t> Sequencer::value(const RegisterOr& value) const {
  if (const auto* number = std::get_if<std::int32_t>(&value)) return *number;
  return registers_[std::get<Register>(value).id];
}

void Sequencer::leave() {
  int depth = 0;
  do {
    depth += program_.instructions[next_]->loop_change();
    ++next_;
  } while (depth > 0 && next_ < program_.instructions.size());
}

void Sequencer::enter(std::int64_t rounds, std::int64_t step) {
  loops_.push_back({next_, rounds, step});
  ++next_;
}

void Sequencer::repeat_or_leave(bool again) {
  if (again) {
    next_ = loops_.back().begin + 1;
  } else {
    loops_.pop_back();
    ++next_;
  }
}

bool Sequencer::steps_through_loop() {
  const Instruction& instruction = at();
  if (const auto* move = dynamic_cast<const RegisterMove*>(&instruction)) {
    registers_[move->dst.id] = value(move->src);
    return false;
  }
  if (const auto* load = dynamic_cast<const RegisterLoad*>(&instruction)) {
    registers_[load->dst.id].reset();
    return false;
  }
  switch (loop_role(instruction)) {
    case LoopRole::none:
      return false;
    case LoopRole::fori_begin: {
      const auto& begin = static_cast<const ForiBegin&>(instruction);
      const auto lower = value(begin.lower), upper = value(begin.upper);
      std::int64_t rounds = 1;
      registers_[begin.i.id].reset();
      if (lower && upper) {
        rounds = *upper > *lower ? (std::int64_t{*upper} - *lower + begin.step - 1) / begin.step : 0;
        registers_[begin.i.id] = lower;
      } else {
        guessed_ = true;
      }
      if (rounds == 0) {
        leave();
      } else {
        enter(rounds, begin.step);
      }
      return true;
    }
    case LoopRole::while_begin: {
      const auto condition = registers_[static_cast<const WhileBegin&>(instruction).r.id];
      guessed_ |= !condition;
      if (condition && *condition == 0) {
        leave();
      } else {
        enter(0, 0);
      }
      return true;
    }
    case LoopRole::fori_end: {
      Loop& loop = loops_.back();
      const auto& begin = static_cast<const ForiBegin&>(*program_.instructions[loop.begin]);
      const bool again = --loop.rounds > 0;
      if (auto& i = registers_[begin.i.id]; again && i) i = static_cast<std::int32_t>(*i + loop.step);
      repeat_or_leave(again);
      return true;
    }
    case LoopRole::while_end: {
      const auto& begin = static_cast<const WhileBegin&>(*program_.instructions[loops_.back().begin]);
      const auto condition = registers_[static_cast<const WhileEnd&>(instruction).next.id];
      registers_[begin.r.id] = condition;
      guessed_ |= !condition;
      repeat_or_leave(condition && *condition != 0);
      return true;
    }
  }
  return false;
}

}  // namespace headway::chip
