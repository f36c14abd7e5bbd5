// val_bpb: the same whatever the batch, equal to a sum done by hand, cut off by a deadline.
#include "eval/bpb.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "data/rows.h"
#include "host/host_backend.h"
#include "model/model.h"

namespace headway::eval {
namespace {

class BpbTest : public testing::Test {
 protected:
  BpbTest() : pool_(2, false), tokens_(documents()), model_(config()) {
    backend_ = host::make_backend(model_.variables(), pool_, host::Precision::fast);
    model_.initialize(*backend_, 5);
    for (int p : model_.variables()->with(graph::Role::parameter)) {
      std::vector<double> values = backend_->read(p);
      Random random(static_cast<std::uint64_t>(p));
      for (double& value : values) value += 0.05 * random.normal();
      backend_->write(p, values);
    }
    for (int id = 0; id < 60; ++id) bytes_.push_back(1 + id % 4);
    bytes_.resize(64, 0);  // special
  }

  static model::Config config() {
    TomlTable root =
        TomlTable::parse("[model]\ndepth = 2\nwidth = 32\nheads = 2\nvocab = 64\nsequence = 8\n", "m.toml");
    return model::read_config(root.table("model"));
  }
  static std::vector<std::vector<std::vector<std::int32_t>>> documents() {
    Random random(2);
    std::vector<std::vector<std::vector<std::int32_t>>> groups(7);
    for (auto& group : groups) {
      group.resize(9);
      for (auto& document : group) {
        document.resize(1 + random.below(30));
        for (std::int32_t& id : document) id = static_cast<std::int32_t>(random.below(60));
      }
    }
    return groups;
  }

  BpbResult evaluate(std::int64_t batch, int world, std::int64_t max_tokens, double deadline = 1e9) {
    const auto forward = backend_->compile(model_.forward(batch, 8));
    const data::EvalRows rows = data::eval_rows(tokens_, 8, 60, world, max_tokens);
    return evaluate_bpb(*forward, rows, 8, 64, bytes_, pool_, clock_, {batch, deadline, false});
  }

  ThreadPool pool_;
  data::Tokens tokens_;
  model::Model model_;
  std::unique_ptr<graph::Backend> backend_;
  std::vector<std::int32_t> bytes_;
  SteadyClock clock_;
};

TEST_F(BpbTest, DoesNotDependOnTheBatch) {
  const BpbResult one = evaluate(1, 2, 320);
  for (std::int64_t batch : {2, 3, 8}) {
    const BpbResult other = evaluate(batch, 2, 320);
    EXPECT_EQ(other.score.bytes, one.score.bytes);
    EXPECT_EQ(other.score.targets, 320);
    EXPECT_NEAR(other.val_bpb, one.val_bpb, 1e-6);
  }
}

TEST_F(BpbTest, EqualsASumByHand) {
  // One rank, everything: documents joined by BOS, rows of 8 targets with stride 8.
  std::vector<std::int32_t> stream;
  for (const auto& group : documents()) {
    for (const auto& document : group) {
      stream.push_back(60);
      stream.insert(stream.end(), document.begin(), document.end());
    }
  }
  const auto reference = host::make_backend(model_.variables(), pool_, host::Precision::reference);
  for (int p : model_.variables()->with(graph::Role::parameter)) reference->write(p, backend_->read(p));
  const auto forward = reference->compile(model_.forward(1, 8));
  double nats = 0;
  std::int64_t bytes = 0, targets = 0;
  for (std::size_t start = 0; start + 1 < stream.size(); start += 8) {
    std::vector<std::int32_t> row(8, 0);
    for (std::size_t t = 0; t < 8 && start + t < stream.size(); ++t) row[t] = stream[start + t];
    forward->bind("tokens", row);
    forward->run();
    const std::vector<double> logits = forward->output("logits");
    for (std::size_t t = 0; t < 8 && start + t + 1 < stream.size(); ++t) {
      const auto target = static_cast<std::size_t>(stream[start + t + 1]);
      ++targets;
      if (bytes_[target] == 0) continue;
      double sum = 0;
      for (std::size_t j = 0; j < 64; ++j) sum += std::exp(logits[t * 64 + j]);
      nats += std::log(sum) - logits[t * 64 + target];
      bytes += bytes_[target];
    }
  }
  const BpbResult result = evaluate(4, 1, 1'000'000);
  EXPECT_TRUE(result.exhausted);
  EXPECT_EQ(result.score.targets, targets);
  EXPECT_EQ(result.score.bytes, bytes);
  EXPECT_NEAR(result.val_bpb, nats / (std::log(2.0) * static_cast<double>(bytes)), 1e-6);
}

TEST_F(BpbTest, RanksReadOtherTokens) {
  EXPECT_NE(evaluate(2, 1, 320).score.nats, evaluate(2, 4, 320).score.nats);
  EXPECT_FALSE(evaluate(2, 1, 320).exhausted);
}

TEST_F(BpbTest, DeadlineEndsIt) {
  const BpbResult result = evaluate(1, 1, 320, -1);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.score.targets, 0);
}

}  // namespace
}  // namespace headway::eval
