// The training loop: rows in, steps out, charged by a clock, recorded and saved.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "data/rows.h"
#include "referee/charge_clock.h"
#include "train/session.h"

namespace headway::train {

// What a step costs on the clock.
struct Charge {
  double step_seconds = 0;  // of the priced chip; unused on the host clock
  double save_seconds = 0;
};

// One finished optimizer step, as it is written to steps.jsonl.
struct StepReport {
  std::int64_t step = 0;         // 1 for the first
  std::int64_t total_steps = 0;  // 0 when the host clock decides
  std::int64_t tokens = 0;
  double loss = 0;
  double charged_seconds = 0;
  double host_seconds = 0;
  double step_seconds = 0;
  double tokens_per_second = 0;
  double mfu = 0;
  std::int64_t epoch = 1;
  std::map<std::string, double> lr;
  double momentum = 0;
  std::optional<double> gradient_norm;
  std::optional<double> val_bpb;
  nlohmann::json json() const;
};

struct TrainerOptions {
  std::filesystem::path run;  // the run folder; exists
  FileSystem* files = &FileSystem::real();
  const Clock* clock = nullptr;  // host time
  Charge charge;
  // For the record's mfu: the model's FLOPs per token and the machine's peak FLOP/s; 0: unknown.
  double flops_per_token = 0, peak_flops = 0;
  // What a checkpoint belongs to beside the recipe: hashes of tokenizer and corpus.
  nlohmann::json identity;
  // Host clock: step times to use instead of measured ones, by step (from a former run's record).
  std::vector<double> replayed_seconds;
  // Stop, saving, once this many steps are done in all (0: never): for tests and for training in portions.
  std::int64_t stop_after = 0;
  // Set by signal handlers: finish the step, save, stop.
  const std::atomic<bool>* interrupted = nullptr;
  // Evaluates val_bpb on public_val at evaluate_every; may be empty.
  std::function<double()> evaluate;
  std::function<void(const StepReport&)> on_step;
};

struct TrainResult {
  std::int64_t steps = 0;
  std::int64_t tokens = 0;
  double charged_seconds = 0;
  double host_seconds = 0;  // in steps, all sessions of the run together
  double seconds_in_data = 0, seconds_in_save = 0, seconds_in_evaluate = 0;  // this session
  bool finished = false;    // the budget is used up; false when stopped before
  std::string void_reason;  // why the run has no score, "" when it has one
  std::string checkpoint_hash;
};

// Steps that the budget allows: from the price, or the budget itself; 0 when only the host clock knows.
// Throws InputError when not even one step fits.
std::int64_t planned_steps(const Recipe& recipe, const Charge& charge);

// Trains from the session's current variables, or from the run's newest checkpoint when there is one. `rows`
// are the ranks' row sources in order; micro-batch i of a step reads rank i mod ranks. Throws InputError for
// a loss that isn't finite (naming step and tensor), with the last checkpoint intact.
TrainResult train(Session& session, const std::vector<std::unique_ptr<data::RowSource>>& rows, int bos,
                  const TrainerOptions& options);

}  // namespace headway::train
