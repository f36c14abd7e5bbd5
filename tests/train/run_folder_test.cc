#include "train/run_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "base/error.h"

namespace headway::train {
namespace {

namespace fs = std::filesystem;

class RunFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "headway-run-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root = pattern;
    folder = root / "small";
    fs::create_directory(folder);
    write("recipe.toml",
          "[model]\nlayers = 2\n[optimizer]\nname = \"muon\"\nbetas = [0.9, 0.95]\nrate = 0.02\ndecay = "
          "1.0\nnesterov = true\n");
    write("environment.json", R"({"headway":"1","threads":2,"started":"2026-01-02T03:04:05Z"})");
  }
  void TearDown() override { fs::remove_all(root); }

  void write(const fs::path& file, const std::string& text) { std::ofstream(folder / file) << text; }

  fs::path root;
  fs::path folder;
};

std::string line(int step, double loss) {
  return R"({"step":)" + std::to_string(step) + R"(,"tokens":)" + std::to_string(step * 100) + R"(,"loss":)" +
         std::to_string(loss) + R"(,"charged_seconds":0.5,"host_seconds":)" + std::to_string(step * 2) +
         R"(,"mfu":0.5,"lr":{"matrix":0.02,"embedding":0.3},"momentum":0.9})";
}

std::string message_of(const fs::path& folder) {
  try {
    read_run(folder);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(RunFolder, ReadsEverything) {
  write("steps.jsonl", line(1, 9.0) + "\n" + R"({"step":2,"tokens":200,"loss":8.5,"val_bpb":2.25})" + "\n");
  write("result.json",
        R"({"name":"tiny","val_bpb":2.2,"corpus_hash":"abc","steps":2,"parameters":1000,"mfu":0.4})");
  const RunRecord run = read_run(folder);
  EXPECT_EQ(run.name, "tiny");
  EXPECT_EQ(run.state(), "finished");
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(run.steps[0].tokens, 100);
  EXPECT_DOUBLE_EQ(run.steps[0].learning_rates.at("embedding"), 0.3);
  EXPECT_DOUBLE_EQ(run.steps[0].momentum, 0.9);
  EXPECT_FALSE(run.steps[0].val_bpb);
  EXPECT_DOUBLE_EQ(run.steps[1].val_bpb.value(), 2.25);
  EXPECT_TRUE(std::isnan(run.steps[1].mfu));
  const RunFigures figures = run.figures();
  EXPECT_DOUBLE_EQ(figures.val_bpb.value(), 2.2);
  EXPECT_DOUBLE_EQ(figures.mfu.value(), 0.4);
  EXPECT_EQ(figures.parameters.value(), 1000);
  EXPECT_EQ(figures.corpus_hash.value(), "abc");
  EXPECT_EQ(run.environment.at("threads"), 2);
}

TEST_F(RunFolder, UnfinishedRunTellsAsMuchAsItsSteps) {
  write("steps.jsonl", line(1, 9.0) + "\n" + R"({"step":2,"val_bpb":3.5})" + "\n" + line(3, 7.0) + "\n");
  const RunRecord run = read_run(folder);
  EXPECT_EQ(run.name, "small");
  EXPECT_EQ(run.state(), "unfinished");
  const RunFigures figures = run.figures();
  EXPECT_EQ(figures.steps, 3);
  EXPECT_EQ(figures.tokens, 300);
  EXPECT_DOUBLE_EQ(figures.val_bpb.value(), 3.5);
  EXPECT_EQ(figures.val_bpb_step, 2);
  EXPECT_DOUBLE_EQ(figures.tokens_per_second.value(), 50.0);
  EXPECT_DOUBLE_EQ(figures.mfu.value(), 0.5);
  EXPECT_FALSE(figures.parameters);
}

TEST_F(RunFolder, RunThatHasNotStepped) {
  const RunRecord run = read_run(folder);
  EXPECT_EQ(run.state(), "unfinished");
  EXPECT_TRUE(run.steps.empty());
  EXPECT_EQ(run.figures().steps, 0);
  EXPECT_FALSE(run.figures().val_bpb);
}

TEST_F(RunFolder, VoidScore) {
  write("result.json", R"({"val_bpb":2.0,"score_void_reason":"read the validation text"})");
  EXPECT_EQ(read_run(folder).state(), "void");
  EXPECT_EQ(read_run(folder).void_reason(), "read the validation text");
  write("result.json", R"({"val_bpb":2.0,"score_void_reason":null})");
  EXPECT_EQ(read_run(folder).state(), "finished");
}

TEST_F(RunFolder, TornLastLineIsIgnoredWhereverItTears) {
  const std::string whole = line(1, 9.0) + "\n";
  const std::string second = line(2, 8.0);
  for (std::size_t bytes = 1; bytes < second.size(); ++bytes) {
    write("steps.jsonl", whole + second.substr(0, bytes));
    const RunRecord run = read_run(folder);
    ASSERT_EQ(run.steps.size(), 1u) << bytes;
    ASSERT_EQ(run.torn_lines, 1) << bytes;
  }
  write("steps.jsonl", whole + second);  // only the newline is missing: nothing was lost
  EXPECT_EQ(read_run(folder).steps.size(), 2u);
  EXPECT_EQ(read_run(folder).torn_lines, 0);
}

TEST_F(RunFolder, ResumedRunMayWriteOnBehindTheTear) {
  const std::string torn = line(3, 7.0);
  for (std::size_t bytes = 1; bytes < torn.size(); bytes += 7) {
    for (const std::string between : {"", "\n"}) {
      write("steps.jsonl", line(1, 9.0) + "\n" + line(2, 8.0) + "\n" + torn.substr(0, bytes) + between +
                               line(2, 6.0) + "\n" + line(3, 5.0) + "\n");
      const RunRecord run = read_run(folder);
      ASSERT_EQ(run.steps.size(), 3u) << bytes;
      ASSERT_DOUBLE_EQ(run.steps[1].loss, 6.0) << bytes;
      ASSERT_DOUBLE_EQ(run.steps[2].loss, 5.0) << bytes;
      ASSERT_EQ(run.torn_lines, 1) << bytes;
    }
  }
}

TEST_F(RunFolder, RepeatedStepsReplaceTheAttemptThatCrashed) {
  write("steps.jsonl", line(1, 9) + "\n" + line(2, 8) + "\n" + line(3, 7) + "\n" + line(4, 6) + "\n" +
                           line(2, 5) + "\n" + line(3, 4) + "\n");
  const RunRecord run = read_run(folder);
  ASSERT_EQ(run.steps.size(), 3u);
  EXPECT_DOUBLE_EQ(run.steps[0].loss, 9);
  EXPECT_DOUBLE_EQ(run.steps[1].loss, 5);
  EXPECT_DOUBLE_EQ(run.steps[2].loss, 4);
}

TEST_F(RunFolder, LossThatIsNotFinite) {
  write("steps.jsonl", R"({"step":1,"loss":null})"
                       "\n");
  EXPECT_TRUE(std::isnan(read_run(folder).steps.at(0).loss));
}

TEST_F(RunFolder, WhatIsNoTearIsRefusedWithItsLine) {
  for (const std::string bad : {"nonsense", R"({"tokens":5})", "[1]", R"({"step":3,"loss":oops})"}) {
    write("steps.jsonl", line(1, 9) + "\n" + bad + "\n" + line(2, 8) + "\n");
    EXPECT_NE(message_of(folder).find("steps.jsonl:2: is not a JSON object with a step"), std::string::npos)
        << bad;
  }
}

TEST_F(RunFolder, BrokenResultIsRefused) {
  write("result.json", "{\"val_bpb\":");
  EXPECT_NE(message_of(folder).find("result.json: is not a JSON object"), std::string::npos);
}

TEST_F(RunFolder, NoRun) {
  EXPECT_NE(message_of(root / "missing").find("there is no such run folder"), std::string::npos);
  EXPECT_NE(message_of(root).find("is not a run folder"), std::string::npos);
  // A recipe alone is a submission or a draft, not a run.
  fs::remove(folder / "environment.json");
  EXPECT_NE(message_of(folder).find("is not a run folder"), std::string::npos);
}

TEST_F(RunFolder, ListAndFind) {
  fs::create_directory(root / "empty");
  fs::copy(folder, root / "another");
  EXPECT_EQ(list_runs(root), (std::vector<fs::path>{root / "another", root / "small"}));
  EXPECT_EQ(list_runs(folder), (std::vector<fs::path>{folder}));
  EXPECT_THROW(list_runs(root / "missing"), InputError);
  EXPECT_EQ(find_run("small", root), root / "small");
  EXPECT_EQ(find_run((root / "another").string(), "elsewhere"), root / "another");
  try {
    find_run("smal", root);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("Did you mean 'small'?"), std::string::npos) << error.what();
  }
}

TEST_F(RunFolder, RecipeValuesAreFlat) {
  const auto values = read_run(folder).recipe_values();
  EXPECT_EQ(values.at("model.layers"), "2");
  EXPECT_EQ(values.at("optimizer.name"), "\"muon\"");
  EXPECT_EQ(values.at("optimizer.betas"), "[0.9, 0.95]");
  EXPECT_EQ(values.at("optimizer.rate"), "0.02");
  EXPECT_EQ(values.at("optimizer.decay"), "1.0");
  EXPECT_EQ(values.at("optimizer.nesterov"), "true");
  EXPECT_EQ(values.size(), 6u);
  write("recipe.toml", "[model]\nlayers =\n");
  EXPECT_THROW(read_run(folder).recipe_values(), InputError);
}

}  // namespace
}  // namespace headway::train
