#include "base/progress.h"

#include <gtest/gtest.h>

namespace headway {
namespace {

TEST(Progress, DurationsAreRoundedToWhatMatters) {
  EXPECT_EQ(duration_text(0), "0 s");
  EXPECT_EQ(duration_text(-3), "0 s");
  EXPECT_EQ(duration_text(3.4), "3 s");
  EXPECT_EQ(duration_text(59.4), "59 s");
  EXPECT_EQ(duration_text(59.6), "1 min 00 s");
  EXPECT_EQ(duration_text(125), "2 min 05 s");
  EXPECT_EQ(duration_text(3599.9), "1 h 00 min");
  EXPECT_EQ(duration_text(4320), "1 h 12 min");
  EXPECT_EQ(duration_text(100 * 3600 + 59), "100 h 00 min");
}

TEST(Progress, DigitsAreGroupedByThree) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-100), "-100");
  EXPECT_EQ(grouped(-59600000), "-59,600,000");
}

TEST(Progress, WritesToStandardErrorUnlessQuiet) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress("training", 2000);
    progress.update(0);
    progress.finish("loss 3.2");
    progress.finish("twice");
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("training 0/2,000"), std::string::npos) << text;
  EXPECT_NE(text.find("training: done in 0 s, loss 3.2"), std::string::npos) << text;
  EXPECT_EQ(text.find("twice"), std::string::npos) << text;

  ::testing::internal::CaptureStderr();
  {
    Progress progress("training", 2000, false);
    progress.update(5);
    progress.finish();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace headway
