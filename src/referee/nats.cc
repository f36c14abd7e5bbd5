#include "referee/nats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace headway::referee {

Score& Score::operator+=(const Score& other) {
  nats += other.nats;
  bytes += other.bytes;
  targets += other.targets;
  return *this;
}

double bits_per_byte(double nats, std::int64_t bytes) {
  if (bytes == 0) return std::numeric_limits<double>::quiet_NaN();
  return nats / (std::numbers::ln2 * static_cast<double>(bytes));
}

Score score_logits(const float* logits, std::int64_t vocab, std::span<const std::int32_t> targets,
                   std::span<const std::int32_t> byte_counts) {
  Score score;
  for (std::size_t r = 0; r < targets.size(); ++r) {
    if (targets[r] < 0) continue;
    ++score.targets;
    const auto target = static_cast<std::size_t>(targets[r]);
    if (byte_counts[target] == 0) continue;
    const float* row = logits + static_cast<std::int64_t>(r) * vocab;
    const double peak = *std::max_element(row, row + vocab);
    double sum = 0;
    for (std::int64_t j = 0; j < vocab; ++j) sum += std::exp(static_cast<double>(row[j]) - peak);
    score.nats += std::log(sum) + peak - static_cast<double>(row[target]);
    score.bytes += byte_counts[target];
  }
  return score;
}

}  // namespace headway::referee
