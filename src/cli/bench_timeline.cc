// `headway bench timeline`: how fast the chip's time is found, and in how much memory.
#include <fmt/format.h>
#include <malloc.h>

#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <string>

#include "base/clock.h"
#include "chip/timeline.h"
#include "cli/commands.h"
#include "kernels/kernel.h"

namespace headway::cli {
namespace {

struct Arguments {
  int repetitions = 5;
  bool json = false;
};

// Bytes of memory that are in the process now, and the most since the peak was last forgotten.
struct Resident {
  double now = 0, peak = 0;
};
Resident resident() {
  Resident r;
  std::ifstream in("/proc/self/status");
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with("VmRSS:")) r.now = std::stod(line.substr(6)) * 1024;
    if (line.starts_with("VmHWM:")) r.peak = std::stod(line.substr(6)) * 1024;
  }
  return r;
}
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

struct Result {
  std::size_t instructions = 0;
  double per_second = 0, bytes = 0, total = 0;
};

Result measure(const std::string& name, const std::vector<kernels::Parameter>& inputs, int repetitions) {
  const chip::Spec spec = chip::Spec::load("trn2");
  const chip::Timing timing(spec);
  const auto programs = kernels::record(kernels::find_kernel(name), spec, inputs, {});
  Result result;
  const SteadyClock clock;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repetitions; ++i) {
    malloc_trim(0);
    const double before = resident().now;
    forget_peak();
    const double start = clock.seconds();
    const chip::Timeline timeline = chip::time(programs[0], timing);
    best = std::min(best, clock.seconds() - start);
    result.instructions = timeline.events.size();
    result.bytes = (resident().peak - before) / static_cast<double>(timeline.events.size());
    result.total = chip::seconds(timeline.total);
  }
  result.per_second = static_cast<double>(result.instructions) / best;
  return result;
}

void bench_timeline(const Arguments& a) {
  const auto square = [](const char* name, std::int64_t n) {
    return kernels::Parameter{name, DType::f32, {n, n}};
  };
  const auto head = [](const char* name, std::int64_t n) {
    return kernels::Parameter{name, DType::f32, {n, 128}};
  };
  const Result cases[] = {
      measure("matmul", {square("a", 4096), square("b", 4096)}, a.repetitions),
      measure("matmul", {square("a", 8192), square("b", 8192)}, a.repetitions),
      measure("attention", {head("q", 16384), head("k", 16384), head("v", 16384)}, a.repetitions)};
  const char* const names[] = {"matmul 4096^3", "matmul 8192^3", "attention 16384 x 16384"};
  double slowest = std::numeric_limits<double>::infinity(), most = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const Result& r = cases[i];
    fmt::print(
        "{:<24} {:>8} instructions  {:6.2f} million a second  {:4.0f} bytes an instruction  ({:.3f} ms on "
        "the chip)\n",
        names[i], r.instructions, r.per_second * 1e-6, r.bytes, r.total * 1e3);
    slowest = std::min(slowest, r.per_second);
    most = std::max(most, r.bytes);
  }
  if (a.json)
    fmt::print(
        "{{\"bench\": \"timeline\", \"instructions_per_second\": {}, \"bytes_per_instruction\": {}}}\n",
        slowest, most);
  std::fflush(stdout);
}

}  // namespace

void add_bench_timeline(CLI::App& bench) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command =
      bench.add_subcommand("timeline", "Time on the simulated chip: instructions a second, on one thread");
  command->add_option("--repetitions", a->repetitions, "Of which the fastest counts")->capture_default_str();
  command->add_flag("--json", a->json, "End with one line of JSON");
  command->callback([a] { bench_timeline(*a); });
}

}  // namespace headway::cli
