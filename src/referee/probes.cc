#include "referee/probes.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"

namespace headway::referee {
namespace {

class Prober {
 public:
  Prober(const LogitsFunction& logits, std::int64_t time, std::int64_t vocab)
      : logits_(logits), time_(time), vocab_(static_cast<std::size_t>(vocab)) {}

  // One hash a position over the bits of its logits.
  std::vector<std::uint64_t> hashes(std::span<const std::int32_t> tokens) const {
    const std::span<const float> all = logits_(tokens);
    HEADWAY_CHECK(all.size() == tokens.size() * vocab_);
    std::vector<std::uint64_t> result(tokens.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = hash64({reinterpret_cast<const char*>(all.data() + i * vocab_), vocab_ * sizeof(float)});
    }
    return result;
  }

  // Are the logits of the first `rows` rows the same for both, up to position `prefix` of each?
  ProbeResult compare(const std::string& name, std::span<const std::int32_t> a,
                      std::span<const std::int32_t> b, std::int64_t rows, std::int64_t prefix) const {
    const std::vector<std::uint64_t> hash_a = hashes(a), hash_b = hashes(b);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t t = 0; t < prefix; ++t) {
        const auto position = static_cast<std::size_t>(r * time_ + t);
        if (hash_a[position] != hash_b[position]) return difference(name, a, b, position);
      }
    }
    return {name, true, 0, "identical"};
  }

 private:
  ProbeResult difference(const std::string& name, std::span<const std::int32_t> a,
                         std::span<const std::int32_t> b, std::size_t position) const {
    const auto row = [&](std::span<const std::int32_t> tokens) {
      const std::span<const float> all = logits_(tokens).subspan(position * vocab_, vocab_);
      return std::vector<float>(all.begin(), all.end());
    };
    const std::vector<float> from = row(a), to = row(b);
    ProbeResult result{name, false, 0, ""};
    for (std::size_t j = 0; j < vocab_; ++j) {
      const double size = std::abs(static_cast<double>(from[j]) - static_cast<double>(to[j]));
      if (size <= result.max_abs_difference) continue;
      result.max_abs_difference = size;
      result.finding = fmt::format("row {}, position {}, token {}: {} became {}",
                                   position / static_cast<std::size_t>(time_),
                                   position % static_cast<std::size_t>(time_), j, from[j], to[j]);
    }
    if (result.finding.empty()) result.finding = "the same tokens gave other logits the second time";
    return result;
  }

  const LogitsFunction& logits_;
  std::int64_t time_;
  std::size_t vocab_;
};

}  // namespace

std::vector<ProbeResult> probe(const LogitsFunction& logits, std::int64_t batch, std::int64_t time,
                               std::int64_t vocab, std::uint64_t seed) {
  HEADWAY_CHECK(batch >= 1 && time >= 2);
  const Prober prober(logits, time, vocab);
  Random random(seed);
  const auto token = [&] {
    return static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocab)));
  };
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch * time));
  for (std::int32_t& t : tokens) t = token();

  const auto cut = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(time - 1)));
  std::vector<std::int32_t> suffix = tokens;
  for (std::int64_t r = 0; r < batch; ++r)
    for (std::int64_t t = cut; t < time; ++t) suffix[static_cast<std::size_t>(r * time + t)] = token();
  std::vector<ProbeResult> results;
  results.push_back(prober.compare("causality", tokens, suffix, batch, cut));

  if (batch == 1) {
    results.push_back({"batch_independence", true, 0, "a batch of one row has nothing to depend on"});
  } else {
    std::vector<std::int32_t> others = tokens;
    for (std::size_t i = static_cast<std::size_t>(time); i < others.size(); ++i) others[i] = token();
    results.push_back(prober.compare("batch_independence", tokens, others, 1, time));
  }

  ProbeResult finite{"finite", true, 0, "all logits are finite"};
  const std::span<const float> all = logits(tokens);
  for (std::size_t i = 0; i < all.size() && finite.passed; ++i) {
    if (std::isfinite(all[i])) continue;
    finite.passed = false;
    const auto position = static_cast<std::int64_t>(i) / vocab;
    finite.finding =
        fmt::format("row {}, position {}: a logit is {}", position / time, position % time, all[i]);
  }
  results.push_back(finite);
  return results;
}

}  // namespace headway::referee
