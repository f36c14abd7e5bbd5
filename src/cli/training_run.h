// A whole training run from the command line: text and tokenizer opened, machine chosen, trained, scored,
// recorded.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "price/price.h"
#include "train/recipe.h"

namespace headway::cli {

// The price of a recipe's step on its chip.
price::StepPrice price_of(const train::Recipe& recipe);

// Model FLOPs per token and parameters of a recipe, without allocating anything.
struct ModelFigures {
  std::int64_t parameters = 0;
  double flops_per_token = 0;
};
ModelFigures figures_of(const train::Recipe& recipe);

struct RunOptions {
  std::filesystem::path corpus = "data/corpus";
  std::filesystem::path tokenizer = "data/tokenizer.tiktoken";
  std::filesystem::path runs = "runs";
  std::filesystem::path run;  // an existing run to resume; empty: a new one below `runs`
  std::filesystem::path
      replay;       // host clock: a run whose recorded step times are used instead of measured ones
  int threads = 0;  // 0: all processors
  std::int64_t stop_after = 0;           // steps; 0: the budget decides
  std::int64_t eval_tokens = 2'097'152;  // of the official split, at the end
  int eval_ranks = 8;
  std::int64_t eval_batch = 0;  // rows; 0: the recipe's device batch
  bool plan_only = false;       // print the plan and stop
  bool progress = true;
};

struct RunSummary {
  std::filesystem::path run;
  bool finished = false;
  nlohmann::json result;  // as in result.json
};

// Trains `recipe` (or continues options.run, whose own recipe it must be) under `price`, scores it and writes
// the run folder.
RunSummary run_training(const train::Recipe& recipe, const price::StepPrice& price,
                        const RunOptions& options);

}  // namespace headway::cli
