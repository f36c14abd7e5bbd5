// kill -9 at random moments of a run: what was saved is never lost, and the run ends as if nothing had
// happened.
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

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(Kill, AtTwentyRandomMomentsLosesAtMostTheStepsSinceTheLastCheckpoint) {
  Workplace& w = Workplace::get();
  const std::string recipe =
      w.recipe("killed", "steps = 800\ncheckpoint_every = " + std::to_string(kEvery)).string();
  const Finished whole = test::headway("train " + recipe + " " + w.sources() + " --json");
  ASSERT_EQ(whole.code, 0) << whole.output;
  const double step_seconds = whole.json().at("host_seconds").get<double>() / 800;

  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(test::headway("train " + recipe + " " + w.sources() + " --stop-after 1").code, 0);
  const double start_up = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const std::filesystem::path run = w.path("runs/killed-002");
  Random random(20261130);
  int killed = 0, got_on = 0;
  while (killed < 20 && !std::filesystem::exists(run / "result.json")) {
    const std::int64_t before = saved_step(run);
    const pid_t child = start(run.string());
    // One anywhere in the start-up, one among the steps and the saving between them: those wait until the run
    // has saved once more, so that they fall there however fast the machine is.
    if (killed % 2 == 0) {
      sleep_for(random.uniform() * start_up);
    } else {
      for (int i = 0; i < 60'000 && saved_step(run) == before; ++i) sleep_for(0.001);
      sleep_for(random.uniform() * 2 * kEvery * step_seconds);
    }
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFSIGNALED(status)) break;  // it had ended by itself
    ++killed;
    const std::int64_t after = saved_step(run);
    EXPECT_GE(after, before);
    got_on += after > before;
    const train::RunRecord record = train::read_run(run);  // readable at any moment
    if (!record.steps.empty()) {
      EXPECT_LE(record.steps.back().step - after, kEvery);
    }
  }
  EXPECT_EQ(killed, 20);
  EXPECT_GE(got_on, 10);  // half of the kills fell among the steps
  const Finished rest = test::headway("train --resume " + run.string() + " --json");
  ASSERT_EQ(rest.code, 0) << rest.output;
  EXPECT_EQ(rest.json().at("checkpoint_hash"), whole.json().at("checkpoint_hash"));
  EXPECT_EQ(rest.json().at("val_bpb"), whole.json().at("val_bpb"));
  EXPECT_EQ(train::read_run(run).steps.size(), 800u);
}

}  // namespace
}  // namespace headway
