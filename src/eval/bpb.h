// Validation bits per byte, as the contest's scorer computes it.
#pragma once

#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/threads.h"
#include "data/rows.h"
#include "graph/executable.h"
#include "referee/nats.h"

namespace headway::eval {

struct BpbResult {
  double val_bpb = 0;
  referee::Score score;  // targets: how many tokens were scored
  double seconds = 0;
  bool exhausted = false;  // the split had fewer tokens than asked for; each was scored once
  bool timed_out = false;  // the deadline came first; val_bpb is that of the rows done
};

struct BpbOptions {
  std::int64_t batch = 8;          // rows a run of `forward`; doesn't change the token set
  double deadline_seconds = 1200;  // the contest's evaluation timeout
  bool progress = true;            // on stderr
};

// Scores `rows` with `forward` (input "tokens" [batch, seq], output "logits"). `byte_counts` gives UTF-8
// bytes per token id, 0 for special ones.
BpbResult evaluate_bpb(graph::Executable& forward, const data::EvalRows& rows, std::int64_t sequence,
                       std::int64_t vocab, std::span<const std::int32_t> byte_counts, ThreadPool& pool,
                       const Clock& clock, const BpbOptions& options);

}  // namespace headway::eval
