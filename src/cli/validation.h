// Measured kernels against the model: what it predicts, what it would predict without having seen a source's
// figures, and what a plain roofline says.
//
// Two things are fitted on whole kernels. One launch overhead for each source whose figures the runtime took:
// it minimises the sum of squared relative errors. And dma.copy_overhead of the chip file. To leave a source
// out, both are fitted again on all others: the launch as one number for all of them, the overhead of copies
// as the best of a few multiples of the file's by mean absolute error.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chip/timing.h"
#include "kernels/measured/rows.h"

namespace headway::cli {

// A measured figure; seconds.
struct Figure {
  std::string id, chip;
  double latency = 0;
};
// kernels.csv and documented.csv of chips/measured. Throws InputError naming file and line.
std::vector<Figure> read_figures(const std::filesystem::path& file);

// How busy the chip was, as the profiler says it.
struct Shares {
  double tensor_active = 0;  // of the time
  double hbm = 0;            // of a stack's bandwidth
};
// shares.csv of chips/measured: by id.
std::map<std::string, Shares> read_shares(const std::filesystem::path& file);

// What the model says of a row's programs, one after the other, with `cores` taken into account; seconds.
struct KernelTime {
  double device = 0;  // without launches
  double roofline =
      0;  // max of FLOPs at the array's peak and HBM bytes at the bandwidth of core and stack, the same
  Shares shares;
  std::size_t instructions = 0;
  bool calibrated = true;  // all shapes lie within what was measured
};
KernelTime time_of(const kernels::MeasuredRow& row, std::span<const chip::Program> programs,
                   const chip::Timing& timing);

// A kernel that was measured, and what the model says; seconds.
struct KernelRow {
  const kernels::MeasuredRow* row = nullptr;
  double measured = 0;
  KernelTime time;
  // With the launches.
  double predicted = 0, left_out = 0, roofline_predicted = 0;

  bool launched() const { return row->clock == kernels::Clock::runtime; }
  double launches() const { return launched() ? static_cast<double>(row->launches.size()) : 0; }
  double error(double prediction) const { return prediction / measured - 1; }
};

struct KernelValidation {
  std::vector<KernelRow> rows;
  std::map<std::string, double> launch;  // by source: seconds
  std::map<std::string, double> launch_left_out;
  std::map<std::string, double>
      copy_left_out;          // by source: the multiple of dma.copy_overhead that the others want
  double mean_error() const;  // of `predicted`, absolute
  double mean_error_left_out() const;
  double mean_error_roofline() const;
};

// Rows of `figures` that are of the chip of `timing`; `refit` says whether sources are left out in turn,
// which takes several times as long. Progress on stderr.
KernelValidation validate_kernels(const std::vector<Figure>& figures, const chip::Timing& timing, bool refit);

}  // namespace headway::cli
