// A recipe: everything that decides a training run, read from one TOML file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "model/config.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace headway::train {

// [data]: which rows, how many at a time.
struct DataSection {
  bool packed = true;                 // layout = "packed" (best fit) or "stream"
  std::int64_t buffer = 512;          // documents the packer chooses from
  bool mask_bos = false;              // targets equal to BOS are not trained on
  std::int64_t batch_tokens = 65536;  // an optimizer step, over all ranks
  std::int64_t device_batch = 1;      // rows of a micro-batch
};

// [launch]: how the program runs on the chip.
struct LaunchSection {
  std::string chip = "trn2";
  int processes = 8;  // data-parallel ranks
  int lnc = 1;        // physical cores a rank
  std::string mode = "eager";
};

// [budget]: exactly one limit.
struct BudgetSection {
  enum class Kind { charged_seconds, host_seconds, steps } kind = Kind::charged_seconds;
  double amount = 1800;
  double startup_seconds = 0;         // charged clock: compilation before the first step
  std::int64_t checkpoint_every = 0;  // steps; 0: only at the end
  std::int64_t evaluate_every = 0;    // steps; 0: only at the end
};

// [twin]: the small model that stands in for this recipe on a laptop.
struct TwinSection {
  std::int64_t depth = 0, width = 0, heads = 0, kv_heads = 0, sequence = 0;
  std::int64_t batch_tokens = 0, device_batch = 0;
  bool packed = true;   // layout of its rows; the recipe's unless said otherwise
  double lr_scale = 1;  // of all learning rates: a twin's batches are smaller, and noisier
  double fraction = 1;  // of the priced steps
};

struct Recipe {
  std::string name;
  std::uint64_t seed = 1;
  bool bf16_products = false;  // host: round operands of matrix products to bfloat16
  model::Config model;
  optim::Optimizer optimizer;
  optim::Schedule schedule;
  DataSection data;
  LaunchSection launch;
  BudgetSection budget;
  std::optional<TwinSection> twin;

  std::int64_t micro_batches() const { return data.batch_tokens / (data.device_batch * model.sequence); }
};

// Throws InputError naming file, line, rule and, for unknown keys, the nearest valid one.
Recipe read_recipe(const std::filesystem::path& path);
Recipe parse_recipe(std::string_view text, const std::string& file);

// All values resolved; parse_recipe(to_toml(r)) equals r. Two recipes are the same run when these texts are
// equal.
std::string to_toml(const Recipe& recipe);

// The recipe of its twin: same switches, schedule and budget at the twin's size, on one rank. Throws
// InputError without a [twin] section.
Recipe twin_of(const Recipe& recipe);

}  // namespace headway::train
