// Reading run folders: what a training wrote about itself, finished or not. Format: docs/formats.md, "Run
// folders".
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headway::train {

// One optimizer step. Numbers the line doesn't have are NaN, tokens then 0.
struct StepRecord {
  std::int64_t step;
  std::int64_t tokens;       // so far
  double loss;               // nats a token
  double charged_seconds;    // so far
  double host_seconds;       // so far
  double step_seconds;       // of this step, on the host
  double tokens_per_second;  // of this step, on the host
  double mfu;                // 0 to 1
  double epoch;
  double momentum;
  std::map<std::string, double> learning_rates;  // by parameter group
  std::optional<double> val_bpb;                 // where it was evaluated
};

// The figures of a run: from its result, or as far as its steps tell when it is unfinished.
struct RunFigures {
  std::optional<double> val_bpb;  // unfinished: of the last evaluation
  std::int64_t val_bpb_step = 0;  // where that was
  std::optional<std::string> corpus_hash;
  std::int64_t steps = 0;
  std::int64_t tokens = 0;
  std::optional<double> tokens_per_second;
  std::optional<double> mfu;
  std::optional<double> charged_seconds;
  std::optional<double> host_seconds;
  std::optional<std::int64_t> parameters;
  std::optional<double> flops_per_token;
};

struct RunRecord {
  std::filesystem::path folder;
  std::string name;                      // of the result, else of the folder
  std::string recipe;                    // text of recipe.toml
  nlohmann::json environment;            // an object, empty when the file is missing
  std::vector<StepRecord> steps;         // strictly ascending
  std::int64_t torn_lines = 0;           // ignored in steps.jsonl
  std::optional<nlohmann::json> result;  // an object; none: unfinished

  // Why the val_bpb of a finished run doesn't count; "" when it does.
  std::string void_reason() const;
  // "finished", "unfinished" or "void".
  std::string state() const;
  RunFigures figures() const;
  // The recipe as dotted key -> value in TOML spelling. Throws InputError when it isn't TOML.
  std::map<std::string, std::string> recipe_values() const;
};

bool is_run(const std::filesystem::path& folder);

// Throws InputError for a folder that is no run, and naming file and line of what can't be read in one.
RunRecord read_run(const std::filesystem::path& folder);

// The runs directly in `folder` by name, or `folder` itself when it is one. Throws InputError when there is
// no such folder.
std::vector<std::filesystem::path> list_runs(const std::filesystem::path& folder);

// The run a user means: a path, or the name of a run in `folder`. Throws InputError with the nearest name.
std::filesystem::path find_run(const std::string& word, const std::filesystem::path& folder);

}  // namespace headway::train
