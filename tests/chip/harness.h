// Instructions on random operands: records a few, puts numbers into tensors, runs, and looks at the results.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/machine.h"
#include "chip/recorder.h"
#include "chip/spec.h"

namespace headway::chip {

// The chip the tests run on: chips/trn2.toml.
const Spec& trn2();
const Spec& trn1();
const Spec& trn3();

class Harness {
 public:
  explicit Harness(const Spec& spec = trn2(), int threads = 1);

  Recorder nki;

  // Numbers of a view, row-major as the view sees them, before the first run() (and after recording whatever comes before). Each is
  // converted to the view's dtype (nearest even), so read them back with `numbers` for a reference to start from. Integer dtypes take
  // whole numbers.
  void set(const Tile& tile, const std::vector<double>& numbers);
  // Uniform random numbers in [low, high] (whole for integer dtypes); returns what was stored.
  std::vector<double> fill(const Tile& tile, double low = -2, double high = 2);
  // Runs all that was recorded so far and not yet run. Memory stays for `numbers`.
  void run();
  std::vector<double> numbers(const Tile& tile);
  // The bits of each element, zero-extended.
  std::vector<std::uint64_t> bits(const Tile& tile);
  // Whether every byte of the tile was written.
  bool written(const Tile& tile);
  Core& core();
  Machine& machine();
  Diagnostics& diagnostics() { return diagnostics_; }

 private:
  Diagnostics diagnostics_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Machine> machine_;
  std::mt19937 random_;
  friend struct Broken;
};

// A value of `dtype` nearest to `number`: what storing it and reading it back gives.
double stored(DType dtype, double number);

// The message of the KernelError (or Unsupported) that `f` throws; "" and a test failure when it throws none.
std::string error_of(const std::function<void()>& f);

// Expects that `f` breaks `rule`, naming `words` in the message.
#define EXPECT_BREAKS(rule, words, ...)                                             \
  do {                                                                              \
    const std::string text_ = ::headway::chip::error_of([&] { __VA_ARGS__; });      \
    EXPECT_NE(text_.find(std::string("[") + (rule) + "]"), std::string::npos) << text_; \
    EXPECT_NE(text_.find(words), std::string::npos) << text_;                       \
  } while (false)

// |got - expected| <= absolute + relative * |expected| for each; NaN equals NaN.
void expect_close(const std::vector<double>& got, const std::vector<double>& expected, double relative,
                  double absolute = 0);

// All dtypes that can be computed with, or those of a family.
std::vector<DType> computable_dtypes();
std::vector<DType> float_dtypes();
std::vector<DType> integer_dtypes();

}  // namespace headway::chip
