// Runs at equal steps and at equal charged time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "train/run_folder.h"

namespace headway::cli {

// Where the runs are compared, and each run's values there, in the order of the runs; none where it isn't
// known.
struct ComparedPoint {
  double at;                                  // a step, or charged seconds
  std::vector<std::optional<double>> losses;  // nats a token, mean of the last `window` steps
  std::vector<std::optional<double>>
      val_bpbs;  // at a step: of that very step; at a time: on a line between evaluations
};

struct RunComparison {
  std::vector<ComparedPoint> by_step;
  std::vector<ComparedPoint> by_charged_seconds;  // empty unless every run was charged
  bool corpora_differ = false;                    // then no val_bpb is given
};

// Compares at up to eight points that all runs reached; equal steps are ones where all were evaluated when
// there are such. `window` >= 1.
RunComparison compare_runs(const std::vector<train::RunRecord>& runs, std::int64_t window);

}  // namespace headway::cli
