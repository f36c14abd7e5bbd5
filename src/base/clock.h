// Time as an interface, so that tests decide what time it is.
#pragma once

#include <chrono>

namespace headway {

class Clock {
 public:
  virtual ~Clock() = default;
  // Seconds since an arbitrary origin, never decreasing.
  virtual double seconds() const = 0;
};

class SteadyClock : public Clock {
 public:
  double seconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

class ManualClock : public Clock {
 public:
  double seconds() const override { return now; }
  double now = 0;
};

}  // namespace headway
