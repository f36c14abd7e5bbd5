#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "cli/run_comparison.h"
#include "show/text_table.h"
#include "train/run_folder.h"

namespace headway::cli {

using train::RunFigures;
using train::RunRecord;
namespace {

using nlohmann::json;

struct RunsOptions {
  std::string folder = "runs";
  std::vector<std::string> compared;
  std::int64_t window = 20;
  bool json = false;
};

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

std::string text(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

std::string rounded(const std::optional<double>& value) {
  return value ? grouped(std::llround(*value)) : "-";
}

// "2026-11-30T15:25:52Z" -> "2026-11-30 15:25".
std::string started(const RunRecord& run) {
  const auto it = run.environment.find("started");
  if (it == run.environment.end() || !it->is_string()) return "-";
  std::string time = it->get<std::string>().substr(0, 16);
  if (time.size() > 10 && time[10] == 'T') time[10] = ' ';
  return time;
}

void print_json(const json& line) {
  fmt::print("{}\n", line.dump(-1, ' ', false, json::error_handler_t::replace));
}

void list(const RunsOptions& options) {
  json lines = json::array();
  show::TextTable table(
      {"name", "parameters", "steps", "tokens", "val_bpb", "charged s", "tokens/s", "state", "started"},
      {show::TextTable::left, show::TextTable::right, show::TextTable::right, show::TextTable::right, show::TextTable::right,
       show::TextTable::right, show::TextTable::right, show::TextTable::left, show::TextTable::left});
  for (const auto& folder : train::list_runs(options.folder)) {
    const RunRecord run = train::read_run(folder);
    const RunFigures f = run.figures();
    table.add({run.name, f.parameters ? grouped(*f.parameters) : "-", grouped(f.steps), grouped(f.tokens),
               text(f.val_bpb, 4), rounded(f.charged_seconds), rounded(f.tokens_per_second), run.state(),
               started(run)});
    lines.push_back(
        {{"name", run.name},
         {"folder", run.folder.string()},
         {"state", run.state()},
         {"score_void_reason", run.void_reason().empty() ? json(nullptr) : json(run.void_reason())},
         {"started", run.environment.value("started", json(nullptr))},
         {"parameters", or_null(f.parameters)},
         {"steps", f.steps},
         {"tokens", f.tokens},
         {"val_bpb", or_null(f.val_bpb)},
         {"corpus_hash", or_null(f.corpus_hash)},
         {"charged_seconds", or_null(f.charged_seconds)},
         {"host_seconds", or_null(f.host_seconds)},
         {"tokens_per_second", or_null(f.tokens_per_second)},
         {"mfu", or_null(f.mfu)}});
  }
  if (lines.empty()) {
    fmt::print("no runs in {}\n", options.folder);
  } else {
    fmt::print("{}", table.text());
  }
  if (options.json) print_json({{"runs", lines}});
}

// Whether there is anything to compare: two runs with a value.
bool comparable(const std::vector<std::optional<double>>& values) {
  return std::count_if(values.begin(), values.end(), [](const auto& value) { return value.has_value(); }) > 1;
}

// One table: a row a point that two runs or more have, and for each run its value, for all but the first also
// the difference to it.
void print_points(const std::string& head, const std::vector<RunRecord>& runs,
                  const std::vector<ComparedPoint>& points, bool charged, int digits,
                  std::vector<std::optional<double>> ComparedPoint::*values) {
  std::vector<std::string> heads{charged ? "charged s" : "step"};
  for (std::size_t r = 0; r < runs.size(); ++r) {
    heads.push_back(runs[r].name);
    if (r > 0) heads.push_back("diff");
  }
  show::TextTable table(heads, std::vector<show::TextTable::Side>(heads.size(), show::TextTable::right));
  for (const ComparedPoint& point : points) {
    if (!comparable(point.*values)) continue;
    const std::optional<double>& first = (point.*values)[0];
    std::vector<std::string> row{charged ? fmt::format("{:.1f}", point.at) : grouped(std::llround(point.at))};
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const std::optional<double>& value = (point.*values)[r];
      row.push_back(text(value, digits));
      if (r > 0) row.push_back(first && value ? fmt::format("{:+.{}f}", *value - *first, digits) : "-");
    }
    table.add(row);
  }
  fmt::print("\n{}\n{}", head, table.text());
}

json points_json(const std::vector<ComparedPoint>& points, const char* at) {
  json out = json::array();
  for (const ComparedPoint& point : points) {
    json losses = json::array();
    json bpbs = json::array();
    for (const auto& loss : point.losses) losses.push_back(or_null(loss));
    for (const auto& bpb : point.val_bpbs) bpbs.push_back(or_null(bpb));
    out.push_back({{at, point.at}, {"loss", losses}, {"val_bpb", bpbs}});
  }
  return out;
}

bool any(const std::vector<ComparedPoint>& points,
         std::vector<std::optional<double>> ComparedPoint::*values) {
  return std::any_of(points.begin(), points.end(),
                     [&](const ComparedPoint& point) { return comparable(point.*values); });
}

void compare(const RunsOptions& options) {
  if (options.compared.size() < 2) throw InputError("--compare", "needs two runs or more");
  std::vector<RunRecord> runs;
  for (const std::string& word : options.compared)
    runs.push_back(train::read_run(train::find_run(word, options.folder)));
  const RunComparison comparison = compare_runs(runs, options.window);

  const std::string smoothing =
      options.window == 1 ? "of that step" : fmt::format("mean of {} steps", options.window);
  const std::string difference = fmt::format("diff: minus {}", runs[0].name);
  print_points(fmt::format("Training loss at equal steps, nats a token, {}; {}", smoothing, difference), runs,
               comparison.by_step, false, 4, &ComparedPoint::losses);
  if (any(comparison.by_step, &ComparedPoint::val_bpbs)) {
    print_points(fmt::format("val_bpb at equal steps; {}", difference), runs, comparison.by_step, false, 4,
                 &ComparedPoint::val_bpbs);
  }
  if (comparison.by_charged_seconds.empty()) {
    fmt::print("\nNo comparison at equal charged time: not all of these runs were charged.\n");
  } else {
    print_points(
        fmt::format("Training loss at equal charged time, nats a token, {}; {}", smoothing, difference), runs,
        comparison.by_charged_seconds, true, 4, &ComparedPoint::losses);
    if (any(comparison.by_charged_seconds, &ComparedPoint::val_bpbs)) {
      print_points(
          fmt::format("val_bpb at equal charged time, on a line between evaluations; {}", difference), runs,
          comparison.by_charged_seconds, true, 4, &ComparedPoint::val_bpbs);
    }
  }
  if (comparison.corpora_differ) {
    fmt::print(
        "\nThese runs saw different corpora: their val_bpb is left out, because it can't be compared.\n");
  }
  if (options.json) {
    json names = json::array();
    for (const RunRecord& run : runs) names.push_back(run.name);
    print_json({{"runs", names},
                {"smoothing_steps", options.window},
                {"corpora_differ", comparison.corpora_differ},
                {"by_step", points_json(comparison.by_step, "step")},
                {"by_charged_seconds", points_json(comparison.by_charged_seconds, "charged_seconds")}});
  }
}

}  // namespace

void add_runs_command(CLI::App& app) {
  const auto options = std::make_shared<RunsOptions>();
  CLI::App* command =
      app.add_subcommand("runs", "List runs, or compare some at equal steps and equal charged time");
  command->add_option("DIR", options->folder, "The folder with the runs")->capture_default_str();
  command->add_option("--compare", options->compared, "Runs to compare: folders, or names in DIR")
      ->expected(2, 100);
  command->add_option("--window", options->window, "Steps the loss is averaged over")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "End with one JSON line");
  command->callback([options] {
    if (options->compared.empty()) {
      list(*options);
    } else {
      compare(*options);
    }
  });
}

}  // namespace headway::cli
