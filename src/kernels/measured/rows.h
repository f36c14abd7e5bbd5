// Which launches a published figure is of. The figures themselves are data: chips/measured/kernels.csv and
// chips/measured/documented.csv, by id.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chip/program.h"
#include "chip/spec.h"
#include "kernels/kernel.h"

namespace headway::kernels {

// Whose clock a figure is from.
enum class Clock {
  runtime,  // the runtime's benchmark: with the launch of each kernel
  profiler  // the device's own profile: from the first to the last activity
};

struct Launch {
  std::string_view kernel;
  std::vector<Parameter> inputs;
  std::map<std::string, double> attributes;
};

struct MeasuredRow {
  std::string_view id;
  std::string_view chip;    // "trn2"
  std::string_view source;  // figures of one source share a launch overhead
  Clock clock = Clock::runtime;
  std::vector<Launch> launches;  // one after the other; the figure is their sum
  // The figure is the time of one NeuronCore divided by this: 2 for a source whose figures are all about
  // twice what the engines of one core can do (docs/timing.md).
  double cores = 1;
};

std::span<const MeasuredRow> measured_rows();
// Throws InputError with the nearest id.
const MeasuredRow& find_measured_row(const std::string& id);

// The program of a launch, on one core.
chip::Program record(const Launch& launch, const chip::Spec& spec);

}  // namespace headway::kernels
