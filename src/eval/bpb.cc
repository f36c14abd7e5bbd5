#include "eval/bpb.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/progress.h"

namespace headway::eval {

BpbResult evaluate_bpb(graph::Executable& forward, const data::EvalRows& rows, std::int64_t sequence,
                       std::int64_t vocab, std::span<const std::int32_t> byte_counts, ThreadPool& pool,
                       const Clock& clock, const BpbOptions& options) {
  BpbResult result;
  result.exhausted = rows.exhausted;
  const double start = clock.seconds();
  const auto cells = static_cast<std::size_t>(options.batch * sequence);
  std::vector<std::int32_t> tokens(cells), targets(cells);
  Progress progress("evaluating row", rows.count, options.progress);
  for (std::int64_t first = 0; first < rows.count; first += options.batch) {
    if (clock.seconds() - start > options.deadline_seconds) {
      result.timed_out = true;
      break;
    }
    std::fill(tokens.begin(), tokens.end(), 0);
    std::fill(targets.begin(), targets.end(), -1);
    for (std::int64_t r = 0; r < std::min(options.batch, rows.count - first); ++r) {
      const std::int32_t* row = rows.rows.data() + (first + r) * (sequence + 1);
      for (std::int64_t t = 0; t < sequence; ++t) {
        tokens[static_cast<std::size_t>(r * sequence + t)] = std::max(row[t], 0);  // padding is never scored
        targets[static_cast<std::size_t>(r * sequence + t)] = row[t + 1];
      }
    }
    forward.bind("tokens", tokens);
    forward.run();
    const float* logits = forward.output_f32("logits");
    std::vector<float> converted;
    if (!logits) {
      const std::vector<double> wide = forward.output("logits");
      converted.assign(wide.begin(), wide.end());
      logits = converted.data();
    }
    // Summed a row at a time, so that the result doesn't depend on the number of threads.
    std::vector<referee::Score> scores(static_cast<std::size_t>(options.batch));
    pool.for_range(options.batch, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t r = begin; r < end; ++r) {
        scores[static_cast<std::size_t>(r)] =
            referee::score_logits(logits + r * sequence * vocab, vocab,
                                  std::span(targets).subspan(static_cast<std::size_t>(r * sequence),
                                                             static_cast<std::size_t>(sequence)),
                                  byte_counts);
      }
    });
    for (const referee::Score& score : scores) result.score += score;
    progress.update(
        std::min(first + options.batch, rows.count),
        fmt::format("val_bpb {:.4f}", referee::bits_per_byte(result.score.nats, result.score.bytes)));
  }
  result.val_bpb = referee::bits_per_byte(result.score.nats, result.score.bytes);
  result.seconds = clock.seconds() - start;
  progress.finish(
      fmt::format("val_bpb {:.6f} over {} tokens", result.val_bpb, grouped(result.score.targets)));
  return result;
}

}  // namespace headway::eval
