#include "referee/probes.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace headway::referee {
namespace {

// Compares logits of `rows` x `time` positions, [first_row, ...) from the start of each row.
ProbeResult compare(const std::string& name, const std::vector<float>& a, const std::vector<float>& b,
                    std::int64_t rows, std::int64_t time, std::int64_t prefix, std::int64_t vocab) {
  ProbeResult result{name, true, 0, "identical"};
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t t = 0; t < prefix; ++t) {
      for (std::int64_t j = 0; j < vocab; ++j) {
        const auto i = static_cast<std::size_t>((r * time + t) * vocab + j);
        if (a[i] == b[i]) continue;
        if (result.passed) {
          result.passed = false;
          result.finding = fmt::format("row {}, position {}, token {}: {} became {}", r, t, j, a[i], b[i]);
        }
        result.max_abs_difference =
            std::max(result.max_abs_difference, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
      }
    }
  }
  return result;
}

}  // namespace

std::vector<ProbeResult> probe(const LogitsFunction& logits, std::int64_t batch, std::int64_t time, std::int64_t vocab,
                               std::uint64_t seed) {
  HEADWAY_CHECK(batch >= 1 && time >= 2);
  Random random(seed);
  const auto token = [&] { return static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocab))); };
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch * time));
  for (std::int32_t& t : tokens) t = token();
  const std::vector<float> original = logits(tokens);

  const auto cut = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(time - 1)));
  std::vector<std::int32_t> suffix = tokens;
  for (std::int64_t r = 0; r < batch; ++r)
    for (std::int64_t t = cut; t < time; ++t) suffix[static_cast<std::size_t>(r * time + t)] = token();
  std::vector<ProbeResult> results;
  results.push_back(compare("causality", original, logits(suffix), batch, time, cut, vocab));

  ProbeResult independence{"batch_independence", true, 0, "identical"};
  if (batch == 1) {
    independence.finding = "a batch of one row has nothing to depend on";
  } else {
    std::vector<std::int32_t> others = tokens;
    for (std::size_t i = static_cast<std::size_t>(time); i < others.size(); ++i) others[i] = token();
    independence = compare("batch_independence", original, logits(others), 1, time, time, vocab);
  }
  results.push_back(independence);

  ProbeResult finite{"finite", true, 0, "all logits are finite"};
  for (std::size_t i = 0; i < original.size() && finite.passed; ++i) {
    if (std::isfinite(original[i])) continue;
    finite.passed = false;
    const auto position = static_cast<std::int64_t>(i) / vocab;
    finite.finding = fmt::format("row {}, position {}: a logit is {}", position / time, position % time, original[i]);
  }
  results.push_back(finite);
  return results;
}

}  // namespace headway::referee
