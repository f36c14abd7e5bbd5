#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/program.h"

namespace headway::test {
namespace {

namespace fs = std::filesystem;

// Sets an environment variable for a test.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Setting() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// Of this process alone.
fs::path temporary(const std::string& name) {
  return fs::temp_directory_path() / ("headway-" + std::to_string(::getpid()) + "-" + name);
}

std::string file() { return std::string(HEADWAY_ROOT) + "/tests/cli/kernels/kernels.py"; }
// "'.../kernels.py:scaled' --arg x=..."
std::string kernel(const std::string& name, const std::string& arguments = "--arg 'x=f32[256,64]'") {
  return "'" + file() + ":" + name + "' " + arguments + " ";
}

// Tests that need the Python package; skipped where it isn't built.
class PythonKernel : public testing::Test {
 protected:
  void SetUp() override {
#ifdef HEADWAY_TEST_PYTHON
    ::setenv("HEADWAY_PYTHON", HEADWAY_TEST_PYTHON, 0);
#endif
    static const Finished probe = headway("kernel run " + kernel("scaled"));
    if (probe.code != 0 && probe.says("HEADWAY_PYTHON"))
      GTEST_SKIP() << "no Python with the package headway-nki: " << probe.output;
  }
};

TEST_F(PythonKernel, RunsOnRandomInputs) {
  const Finished run = headway("kernel run " + kernel("scaled") + "--json");
  ASSERT_EQ(run.code, 0) << run.output;
  const auto result = run.json();
  EXPECT_EQ(result["kernel"], "scaled");
  EXPECT_EQ(result["instructions"], 6);
  EXPECT_EQ(result["chip_hash"].get<std::string>().size(), 16u);
  ASSERT_EQ(result["outputs"].size(), 1u);
  EXPECT_EQ(result["outputs"][0]["shape"], (std::vector<int>{256, 64}));
  // The same inputs, scaled otherwise.
  const auto other =
      headway("kernel run " + kernel("scaled", "--arg 'x=f32[256,64]' --arg scale=-4 --json")).json();
  EXPECT_FLOAT_EQ(other["outputs"][0]["largest"].get<float>(),
                  -2 * result["outputs"][0]["smallest"].get<float>());
}

TEST_F(PythonKernel, HandsAttributesOver) {
  const Finished run =
      headway("kernel run " +
              kernel("scaled", "--arg 'x=bf16[128,64]' --arg mode=slow --arg flag=true --arg sizes=[3,4]"));
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_TRUE(run.says("mode slow flag True sizes (3, 4)")) << run.output;
}

TEST_F(PythonKernel, TakesTheCoresOfALogicalCore) {
  const auto one = headway("kernel run " + kernel("halves", "--arg 'x=f32[128,64]' --json")).json();
  const auto two = headway("kernel run " + kernel("halves", "--arg 'x=f32[128,64]' --lnc 2 --json")).json();
  EXPECT_EQ(one["instructions"], 2);
  EXPECT_EQ(two["instructions"], 4);
  // Each core copies its half: together they copy what one does.
  EXPECT_EQ(one["outputs"], two["outputs"]);
  const auto time = headway("kernel time " + kernel("halves", "--arg 'x=f32[128,64]' --lnc 2 --json")).json();
  EXPECT_EQ(time["cores"], 2);
}

TEST_F(PythonKernel, HasATimeAndAProfileWithPythonLines) {
  const Finished time =
      headway("kernel time " + kernel("scaled", "--arg 'x=f32[256,64]' --arg scale=3 --json"));
  ASSERT_EQ(time.code, 0) << time.output;
  EXPECT_GT(time.json()["total_time"].get<double>(), 1e-6);
  EXPECT_EQ(time.json()["arguments"], (std::vector<std::string>{"x=float32[256, 64]", "scale=3"}));
  EXPECT_TRUE(
      time.says("scaled on chip trn2 (" + time.json()["chip_hash"].get<std::string>().substr(0, 8) + "): "))
      << time.output;

  const fs::path saved = temporary("profile.json");
  const Finished profile = headway("kernel profile " + kernel("scaled") + "--save '" + saved.string() + "'");
  EXPECT_EQ(profile.code, 0) << profile.output;
  EXPECT_TRUE(profile.says("kernels.py:15")) << profile.output;
  const Finished opened = headway("kernel profile --open '" + saved.string() + "'");
  EXPECT_TRUE(
      opened.says("scaled on chip trn2 (" + time.json()["chip_hash"].get<std::string>().substr(0, 8) + "), "))
      << opened.output;
  fs::remove(saved);
}

TEST_F(PythonKernel, SavesProgramsThatTimeReads) {
  const fs::path saved = temporary("python.hwprog");
  EXPECT_EQ(headway("kernel run " + kernel("scaled") + "--save '" + saved.string() + "'").code, 0);
  const auto direct = headway("kernel time " + kernel("scaled") + "--json").json();
  const auto read = headway("kernel time --program '" + saved.string() + "' --json").json();
  EXPECT_EQ(direct["total_time"], read["total_time"]);
  fs::remove(saved);
}

TEST_F(PythonKernel, WarnsOfUnwrittenMemory) {
  const Finished run = headway("kernel run " + kernel("unwritten", "--arg 'x=f32[128,64]'"));
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_TRUE(run.says("warning: kernels.py:")) << run.output;
  const Finished check = headway("kernel check " + kernel("unwritten", "--arg 'x=f32[128,64]'"));
  EXPECT_EQ(check.code, 3) << check.output;
  EXPECT_TRUE(check.says("[unwritten]")) << check.output;
}

TEST_F(PythonKernel, ChecksAgainstAReferenceInPython) {
  const std::string reference = " --reference '" + file() + ":";
  const Finished right =
      headway("kernel check " + kernel("scaled", "--arg 'x=bf16[128,64]|f32[256,32]' --strict --json") +
              reference + "scaled_reference'");
  ASSERT_EQ(right.code, 0) << right.output;
  EXPECT_EQ(right.json()["cases"].size(), 2u);
  const Finished wrong =
      headway("kernel check " + kernel("scaled", "--arg 'x=bf16[128,64]'") + reference + "wrong_reference'");
  EXPECT_EQ(wrong.code, 1) << wrong.output;
  EXPECT_TRUE(wrong.says("output0[0, 0] is ")) << wrong.output;
}

TEST_F(PythonKernel, SaysWhatIsWrong) {
  struct Case {
    std::string arguments;
    int code;
    const char* words;
  };
  for (const Case& c :
       {Case{kernel("too_large"), 3, "headway: kernels.py:41: "},
        Case{kernel("too_large"), 3, "[partitions]"},
        Case{kernel("raises"), 2, "kernels.py:47: KeyError: 'missing'"},
        Case{kernel("scald"), 2, "did you mean 'scaled'?"}, Case{kernel("scaled", ""), 2, "argument: 'x'"},
        Case{kernel("scaled", "--arg 'y=f32[2,2]'"), 2, "no parameter 'y'"},
        Case{kernel("scaled", "--arg x"), 2, "isn't NAME=VALUE"},
        Case{kernel("scaled", "--arg 'x=f33[2,2]'"), 2, "f32"},
        Case{kernel("scaled", "--arg sizes=[3"), 2, "is no list"}, Case{"'" + file() + "'", 2, "name one"},
        Case{"missing.py:k", 2, "there is no such file"},
        Case{kernel("halves", "--arg 'x=f32[128,64]' --lnc 3"), 2, "1 to 2 cores"},
        Case{kernel("scaled", "--chip trn9"), 2, "trn2"}}) {
    const Finished run = headway("kernel run " + c.arguments);
    EXPECT_EQ(run.code, c.code) << c.arguments << run.output;
    EXPECT_TRUE(run.says(c.words)) << c.arguments << run.output;
  }
}

// --- Without the package ---

TEST(PythonProcess, NamesAPythonThatIsMissing) {
  const Setting python("HEADWAY_PYTHON", "/nowhere/python");
  for (const char* command : {"run", "time", "profile", "check"}) {
    const Finished run = headway(std::string("kernel ") + command + " " + kernel("scaled"));
    EXPECT_EQ(run.code, 2) << run.output;
    EXPECT_TRUE(run.says("/nowhere/python: can't be started")) << run.output;
    EXPECT_TRUE(run.says("Set HEADWAY_PYTHON")) << run.output;
  }
}

TEST(PythonProcess, RefusesWhatIsntTheWorker) {
  struct Case {
    const char *python, *words;
  };
  for (const Case& c : {Case{"/bin/true", "answered what isn't the worker's protocol"},
                        Case{"/bin/false", "ended with code 1 before it answered"},
                        Case{"/bin/echo", "answered what isn't the worker's protocol"}}) {
    const Setting python("HEADWAY_PYTHON", c.python);
    const Finished run = headway("kernel run " + kernel("scaled"));
    EXPECT_EQ(run.code, 2) << run.output;
    EXPECT_TRUE(run.says(c.words)) << run.output;
  }
}

// A worker of our own that answers `answer`.
class FakeWorker {
 public:
  explicit FakeWorker(const std::string& answer) : path_(temporary("worker.sh")) {
    FileSystem::real().write_atomically(path_, "#!/bin/sh\ncat >/dev/null\nprintf '" + answer + "'\n");
    fs::permissions(path_, fs::perms::owner_all);
    setting_.emplace("HEADWAY_PYTHON", path_.string());
  }
  ~FakeWorker() { fs::remove(path_); }

 private:
  fs::path path_;
  std::optional<Setting> setting_;
};

TEST(PythonProcess, DoesntTrustPrograms) {
  struct Case {
    const char *answer, *words;
    int code;
  };
  for (const Case& c :
       {Case{R"({"ok": true, "programs": [100]}\n)", "ended in the middle of a program", 5},
        Case{R"({"ok": true, "programs": [8]}\n12345678)", "kernels.py:scaled", 2},
        Case{R"({"ok": true, "programs": [18446744073709551615]}\n12345678)",
             "ended in the middle of a program", 5},
        Case{R"({"ok": true, "programs": ["x"]}\n)", "protocol", 2}, Case{R"({"ok": true}\n)", "protocol", 2},
        Case{R"({"ok": true, "programs": []}\n)", "protocol", 2}, Case{R"({"ok": 3}\n)", "protocol", 2},
        Case{R"({"ok": false, "error": 3}\n)", "protocol", 2}}) {
    const FakeWorker worker(c.answer);
    const Finished run = headway("kernel run " + kernel("scaled"));
    EXPECT_EQ(run.code, c.code) << c.answer << run.output;
    EXPECT_TRUE(run.says(c.words)) << c.answer << run.output;
  }
}

TEST(PythonProcess, OptionsOfPythonDontFitKernelsOfCpp) {
  for (const char* arguments :
       {"check softmax --strict", "check softmax --reference x.py:f", "run softmax --lnc 2"}) {
    const Finished run = headway(std::string("kernel ") + arguments);
    EXPECT_EQ(run.code, 2) << run.output;
  }
}

}  // namespace
}  // namespace headway::test
