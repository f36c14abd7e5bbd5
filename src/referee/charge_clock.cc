#include "referee/charge_clock.h"

#include <algorithm>
#include <cmath>

namespace headway::referee {

ChargeClock::ChargeClock(double startup_seconds, ClockRules rules)
    : rules_(rules), startup_(startup_seconds) {}

void ChargeClock::step(double seconds) {
  (steps_ < rules_.free_steps ? startup_ : charged_) += seconds;
  ++steps_;
}

double ChargeClock::charged() const { return std::max(0.0, startup_ - rules_.startup_allowance) + charged_; }

double ChargeClock::charged_after(double step_seconds, double save_seconds) const {
  ChargeClock next = *this;
  next.step(step_seconds);
  next.save(save_seconds);
  return next.charged();
}

nlohmann::json ChargeClock::state() const {
  return {{"startup_seconds", startup_}, {"charged_seconds", charged_}, {"steps", steps_}};
}

void ChargeClock::restore(const nlohmann::json& state) {
  startup_ = state.at("startup_seconds").get<double>();
  charged_ = state.at("charged_seconds").get<double>();
  steps_ = state.at("steps").get<std::int64_t>();
}

std::int64_t steps_within(double budget_seconds, double step_seconds, double save_seconds,
                          double startup_seconds, ClockRules rules) {
  ChargeClock clock(startup_seconds, rules);
  while (clock.charged_after(step_seconds, save_seconds) <= budget_seconds) {
    clock.step(step_seconds);
    if (clock.steps() >= 100'000'000) break;  // a free step: there is no limit
  }
  return clock.steps();
}

}  // namespace headway::referee
