// From logits to the score: the step that no submission may do for itself.
#pragma once

#include <cstdint>
#include <span>

namespace headway::referee {

// Sums over scored targets. Targets with a byte count of 0 (special tokens) and -1 are in neither sum.
struct Score {
  double nats = 0;           // -ln p(target)
  std::int64_t bytes = 0;    // UTF-8 bytes of the targets
  std::int64_t targets = 0;  // positions looked at, special targets included, -1 not
  Score& operator+=(const Score& other);
};

// Bits per byte: nats / (ln 2 x bytes). NaN for no bytes.
double bits_per_byte(double nats, std::int64_t bytes);

// logits [rows, vocab], one target a row. Log-sum-exp in double.
Score score_logits(const float* logits, std::int64_t vocab, std::span<const std::int32_t> targets,
                   std::span<const std::int32_t> byte_counts);

}  // namespace headway::referee
