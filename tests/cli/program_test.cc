// The program from outside: a run from text to report, and every kind of bad input with its message and exit
// code.
#include <gtest/gtest.h>

#include <fstream>

#include "cli/program.h"

namespace headway {
namespace {

using test::Finished;
using test::headway;
using test::Workplace;

TEST(Program, TrainsScoresResumesAndReports) {
  Workplace& w = Workplace::get();
  const std::string recipe = w.recipe("whole", "steps = 30\nevaluate_every = 10").string();
  const Finished trained = headway("train " + recipe + " " + w.sources() + " --json");
  ASSERT_EQ(trained.code, 0) << trained.output;
  const nlohmann::json result = trained.json();
  EXPECT_EQ(result.at("steps"), 30);
  EXPECT_EQ(result.at("tokens"), 30 * 512);
  EXPECT_TRUE(result.at("score_void_reason").is_null()) << result.at("score_void_reason");
  EXPECT_GT(result.at("val_bpb").get<double>(), 0.5);
  EXPECT_LT(result.at("val_bpb").get<double>(), 5.0);
  EXPECT_TRUE(trained.says("memory     "));

  // In two portions: the same checkpoint.
  const Finished first = headway("train " + recipe + " " + w.sources() + " --stop-after 13");
  ASSERT_EQ(first.code, 0) << first.output;
  ASSERT_TRUE(first.says("--resume "));
  std::string run = first.output.substr(first.output.rfind("--resume ") + 9);
  run.erase(run.find_last_not_of('\n') + 1);
  const Finished second = headway("train --resume " + run + " --json");
  ASSERT_EQ(second.code, 0) << second.output;
  EXPECT_EQ(second.json().at("checkpoint_hash"), result.at("checkpoint_hash"));
  EXPECT_EQ(second.json().at("val_bpb"), result.at("val_bpb"));

  // Scored again by itself, and with another batch.
  for (const char* batch : {"8", "3"}) {
    const Finished scored = headway("eval bpb " + run + " --batch " + batch + " --json");
    ASSERT_EQ(scored.code, 0) << scored.output;
    EXPECT_NEAR(scored.json().at("val_bpb").get<double>(), result.at("val_bpb").get<double>(), 1e-6);
    EXPECT_EQ(scored.json().at("bytes"), result.at("bytes"));
  }

  const Finished runs = headway("runs " + w.path("runs").string());
  EXPECT_EQ(runs.code, 0) << runs.output;
  EXPECT_TRUE(runs.says("whole-001"));
  const std::string page = w.path("report.html").string();
  const Finished report = headway("report " + run + " --out " + page);
  EXPECT_EQ(report.code, 0) << report.output;
  EXPECT_TRUE(read_file(page).find("headway-data") != std::string::npos);
}

TEST(Program, TrainsTheExamplesOutsideSrc) {
  Workplace& w = Workplace::get();
  std::string text = read_file(std::string(HEADWAY_ROOT) + "/examples/extend/recipe.toml");
  text.replace(text.find("steps = 50"), 10, "steps = 8");
  text.replace(text.find("[model]\n"), 8, "[model]\nvocab = 512\n");
  FileSystem::real().write_atomically(w.path("extended.toml"), text);
  const Finished trained =
      headway("train " + w.path("extended.toml").string() + " " + w.sources() + " --json");
  ASSERT_EQ(trained.code, 0) << trained.output;
  EXPECT_EQ(trained.json().at("steps"), 8);
}

struct Refusal {
  const char* name;
  std::string arguments;
  int code;
  std::string words;  // in the message
};

void expect_refused(const Refusal& refusal) {
  const Finished finished = headway(refusal.arguments);
  EXPECT_EQ(finished.code, refusal.code) << refusal.name << ": " << finished.output;
  EXPECT_TRUE(finished.says(refusal.words)) << refusal.name << ": " << finished.output;
  EXPECT_FALSE(finished.says("bug")) << refusal.name << ": " << finished.output;
}

TEST(Program, BadTextIsRefusedAndLeavesNothing) {
  Workplace& w = Workplace::get();
  const auto file = [&](const std::string& name, const std::string& contents) {
    std::filesystem::create_directories(w.path("bad"));
    std::ofstream(w.path("bad") / name, std::ios::binary) << contents;
    return (w.path("bad") / name).string();
  };
  const std::string out = w.path("never").string();
  std::filesystem::create_directories(w.path("nothing"));
  // Every byte in the middle third turned round: pages, not the footer.
  std::string parquet;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(HEADWAY_ROOT) + "/tests/data/fixtures/parquet"))
    if (entry.file_size() > parquet.size()) parquet = read_file(entry.path());
  ASSERT_GT(parquet.size(), 1000u);
  for (std::size_t i = parquet.size() / 3; i < 2 * parquet.size() / 3; ++i)
    parquet[i] = static_cast<char>(~parquet[i]);

  // A gzip stream that ends too early.
  ASSERT_EQ(std::system(
                ("head -c 100000 /dev/zero | tr '\\0' 'x' | gzip > " + w.path("whole.gz").string()).c_str()),
            0);
  const std::string whole = read_file(w.path("whole.gz"));

  const std::string to = " --out " + out;
  expect_refused({"empty corpus", "data prepare " + w.path("nothing").string() + to, 2, "nothing"});
  expect_refused(
      {"not UTF-8", "data prepare " + file("latin1.txt", "caf\xe9 au lait") + to, 2, "latin1.txt"});
  expect_refused({"truncated gz",
                  "data prepare " + file("cut.txt.gz", whole.substr(0, whole.size() - 20)) + to, 2,
                  "cut.txt.gz"});
  expect_refused({"corrupt Parquet", "data prepare " + file("shard_00000.parquet", parquet) + to, 2,
                  "shard_00000.parquet"});
  expect_refused({"line without text",
                  "data prepare " + file("a.jsonl", "{\"text\": \"x\"}\n{\"txt\": \"y\"}\n") + to, 2,
                  "a.jsonl:2"});
  expect_refused({"no such file", "data prepare " + w.path("absent.txt").string() + to, 2, "absent.txt"});
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(Program, BadRecipesAndMismatchesAreRefused) {
  Workplace& w = Workplace::get();
  const std::string sources = " " + w.sources();
  expect_refused({"no recipe", "train nowhere.toml" + sources, 2, "nowhere.toml"});
  expect_refused({"unknown key", "train " + w.recipe("key", "steps = 3", "sofcap = 3\n").string() + sources,
                  2, "model.sofcap is not a known key. Did you mean 'softcap'?"});
  expect_refused({"another vocab",
                  "train " + w.recipe("vocab", "steps = 3", "", "0.02", 600).string() + sources, 2,
                  "has 512 tokens, but the recipe's model has a vocab of 600"});
  expect_refused({"short budget", "train " + w.recipe("short", "charged_seconds = 0.0001").string() + sources,
                  2, "shorter than one step"});
  expect_refused({"no corpus",
                  "train " + w.recipe("ok", "steps = 3").string() + " --corpus " + w.path("void").string() +
                      " --tokenizer " + w.tokenizer(),
                  2, "void"});
  expect_refused({"no run", "eval bpb nothing --runs " + w.path("runs").string(), 2, "nothing"});

  const Finished started =
      headway("train " + w.recipe("other", "steps = 9").string() + sources + " --stop-after 4");
  ASSERT_EQ(started.code, 0) << started.output;
  const std::string run = w.path("runs/other-001").string();
  expect_refused({"another recipe",
                  "train " + w.recipe("other", "steps = 9", "", "0.03").string() + " --resume " + run, 2,
                  "another recipe: [optimizer.matrix] lr = 0.02 there, lr = 0.03 here"});
  const Finished usage = headway("train --stesp 3");
  EXPECT_NE(usage.code, 0);
}

TEST(Program, LossThatIsNotFiniteEndsTheRunWithItsCheckpoint) {
  Workplace& w = Workplace::get();
  const std::string recipe = w.recipe("wild", "steps = 60\ncheckpoint_every = 1", "", "1e39").string();
  const Finished finished = headway("train " + recipe + " " + w.sources());
  EXPECT_EQ(finished.code, 2) << finished.output;
  EXPECT_TRUE(finished.says("at step ")) << finished.output;
  EXPECT_TRUE(finished.says("first tensor that isn't finite is ")) << finished.output;
  EXPECT_TRUE(std::filesystem::exists(w.path("runs/wild-001/checkpoints/latest")));
  EXPECT_FALSE(std::filesystem::exists(w.path("runs/wild-001/result.json")));
}

TEST(Program, DiskFullWhileSavingIsSaidAndLosesNothing) {
  Workplace& w = Workplace::get();
  const std::string recipe = w.recipe("full", "steps = 30\ncheckpoint_every = 5").string();
  const Finished started = headway("train " + recipe + " " + w.sources() + " --stop-after 5");
  ASSERT_EQ(started.code, 0) << started.output;
  const std::string run = w.path("runs/full-001").string();
  // A limit on file size stands for the full disk: model.safetensors is larger.
  const std::string command = "(trap '' XFSZ; ulimit -f 100; '" + std::string(HEADWAY_PROGRAM) +
                              "' train --resume " + run + ") > " + w.path("full.log").string() + " 2>&1";
  const int status = std::system(("bash -c \"" + command + "\"").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 5) << read_file(w.path("full.log"));
  EXPECT_NE(read_file(w.path("full.log")).find("safetensors"), std::string::npos)
      << read_file(w.path("full.log"));
  EXPECT_EQ(read_file(run + "/checkpoints/latest"), "000005\n");
  const Finished rest = headway("train --resume " + run + " --json");
  ASSERT_EQ(rest.code, 0) << rest.output;
  const Finished whole = headway("train " + recipe + " " + w.sources() + " --json");
  EXPECT_EQ(rest.json().at("checkpoint_hash"), whole.json().at("checkpoint_hash"));
}

}  // namespace
}  // namespace headway
