// What a training step costs on the chip.
#pragma once

#include <cstdint>
#include <string>

#include "chip/spec.h"

namespace headway::price {

// How a training program is started: `processes` ranks of `lnc` physical cores each.
struct Launch {
  int processes = 8;
  int lnc = 1;
};

struct StepPrice {
  double step_seconds = 0;
  double save_seconds = 0;  // writing the checkpoint that the scorer reads
  double mfu = 0;           // of the launch's bfloat16 peak
  std::string basis;        // what the figure rests on, in words
};

// Prices a step by its FLOPs at the share of peak that eager programs reach (chip file: eager.flops_share).
// Knows nothing of depth, width or kernels; used as long as no better price exists. `parameters` sets the
// size of the checkpoint.
StepPrice price_by_flops(double flops_per_step, std::int64_t parameters, const Launch& launch,
                         const chip::Spec& chip);

}  // namespace headway::price
