// The memory that the plan prints before training is what the process takes at its peak.
#include <gtest/gtest.h>

#include "cli/program.h"

namespace headway {
namespace {

using test::Finished;
using test::Workplace;

// One optimizer step of one micro-batch of 8 rows, from text to score.
void expect_plan_within_ten_percent(const std::string& model, std::int64_t sequence) {
  Workplace& w = Workplace::get();
  const std::string batch = std::to_string(8 * sequence);
  FileSystem::real().write_atomically(
      w.path("memory.toml"), "[model]\n" + model + "\nsequence = " + std::to_string(sequence) +
                                 "\n[optimizer]\n[optimizer.matrix]\nlr = 0.02\n[optimizer.embedding]\nlr = "
                                 "0.1\n[optimizer.head]\nlr = 0.01\n"
                                 "[optimizer.scalar]\nlr = 0.05\n[data]\nbatch_tokens = " +
                                 batch +
                                 "\ndevice_batch = 8\nbuffer = 20\n"
                                 "[launch]\nprocesses = 1\n[budget]\nsteps = 2\n");
  // A tokenizer of the contest's size, so that the head is as large as there.
  if (!std::filesystem::exists(w.path("large.tiktoken"))) {
    const Finished trained = test::headway("tokenizer train --corpus " + w.corpus() + " --out " +
                                           w.path("large.tiktoken").string() + " --vocab 8192");
    ASSERT_EQ(trained.code, 0) << trained.output;
    ASSERT_EQ(trained.output.find("no more pairs"), std::string::npos) << trained.output;
  }
  const Finished finished = test::headway("train " + w.path("memory.toml").string() + " --corpus " +
                                          w.corpus() + " --tokenizer " + w.path("large.tiktoken").string() +
                                          " --runs " + w.path("runs").string() + " --eval-ranks 1 --json");
  ASSERT_EQ(finished.code, 0) << finished.output;
  const nlohmann::json memory = finished.json().at("memory");
  const double planned = memory.at("planned_bytes").get<double>(),
               peak = memory.at("peak_bytes").get<double>();
  std::printf("planned %.3f GB, peak %.3f GB, ratio %.3f\n", planned / 1e9, peak / 1e9, planned / peak);
  EXPECT_NEAR(planned / peak, 1.0, 0.1);
}

TEST(Memory, PlanIsRightForAMiddlingModel) {
  expect_plan_within_ten_percent("depth = 4\nwidth = 256\nheads = 2\nvocab = 8192", 512);
}

#ifdef HEADWAY_SLOW
// The baseline at 8 x 1024 tokens: about a minute.
TEST(Memory, PlanIsRightForTheBaseline) {
  expect_plan_within_ten_percent("depth = 10\nwidth = 640\nheads = 5\nvocab = 8192", 1024);
}
#endif

}  // namespace
}  // namespace headway
