#include "cli/run_comparison.h"

#include <gtest/gtest.h>

#include <limits>

#include "show/text_table.h"

namespace headway::cli {
namespace {

using train::RunRecord;

// Loss `step` + `shift`, a val_bpb of a tenth of that every `every` steps, `seconds` charged a step.
RunRecord run_of(int steps, double shift, int every, double seconds, const char* corpus = "c") {
  RunRecord run;
  run.environment = {{"corpus_hash", corpus}};
  for (int s = 1; s <= steps; ++s) {
    train::StepRecord step{};
    step.step = s;
    step.loss = s + shift;
    step.charged_seconds = s * seconds;
    if (s % every == 0) step.val_bpb = (s + shift) / 10;
    run.steps.push_back(step);
  }
  return run;
}

TEST(RunComparison, EqualStepsAreOnesWhereAllWereEvaluated) {
  const auto comparison = compare_runs({run_of(100, 0, 10, 1), run_of(70, 5, 20, 1)}, 1);
  ASSERT_EQ(comparison.by_step.size(), 3u);
  const int steps[] = {20, 40, 60};
  for (int i = 0; i < 3; ++i) {
    const ComparedPoint& point = comparison.by_step[static_cast<std::size_t>(i)];
    EXPECT_EQ(point.at, steps[i]);
    EXPECT_DOUBLE_EQ(point.losses[0].value(), steps[i]);
    EXPECT_DOUBLE_EQ(point.losses[1].value(), steps[i] + 5);
    EXPECT_DOUBLE_EQ(point.val_bpbs[1].value(), (steps[i] + 5) / 10.0);
  }
}

TEST(RunComparison, AtMostEightPointsEndingAtTheLastCommonOne) {
  const auto comparison = compare_runs({run_of(1000, 0, 10, 1), run_of(995, 0, 10, 1)}, 1);
  EXPECT_EQ(comparison.by_step.size(), 8u);
  EXPECT_EQ(comparison.by_step.back().at, 990);
  EXPECT_EQ(comparison.by_charged_seconds.size(), 8u);
  EXPECT_EQ(comparison.by_charged_seconds.back().at, 995);
}

TEST(RunComparison, WithoutCommonEvaluationsStepsAreEvenlySpaced) {
  const auto comparison = compare_runs({run_of(80, 0, 7, 1), run_of(80, 0, 1000, 1)}, 1);
  ASSERT_EQ(comparison.by_step.size(), 8u);
  EXPECT_EQ(comparison.by_step.front().at, 10);
  EXPECT_FALSE(comparison.by_step.front().val_bpbs[0]);
}

TEST(RunComparison, LossIsTheMeanOfTheLastSteps) {
  RunRecord run = run_of(80, 0, 1000, 1);
  const auto comparison = compare_runs({run, run}, 4);
  EXPECT_DOUBLE_EQ(comparison.by_step[0].losses[0].value(), (7 + 8 + 9 + 10) / 4.0);
  // What isn't finite is left out of the mean.
  run.steps[8].loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_DOUBLE_EQ(compare_runs({run, run}, 4).by_step[0].losses[0].value(), (7 + 8 + 10) / 3.0);
}

TEST(RunComparison, EqualChargedTime) {
  // The second run costs twice as much a step: at the same time it is at half the steps.
  const auto comparison = compare_runs({run_of(80, 0, 4, 1), run_of(80, 0, 4, 2)}, 1);
  const ComparedPoint& first = comparison.by_charged_seconds.front();
  EXPECT_DOUBLE_EQ(first.at, 10);
  EXPECT_DOUBLE_EQ(first.losses[0].value(), 10);
  EXPECT_DOUBLE_EQ(first.losses[1].value(), 5);
  EXPECT_DOUBLE_EQ(first.val_bpbs[0].value(), 1.0);  // between 0.8 at 8 s and 1.2 at 12 s
  EXPECT_DOUBLE_EQ(first.val_bpbs[1].value(), 0.5);  // between 0.4 at 8 s and 0.8 at 16 s
}

TEST(RunComparison, UnchargedRunsHaveNoCommonTime) {
  EXPECT_TRUE(compare_runs({run_of(80, 0, 4, 1), run_of(80, 0, 4, 0)}, 1).by_charged_seconds.empty());
  EXPECT_TRUE(compare_runs({run_of(80, 0, 4, 1), run_of(0, 0, 4, 1)}, 1).by_step.empty());
}

TEST(RunComparison, DifferentCorporaAreNeverCompared) {
  const auto comparison = compare_runs({run_of(80, 0, 4, 1, "c"), run_of(80, 0, 4, 1, "d")}, 1);
  EXPECT_TRUE(comparison.corpora_differ);
  for (const auto& points : {comparison.by_step, comparison.by_charged_seconds}) {
    for (const ComparedPoint& point : points) {
      EXPECT_TRUE(point.losses[0]);
      EXPECT_FALSE(point.val_bpbs[0]);
      EXPECT_FALSE(point.val_bpbs[1]);
    }
  }
}

TEST(TextTable, AlignsByCharacters) {
  show::TextTable table({"name", "steps"}, {show::TextTable::left, show::TextTable::right});
  table.add({"größer", "1,200"});
  table.add({"a", "7"});
  EXPECT_EQ(table.text(), "name    steps\ngrößer  1,200\na           7\n");
}

}  // namespace
}  // namespace headway::cli
