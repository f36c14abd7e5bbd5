// The referee: clock, score and probes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "base/random.h"
#include "referee/charge_clock.h"
#include "referee/nats.h"
#include "referee/probes.h"

namespace headway::referee {
namespace {

TEST(BitsPerByte, GivesThePublishedFigure) {
  EXPECT_NEAR(bits_per_byte(56055956.0, 83475312), 0.968809194, 5e-10);
  EXPECT_TRUE(std::isnan(bits_per_byte(1, 0)));
}

TEST(ScoreLogits, EqualsTheDefinition) {
  const std::int64_t vocab = 13, rows = 50;
  Random random(1);
  std::vector<float> logits(static_cast<std::size_t>(vocab * rows));
  for (float& x : logits) x = static_cast<float>(20 * random.normal());
  std::vector<std::int32_t> targets(static_cast<std::size_t>(rows)), bytes(static_cast<std::size_t>(vocab));
  for (std::int32_t& b : bytes) b = static_cast<std::int32_t>(random.below(5));
  bytes[12] = 0;
  for (std::size_t r = 0; r < targets.size(); ++r) {
    targets[r] = r % 7 == 0 ? -1 : static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocab)));
  }
  double nats = 0;
  std::int64_t sum = 0, seen = 0;
  for (std::size_t r = 0; r < targets.size(); ++r) {
    if (targets[r] < 0) continue;
    ++seen;
    if (bytes[static_cast<std::size_t>(targets[r])] == 0) continue;
    long double total = 0;
    for (std::int64_t j = 0; j < vocab; ++j)
      total += std::exp(static_cast<long double>(logits[r * 13 + static_cast<std::size_t>(j)]));
    nats -= static_cast<double>(std::log(
        std::exp(static_cast<long double>(logits[r * 13 + static_cast<std::size_t>(targets[r])])) / total));
    sum += bytes[static_cast<std::size_t>(targets[r])];
  }
  const Score score = score_logits(logits.data(), vocab, targets, bytes);
  EXPECT_NEAR(score.nats, nats, 1e-9 * nats);
  EXPECT_EQ(score.bytes, sum);
  EXPECT_EQ(score.targets, seen);
}

TEST(ChargeClock, FirstFiveStepsAreFreeUpToTheAllowance) {
  ChargeClock clock;
  for (int i = 0; i < 5; ++i) clock.step(100);
  EXPECT_EQ(clock.charged(), 0);
  clock.step(2);
  EXPECT_EQ(clock.charged(), 2);
  clock.save(1.5);
  EXPECT_EQ(clock.charged(), 3.5);
  EXPECT_EQ(clock.steps(), 6);

  ChargeClock slow(880);  // startup
  for (int i = 0; i < 5; ++i) slow.step(10);
  EXPECT_EQ(slow.charged(), 30);  // 880 + 50 - 900
  ChargeClock resumed;
  resumed.restore(slow.state());
  EXPECT_EQ(resumed.charged(), 30);
  EXPECT_EQ(resumed.steps(), 5);
}

TEST(ChargeClock, StepsWithinABudgetEqualTheFormula) {
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    const double budget = random.uniform(1, 500), step = random.uniform(0.05, 3), save = random.uniform(0, 1);
    const auto expected = 5 + static_cast<std::int64_t>(std::floor((budget - save) / step));
    EXPECT_NEAR(static_cast<double>(steps_within(budget, step, save)), static_cast<double>(expected), 1);
    const std::int64_t steps = steps_within(budget, step, save);
    EXPECT_LE(static_cast<double>(steps - 5) * step + save, budget * (1 + 1e-12));
    EXPECT_GT(static_cast<double>(steps - 4) * step + save, budget * (1 - 1e-12));
  }
  EXPECT_EQ(steps_within(1800, 1.3183, 0.24), 1370);
}

constexpr std::int64_t kBatch = 3, kTime = 9, kVocab = 7;

// Keeps the logits of the last call alive, as probes expect it.
LogitsFunction holding(std::function<std::vector<float>(std::span<const std::int32_t>)> model) {
  auto held = std::make_shared<std::vector<float>>();
  return [held, model](std::span<const std::int32_t> tokens) -> std::span<const float> {
    *held = model(tokens);
    return *held;
  };
}

// An honest model: the logits of a position depend on the tokens up to it.
std::vector<float> honest(std::span<const std::int32_t> tokens) {
  std::vector<float> logits;
  for (std::int64_t b = 0; b < kBatch; ++b) {
    float sum = 0;
    for (std::int64_t t = 0; t < kTime; ++t) {
      sum += static_cast<float>(tokens[static_cast<std::size_t>(b * kTime + t)]);
      for (std::int64_t j = 0; j < kVocab; ++j) logits.push_back(std::sin(sum * static_cast<float>(j + 1)));
    }
  }
  return logits;
}

bool passed(const std::vector<ProbeResult>& results, const std::string& name) {
  return std::find_if(results.begin(), results.end(), [&](const ProbeResult& r) { return r.name == name; })
      ->passed;
}

TEST(Probes, PassAnHonestModelAndCatchEachCheat) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto good = probe(holding(honest), kBatch, kTime, kVocab, seed);
    for (const ProbeResult& result : good)
      EXPECT_TRUE(result.passed) << result.name << ": " << result.finding;

    // Looks one token ahead.
    const auto ahead =
        probe(holding([](std::span<const std::int32_t> tokens) {
                std::vector<float> logits = honest(tokens);
                for (std::int64_t b = 0; b < kBatch; ++b)
                  for (std::int64_t t = 0; t + 1 < kTime; ++t)
                    logits[static_cast<std::size_t>((b * kTime + t) * kVocab)] +=
                        static_cast<float>(tokens[static_cast<std::size_t>(b * kTime + t + 1)]) +
                        0.5f * static_cast<float>(t);
                return logits;
              }),
              kBatch, kTime, kVocab, seed);
    EXPECT_FALSE(passed(ahead, "causality"));

    const auto leaking = probe(holding([](std::span<const std::int32_t> tokens) {
                                 std::vector<float> logits = honest(tokens);
                                 float others = 0;
                                 for (std::size_t i = kTime; i < tokens.size(); ++i)
                                   others += 1e-3f * static_cast<float>(tokens[i] * static_cast<int>(i));
                                 logits[0] += others;
                                 return logits;
                               }),
                               kBatch, kTime, kVocab, seed);
    EXPECT_FALSE(passed(leaking, "batch_independence"));
    EXPECT_TRUE(passed(leaking, "finite"));

    const auto infinite = probe(holding([](std::span<const std::int32_t> tokens) {
                                  std::vector<float> logits = honest(tokens);
                                  logits[40] = std::numeric_limits<float>::infinity();
                                  return logits;
                                }),
                                kBatch, kTime, kVocab, seed);
    EXPECT_FALSE(passed(infinite, "finite"));
  }
}

}  // namespace
}  // namespace headway::referee
