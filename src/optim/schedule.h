// The [schedule] section: how learning rates, momentum and weight decay move with the run's progress.
#pragma once

#include <cstdint>
#include <string>

#include "base/toml.h"

namespace headway::optim {

struct Schedule {
  // What progress is measured by: "steps" done of all steps, or "charged" seconds of the budget.
  enum class Clock { steps, charged } clock = Clock::steps;
  double warmup_fraction = 0;     // of the run, learning rates rising linearly from near 0
  std::int64_t warmup_steps = 0;  // instead of the fraction, counted in steps
  double warmdown_fraction = 0;   // of the run, at its end, falling linearly to final_lr_fraction
  double final_lr_fraction = 0;
  double momentum_start = 0.85, momentum_end = 0.95;
  std::int64_t momentum_steps = 300;
  bool decay_to_zero = false;  // weight decay falls linearly over the run

  struct Factors {
    double lr = 1;
    double momentum = 0;
    double weight_decay = 1;
  };
  // For the step after `step` steps have been done, with progress in [0, 1].
  Factors at(std::int64_t step, double progress) const;
};

Schedule read_schedule(TomlTable table);
std::string to_toml(const Schedule& schedule);

}  // namespace headway::optim
