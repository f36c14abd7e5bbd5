#include "cli/run_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace headway::cli {

using train::RunRecord;
using train::StepRecord;
namespace {

constexpr std::int64_t kPoints = 8;

using Steps = std::vector<StepRecord>;

// Mean of the finite losses of the steps (step - window, step].
std::optional<double> smoothed_loss(const Steps& steps, std::int64_t step, std::int64_t window) {
  auto it = std::upper_bound(steps.begin(), steps.end(), step,
                             [](std::int64_t s, const StepRecord& record) { return s < record.step; });
  double sum = 0;
  std::int64_t count = 0;
  while (it != steps.begin() && (--it)->step > step - window) {
    if (!std::isfinite(it->loss)) continue;
    sum += it->loss;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

std::optional<double> bpb_at_step(const Steps& steps, std::int64_t step) {
  const auto it = std::lower_bound(steps.begin(), steps.end(), step,
                                   [](const StepRecord& record, std::int64_t s) { return record.step < s; });
  return it != steps.end() && it->step == step ? it->val_bpb : std::nullopt;
}

std::optional<double> bpb_at_time(const Steps& steps, double seconds) {
  const StepRecord* before = nullptr;
  for (const StepRecord& step : steps) {
    if (!step.val_bpb || !std::isfinite(step.charged_seconds)) continue;
    if (step.charged_seconds > seconds) {
      if (before == nullptr) return std::nullopt;
      const double share =
          (seconds - before->charged_seconds) / (step.charged_seconds - before->charged_seconds);
      return *before->val_bpb + share * (*step.val_bpb - *before->val_bpb);
    }
    before = &step;
  }
  return before != nullptr && before->charged_seconds == seconds ? before->val_bpb : std::nullopt;
}

// The last step that was done by then.
std::optional<std::int64_t> step_at_time(const Steps& steps, double seconds) {
  std::optional<std::int64_t> last;
  for (const StepRecord& step : steps) {
    if (step.charged_seconds <= seconds) last = step.step;
  }
  return last;
}

// Of ascending steps at most kPoints, evenly chosen, the last among them.
std::vector<std::int64_t> chosen(const std::vector<std::int64_t>& steps) {
  const auto count = static_cast<std::int64_t>(steps.size());
  std::vector<std::int64_t> out;
  for (std::int64_t i = 1; i <= std::min(kPoints, count); ++i) {
    out.push_back(steps[static_cast<std::size_t>(i * count / std::min(kPoints, count) - 1)]);
  }
  return out;
}

std::vector<std::int64_t> common_steps(const std::vector<RunRecord>& runs) {
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  for (const RunRecord& run : runs) end = std::min(end, run.steps.empty() ? 0 : run.steps.back().step);
  std::set<std::int64_t> evaluated;
  for (const StepRecord& step : runs.front().steps) {
    if (step.val_bpb && step.step <= end) evaluated.insert(step.step);
  }
  for (const RunRecord& run : runs) {
    std::erase_if(evaluated, [&](std::int64_t step) { return !bpb_at_step(run.steps, step); });
  }
  if (evaluated.size() >= 3) return chosen({evaluated.begin(), evaluated.end()});
  for (std::int64_t i = 1; i <= kPoints; ++i) {
    if (end * i / kPoints > 0) evaluated.insert(end * i / kPoints);
  }
  return {evaluated.begin(), evaluated.end()};
}

}  // namespace

RunComparison compare_runs(const std::vector<RunRecord>& runs, std::int64_t window) {
  RunComparison comparison;
  std::set<std::string> corpora;
  double end = std::numeric_limits<double>::infinity();
  for (const RunRecord& run : runs) {
    if (const auto hash = run.figures().corpus_hash) corpora.insert(*hash);
    const double last = run.steps.empty() ? 0 : run.steps.back().charged_seconds;
    end = std::isfinite(last) ? std::min(end, last) : 0;
  }
  comparison.corpora_differ = corpora.size() > 1;

  for (const std::int64_t step : common_steps(runs)) {
    ComparedPoint point{static_cast<double>(step), {}, {}};
    for (const RunRecord& run : runs) {
      point.losses.push_back(smoothed_loss(run.steps, step, window));
      point.val_bpbs.push_back(comparison.corpora_differ ? std::nullopt : bpb_at_step(run.steps, step));
    }
    comparison.by_step.push_back(std::move(point));
  }
  for (std::int64_t i = 1; end > 0 && i <= kPoints; ++i) {
    ComparedPoint point{end * static_cast<double>(i) / static_cast<double>(kPoints), {}, {}};
    for (const RunRecord& run : runs) {
      const auto step = step_at_time(run.steps, point.at);
      point.losses.push_back(step ? smoothed_loss(run.steps, *step, window) : std::nullopt);
      point.val_bpbs.push_back(comparison.corpora_differ ? std::nullopt : bpb_at_time(run.steps, point.at));
    }
    comparison.by_charged_seconds.push_back(std::move(point));
  }
  return comparison;
}

}  // namespace headway::cli
