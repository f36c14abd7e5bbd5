// Does a model play by the rules? Probes look at logits only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace headway::referee {

// tokens [batch, time] -> logits [batch, time, vocab], valid until the next call.
using LogitsFunction = std::function<std::span<const float>(std::span<const std::int32_t> tokens)>;

struct ProbeResult {
  std::string name;  // "causality", "batch_independence", "finite"
  bool passed = false;
  double max_abs_difference = 0;  // among the logits of the first position that differs
  std::string finding;            // in words, with the first position that differs
};

// Three probes with random tokens below `vocab`, from `seed`:
// causality: after changing the tokens from a random position on, all logits before it are bit-identical;
// batch independence: a row's logits stay the same (bit-identical) when the other rows of the batch are
// replaced; finite: all logits are. Needs 8 bytes a position beside what `logits` takes: positions are
// compared by hash.
std::vector<ProbeResult> probe(const LogitsFunction& logits, std::int64_t batch, std::int64_t time,
                               std::int64_t vocab, std::uint64_t seed);

}  // namespace headway::referee
