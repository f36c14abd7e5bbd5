// headway chip validate from outside, on small tables.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "base/files.h"
#include "cli/program.h"

namespace headway {
namespace {

using test::Finished;
using test::headway;

const std::filesystem::path kMeasured = std::filesystem::path(HEADWAY_ROOT) / "chips/measured";
const std::string kKernelHeads = "id,source,chip,kernel,shape,dtype,latency_us,notes\n";

const std::string kPythonHeads = "id,where,file,function,arguments\n";

class ChipValidate : public testing::Test {
 protected:
  ChipValidate() {
    std::string name = (std::filesystem::temp_directory_path() / "headway-validate-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    root_ = name;
  }
  ~ChipValidate() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  void write(const std::string& name, const std::string& text) {
    FileSystem::real().write_atomically(root_ / name, text);
  }
  Finished validate(const std::string& arguments) const {
    return headway("chip validate --measured '" + root_.string() + "' " + arguments);
  }
  std::filesystem::path root_;
};

TEST_F(ChipValidate, PrintsInstructionsAndMarksMisses) {
  write("instructions.csv",
        "id,engine,opcode,kind,dtype_in,dtype_out,source,destination,free_size,state,median_ns,n\n"
        "right,scalar,copy,duration,fp32,fp32,PSUM,SBUF,512,,585,111\n"
        "wrong,scalar,copy,duration,fp32,fp32,PSUM,SBUF,512,,1170,111\n");
  const Finished finished = validate("--only instructions --json");
  ASSERT_EQ(finished.code, 0) << finished.output;
  const nlohmann::json instructions = finished.json().at("instructions");
  ASSERT_EQ(instructions.at("rows").size(), 2u);
  EXPECT_LT(std::abs(instructions.at("rows")[0].at("error_percent").get<double>()), 10);
  EXPECT_NEAR(instructions.at("rows")[1].at("error_percent").get<double>(), -50, 5);
  EXPECT_EQ(instructions.at("over_10_percent"), 1);
  EXPECT_TRUE(finished.says("1 of 2 over 10%")) << finished.output;
}

// One launch overhead a source, found from its rows; a source that is left out gets that of the others.
TEST_F(ChipValidate, FitsALaunchForEachSource) {
  write("shares.csv", "id,tensor_active_percent,hbm_percent\n");
  write("kernels.csv",
        kKernelHeads + "gelu-fused-128,a,trn2,,,fp32,1000,\nvecadd-free2,b,trn2,,,fp32,2000,\n");
  const Finished finished = validate("--only kernels --json");
  ASSERT_EQ(finished.code, 0) << finished.output;
  const nlohmann::json kernels = finished.json().at("kernels");
  const nlohmann::json &gelu = kernels.at("rows")[0], &add = kernels.at("rows")[1];
  ASSERT_EQ(gelu.at("id"), "gelu-fused-128");
  // A single row of a source is met exactly by its launch ...
  EXPECT_NEAR(gelu.at("predicted_us"), 1000, 1e-6);
  EXPECT_NEAR(add.at("predicted_us"), 2000, 1e-6);
  EXPECT_NEAR(kernels.at("mape"), 0, 1e-6);
  const double launch = kernels.at("launch_overhead_us").at("trainium-kernel-fusion");
  EXPECT_NEAR(launch, 1000 - gelu.at("device_us").get<double>(), 1e-6);
  const double other = kernels.at("launch_overhead_us").at("asst4-trainium2");
  // ... and left out it gets the other's, for whom one row says nothing about the overhead of copies.
  EXPECT_NEAR(gelu.at("left_out_error_percent"),
              100 * ((gelu.at("device_us").get<double>() + other) / 1000 - 1), 1e-6);
  EXPECT_NEAR(add.at("left_out_error_percent"),
              100 * ((add.at("device_us").get<double>() + launch) / 2000 - 1), 1e-6);
  EXPECT_EQ(finished.json().at("mape"), kernels.at("mape"));
}

TEST_F(ChipValidate, MarksLargeMissesPlainly) {
  write("shares.csv", "id,tensor_active_percent,hbm_percent\n");
  write("kernels.csv", kKernelHeads + "silu-v1,a,trn2,,,fp32,3,\n");
  const Finished finished = validate("--only kernels --quick --json");
  ASSERT_EQ(finished.code, 0) << finished.output;
  EXPECT_TRUE(finished.says("!! over 25%")) << finished.output;
  EXPECT_TRUE(finished.says("1 of 1 over 15%, 1 over 25%")) << finished.output;
  EXPECT_EQ(finished.json().at("kernels").at("over_25_percent"), 1);
  EXPECT_FALSE(finished.json().at("kernels").contains("left_out_mape"));
}

TEST_F(ChipValidate, RunsTrainium1WithItsOwnFile) {
  write("documented.csv",
        kKernelHeads + "exp-128x128,a,trn2,,,bf16,5.3,\ntrn1-mamba-v1-512x256,b,trn1,,,fp32,172.93,\n");
  const Finished finished = validate("--only documented --only trn1 --json");
  ASSERT_EQ(finished.code, 0) << finished.output;
  ASSERT_EQ(finished.json().at("documented").at("rows").size(), 1u);
  EXPECT_EQ(finished.json().at("documented").at("rows")[0].at("id"), "exp-128x128");
  ASSERT_EQ(finished.json().at("trn1").at("rows").size(), 1u);
  EXPECT_EQ(finished.json().at("trn1").at("rows")[0].at("id"), "trn1-mamba-v1-512x256");
  write("python.csv", kPythonHeads);
  const Finished alone = validate("--chip trn1 --json");
  ASSERT_EQ(alone.code, 0) << alone.output;
  EXPECT_EQ(alone.json().at("trn1"), finished.json().at("trn1"));
  EXPECT_FALSE(alone.json().contains("kernels"));
}

TEST_F(ChipValidate, ReplaysRecordedTimelines) {
  std::filesystem::create_directories(root_ / "profiles");
  for (const char* table : {"instructions", "dma", "pe_clock"}) {
    const std::string name = std::string("fused_bf16_s512.") + table + ".csv.gz";
    std::filesystem::copy_file(kMeasured / "profiles" / name, root_ / "profiles" / name);
  }
  const Finished finished = validate("--only profiles --json");
  ASSERT_EQ(finished.code, 0) << finished.output;
  const nlohmann::json profiles = finished.json().at("profiles");
  ASSERT_EQ(profiles.size(), 1u);
  EXPECT_EQ(profiles[0].at("name"), "fused_bf16_s512");
  EXPECT_GT(profiles[0].at("instructions"), 100);
  EXPECT_EQ(profiles[0].at("transfers"), 6);
  for (const char* engine : {"tensor", "vector", "scalar", "gpsimd", "sync", "dma"})
    EXPECT_TRUE(profiles[0].at("busy").contains(engine)) << engine;

  // Cut off, it is refused by name.
  const std::filesystem::path file = root_ / "profiles/fused_bf16_s512.dma.csv.gz";
  const std::string whole = read_file(file);
  write("profiles/fused_bf16_s512.dma.csv.gz", whole.substr(0, whole.size() / 2));
  const Finished cut = validate("--only profiles");
  EXPECT_EQ(cut.code, 2) << cut.output;
  EXPECT_TRUE(cut.says("fused_bf16_s512.dma.csv")) << cut.output;
}

TEST_F(ChipValidate, RefusesBadTables) {
  const auto refuses = [&](const std::string& rows, const std::string& words) {
    write("kernels.csv", kKernelHeads + rows);
    const Finished finished = validate("--only kernels");
    EXPECT_EQ(finished.code, 2) << finished.output;
    EXPECT_TRUE(finished.says(words)) << words << ": " << finished.output;
  };
  refuses("silu-v9,a,trn2,,,fp32,3,\n", "silu-v9");
  refuses("silu-v1,a,trn2,,,fp32,-3,\n", "kernels.csv:2");
  refuses("silu-v1,a,trn2,,,fp32,fast,\n", "kernels.csv:2");
  refuses("silu-v1,a,trn2,,,fp32,3,\nsilu-v1,a,trn2,,,fp32,3,\n", "kernels.csv:3");
  refuses("silu-v1,a,trn1,,,fp32,3,\n", "silu-v1");
  refuses("silu-v1,a,trn2,,,fp32,3", "cut off");
  const Finished chip = validate("--chip trn3");
  EXPECT_EQ(chip.code, 2) << chip.output;
  EXPECT_TRUE(chip.says("no measurements of trn3")) << chip.output;
  EXPECT_NE(validate("--only nonsense").code, 0);
}

// --- Kernels in Python ---

// $HEADWAY_PYTHON for the length of a test.
class Interpreter {
 public:
  explicit Interpreter(const char* path) {
    if (const char* before = std::getenv("HEADWAY_PYTHON")) before_ = before;
    ::setenv("HEADWAY_PYTHON", path, 1);
  }
  ~Interpreter() {
    if (before_)
      ::setenv("HEADWAY_PYTHON", before_->c_str(), 1);
    else
      ::unsetenv("HEADWAY_PYTHON");
  }

 private:
  std::optional<std::string> before_;
};

// What the kernels of these tests were measured as; figures that they are near.
const std::string kExponentials =
    kKernelHeads + "exp-4x4096,a,trn2,,,bf16,10.3,\nexp-128x128,a,trn2,,,bf16,5.3,\n";

class ChipValidatePython : public ChipValidate {
 protected:
  void SetUp() override {
#ifdef HEADWAY_TEST_PYTHON
    ::setenv("HEADWAY_PYTHON", HEADWAY_TEST_PYTHON, 0);
#endif
    write("kernels.csv", kKernelHeads);
    write("documented.csv", kExponentials);
    write("python.csv", kPythonHeads +
                            "exp-128x128,project,examples/nki/measured.py,exponential,"
                            "\"x=bf16[128,128] sync=false\"\n");
    static const Finished probe = validate("--only python --json");
    ASSERT_EQ(probe.code, 0) << probe.output;
    if (probe.json().at("python").at("trn2").at("project").contains("skipped"))
      GTEST_SKIP() << "no Python with the package headway-nki: " << probe.output;
  }
};

// The same kernel, written twice: in C++ and as a kernel author would. Every line of the repository's table.
TEST_F(ChipValidatePython, AgreesWithTheSameKernelsInCpp) {
  const Finished finished = headway("chip validate --only python --json");
  ASSERT_EQ(finished.code, 0) << finished.output;
  EXPECT_TRUE(finished.output.find("Chip trn2 (") != std::string::npos) << finished.output;
  const nlohmann::json json = finished.json(), project = json.at("python").at("trn2").at("project");
  const std::string label = "trn2 (" + json.at("chip_hash").get<std::string>().substr(0, 8) + ")";
  EXPECT_TRUE(finished.says("Kernels in Python on " + label)) << finished.output;
  EXPECT_GE(project.at("rows").size(), 7u);
  EXPECT_EQ(project.at("recorded"), project.at("rows").size()) << finished.output;
  for (const nlohmann::json& row : project.at("rows")) {
    ASSERT_TRUE(row.contains("error_percent")) << row;
    EXPECT_NEAR(row.at("error_percent").get<double>(), row.at("cpp_error_percent").get<double>(), 10) << row;
    EXPECT_NEAR(row.at("error_percent").get<double>(),
                100 * (row.at("predicted_us").get<double>() / row.at("measured_us").get<double>() - 1), 1e-6);
    EXPECT_GT(row.at("instructions"), 2);
  }
  // Published ones are in repositories of their own.
  EXPECT_GT(json.at("python").at("trn2").at("published").at("count"), 5);
  EXPECT_TRUE(finished.says("--checkouts names no folder")) << finished.output;
}

TEST_F(ChipValidatePython, NamesWhatFails) {
  std::filesystem::create_directories(root_ / "owner+name/kernels");
  write("owner+name/kernels/wrong.py",
        "import nki\n\n@nki.jit\ndef kernel(x):\n    raise KeyError('absent')\n");
  const std::string published = "owner+name/kernels/", argument = ",\"x=bf16[4,4096]\"\n";
  write("python.csv", kPythonHeads + "exp-4x4096,project,examples/nki/measured.py,exponential" + argument +
                          "exp-4x4096,project,examples/nki/measured.py,exponentiel" + argument +
                          "exp-4x4096,checkouts," + published + "wrong.py,kernel" + argument +
                          "exp-4x4096,checkouts," + published + "absent.py,kernel" + argument);
  const Finished finished = validate("--only python --json --checkouts '" + root_.string() + "'");
  ASSERT_EQ(finished.code, 0) << finished.output;
  const nlohmann::json python = finished.json().at("python").at("trn2");
  EXPECT_EQ(python.at("project").at("recorded"), 1);
  EXPECT_NEAR(python.at("project").at("rows")[0].at("error_percent"), -2, 8);
  EXPECT_TRUE(finished.says("did you mean 'exponential'?")) << finished.output;
  EXPECT_EQ(python.at("published").at("recorded"), 0);
  EXPECT_TRUE(finished.says("could not be recorded: ")) << finished.output;
  EXPECT_TRUE(finished.says("wrong.py:5: KeyError: 'absent'")) << finished.output;
  EXPECT_TRUE(finished.says("Clone https://github.com/owner/name into ")) << finished.output;
  for (const nlohmann::json& row : python.at("published").at("rows"))
    EXPECT_FALSE(row.contains("error_percent"));
}

TEST_F(ChipValidate, SaysWhichKernelsInPythonAreSkipped) {
  write("kernels.csv", kKernelHeads);
  write("documented.csv", kExponentials);
  write("python.csv",
        kPythonHeads + "exp-4x4096,project,examples/nki/measured.py,exponential,\"x=bf16[4,4096]\"\n");
  for (const auto& [python, words] : {std::pair("/nowhere/python", "/nowhere/python: can't be started"),
                                      std::pair("/bin/false", "/bin/false: ended with code 1")}) {
    const Interpreter interpreter(python);
    const Finished finished = validate("--only python --json");
    ASSERT_EQ(finished.code, 0) << finished.output;
    EXPECT_TRUE(finished.says(std::string("1 skipped. ") + words)) << finished.output;
    EXPECT_TRUE(finished.says("Set HEADWAY_PYTHON")) << finished.output;
    EXPECT_EQ(finished.json().at("python").at("trn2").at("project").at("count"), 1);
  }
}

TEST_F(ChipValidate, RefusesBadTablesOfKernelsInPython) {
  write("kernels.csv", kKernelHeads);
  write("documented.csv", kExponentials);
  const auto refuses = [&](const std::string& row, const std::string& words) {
    write("python.csv", kPythonHeads + row);
    const Finished finished = validate("--only python");
    EXPECT_EQ(finished.code, 2) << finished.output;
    EXPECT_TRUE(finished.says(words)) << words << ": " << finished.output;
  };
  const std::string good = "exp-4x4096,project,a.py,f,\"x=bf16[4,4096]\"\n";
  refuses(good + good, "python.csv:3");
  refuses("exp-4x4097,project,a.py,f,\n", "exp-4x4097");
  refuses("silu-v1,project,a.py,f,\n", "silu-v1 has no figure");
  refuses("gelu-base-128,project,a.py,f,\n", "the sum of 2 kernels");
  refuses("exp-4x4096,elsewhere,a.py,f,\n", "where is 'elsewhere'");
  refuses("exp-4x4096,checkouts,a.py,f,\n", "OWNER+NAME/");
  refuses("exp-4x4096,project,/a.py,f,\n", "relative path");
  refuses("exp-4x4096,project,a.cc,f,\n", "relative path");
  refuses("exp-4x4096,project,a.py,,\n", "relative path");
  refuses("exp-4x4096,project,a.py,f,x\n", "isn't NAME=VALUE");
}

}  // namespace
}  // namespace headway
