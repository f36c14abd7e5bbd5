#include <gtest/gtest.h>

#include <filesystem>

#include "cli/program.h"

namespace headway::test {
namespace {

TEST(KernelCommand, ListsKernels) {
  const Finished list = headway("kernel list --json");
  EXPECT_EQ(list.code, 0) << list.output;
  bool attention = false;
  const nlohmann::json all = list.json();
  for (const auto& kernel : all["kernels"]) attention |= kernel["name"].get<std::string>() == "attention";
  EXPECT_TRUE(attention) << list.output;
}

TEST(KernelCommand, ComparesWithTheReference) {
  const Finished check = headway(
      "kernel check attention --arg q=bf16[200,64] --arg k=bf16[200,64] --arg v=bf16[200,64] --arg causal=1 --json");
  EXPECT_EQ(check.code, 0) << check.output;
  const auto result = check.json();
  EXPECT_EQ(result["outputs"][0]["dtype"], "bfloat16");
  EXPECT_LT(result["outputs"][0]["error"].get<double>(), 0.05);
  EXPECT_GT(result["outputs"][0]["error"].get<double>(), 0);
  EXPECT_GT(result["instructions"].get<int>(), 20);
}

TEST(KernelCommand, SaysWhatIsWrongWithAKernel) {
  struct Case {
    const char *kernel, *rule, *words;
  };
  for (const Case& c : {Case{"race", "[race]", "core_barrier"}, Case{"out_of_bounds", "[out-of-bounds]", "'cache'"},
                        Case{"unwritten", "[unwritten]", "declared at mistakes.cc"}}) {
    const Finished run = headway(std::string("kernel run mistakes/") + c.kernel);
    EXPECT_EQ(run.code, 3) << run.output;
    EXPECT_TRUE(run.says(c.rule)) << run.output;
    EXPECT_TRUE(run.says(c.words)) << run.output;
    EXPECT_TRUE(run.says("mistakes.cc:")) << run.output;
  }
}

TEST(KernelCommand, CollectsEverythingWithAll) {
  const Finished run = headway("kernel run mistakes/unwritten --arg x=f32[128,100] --all --json");
  EXPECT_EQ(run.code, 3) << run.output;
  EXPECT_TRUE(run.says("[unwritten]")) << run.output;
}

TEST(KernelCommand, RunsOnOtherChips) {
  for (const char* chip : {"trn1", "trn2", "trn3"}) {
    const Finished run = headway(std::string("kernel check softmax --arg x=f32[130,40] --chip ") + chip);
    EXPECT_EQ(run.code, 0) << run.output;
    EXPECT_TRUE(run.says(std::string("softmax on ") + chip)) << run.output;
  }
  // Two cores as one need Trainium2.
  EXPECT_NE(headway("kernel run mistakes/race --chip nothing").code, 0);
}

TEST(KernelCommand, SavesPrograms) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "headway-softmax.hwprog";
  const Finished run = headway("kernel run softmax --save " + file.string());
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_GT(std::filesystem::file_size(file), 100u);
  std::filesystem::remove(file);
}

TEST(KernelCommand, RefusesBadArguments) {
  struct Case {
    const char *arguments, *words;
  };
  for (const Case& c : {Case{"run atention", "attention"}, Case{"run softmax --arg x", "isn't NAME=VALUE"},
                        Case{"run softmax --arg y=f32[2,2]", "input of softmax"},
                        Case{"run softmax --arg x=f33[2,2]", "f32"}, Case{"run softmax --arg x=f32[2,0]", "is no extent"},
                        Case{"run softmax --arg x=f32[2,2", "no closing bracket"},
                        Case{"run softmax --arg x=float", "neither a number"},
                        Case{"run attention --arg casual=1", "causal"}, Case{"run softmax --chip trn9", "trn2"},
                        Case{"check mistakes/race", "no reference"}}) {
    const Finished run = headway(std::string("kernel ") + c.arguments);
    EXPECT_EQ(run.code, 2) << run.output;
    EXPECT_TRUE(run.says(c.words)) << run.output;
  }
}

}  // namespace
}  // namespace headway::test
