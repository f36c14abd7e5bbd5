// The training loop: resuming to the bit, the three budgets, and everything that can go wrong on the way.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"
#include "train/small_run.h"

namespace headway::train {
namespace {

using data::TemporaryFolder;
using test::SmallRun;

struct Trained {
  TrainResult result;
  std::vector<double> losses;
};

class TrainerTest : public testing::Test {
 protected:
  TrainerOptions options(const std::filesystem::path& run) {
    TrainerOptions o;
    o.run = run;
    o.clock = &clock_;
    o.charge = {1.0, 0.5};
    o.identity = {{"tokenizer", "t"}, {"corpus", "c"}};
    return o;
  }

  // Trains in a fresh process, so to say, until the end or `stop_after`.
  Trained train(const Recipe& recipe, TrainerOptions o, std::int64_t stop_after = 0) {
    Trained trained;
    o.stop_after = stop_after;
    o.on_step = [&](const StepReport& step) { trained.losses.push_back(step.loss); };
    SmallRun run(recipe);
    trained.result = run.train(o);
    return trained;
  }

  std::filesystem::path folder(const std::string& name) {
    const auto path = temporary_ / name;
    std::filesystem::create_directories(path);
    return path;
  }

  // 40 steps at once against 20, a restart, and 20 more.
  void expect_same_after_resume(const Recipe& recipe, const std::vector<double>& replayed = {}) {
    TrainerOptions whole = options(folder("whole")), parts = options(folder("parts"));
    whole.replayed_seconds = parts.replayed_seconds = replayed;
    const Trained once = train(recipe, whole);
    Trained twice = train(recipe, parts, 20);
    EXPECT_FALSE(twice.result.finished);
    EXPECT_EQ(twice.result.steps, 20);
    const Trained rest = train(recipe, parts);
    twice.losses.insert(twice.losses.end(), rest.losses.begin(), rest.losses.end());
    EXPECT_TRUE(once.result.finished);
    EXPECT_TRUE(rest.result.finished);
    EXPECT_GE(once.result.steps, 40);
    EXPECT_EQ(once.losses, twice.losses);
    EXPECT_EQ(once.result.steps, rest.result.steps);
    EXPECT_EQ(once.result.checkpoint_hash, rest.result.checkpoint_hash);
    EXPECT_EQ(once.result.charged_seconds, rest.result.charged_seconds);
  }

  TemporaryFolder temporary_;
  SteadyClock clock_;
};

TEST_F(TrainerTest, ResumesToTheBitOnSteps) { expect_same_after_resume(test::small_recipe("steps = 40")); }

TEST_F(TrainerTest, ResumesToTheBitOnTheChargedClock) {
  expect_same_after_resume(test::small_recipe("charged_seconds = 40", "charged"));
}

TEST_F(TrainerTest, ResumesToTheBitOnTheHostClockWithRecordedTimes) {
  // Uneven times, as a shared machine gives them.
  std::vector<double> seconds;
  Random random(3);
  for (int i = 0; i < 100; ++i) seconds.push_back(0.8 + 0.4 * random.uniform());
  const Recipe recipe = test::small_recipe("host_seconds = 41", "charged");
  expect_same_after_resume(recipe, seconds);
  // And a third run can replay what the record of the first says.
  std::vector<double> recorded;
  for (const StepRecord& step :
       [&] {
         FileSystem::real().write_atomically(temporary_ / "whole/recipe.toml", to_toml(recipe));
         return read_run(temporary_ / "whole");
       }()
           .steps)
    recorded.push_back(step.step_seconds);
  EXPECT_EQ(recorded.size(), 40u + 5u);
  EXPECT_EQ(
      std::vector<double>(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(recorded.size())),
      recorded);
}

TEST_F(TrainerTest, LearnsSomething) {
  const Trained trained = train(test::small_recipe("steps = 60"), options(folder("run")));
  EXPECT_NEAR(trained.losses.front(), std::log(64.0), 0.2);
  EXPECT_LT(trained.losses.back(), 0.75 * trained.losses.front());
}

TEST_F(TrainerTest, ChargedBudgetGivesTheStepsThePriceAllows) {
  // 5 free steps, then (12 - 0.5) / 1.0 more, the half second of saving included.
  const Trained trained =
      train(test::small_recipe("charged_seconds = 12", "charged"), options(folder("run")));
  EXPECT_EQ(trained.result.steps, 5 + 11);
  EXPECT_DOUBLE_EQ(trained.result.charged_seconds, 11.5);
  EXPECT_EQ(trained.result.void_reason, "");
}

TEST_F(TrainerTest, HostBudgetCountsMeasuredTimeAndVoidsWhatIsLate) {
  const test::TickingClock steady(0.01);
  TrainerOptions o = options(folder("run"));
  o.clock = &steady;
  const Trained trained = train(test::small_recipe("host_seconds = 2", "charged"), o);
  EXPECT_GT(trained.result.steps, 10);
  EXPECT_LE(trained.result.charged_seconds, 2.0);
  EXPECT_EQ(trained.result.void_reason, "");

  // A last step that takes unexpectedly long: past the budget a run has no score.
  std::vector<double> seconds(100, 0.2);
  seconds[12] = 5;
  o = options(folder("late"));
  o.replayed_seconds = seconds;
  const Trained late = train(test::small_recipe("host_seconds = 2", "charged"), o);
  EXPECT_NE(late.result.void_reason.find("of a budget of 2.0 s"), std::string::npos)
      << late.result.void_reason;
}

TEST_F(TrainerTest, BudgetShorterThanOneStepIsRefused) {
  try {
    planned_steps(test::small_recipe("charged_seconds = 3"), {5.0, 0.5});
    FAIL() << "a budget shorter than a step was taken";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("shorter than one step of 5.00 s"), std::string::npos)
        << error.what();
  }
}

TEST_F(TrainerTest, LossThatIsNotFiniteNamesStepAndTensorAndKeepsTheCheckpoint) {
  const auto run = folder("run");
  train(test::small_recipe("steps = 40"), options(run), 10);
  const auto saved = latest_checkpoint(run);
  ASSERT_TRUE(saved);

  // The same run, with an embedding that somebody broke.
  SmallRun broken(test::small_recipe("steps = 40"));
  TrainerOptions o = options(run);
  o.on_step = [&](const StepReport& step) {
    if (step.step != 12) return;
    const int wte = broken.session().variables().find("h.1.mlp.fc");
    std::vector<double> values = broken.session().backend().read(wte);
    values[3] = std::nan("");
    broken.session().backend().write(wte, values);
  };
  try {
    broken.train(o);
    FAIL() << "a loss of NaN was taken";
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("step 13"), std::string::npos) << message;
    EXPECT_NE(message.find("h.1.mlp.fc"), std::string::npos) << message;
    EXPECT_NE(message.find("checkpoint of step 10 is intact"), std::string::npos) << message;
  }
  EXPECT_EQ(latest_checkpoint(run), saved);
  SmallRun again(test::small_recipe("steps = 40"));
  EXPECT_NO_THROW(load_checkpoint(*saved, again.session().variables(), again.session().backend(), true,
                                  {{"tokenizer", "t"}}));
}

// A disk with room for `bytes` more.
class FullDisk : public FileSystem {
 public:
  explicit FullDisk(std::int64_t bytes) : left_(bytes) {}
  std::unique_ptr<WritableFile> create(const std::filesystem::path& path) override {
    return std::make_unique<File>(FileSystem::create(path), left_, path);
  }

 private:
  class File : public WritableFile {
   public:
    File(std::unique_ptr<WritableFile> file, std::int64_t& left, std::filesystem::path path)
        : file_(std::move(file)), left_(left), path_(std::move(path)) {}
    void append(const void* data, std::size_t bytes) override {
      const auto room = static_cast<std::size_t>(std::max<std::int64_t>(left_, 0));
      file_->append(data, std::min(bytes, room));
      left_ -= static_cast<std::int64_t>(bytes);
      if (left_ < 0) throw SystemError(path_.string(), "writing failed: No space left on device");
    }
    void close() override { file_->close(); }

   private:
    std::unique_ptr<WritableFile> file_;
    std::int64_t& left_;
    std::filesystem::path path_;
  };
  std::int64_t left_;
};

TEST_F(TrainerTest, DiskFullWhileSavingKeepsTheCheckpointBefore) {
  const Recipe recipe = test::small_recipe("steps = 40");
  const auto run = folder("run");
  const TrainResult first = train(recipe, options(run), 10).result;
  std::int64_t size = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run / "checkpoints"))
    if (entry.is_regular_file()) size += static_cast<std::int64_t>(entry.file_size());
  for (const double share : {0.0, 0.1, 0.4, 0.7, 0.99}) {
    FullDisk disk(static_cast<std::int64_t>(share * static_cast<double>(size)));
    TrainerOptions o = options(run);
    o.files = &disk;
    EXPECT_THROW(train(recipe, o, 20), SystemError) << share;
    ASSERT_TRUE(latest_checkpoint(run));
    EXPECT_EQ(latest_checkpoint(run)->filename(), "000010") << share;
    SmallRun again(recipe);
    EXPECT_EQ(load_checkpoint(*latest_checkpoint(run), again.session().variables(), again.session().backend(),
                              true, {{"corpus", "c"}})
                  .at("hash")
                  .get<std::string>(),
              first.checkpoint_hash);
  }
  // With room again the run goes on as if nothing had happened.
  const TrainResult rest = train(recipe, options(run)).result;
  EXPECT_EQ(rest.checkpoint_hash, train(recipe, options(folder("whole"))).result.checkpoint_hash);
}

TEST_F(TrainerTest, CheckpointOfAnotherRecipeTokenizerOrCorpusIsRefused) {
  const auto run = folder("run");
  train(test::small_recipe("steps = 40"), options(run), 10);
  const auto message_of = [&](const Recipe& recipe, TrainerOptions o) -> std::string {
    try {
      train(recipe, o);
    } catch (const InputError& error) {
      return error.what();
    }
    return "taken";
  };
  const std::string recipe = message_of(test::small_recipe("steps = 40", "steps", "0.03"), options(run));
  EXPECT_NE(recipe.find("another recipe: [optimizer.matrix] lr = 0.02 there, lr = 0.03 here"),
            std::string::npos)
      << recipe;
  TrainerOptions o = options(run);
  o.identity["tokenizer"] = "u";
  EXPECT_NE(message_of(test::small_recipe("steps = 40"), o).find("another tokenizer"), std::string::npos);
  o = options(run);
  o.identity["corpus"] = "d";
  EXPECT_NE(message_of(test::small_recipe("steps = 40"), o).find("another corpus"), std::string::npos);
}

TEST_F(TrainerTest, DamagedCheckpointIsRefused) {
  const Recipe recipe = test::small_recipe("steps = 40");
  const auto run = folder("run");
  train(recipe, options(run), 10);
  const auto file = *latest_checkpoint(run) / "model.safetensors";
  std::string bytes = read_file(file);
  bytes[bytes.size() - 7] = static_cast<char>(bytes[bytes.size() - 7] ^ 1);
  FileSystem::real().write_atomically(file, bytes);
  EXPECT_THROW(train(recipe, options(run)), InputError);
  FileSystem::real().write_atomically(file, bytes.substr(0, bytes.size() / 2));
  EXPECT_THROW(train(recipe, options(run)), InputError);
}

TEST_F(TrainerTest, StepLogDropsWhatCameAfterTheCheckpoint) {
  const Recipe recipe = test::small_recipe("steps = 40");
  const auto run = folder("run");
  train(recipe, options(run), 15);  // saved at 15
  {
    std::string log = read_file(run / "steps.jsonl");
    log += "{\"step\": 16, \"loss\": 1}\n{\"step\": 17, \"lo";
    FileSystem::real().write_atomically(run / "steps.jsonl", log);
  }
  train(recipe, options(run));
  FileSystem::real().write_atomically(run / "recipe.toml", to_toml(recipe));
  const RunRecord record = read_run(run);
  ASSERT_EQ(record.steps.size(), 40u);
  EXPECT_EQ(record.torn_lines, 0);
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(record.steps[i].step, static_cast<std::int64_t>(i + 1));
}

}  // namespace
}  // namespace headway::train
