// headway chip validate: the timing model beside what was measured on real chips, failures and all.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/home.h"
#include "base/toml.h"
#include "chip/replay.h"
#include "chip/spec.h"
#include "chip/validate_instructions.h"
#include "cli/commands.h"
#include "cli/validate_python.h"
#include "cli/validation.h"
#include "show/text_table.h"

namespace headway::cli {
namespace {

using chip::Engine;
using chip::Spec;
using chip::Timing;
using nlohmann::json;

struct Arguments {
  std::string chip = "trn2";
  std::string measured, checkouts;
  std::vector<std::string> only;
  bool quick = false;
  bool json = false;
};

constexpr std::string_view kSections[] = {"instructions", "profiles", "kernels",
                                          "documented",   "trn1",     "python"};

// Misses that docs/timing.md has to explain, and those that are too large for any use.
constexpr double kMiss = 0.15, kLargeMiss = 0.25;
std::string mark(double error) {
  return std::abs(error) > kLargeMiss ? "!! over 25%" : std::abs(error) > kMiss ? "! over 15%" : "";
}

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }
std::string signed_percent(double share) { return fmt::format("{:+.1f}%", 100 * share); }

// Three significant digits and more, in the unit that fits.
std::string time_text(double seconds) {
  if (seconds >= 1e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.2f} us", seconds * 1e6);
}

json kernel_rows_json(const KernelValidation& kernels) {
  json rows = json::array();
  for (const KernelRow& row : kernels.rows)
    rows.push_back({{"id", row.row->id},
                    {"source", row.row->source},
                    {"measured_us", row.measured * 1e6},
                    {"predicted_us", row.predicted * 1e6},
                    {"device_us", row.time.device * 1e6},
                    {"error_percent", 100 * row.error(row.predicted)},
                    {"left_out_error_percent", 100 * row.error(row.left_out)},
                    {"roofline_error_percent", 100 * row.error(row.roofline_predicted)},
                    {"instructions", row.time.instructions},
                    {"calibrated", row.time.calibrated}});
  return rows;
}

json print_kernels(const KernelValidation& kernels, const std::string& title, bool refit) {
  if (kernels.rows.empty()) return nullptr;
  fmt::print("{}\n\n", title);
  using enum show::TextTable::Side;
  std::vector<std::string> heads = {"kernel", "measured", "predicted", "error"};
  if (refit) heads.emplace_back("source left out");
  heads.insert(heads.end(), {"roofline", "instructions", ""});
  std::vector<show::TextTable::Side> sides(heads.size(), right);
  sides.front() = sides.back() = left;
  show::TextTable table(heads, sides);
  int misses = 0, large = 0;
  for (const KernelRow& row : kernels.rows) {
    const double error = row.error(row.predicted);
    misses += std::abs(error) > kMiss;
    large += std::abs(error) > kLargeMiss;
    std::vector<std::string> cells = {std::string(row.row->id), time_text(row.measured),
                                      time_text(row.predicted), signed_percent(error)};
    if (refit) cells.push_back(signed_percent(row.error(row.left_out)));
    cells.insert(cells.end(),
                 {signed_percent(row.error(row.roofline_predicted)), fmt::format("{}", row.time.instructions),
                  mark(error) + (row.time.calibrated ? "" : " outside what was measured")});
    table.add(cells);
  }
  fmt::print("{}\nMean absolute error {}", table.text(), percent(kernels.mean_error()));
  if (refit) fmt::print(", with each source left out of the fit {}", percent(kernels.mean_error_left_out()));
  fmt::print(", a roofline's {}. {} of {} over 15%, {} over 25%.\n", percent(kernels.mean_error_roofline()),
             misses, kernels.rows.size(), large);
  for (const auto& [source, launch] : kernels.launch)
    if (launch > 0) fmt::print("Launch, {}: {}.\n", source, time_text(launch));
  fmt::print("\n");
  json result = {{"mape", 100 * kernels.mean_error()},
                 {"roofline_mape", 100 * kernels.mean_error_roofline()},
                 {"over_15_percent", misses},
                 {"over_25_percent", large},
                 {"rows", kernel_rows_json(kernels)}};
  for (const auto& [source, launch] : kernels.launch) result["launch_overhead_us"][source] = launch * 1e6;
  if (refit) {
    result["left_out_mape"] = 100 * kernels.mean_error_left_out();
    result["left_out_copy_overhead"] = kernels.copy_left_out;
  }
  return result;
}

// Active share of the tensor engine and use of HBM, where the source gives them.
json print_shares(const KernelValidation& kernels, const std::map<std::string, Shares>& measured) {
  using enum show::TextTable::Side;
  show::TextTable table({"kernel", "TensorE active", "measured", "HBM", "measured", ""},
                        {left, right, right, right, right, left});
  json rows = json::array();
  for (const KernelRow& row : kernels.rows) {
    const auto found = measured.find(std::string(row.row->id));
    if (found == measured.end()) continue;
    const Shares& real = found->second;
    const double most = std::max(std::abs(row.time.shares.tensor_active - real.tensor_active),
                                 std::abs(row.time.shares.hbm - real.hbm));
    table.add({found->first, percent(row.time.shares.tensor_active), percent(real.tensor_active),
               percent(row.time.shares.hbm), percent(real.hbm), most > 0.05 ? "! over 5 points" : ""});
    rows.push_back({{"id", found->first},
                    {"tensor_active_percent", 100 * row.time.shares.tensor_active},
                    {"measured_tensor_active_percent", 100 * real.tensor_active},
                    {"hbm_percent", 100 * row.time.shares.hbm},
                    {"measured_hbm_percent", 100 * real.hbm}});
  }
  if (!rows.empty()) fmt::print("{}\n", table.text());
  return rows;
}

json python_row_json(const PythonRow& row) {
  json object = {{"id", row.kernel.row->id},
                 {"where", row.kernel.published ? "checkouts" : "project"},
                 {"file", row.kernel.file},
                 {"function", row.kernel.function},
                 {"measured_us", row.twin.measured * 1e6},
                 {"cpp_us", row.twin.predicted * 1e6},
                 {"cpp_error_percent", 100 * row.twin.error(row.twin.predicted)},
                 {"cpp_instructions", row.twin.time.instructions}};
  if (!row.failure.empty()) {
    object["failure"] = row.failure;
    return object;
  }
  object["predicted_us"] = row.predicted * 1e6;
  object["error_percent"] = 100 * row.error();
  object["difference_percent"] = 100 * row.difference();
  object["instructions"] = row.time.instructions;
  return object;
}

json print_python(const PythonValidation& python, const std::string& title) {
  using enum show::TextTable::Side;
  show::TextTable table({"kernel", "in Python", "measured", "predicted", "error", "in C++", "error",
                         "difference", "instructions", ""},
                        {left, left, right, right, right, right, right, right, right, left});
  json rows = json::array();
  double most = 0;
  std::vector<std::string> failures;
  for (const PythonRow& row : python.rows) {
    const double in_cpp = row.twin.error(row.twin.predicted);
    std::vector<std::string> cells = {std::string(row.kernel.row->id), row.kernel.title(),
                                      time_text(row.twin.measured)};
    if (row.failure.empty()) {
      most = std::max(most, std::abs(row.difference()));
      cells.insert(cells.end(),
                   {time_text(row.predicted), signed_percent(row.error()), time_text(row.twin.predicted),
                    signed_percent(in_cpp), signed_percent(row.difference()),
                    fmt::format("{}", row.time.instructions), mark(row.error())});
    } else {
      cells.insert(cells.end(), {"", "", time_text(row.twin.predicted), signed_percent(in_cpp), "", "",
                                 "!! failed, see below"});
      failures.push_back(
          fmt::format("{}, {}:{}: {}", cells[0], row.kernel.file, row.kernel.function, row.failure));
    }
    table.add(cells);
    rows.push_back(python_row_json(row));
  }
  fmt::print("{}\n\n{}\n", title, table.text());
  if (python.recorded() > 0)
    fmt::print("Mean absolute error {}, of the same in C++ {}; they differ by {} at most. ",
               percent(python.mean_error()), percent(python.mean_twin_error()), percent(most));
  fmt::print("{} of {} recorded.\n", python.recorded(), python.rows.size());
  for (const std::string& failure : failures) fmt::print("{}\n", failure);
  fmt::print("\n");
  return {{"rows", rows},
          {"recorded", python.recorded()},
          {"mape", 100 * python.mean_error()},
          {"cpp_mape", 100 * python.mean_twin_error()},
          {"largest_difference_percent", 100 * most}};
}

// The kernels in Python of one chip: ours, then published ones. `in_cpp` has their twins.
json print_python_of(const Arguments& a, const std::vector<MeasuredPython>& kernels,
                     const std::vector<const KernelValidation*>& in_cpp, const Timing& timing,
                     const std::string& chip) {
  json result = json::object();
  std::optional<std::string> missing;  // asked once, and only where there is something to record
  for (const bool published : {false, true}) {
    std::vector<MeasuredPython> some;
    std::ranges::copy_if(kernels, std::back_inserter(some), [&](const MeasuredPython& kernel) {
      return kernel.published == published && kernel.row->chip == timing.spec.name;
    });
    if (some.empty()) continue;
    const std::string title =
        fmt::format("{} in Python on {}", published ? "Published kernels" : "Kernels", timing.spec.label());
    const char* key = published ? "published" : "project";
    if (!missing) missing = python_missing();
    std::string skipped = *missing;
    if (skipped.empty() && published && a.checkouts.empty())
      skipped = "--checkouts names no folder with the repositories that they are from";
    if (!skipped.empty()) {
      fmt::print("{}: {} skipped. {}\n\n", title, some.size(), skipped);
      result[key] = {{"skipped", skipped}, {"count", some.size()}};
      continue;
    }
    result[key] = print_python(validate_python(some, in_cpp, timing, chip, a.checkouts), title);
  }
  return result;
}

json print_instructions(const std::filesystem::path& file, const Timing& timing) {
  using enum show::TextTable::Side;
  show::TextTable table({"instruction", "measured", "predicted", "error", ""},
                        {left, right, right, right, left});
  json rows = json::array();
  double sum = 0;
  int misses = 0;
  const std::string text = read_file(file);
  for (const chip::InstructionRow& row : chip::validate_instructions(timing, text, file.string())) {
    const double difference = std::abs(row.predicted - row.measured);
    const bool miss = difference > 0.10 * row.measured && difference > 5;
    misses += miss;
    sum += std::abs(row.error());
    table.add({row.id, fmt::format("{:.0f} ns", row.measured), fmt::format("{:.0f} ns", row.predicted),
               signed_percent(row.error()), miss ? "! over 10% and 5 ns" : ""});
    rows.push_back({{"id", row.id},
                    {"measured_ns", row.measured},
                    {"predicted_ns", row.predicted},
                    {"error_percent", 100 * row.error()}});
  }
  const double mean = rows.empty() ? 0 : sum / static_cast<double>(rows.size());
  fmt::print("Instructions on {}\n\n{}\nMean absolute error {}. {} of {} over 10% and 5 ns.\n\n",
             timing.spec.label(), table.text(), percent(mean), misses, rows.size());
  return {{"mape", 100 * mean}, {"over_10_percent", misses}, {"rows", rows}};
}

// Spans and starts with the clock's windows where the recording has them, and the span with them on average.
json print_profiles(const std::filesystem::path& folder, const Timing& timing) {
  using enum show::TextTable::Side;
  show::TextTable spans(
      {"recorded timeline", "span", "predicted", "error", "clock unknown", "start error", "largest", ""},
      {left, right, right, right, right, right, right, left});
  show::TextTable busy({"recorded timeline", "engine", "busy", "predicted", "error", ""},
                       {left, left, right, right, right, left});
  json rows = json::array();
  for (const std::string& name : chip::recording_names(folder)) {
    const chip::Recording recording = chip::read_recording(folder, name);
    const chip::ReplayScore score =
        chip::score(recording, chip::replay(recording, timing, chip::ClockPhase::recorded));
    const chip::ReplayScore average = chip::score(recording, chip::replay(recording, timing));
    const auto measured = static_cast<double>(score.measured);
    const double span = static_cast<double>(score.predicted) / measured - 1;
    const double unknown = static_cast<double>(average.predicted) / measured - 1;
    const double start = chip::nanoseconds(score.median_start_error);
    spans.add(
        {name, time_text(chip::seconds(score.measured)), time_text(chip::seconds(score.predicted)),
         signed_percent(span), signed_percent(unknown), fmt::format("{:.0f} ns", start),
         fmt::format("{:.0f} ns, line {}", chip::nanoseconds(score.largest_start_error), score.largest_line),
         std::max(std::abs(span), std::abs(unknown)) > 0.10 ? "! span over 10%"
         : start > 500                                      ? "! start over 500 ns"
                                                            : ""});
    json engines = json::object();
    for (const chip::BusyTime& b : score.busy) {
      const double error = static_cast<double>(b.predicted) / static_cast<double>(b.measured) - 1;
      const std::string engine(names_of(b.engine)[static_cast<std::size_t>(b.engine)]);
      busy.add({name, engine, time_text(chip::seconds(b.measured)), time_text(chip::seconds(b.predicted)),
                signed_percent(error), std::abs(error) > 0.05 ? "! over 5%" : ""});
      engines[engine] = {{"measured_us", chip::seconds(b.measured) * 1e6},
                         {"predicted_us", chip::seconds(b.predicted) * 1e6},
                         {"error_percent", 100 * error}};
    }
    rows.push_back({{"name", name},
                    {"measured_us", chip::seconds(score.measured) * 1e6},
                    {"predicted_us", chip::seconds(score.predicted) * 1e6},
                    {"error_percent", 100 * span},
                    {"clock_unknown_error_percent", 100 * unknown},
                    {"median_start_error_ns", start},
                    {"largest_start_error_ns", chip::nanoseconds(score.largest_start_error)},
                    {"instructions", score.instructions},
                    {"transfers", score.transfers},
                    {"busy", engines}});
  }
  if (rows.empty())
    throw InputError(folder.string(), "has no recorded timeline",
                     "A recording is NAME.instructions.csv and two more");
  fmt::print("Recorded timelines on {}, replayed with the recorded dependencies\n\n{}\n{}\n",
             timing.spec.label(), spans.text(), busy.text());
  return rows;
}

void validate(const Arguments& a) {
  const std::filesystem::path folder =
      a.measured.empty() ? home() / "chips" / "measured" : std::filesystem::path(a.measured);
  const Spec spec = Spec::load(a.chip);
  const Timing timing(spec);
  const auto wanted = [&](std::string_view section) {
    return a.only.empty() || std::ranges::find(a.only, section) != a.only.end();
  };
  const auto figures = [&](const char* file) { return read_figures(folder / file); };

  json result = {{"chip", spec.name}, {"chip_hash", spec.file().hash()}};
  const std::size_t nothing = result.size();
  const bool measured = spec.name == "trn2" || spec.name == "trn1";
  const std::vector<MeasuredPython> python = measured && wanted("python")
                                                 ? read_measured_python(folder / "python.csv")
                                                 : std::vector<MeasuredPython>();
  // Kernels in C++, where another section needs them anyway or kernels in Python are compared with them.
  const auto in_cpp = [&](std::string_view section, const char* file, const Timing& on, bool refit) {
    const std::vector<Figure> all = figures(file);
    return validate_kernels(wanted(section) ? all : figures_of(python, all), on, refit && wanted(section));
  };
  fmt::print("Chip {}\n\n", spec.label());
  if (spec.name == "trn2") {
    if (wanted("instructions"))
      result["instructions"] = print_instructions(folder / "instructions.csv", timing);
    if (wanted("profiles")) result["profiles"] = print_profiles(folder / "profiles", timing);
    KernelValidation kernels, documented;
    if (wanted("kernels") || wanted("python")) kernels = in_cpp("kernels", "kernels.csv", timing, !a.quick);
    if (wanted("documented") || wanted("python"))
      documented = in_cpp("documented", "documented.csv", timing, false);
    if (wanted("kernels")) {
      result["kernels"] = print_kernels(kernels, "Whole kernels on " + spec.label(), !a.quick);
      result["shares"] = print_shares(kernels, read_shares(folder / "shares.csv"));
      result["mape"] = 100 * kernels.mean_error();
    }
    if (wanted("documented"))
      result["documented"] = print_kernels(
          documented,
          "Documented traces on " + spec.label() + "; constants of software DMA were chosen with them",
          false);
    if (wanted("python"))
      result["python"][spec.name] = print_python_of(a, python, {&kernels, &documented}, timing, a.chip);
  }
  if (measured && (wanted("trn1") || wanted("python"))) {
    const std::string chip = spec.name == "trn1" ? a.chip : "trn1";
    const Spec other_spec = Spec::load(chip);
    const Timing other(other_spec);
    const KernelValidation kernels = in_cpp("trn1", "documented.csv", other, false);
    if (wanted("trn1"))
      result["trn1"] =
          print_kernels(kernels, "Kernels on " + other_spec.label() + "; nothing is fitted to them", false);
    if (wanted("python"))
      result["python"][other_spec.name] = print_python_of(a, python, {&kernels}, other, chip);
  }
  if (result.size() == nothing)
    throw InputError("--chip " + a.chip, "there are no measurements of " + spec.name,
                     "There are some of trn1 and trn2");
  if (a.json) fmt::print("{}\n", result.dump());
}

}  // namespace

void add_chip_validate(CLI::App& chip) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command =
      chip.add_subcommand("validate", "The timing model beside what was measured on real chips");
  command->add_option("--chip", a->chip, "trn2, trn1, or the path of a chip file")->capture_default_str();
  command->add_option("--measured", a->measured, "Folder of the measurements (default: chips/measured)");
  command->add_option("--only", a->only, "Only these sections")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kSections), std::end(kSections))));
  command->add_option("--checkouts", a->checkouts,
                      "Folder of repositories, OWNER+NAME each: published kernels in Python are timed too");
  command->add_flag("--quick", a->quick, "Don't fit again with each source left out");
  command->add_flag("--json", a->json, "End with one line of JSON");
  command->callback([a] { validate(*a); });
}

}  // namespace headway::cli
