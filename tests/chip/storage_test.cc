// Storage against a vector of bools.
#include "chip/storage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"

namespace headway::chip {
namespace {

std::int64_t first_unwritten(const std::vector<bool>& written, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i)
    if (!written[static_cast<std::size_t>(i)]) return i;
  return end;
}

TEST(Storage, KnowsWhichBytesWereWritten) {
  std::mt19937 random(3);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (const auto& [rows, row_bytes] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1},
                                                          {1, 63},
                                                          {1, 64},
                                                          {1, 65},
                                                          {128, 3},
                                                          {4, 100},
                                                          {1, 3000},
                                                          {2, 1 << 19},
                                                          {1, (1 << 20) + 7}}) {
    for (int round = 0; round < 20; ++round) {
      Storage storage(rows, row_bytes);
      const std::int64_t bytes = rows * row_bytes;
      ASSERT_EQ(storage.bytes(), bytes);
      ASSERT_EQ(storage.rows(), rows);
      std::vector<bool> written(static_cast<std::size_t>(bytes));
      for (int step = 0; step < 30; ++step) {
        const std::int64_t longest = step % 3 == 0 ? bytes : std::min<std::int64_t>(bytes, 70);
        const std::int64_t begin = draw(0, bytes - 1), end = std::min(bytes, begin + draw(0, longest));
        if (draw(0, 2) != 0) {
          storage.mark(begin, end);
          std::fill(written.begin() + begin, written.begin() + end, true);
        }
        if (draw(0, 40) == 0) {
          storage.forget();
          std::fill(written.begin(), written.end(), false);
        }
        const std::int64_t from = draw(0, bytes), to = std::min(bytes, from + draw(0, longest));
        const std::int64_t expected = first_unwritten(written, from, to);
        ASSERT_EQ(storage.first_unwritten(from, to), expected) << from << " to " << to << " of " << bytes;
        ASSERT_EQ(storage.written(from, to), expected == to);
      }
      ASSERT_EQ(storage.all_written(), first_unwritten(written, 0, bytes) == bytes);
    }
  }
}

TEST(Storage, SmallPiecesMakeTheWhole) {
  Storage storage(3, 50);
  for (std::int64_t begin = 0; begin < 150; begin += 10) {
    EXPECT_FALSE(storage.all_written());
    storage.mark(begin, begin + 10);
    storage.mark(begin, begin + 5);  // again: counted once
  }
  EXPECT_TRUE(storage.all_written());
  EXPECT_EQ(storage.first_unwritten(0, 150), 150);
  storage.forget();
  EXPECT_FALSE(storage.all_written());
  EXPECT_EQ(storage.first_unwritten(20, 30), 20);
  storage.mark(20, 30);
  EXPECT_EQ(storage.first_unwritten(20, 31), 30);
  EXPECT_EQ(storage.first_unwritten(0, 30), 0);
  storage.mark_all();
  EXPECT_TRUE(storage.all_written());
}

TEST(Storage, KeepsItsBytes) {
  Storage storage(4, 16);
  std::memset(storage.data(), 7, 64);
  storage.mark(0, 64);
  storage.forget();
  EXPECT_EQ(static_cast<int>(storage.data()[63]),
            7);  // forgetting costs nothing, the bytes stay where they are
  const std::byte* before = storage.data();
  storage.own();
  EXPECT_EQ(storage.data(), before);
}

TEST(Storage, CopiesBorrowedMemoryBeforeTheFirstWrite) {
  for (const std::size_t bytes : {std::size_t{40}, std::size_t{3} << 20}) {
    std::vector<std::byte> mine(bytes, std::byte{5});
    Storage storage(mine.data(), static_cast<std::int64_t>(bytes));
    EXPECT_TRUE(storage.all_written());
    EXPECT_EQ(storage.data(), mine.data());
    EXPECT_EQ(storage.rows(), 1);
    EXPECT_THROW(storage.forget(), Bug);
    storage.own();
    ASSERT_NE(storage.data(), mine.data());
    EXPECT_TRUE(storage.all_written());
    EXPECT_EQ(std::memcmp(storage.data(), mine.data(), bytes), 0);
    storage.data()[bytes - 1] = std::byte{6};
    EXPECT_EQ(mine[bytes - 1], std::byte{5});
    const std::byte* own = storage.data();
    storage.own();
    EXPECT_EQ(storage.data(), own);
  }
}

// A region is 32 rows x 2 KiB: what was written there last says who to ask.
TEST(Storage, NamesTheLastWriterOfARegion) {
  Storage tile(128, 6000);
  const auto at = [](std::int64_t row, std::int64_t byte) { return row * 6000 + byte; };
  EXPECT_EQ(tile.last_writer(0, at(127, 6000)), 0u);
  tile.set_writer(at(0, 0), at(0, 100), 5);
  tile.set_writer(at(40, 4096), at(40, 4100), 9);
  tile.set_writer(at(3, 2047), at(3, 2049), 7);  // across two regions
  EXPECT_EQ(tile.last_writer(at(31, 0), at(31, 10)), 7u);
  EXPECT_EQ(tile.last_writer(at(31, 2048), at(31, 2050)), 7u);
  EXPECT_EQ(tile.last_writer(at(31, 4096), at(31, 4100)), 0u);
  EXPECT_EQ(tile.last_writer(at(63, 5999), at(64, 0)), 9u);
  EXPECT_EQ(tile.last_writer(at(64, 0), at(65, 0)), 0u);
  EXPECT_EQ(tile.last_writer(at(0, 0), at(128, 0)), 9u);  // the latest of all
  EXPECT_EQ(tile.last_writer(7, 7), 0u);
  tile.set_writer(at(0, 0), at(0, 0), 50);  // nothing
  EXPECT_EQ(tile.last_writer(0, 100), 7u);
  tile.forget();
  EXPECT_EQ(tile.last_writer(0, at(127, 6000)), 0u);

  Storage hbm(1, 1 << 20);
  hbm.set_writer(65535, 65537, 3);
  EXPECT_EQ(hbm.last_writer(0, 1), 3u);
  EXPECT_EQ(hbm.last_writer(131071, 131072), 3u);
  EXPECT_EQ(hbm.last_writer(131072, 131073), 0u);
}

}  // namespace
}  // namespace headway::chip
