// The contest's clock: seconds charged against the budget.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace headway::referee {

// Rules of the Trainium Frontier kit (prepare.py, September 2026): the charge starts after the fifth
// optimizer step; what comes before is free up to an allowance.
struct ClockRules {
  std::int64_t free_steps = 5;
  double startup_allowance = 900;  // seconds
};

class ChargeClock {
 public:
  // `startup_seconds` passed before the first step (compilation).
  explicit ChargeClock(double startup_seconds = 0, ClockRules rules = {});

  // An optimizer step took that long: priced chip seconds, or measured ones.
  void step(double seconds);
  // A checkpoint was written inside the budget.
  void save(double seconds) { charged_ += seconds; }

  std::int64_t steps() const { return steps_; }
  // Seconds charged so far, excess startup included.
  double charged() const;
  // charged() after one more step and save of those lengths.
  double charged_after(double step_seconds, double save_seconds) const;

  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  ClockRules rules_;
  double startup_;
  double charged_ = 0;
  std::int64_t steps_ = 0;
};

// How many steps of a constant length fit into a budget with one save at the end.
std::int64_t steps_within(double budget_seconds, double step_seconds, double save_seconds,
                          double startup_seconds = 0, ClockRules rules = {});

}  // namespace headway::referee
