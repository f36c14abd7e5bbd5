// Tries to break the chip with random programs:
//
//   chip_fuzz programs --seconds 60 [--seed 1]   random programs are checked and run
//   chip_fuzz bytes --seconds 60 [--seed 1]      program files are damaged, read, checked and run
//   chip_fuzz programs --trial SEED              one of them again, as a failure says
//
// Exit code 1 and the trial's seed on the first failure. For the sanitizers configure with
// -DHEADWAY_SANITIZE=ON.
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fuzz/trial.h"

using namespace headway::fuzz;

namespace {

// What a signal handler may still say.
char reproduce[128];

void died(int signal) {
  const char* what = signal == SIGALRM ? "\nFAILED: a trial hangs\n" : "\nFAILED: a crash\n";
  if (write(STDERR_FILENO, what, std::strlen(what)) > 0 &&
      write(STDERR_FILENO, reproduce, std::strlen(reproduce)) > 0)
    std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

void report(const std::string& what, const Tally& tally, double seconds, bool verbose) {
  fmt::print(
      "{} trials of {} in {:.1f} s: {:.0f} % broke a rule, {:.0f} % ran to the end, {:.0f} % stopped with an "
      "error, "
      "{:.0f} % were too large to run",
      tally.trials, what, seconds, share(tally.refused, tally.trials), share(tally.finished, tally.trials),
      share(tally.stopped, tally.trials), share(tally.large, tally.trials));
  if (tally.parsed > 0)
    fmt::print("; {:.0f} % of the files were programs", share(tally.parsed, tally.trials));
  fmt::print("\n{} rules hit, {} kinds of instructions run\n", tally.rules.size(), tally.executed.size());
  if (!verbose) return;
  std::vector<std::pair<std::int64_t, std::string>> rules;
  for (const auto& [rule, count] : tally.rules) rules.emplace_back(count, rule);
  std::sort(rules.rbegin(), rules.rend());
  for (const auto& [count, rule] : rules) fmt::print("{:8} {}\n", count, rule);
  for (const auto& [name, count] : tally.executed) fmt::print("{:8} run: {}\n", count, name);
}

}  // namespace

// Undefined behaviour ends the program, as a crash does, so that its seed is told.
extern "C" const char* __ubsan_default_options() {
  return "halt_on_error=1:abort_on_error=1:print_stacktrace=1";
}
extern "C" const char* __asan_default_options() { return "abort_on_error=1:detect_leaks=0"; }

int main(int argc, char** argv) {
  CLI::App app("Tries to break the chip with random programs");
  std::string what;
  double seconds = 10;
  std::uint64_t seed = 1, trial = 0;
  bool verbose = false;
  app.add_option("what", what, "programs or bytes")->required()->check(CLI::IsMember({"programs", "bytes"}));
  app.add_option("--seconds", seconds, "how long");
  app.add_option("--seed", seed, "of the series");
  auto* one = app.add_option("--trial", trial, "run this one trial only");
  app.add_flag("--verbose", verbose, "list rules and instructions");
  CLI11_PARSE(app, argc, argv);

  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM}) std::signal(signal, died);
  constexpr unsigned kTrialSeconds = 60;
  Tally tally;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (std::int64_t n = 0; n == 0 || (one->empty() && elapsed() < seconds); ++n) {
    const std::uint64_t current = one->empty() ? trial_seed(seed, n) : trial;
    fmt::format_to_n(reproduce, sizeof reproduce - 1, "Reproduce: chip_fuzz {} --trial {}\n\0", what,
                     current);
    alarm(kTrialSeconds);
    try {
      what == "programs" ? try_program(current, tally) : try_bytes(current, tally);
    } catch (const std::exception& failure) {
      fmt::print(stderr, "FAILED: {}\n{}", failure.what(), reproduce);
      return 1;
    }
  }
  alarm(0);
  report(what, tally, elapsed(), verbose);
  return 0;
}
