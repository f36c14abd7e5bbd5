// One attempt to break the chip: a program is checked, run, and run again.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

#include "fuzz/random_program.h"

namespace headway::fuzz {

// What must not happen: anything but a result, a KernelError, Unsupported or an InputError.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What happened so far.
struct Tally {
  std::int64_t trials = 0;
  std::int64_t parsed = 0;   // bytes that were a program
  std::int64_t refused = 0;  // by the check
  std::int64_t large = 0;    // legal, but too much work to run here
  std::int64_t stopped = 0;  // by an error while running
  std::int64_t finished = 0;
  std::map<std::string, std::int64_t> rules;     // diagnostics by rule
  std::map<std::string, std::int64_t> executed;  // legal instructions of programs that ran, by name
};

// Programs. `seed` says all: the chip, the programs, the numbers in memory, the threads. Throws Failure.
void try_program(std::uint64_t seed, Tally& tally);

// Bytes: a program's file, damaged. Throws Failure.
void try_bytes(std::uint64_t seed, Tally& tally);

// The seed of trial `number` of a series.
std::uint64_t trial_seed(std::uint64_t seed, std::int64_t number);

}  // namespace headway::fuzz
