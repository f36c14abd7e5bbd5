// The soft-capped cross entropy of a row of logits that arrives, and leaves as its gradient, piece by piece.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "host/kernel.h"
#include "host/kernels/vectors.h"

namespace headway::host {

inline constexpr std::int32_t kIgnoredTarget = -1;

// What is known of a row after some of its pieces: the largest capped logit and the sum of e^(capped -
// largest).
struct RowSum {
  float largest = -std::numeric_limits<float>::infinity();
  float total = 0;
  float log_sum_exp() const { return largest + std::log(total); }
};

// capped = cap tanh(logits / cap), or the logits where cap is 0, and adds the piece to the row's sum. May be
// in place.
void cap_piece(const float* logits, float* capped, std::int64_t count, float cap, RowSum& row);

// In place: capped -> factor e^(capped - lse) (1 - (capped / cap)^2), the gradient of a row whose target lies
// elsewhere.
void gradient_piece(float* capped, std::int64_t count, float cap, float lse, float factor, bool round);

// The same of the target's element.
float target_gradient(float capped, float cap, float lse, float factor, bool round);

// How many targets count. Throws InputError for one that is neither a token nor kIgnoredTarget.
std::int64_t counted_targets(const Tensor& targets, std::int64_t vocab);

}  // namespace headway::host
