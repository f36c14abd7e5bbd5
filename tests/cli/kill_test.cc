// kill -9 at random moments of a run: what was saved is never lost, and the run ends as if nothing had happened.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "base/random.h"
#include "cli/program.h"
#include "train/run_folder.h"

namespace headway {
namespace {

using test::Finished;
using test::Workplace;

constexpr int kEvery = 5;  // steps between checkpoints

pid_t start(const std::string& run) {
  std::fflush(nullptr);  // or the child would write what is still buffered
  const pid_t child = ::fork();
  if (child == 0) {
    if (!std::freopen("/dev/null", "w", stdout) || !std::freopen("/dev/null", "w", stderr)) ::_exit(1);
    ::execl(HEADWAY_PROGRAM, HEADWAY_PROGRAM, "train", "--resume", run.c_str(), static_cast<char*>(nullptr));
    ::_exit(1);
  }
  return child;
}

std::int64_t saved_step(const std::filesystem::path& run) {
  std::istringstream in(read_file(run / "checkpoints" / "latest"));
  std::int64_t step = 0;
  in >> step;
  return step;
}

TEST(Kill, AtTwentyRandomMomentsLosesAtMostTheStepsSinceTheLastCheckpoint) {
  Workplace& w = Workplace::get();
  const std::string recipe = w.recipe("killed", "steps = 400\ncheckpoint_every = " + std::to_string(kEvery)).string();
  const Finished whole = test::headway("train " + recipe + " " + w.sources() + " --json");
  ASSERT_EQ(whole.code, 0) << whole.output;
  const double step_seconds = whole.json().at("host_seconds").get<double>() / 400;

  ASSERT_EQ(test::headway("train " + recipe + " " + w.sources() + " --stop-after 1").code, 0);
  const std::filesystem::path run = w.path("runs/killed-002");
  Random random(20261130);
  int killed = 0;
  while (killed < 20 && !std::filesystem::exists(run / "result.json")) {
    const std::int64_t before = saved_step(run);
    const pid_t child = start(run.string());
    // Anywhere in the start-up, the steps, the saving between them.
    const double delay = 0.02 + random.uniform() * (0.3 + 16 * step_seconds);
    std::this_thread::sleep_for(std::chrono::duration<double>(delay));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFSIGNALED(status)) break;  // it had ended by itself
    ++killed;
    const std::int64_t after = saved_step(run);
    EXPECT_GE(after, before);
    const train::RunRecord record = train::read_run(run);  // readable at any moment
    if (!record.steps.empty()) {
      EXPECT_LE(record.steps.back().step - after, kEvery);
    }
  }
  EXPECT_EQ(killed, 20);
  const Finished rest = test::headway("train --resume " + run.string() + " --json");
  ASSERT_EQ(rest.code, 0) << rest.output;
  EXPECT_EQ(rest.json().at("checkpoint_hash"), whole.json().at("checkpoint_hash"));
  EXPECT_EQ(rest.json().at("val_bpb"), whole.json().at("val_bpb"));
  EXPECT_EQ(train::read_run(run).steps.size(), 400u);
}

}  // namespace
}  // namespace headway
