#include "optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>

namespace headway::optim {

Schedule::Factors Schedule::at(std::int64_t step, double progress) const {
  progress = std::clamp(progress, 0.0, 1.0);
  Factors f;
  if (warmup_steps > 0 && step < warmup_steps) {
    f.lr = static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  } else if (progress < warmup_fraction) {
    // The first step is not wasted on a rate of 0.
    f.lr = std::max(progress, 1e-3 * warmup_fraction) / warmup_fraction;
  } else if (progress > 1 - warmdown_fraction) {
    const double left = (1 - progress) / warmdown_fraction;
    f.lr = left + (1 - left) * final_lr_fraction;
  }
  const double ramp = momentum_steps > 0
                          ? std::min(1.0, static_cast<double>(step) / static_cast<double>(momentum_steps))
                          : 1.0;
  f.momentum = momentum_start + ramp * (momentum_end - momentum_start);
  if (decay_to_zero) f.weight_decay = 1 - progress;
  return f;
}

Schedule read_schedule(TomlTable t) {
  Schedule s;
  const auto unit = [&](const std::string& key, double fallback) {
    const double value = t.number(key, fallback);
    if (!(value >= 0 && value <= 1)) t.refuse(key, fmt::format("is {}; it must be in [0, 1]", value));
    return value;
  };
  const auto count = [&](const std::string& key, std::int64_t fallback) {
    const std::int64_t value = t.integer(key, fallback);
    if (value < 0) t.refuse(key, "must not be negative");
    return value;
  };
  const std::string clock = t.text("clock", "steps");
  if (clock == "charged") {
    s.clock = Schedule::Clock::charged;
  } else if (clock != "steps") {
    refuse_name(t.where("clock"), "schedule clock", clock, {"steps", "charged"});
  }
  s.warmup_fraction = unit("warmup_fraction", s.warmup_fraction);
  s.warmup_steps = count("warmup_steps", s.warmup_steps);
  if (s.warmup_fraction > 0 && s.warmup_steps > 0) {
    t.refuse("warmup_steps", "and warmup_fraction exclude each other", "Keep one");
  }
  s.warmdown_fraction = unit("warmdown_fraction", s.warmdown_fraction);
  if (s.warmup_fraction + s.warmdown_fraction > 1) {
    t.refuse("warmdown_fraction", "and warmup_fraction together exceed the run");
  }
  s.final_lr_fraction = unit("final_lr_fraction", s.final_lr_fraction);
  s.momentum_start = unit("momentum_start", s.momentum_start);
  s.momentum_end = unit("momentum_end", s.momentum_end);
  s.momentum_steps = count("momentum_steps", s.momentum_steps);
  s.decay_to_zero = t.boolean("decay_to_zero", s.decay_to_zero);
  t.finish();
  return s;
}

std::string to_toml(const Schedule& s) {
  return fmt::format(
      "[schedule]\nclock = \"{}\"\nwarmup_fraction = {}\nwarmup_steps = {}\nwarmdown_fraction = {}\n"
      "final_lr_fraction = {}\nmomentum_start = {}\nmomentum_end = {}\nmomentum_steps = {}\ndecay_to_zero = "
      "{}\n",
      s.clock == Schedule::Clock::charged ? "charged" : "steps", s.warmup_fraction, s.warmup_steps,
      s.warmdown_fraction, s.final_lr_fraction, s.momentum_start, s.momentum_end, s.momentum_steps,
      s.decay_to_zero);
}

}  // namespace headway::optim
