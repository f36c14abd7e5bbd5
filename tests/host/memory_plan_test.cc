// Placement of blocks: never two alive in one place, and not much more than what is alive at once.
#include "host/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace headway::host {
namespace {

TEST(MemoryPlan, BlocksAliveTogetherNeverOverlap) {
  Random random(9);
  for (int round = 0; round < 200; ++round) {
    std::vector<Block> blocks(1 + random.below(60));
    const int steps = 40;
    for (Block& block : blocks) {
      block.bytes = static_cast<std::int64_t>(1 + random.below(5000));
      block.first = static_cast<int>(random.below(steps));
      block.last =
          block.first + static_cast<int>(random.below(static_cast<std::uint64_t>(steps - block.first)));
    }
    const std::int64_t size = place(blocks);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(blocks[i].offset % 64, 0);
      EXPECT_LE(blocks[i].offset + blocks[i].bytes, size);
      for (std::size_t j = 0; j < i; ++j) {
        const Block &a = blocks[i], &b = blocks[j];
        if (a.last < b.first || b.last < a.first) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
      }
    }
    // At least the peak of what is alive, at most everything side by side.
    std::int64_t all = 0, peak = 0;
    for (const Block& block : blocks) all += (block.bytes + 63) / 64 * 64;
    for (int step = 0; step < steps; ++step) {
      std::int64_t alive = 0;
      for (const Block& block : blocks)
        if (block.first <= step && step <= block.last) alive += block.bytes;
      peak = std::max(peak, alive);
    }
    EXPECT_GE(size, peak);
    EXPECT_LE(size, all);
  }
}

TEST(MemoryPlan, ReusesWhatIsFree) {
  std::vector<Block> chain;
  for (int i = 0; i < 10; ++i) chain.push_back({6400, i, i + 1, 0});
  EXPECT_EQ(place(chain), 2 * 6400);
}

}  // namespace
}  // namespace headway::host
