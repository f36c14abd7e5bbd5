#include "cli/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/csv.h"
#include "base/error.h"
#include "base/files.h"
#include "base/progress.h"
#include "chip/interval.h"
#include "chip/timeline.h"

namespace headway::cli {
namespace {

using chip::Engine;
using chip::Timing;
using kernels::MeasuredRow;

// Multiples of dma.copy_overhead that are tried where a source is left out.
constexpr double kMultiples[] = {1, 0.5, 0.75, 1.25, 1.5};

// What is recorded once and timed several times.
struct Recorded {
  const MeasuredRow* row;
  double measured;
  std::vector<chip::Program> programs;
};

// The launch overhead that fits the rows best: least squares of (device + launches x - measured) / measured,
// not negative. 0 where no row has launches.
template <class Rows, class Device>
double fitted_launch(const Rows& rows, Device&& device) {
  double wanted = 0, weight = 0;
  for (const KernelRow& row : rows) {
    const double launches = row.launches() / row.measured;
    wanted += launches * (1 - device(row) / row.measured);
    weight += launches * launches;
  }
  return weight > 0 ? std::max(0.0, wanted / weight) : 0;
}

template <class Prediction>
double mean_absolute(const std::vector<KernelRow>& rows, Prediction&& prediction) {
  double sum = 0;
  for (const KernelRow& row : rows) sum += std::abs(row.error(prediction(row)));
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

std::string source_of(const KernelRow& row) { return std::string(row.row->source); }

std::vector<KernelRow> only(const std::vector<KernelRow>& rows, const std::string& source, bool inside) {
  std::vector<KernelRow> some;
  for (const KernelRow& row : rows)
    if ((source_of(row) == source) == inside) some.push_back(row);
  return some;
}

}  // namespace

KernelTime time_of(const MeasuredRow& row, std::span<const chip::Program> programs, const Timing& timing) {
  const double core_bandwidth = timing.dma.engines.value * timing.dma.engine_effective_bandwidth.value;
  const double bandwidth = std::min(core_bandwidth, timing.stack_bandwidth.value);
  KernelTime sum;
  double busy = 0, bytes = 0;
  for (const chip::Program& program : programs) {
    const chip::Timeline timeline = chip::time(program, timing);
    sum.device += chip::seconds(timeline.total);
    sum.instructions += timeline.events.size();
    sum.calibrated = sum.calibrated && timeline.uncalibrated == 0;
    std::vector<chip::Interval> active;
    for (const chip::Event& event : timeline.events)
      if (event.engine == Engine::tensor) active.emplace_back(event.start, event.end);
    busy += chip::seconds(chip::length_of_union(active));
    for (const chip::CoreTimeline& core : timeline.cores) {
      const auto moved = static_cast<double>(core.traffic.hbm_read + core.traffic.hbm_written);
      sum.roofline += std::max(
          (core.traffic.flops + core.traffic.transpose_flops) / chip::peak_flops_per_core(timing.spec),
          moved / bandwidth);
      bytes += moved;
    }
  }
  sum.shares = {busy / sum.device, bytes / sum.device / timing.stack_bandwidth.value};
  sum.device /= row.cores;
  sum.roofline /= row.cores;
  return sum;
}

std::vector<Figure> read_figures(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  CsvReader table(text, file.string(),
                  {"id", "source", "chip", "kernel", "shape", "dtype", "latency_us", "notes"});
  std::vector<Figure> figures;
  std::set<std::string> seen;
  while (table.next()) {
    const double latency = table.number("latency_us");
    if (latency <= 0) table.refuse(fmt::format("latency_us is {}, must be positive", latency));
    if (!seen.insert(table.cell("id")).second)
      table.refuse(fmt::format("'{}' is there twice", table.cell("id")));
    figures.push_back({table.cell("id"), table.cell("chip"), latency * 1e-6});
  }
  return figures;
}

std::map<std::string, Shares> read_shares(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  CsvReader table(text, file.string(), {"id", "tensor_active_percent", "hbm_percent"});
  std::map<std::string, Shares> shares;
  while (table.next())
    shares[table.cell("id")] = {table.number("tensor_active_percent") / 100,
                                table.number("hbm_percent") / 100};
  return shares;
}

double KernelValidation::mean_error() const {
  return mean_absolute(rows, [](const KernelRow& row) { return row.predicted; });
}
double KernelValidation::mean_error_left_out() const {
  return mean_absolute(rows, [](const KernelRow& row) { return row.left_out; });
}
double KernelValidation::mean_error_roofline() const {
  return mean_absolute(rows, [](const KernelRow& row) { return row.roofline_predicted; });
}

KernelValidation validate_kernels(const std::vector<Figure>& figures, const Timing& timing, bool refit) {
  std::vector<Recorded> recorded;
  for (const Figure& figure : figures) {
    const MeasuredRow& row = kernels::find_measured_row(figure.id);
    if (row.chip != figure.chip)
      throw InputError(figure.id,
                       fmt::format("is a figure of {}, but the kernel's is of {}", figure.chip, row.chip));
    if (row.chip == timing.spec.name) recorded.push_back({&row, figure.latency, {}});
  }
  const std::size_t sweeps = refit ? std::size(kMultiples) : 1;
  Progress progress("timing", static_cast<std::int64_t>(recorded.size() * sweeps));
  std::int64_t done = 0;

  KernelValidation result;
  std::vector<std::vector<double>> devices(sweeps);  // by multiple, by row
  for (Recorded& r : recorded) {
    for (const kernels::Launch& launch : r.row->launches)
      r.programs.push_back(kernels::record(launch, timing.spec));
    for (std::size_t s = 0; s < sweeps; ++s) {
      progress.update(done++, std::string(r.row->id));
      Timing changed = timing;
      changed.dma.copy_overhead.value *= kMultiples[s];
      const KernelTime time = time_of(*r.row, r.programs, changed);
      devices[s].push_back(time.device);
      if (s > 0) continue;
      KernelRow row;
      row.row = r.row;
      row.measured = r.measured;
      row.time = time;
      result.rows.push_back(row);
    }
    r.programs.clear();  // some have a hundred thousand instructions
  }
  progress.finish();

  std::set<std::string> sources;
  for (const KernelRow& row : result.rows) sources.insert(source_of(row));
  std::map<std::string, double> roofline_launch;
  for (const std::string& source : sources) {
    const auto inside = only(result.rows, source, true);
    result.launch[source] = fitted_launch(inside, [](const KernelRow& row) { return row.time.device; });
    roofline_launch[source] = fitted_launch(inside, [](const KernelRow& row) { return row.time.roofline; });
  }
  for (KernelRow& row : result.rows) {
    row.predicted = row.time.device + row.launches() * result.launch[source_of(row)];
    row.left_out = row.predicted;
    row.roofline_predicted = row.time.roofline + row.launches() * roofline_launch[source_of(row)];
  }
  if (!refit) return result;

  for (const std::string& source : sources) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s < sweeps; ++s) {
      std::vector<KernelRow> rows = result.rows;
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i].time.device = devices[s][i];
      const auto outside = only(rows, source, false);
      if (outside.empty()) continue;
      const double launch = fitted_launch(outside, [](const KernelRow& row) { return row.time.device; });
      std::map<std::string, double> own;
      for (const KernelRow& row : outside)
        if (!own.contains(source_of(row)))
          own[source_of(row)] = fitted_launch(only(outside, source_of(row), true),
                                              [](const KernelRow& r) { return r.time.device; });
      const double error = mean_absolute(outside, [&](const KernelRow& row) {
        return row.time.device + row.launches() * own[source_of(row)];
      });
      if (error > least - 1e-9) continue;  // the file's own where nothing is better
      least = error;
      result.copy_left_out[source] = kMultiples[s];
      result.launch_left_out[source] = launch;
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (source_of(rows[i]) == source)
          result.rows[i].left_out = rows[i].time.device + rows[i].launches() * launch;
    }
  }
  return result;
}

}  // namespace headway::cli
