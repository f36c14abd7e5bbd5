#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "cli/report_page.h"
#include "train/run_folder.h"

namespace headway::cli {

using train::RunRecord;
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string out = "report.html";
  std::string folder = "runs";
  bool json = false;
};

void report(const ReportOptions& options) {
  std::vector<RunRecord> runs;
  for (const std::string& word : options.runs)
    runs.push_back(train::read_run(train::find_run(word, options.folder)));
  const std::string page = report_page(runs);
  FileSystem::real().write_atomically(options.out, page);
  fmt::print("{}: {} {}, {} KB; open it in a browser\n", options.out, runs.size(),
             runs.size() == 1 ? "run" : "runs", grouped(static_cast<std::int64_t>(page.size() / 1000)));
  if (options.json) {
    const nlohmann::json line = {{"report", options.out}, {"runs", runs.size()}, {"bytes", page.size()}};
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}

}  // namespace

void add_report_command(CLI::App& app) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Write one HTML page that shows and compares runs");
  command->add_option("RUN", options->runs, "Run folders, or names of runs in --dir")->required();
  command->add_option("--out", options->out, "The page to write")->capture_default_str();
  command->add_option("--dir", options->folder, "Where runs are looked for by name")->capture_default_str();
  command->add_flag("--json", options->json, "End with one JSON line");
  command->callback([options] { report(*options); });
}

}  // namespace headway::cli
