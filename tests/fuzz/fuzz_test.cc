// A short fixed series of what chip_fuzz does for as long as it is let.
#include <gtest/gtest.h>

#include "fuzz/trial.h"

namespace headway::fuzz {
namespace {

constexpr std::uint64_t kSeed = 20261130;

TEST(ChipFuzz, RandomProgramsEndInResultsOrErrors) {
  Tally tally;
  for (std::int64_t n = 0; n < 400; ++n) {
    const std::uint64_t seed = trial_seed(kSeed, n);
    ASSERT_NO_THROW(try_program(seed, tally)) << "chip_fuzz programs --trial " << seed;
  }
  // The generator reaches what it is for.
  EXPECT_GT(tally.finished, 40);
  EXPECT_GT(tally.stopped, 10);
  EXPECT_GT(tally.refused, 40);
  EXPECT_GT(tally.rules.size(), 30u);
  EXPECT_GT(tally.executed.size(), 40u);
}

TEST(ChipFuzz, DamagedFilesAreRefusedOrPrograms) {
  Tally tally;
  for (std::int64_t n = 0; n < 400; ++n) {
    const std::uint64_t seed = trial_seed(kSeed, n);
    ASSERT_NO_THROW(try_bytes(seed, tally)) << "chip_fuzz bytes --trial " << seed;
  }
  EXPECT_GT(tally.parsed, 20);
  EXPECT_GT(tally.refused, 200);
}

}  // namespace
}  // namespace headway::fuzz
