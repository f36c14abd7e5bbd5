// headway kernel time and profile, as a user runs them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "cli/program.h"

namespace headway::test {
namespace {

constexpr const char* kSmall = "softmax --arg x=f32[256,512]";

class KernelProfile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("headway-profile-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

TEST_F(KernelProfile, TimeIsThatOfTheProfile) {
  const Finished time = headway(std::string("kernel time ") + kSmall + " --json");
  const Finished profile = headway(std::string("kernel profile ") + kSmall + " --json");
  ASSERT_EQ(time.code, 0) << time.output;
  ASSERT_EQ(profile.code, 0) << profile.output;
  const auto a = time.json(), b = profile.json();
  EXPECT_GT(a["total_time"].get<double>(), 0);
  EXPECT_EQ(a["total_time"], b["figures"]["total_time"]);
  EXPECT_EQ(a["latency"], b["figures"]["latency"]);
  EXPECT_EQ(a["low"], b["trust"]["low"]);
  EXPECT_EQ(a["measured"], b["trust"]["measured"]);
  EXPECT_EQ(b["arguments"][0], "x=float32[256, 512]");
  EXPECT_TRUE(profile.says("Critical path")) << profile.output;
  EXPECT_TRUE(profile.says("softmax.cc:")) << profile.output;
}

TEST_F(KernelProfile, ASavedProfileShowsTheSame) {
  const Finished saved = headway(std::string("kernel profile ") + kSmall + " --save " + path("a.json"));
  ASSERT_EQ(saved.code, 0) << saved.output;
  const Finished opened = headway("kernel profile --open " + path("a.json") + " --json");
  ASSERT_EQ(opened.code, 0) << opened.output;
  const std::string text = opened.output.substr(0, opened.output.rfind("\n{") + 1);
  EXPECT_EQ(saved.output.find(text), 0u) << saved.output << text;
}

TEST_F(KernelProfile, TwoProfilesBesideEachOther) {
  ASSERT_EQ(headway(std::string("kernel profile ") + kSmall + " --save " + path("a.json")).code, 0);
  const Finished both =
      headway("kernel profile softmax --arg x=f32[512,512] --against " + path("a.json") + " --json");
  ASSERT_EQ(both.code, 0) << both.output;
  EXPECT_GT(both.json()["profile"]["figures"]["total_time"], both.json()["against"]["figures"]["total_time"]);
  EXPECT_TRUE(both.says("total_time")) << both.output;
}

TEST_F(KernelProfile, WritesPageAndTrace) {
  const Finished run = headway(std::string("kernel profile ") + kSmall + " --html " + path("p.html") +
                               " --pftrace " + path("p.pftrace"));
  ASSERT_EQ(run.code, 0) << run.output;
  const std::string page = read_file(path("p.html"));
  EXPECT_NE(page.find(R"({"format":1,"profiles":[{"format":"headway-profile")"), std::string::npos);
  EXPECT_EQ(read_file(path("p.pftrace")).substr(0, 1), "\x0a");  // field 1: a packet
}

TEST_F(KernelProfile, AProgramFileIsTimedAsItsKernelIs) {
  ASSERT_EQ(headway(std::string("kernel run ") + kSmall + " --save " + path("softmax.program")).code, 0);
  const Finished kernel = headway(std::string("kernel time ") + kSmall + " --json");
  const Finished program = headway("kernel time --program " + path("softmax.program") + " --json");
  ASSERT_EQ(program.code, 0) << program.output;
  EXPECT_EQ(program.json()["total_time"], kernel.json()["total_time"]);

  const std::string bytes = read_file(path("softmax.program"));
  FileSystem::real().write_atomically(path("cut.program"), bytes.substr(0, bytes.size() / 2));
  const Finished cut = headway("kernel time --program " + path("cut.program"));
  EXPECT_EQ(cut.code, 2) << cut.output;
  EXPECT_TRUE(cut.says("cut.program")) << cut.output;
}

TEST_F(KernelProfile, RefusesWithFileAndPlace) {
  ASSERT_EQ(headway(std::string("kernel profile ") + kSmall + " --save " + path("a.json")).code, 0);
  const std::string text = read_file(path("a.json"));
  FileSystem::real().write_atomically(path("cut.json"), text.substr(0, text.size() / 2));
  struct Case {
    std::string arguments, words;
  };
  for (const Case& c : {Case{"profile --open " + path("cut.json"), "cut.json: byte"},
                        Case{"profile --open " + path("gone.json"), "gone.json"},
                        Case{"profile softmax --open " + path("a.json"), "not both"},
                        Case{"profile softmax --against " + path("cut.json"), "cut.json: byte"},
                        Case{"profile", "names no kernel"}, Case{"time sofmax", "softmax"},
                        Case{"time softmax --chip trn9", "trn2"},
                        Case{"time softmax --program x", "names a kernel and program files"},
                        Case{"time --program x --arg x=1", "goes with a kernel"},
                        Case{"time softmax --arg x", "isn't NAME=VALUE"}}) {
    const Finished run = headway("kernel " + c.arguments);
    EXPECT_EQ(run.code, 2) << c.arguments << run.output;
    EXPECT_TRUE(run.says(c.words)) << c.arguments << run.output;
  }
}

}  // namespace
}  // namespace headway::test
