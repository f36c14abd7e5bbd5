// Every measured instruction against the model: chips/measured/instructions.csv.
#include "chip/validate_instructions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "chip/chip_text.h"
#include "chip/spec.h"

namespace headway::chip {
namespace {

namespace fs = std::filesystem;

std::string table() { return read_file(fs::path(HEADWAY_ROOT) / "chips/measured/instructions.csv"); }

TEST(MeasuredInstructions, EachIsPredicted) {
  const Spec spec = Spec::load("trn2");
  const Timing timing(spec);
  double sum = 0;
  std::set<std::string> ids;
  const std::vector<InstructionRow> rows = validate_instructions(timing, table(), "instructions.csv");
  for (const InstructionRow& row : rows) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_LE(std::abs(row.predicted - row.measured), std::max(0.1 * row.measured, 5.0))
        << row.id << ": " << row.predicted << " ns, measured " << row.measured;
    sum += std::abs(row.error());
    printf("%-22s %8.1f ns, measured %6.0f  %+5.1f%%\n", row.id.c_str(), row.predicted, row.measured,
           100 * row.error());
  }
  ASSERT_EQ(rows.size(), 43u);
  const double mean = sum / static_cast<double>(rows.size());
  printf("mean error %.2f%%\n", 100 * mean);
  EXPECT_LE(mean, 0.05);
}

TEST(MeasuredInstructions, AreThoseThatWereGiven) {
  const fs::path given = fs::path(HEADWAY_ROOT) / "../shared/measured/instructions.csv";
  if (!fs::exists(given)) GTEST_SKIP() << given << " isn't there";
  EXPECT_EQ(read_file(given), table());
}

// Other constants give other predictions: nothing is looked up in the table.
TEST(MeasuredInstructions, FollowTheConstants) {
  const auto predicted = [](const std::string& text, const std::string& id) {
    const Spec spec = Spec::of(ChipFile::parse(text, "changed.toml"));
    for (const InstructionRow& row : validate_instructions(Timing(spec), table(), "instructions.csv"))
      if (row.id == id) return row.predicted;
    return 0.0;
  };
  const std::string plain = chip_text("trn2");
  const std::string entry =
      R"( = { value = 258e-9, unit = "s", source = "a change of 100 ns", tag = "assumed" })";
  const Changed changed("trn2", "vector_engine", "overhead", "overhead" + entry);
  EXPECT_NEAR(predicted(changed.text, "ve-copy-512") - predicted(plain, "ve-copy-512"), 100, 0.01);
  EXPECT_NEAR(predicted(changed.text, "sc-copy-512"), predicted(plain, "sc-copy-512"), 1e-9);
}

class BrokenTable : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BrokenTable, IsAnErrorThatNamesTheLine) {
  const auto& [line, words] = GetParam();
  const std::string text = table(), head = text.substr(0, text.find('\n') + 1);
  const Spec spec = Spec::load("trn2");
  const Timing timing(spec);
  try {
    validate_instructions(timing, head + line + "\n", "broken.csv");
    FAIL() << line;
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("broken.csv:2"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenTable,
    ::testing::Values(
        std::pair{"a,vector,copy,duration,fp32,fp32,PSUM,SBUF,512,,-3,1", "positive"},
        std::pair{"a,vector,copy,duration,fp64,fp32,PSUM,SBUF,512,,3,1", "fp32 or bf16"},
        std::pair{"a,vector,copy,duration,fp32,fp32,DRAM,SBUF,512,,3,1", "SBUF or PSUM"},
        std::pair{"a,vector,sort,duration,fp32,fp32,SBUF,SBUF,512,,3,1", "reciprocal"},
        std::pair{"a,scalar,sort,duration,fp32,fp32,SBUF,SBUF,512,,3,1", "table load"},
        std::pair{"a,vector,copy,duration,fp32,fp32,PSUM,SBUF,0,,3,1", "free_size"},
        std::pair{"a,vector,copy,duration,fp32,fp32,PSUM,SBUF,60000,,3,1", "legal instruction"},
        std::pair{"a,tensor,matmul,interval,bf16,fp32,SBUF,PSUM,512,hot,3,1", "warm, cold"},
        std::pair{"a,tensor,matmul,guess,bf16,fp32,SBUF,PSUM,512,warm,3,1", "interval or duration"},
        std::pair{"a,tensor,convolve,interval,bf16,fp32,SBUF,PSUM,512,warm,3,1", "matmul or transpose"},
        std::pair{"a,dma,packet 3 MB,duration,,,,,,,3,1", "packet N B"},
        std::pair{"a,dma,parcel 3 B,duration,,,,,,,3,1", "packet N B"},
        std::pair{"a,sync,dma trigger magic DGE,duration,,,,,,,3,1", "hardware DGE"},
        std::pair{"a,dma,satisfied semaphore check,duration,,,,,,,3,1", "tensor"},
        std::pair{"a,sync,add,duration,,,,,,,3,1", "scalar, vector, tensor or dma"}));

}  // namespace
}  // namespace headway::chip
