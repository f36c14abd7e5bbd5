#include "base/threads.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <stdexcept>

#include "base/error.h"

namespace headway {
namespace {

using Ranges = std::vector<std::array<std::int64_t, 2>>;  // by thread; {0, 0} where a thread had nothing

Ranges ranges_of(ThreadPool& pool, std::int64_t count, std::int64_t grain) {
  Ranges ranges(static_cast<std::size_t>(pool.size()), {0, 0});
  std::atomic<int> calls = 0;
  pool.for_range(
      count,
      [&](std::int64_t begin, std::int64_t end, int thread) {
        ++calls;
        ranges[static_cast<std::size_t>(thread)] = {begin, end};
      },
      grain);
  EXPECT_LE(calls, pool.size());
  return ranges;
}

TEST(ThreadPool, RangesCoverExactlyAndAlwaysAlike) {
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads, false);
    EXPECT_EQ(pool.size(), threads);
    for (std::int64_t count : {0, 1, 2, 3, 7, 16, 17, 100, 1001}) {
      for (std::int64_t grain : {1, 2, 16}) {
        SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(count) + " by " +
                     std::to_string(grain));
        const Ranges ranges = ranges_of(pool, count, grain);
        std::int64_t next = 0;
        for (const auto& [begin, end] : ranges) {
          if (begin == end) continue;
          EXPECT_EQ(begin, next);
          EXPECT_EQ(begin % grain, 0);
          EXPECT_TRUE(end % grain == 0 || end == count);
          next = end;
        }
        EXPECT_EQ(next, count);
        for (int again = 0; again < 3; ++again) EXPECT_EQ(ranges_of(pool, count, grain), ranges);
      }
    }
  }
}

TEST(ThreadPool, SharesOutEvenly) {
  ThreadPool pool(3, false);
  for (const auto& [begin, end] : ranges_of(pool, 100, 1))
    EXPECT_NEAR(static_cast<double>(end - begin), 100 / 3.0, 1);
}

TEST(ThreadPool, RunCallsEveryThreadOnce) {
  ThreadPool pool(4, false);
  for (int round = 0; round < 200; ++round) {
    std::array<std::atomic<int>, 4> calls{};
    pool.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
    for (const auto& count : calls) ASSERT_EQ(count, 1) << "round " << round;
  }
}

TEST(ThreadPool, ExceptionsReachTheCallerAndThePoolGoesOn) {
  ThreadPool pool(3, false);
  for (int guilty : {0, 1, 2}) {
    try {
      pool.run([&](int thread) {
        if (thread == guilty) throw InputError("", "thread " + std::to_string(thread));
      });
      ADD_FAILURE() << "the exception of thread " << guilty << " was swallowed";
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()), "thread " + std::to_string(guilty));
    }
    std::atomic<int> calls = 0;
    pool.run([&](int) { ++calls; });
    EXPECT_EQ(calls, 3);
  }
  EXPECT_THROW(pool.run([](int) { throw std::runtime_error("all of them"); }), std::runtime_error);
  pool.run([](int) {});
}

TEST(ThreadPool, NeedsAThread) { EXPECT_THROW(ThreadPool(0), Bug); }

TEST(ThreadPool, PinningIsOverWithThePool) {
  const int before = ThreadPool::available();
  { ThreadPool pool(before, true); }
  EXPECT_EQ(ThreadPool::available(), before);
  ThreadPool pinned(before, true);
  EXPECT_EQ(ThreadPool::available(), before) << "what the process may use, wherever its threads are now";
}

}  // namespace
}  // namespace headway
