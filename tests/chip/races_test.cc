#include "chip/races.h"

#include "chip/cores.h"
#include "chip/dma_engine.h"
#include "chip/launch.h"
#include "chip/sync_engine.h"

namespace headway::chip {
namespace {

// Two cores, a shared tensor and a tile each.
struct Two {
  Launch l;
  std::vector<Tile> shared, tiles;

  explicit Two(Diagnostics::Mode mode = Diagnostics::Mode::stop, const Shape& shape = {8, 16})
      : l(2, 2, 1, mode) {
    for (int c = 0; c < 2; ++c) {
      shared.push_back(l.nki(c).shared_hbm(DType::f32, shape));
      tiles.push_back(l.nki(c).sbuf(DType::f32, shape));
      l.fill(tiles.back());
    }
    l.fill(shared[0]);
  }
};

TEST(Races, AReadOfWhatTheOtherCoreWrote) {
  Two t;
  dma_copy(t.shared[0](ds(2, 4)), t.tiles[0](ds(2, 4)));
  dma_copy(t.tiles[1](ds(5, 3)), t.shared[1](ds(5, 3)));
  const std::string text = error_of([&] { t.l.run(); });
  EXPECT_NE(text.find("[race]"), std::string::npos) << text;
  EXPECT_NE(text.find("dma_copy, src: core 1 reads bytes within 320 to 383 of 't0', which core 0 writes in "
                      "dma_copy (dst) at "
                      "races_test.cc:"),
            std::string::npos)
      << text;
}

TEST(Races, AWriteOfWhatTheOtherCoreRead) {
  Two t;
  dma_copy(t.tiles[0], t.shared[0]);
  dma_copy(t.shared[1](ds(7, 1)), t.tiles[1](ds(7, 1)));
  EXPECT_BREAKS("race", "core 1 writes bytes within 448 to 511 of 't0', which core 0 reads in dma_copy (src)",
                t.l.run());
}

TEST(Races, AWriteOfWhatTheOtherCoreWrote) {
  Two t;
  dma_copy(t.shared[0], t.tiles[0]);
  dma_copy(t.shared[1], t.tiles[1]);
  EXPECT_BREAKS("race", "core 1 writes bytes within 0 to 511 of 't0', which core 0 writes", t.l.run());
}

TEST(Races, TheSameBytesTwiceAreAWarning) {
  Two t;
  t.l.set(t.tiles[1], t.l.numbers(t.tiles[0]));
  dma_copy(t.shared[0], t.tiles[0]);
  dma_copy(t.shared[1], t.tiles[1]);
  t.l.run();
  ASSERT_EQ(t.l.diagnostics().all().size(), 1u);
  EXPECT_EQ(t.l.diagnostics().all()[0].rule, "race");
  EXPECT_EQ(t.l.diagnostics().all()[0].severity, Severity::warning);
  EXPECT_NE(t.l.diagnostics().all()[0].message.find("makes no difference"), std::string::npos);
}

TEST(Races, ReadsAndApartWritesAreNone) {
  Two t;
  for (int c = 0; c < 2; ++c) {
    const auto i = static_cast<std::size_t>(c);
    dma_copy(t.shared[i](ds(4 * c, 2)), t.tiles[i](ds(0, 2)));
    dma_copy(t.tiles[i](ds(4, 2)), t.shared[i](ds(2, 2)));
  }
  t.l.run();
  EXPECT_TRUE(t.l.diagnostics().all().empty());
}

// Interleaved columns share rows' bytes ranges, but no byte.
TEST(Races, InterleavedColumnsAreNone) {
  for (std::int64_t width : {1, 4}) {
    Two t(Diagnostics::Mode::stop, {64, 64});
    for (int c = 0; c < 2; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const auto part = [&](const Tile& tile) {
        return width == 1 ? tile(ds(0, 64), range(c, 64, 2)) : tile(ds(0, 64), ds(4 * c, 4));
      };
      dma_copy(part(t.shared[i]), part(t.tiles[i]));
    }
    t.l.run();
    EXPECT_TRUE(t.l.diagnostics().all().empty());
  }
  Two t(Diagnostics::Mode::stop, {64, 64});
  dma_copy(t.shared[0](ds(0, 64), range(0, 64, 2)), t.tiles[0](ds(0, 64), range(0, 64, 2)));
  dma_copy(t.shared[1](ds(0, 64), range(0, 64, 3)), t.tiles[1](ds(0, 64), range(0, 64, 3)));  // 0, 6, 12 ...
  EXPECT_BREAKS("race", "core 1 writes", t.l.run());
}

TEST(Races, BarriersOrder) {
  Two t;
  dma_copy(t.shared[0], t.tiles[0]);
  core_barrier(t.shared[0], {0, 1});
  core_barrier(t.shared[1], {0, 1});
  dma_copy(t.shared[1], t.tiles[1]);
  core_barrier(t.shared[0], {0, 1});
  core_barrier(t.shared[1], {0, 1});
  dma_copy(t.tiles[0], t.shared[0]);
  dma_copy(t.tiles[1], t.shared[1]);
  t.l.run();
  EXPECT_TRUE(t.l.diagnostics().all().empty());
}

TEST(Races, ABarrierOrdersOnlyWhatIsBeforeIt) {
  Two t;
  core_barrier(t.shared[0], {0, 1});
  core_barrier(t.shared[1], {0, 1});
  dma_copy(t.shared[0], t.tiles[0]);
  dma_copy(t.tiles[1], t.shared[1]);
  EXPECT_BREAKS("race", "core 1 reads", t.l.run());
}

TEST(Races, ExchangesOrderToo) {
  Two t;
  dma_copy(t.shared[0], t.tiles[0]);
  sendrecv(t.tiles[0], t.tiles[0], 1, 1, 0);
  sendrecv(t.tiles[1], t.tiles[1], 0, 0, 0);
  dma_copy(t.tiles[1], t.shared[1]);
  t.l.run();
  EXPECT_TRUE(t.l.diagnostics().all().empty());
}

TEST(Races, ScatteredRowsAreLookedAtOneByOne) {
  for (bool meet : {false, true}) {
    Two t(Diagnostics::Mode::stop, {8, 16});
    for (int c = 0; c < 2; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const Tile index = t.l.nki(c).sbuf(DType::i32, {2, 1});
      t.l.set(index, c == 0 ? std::vector<double>{6, 1} : std::vector<double>{2, meet ? 6.0 : 5.0});
      dma_copy(t.shared[i](ds(0, 2)).rows_at(index, 16), t.tiles[i](ds(0, 2)));
    }
    if (meet) {
      EXPECT_BREAKS("race", "bytes within 384 to 447", t.l.run());
    } else {
      t.l.run();
      EXPECT_TRUE(t.l.diagnostics().all().empty());
    }
  }
}

TEST(Races, MovingViewsAreLookedAtWhereTheyAre) {
  for (bool meet : {false, true}) {
    Two t;
    for (int c = 0; c < 2; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const std::int32_t first = c == 0 ? 0 : meet ? 3 : 4;
      fori_loop(t.l.nki(c), first, first + 4, 1,
                [&](Register r) { dma_copy(t.shared[i](ds(0, 1)).moved_by(r, 16), t.tiles[i](ds(0, 1))); });
    }
    if (meet) {
      EXPECT_BREAKS("race", "bytes within 192 to 255", t.l.run());
    } else {
      t.l.run();
      EXPECT_TRUE(t.l.diagnostics().all().empty());
    }
  }
}

// Inputs are the same memory for both cores; ranks have memory of their own.
TEST(Races, AreOfOneLogicalCore) {
  Launch l(4, 2);
  for (int c : {0, 2}) {
    const Tile x = l.nki(c).input("x", DType::f32, {4, 4}), tile = l.nki(c).sbuf(DType::f32, {4, 4});
    l.fill(tile);
    dma_copy(x, tile);
  }
  l.run();
  EXPECT_TRUE(l.diagnostics().all().empty());

  Launch both(2, 2);
  for (int c : {0, 1}) {
    const Tile x = both.nki(c).input("x", DType::f32, {4, 4}), tile = both.nki(c).sbuf(DType::f32, {4, 4});
    both.fill(tile);
    dma_copy(x, tile);
  }
  EXPECT_BREAKS("race", "of 'x'", both.run());
}

// Long stretches without a meeting, wide and narrow accesses over all pages of a large tensor: against all
// pairs.
TEST(Races, FindWhatComparingAllPairsFinds) {
  std::mt19937 random(5);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int racing = 0;
  for (int round = 0; round < 60; ++round) {
    Two t(Diagnostics::Mode::collect, {128, 512});
    struct Region {
      std::int64_t row, rows, column, columns;
      bool write;
    };
    std::vector<Region> regions[2];
    for (std::size_t c = 0; c < 2; ++c)
      for (int i = 0; i < 6; ++i) {
        Region r;
        r.rows = pick(0, 4) == 0 ? pick(1, 128) : pick(1, 6);
        r.row = pick(0, 128 - r.rows);
        r.columns = pick(1, 60);
        r.column = pick(0, 512 - r.columns);
        r.write = pick(0, 2) == 0;
        regions[c].push_back(r);
        const Tile part = t.shared[c](ds(r.row, r.rows), ds(r.column, r.columns)),
                   tile = t.tiles[c](ds(r.row, r.rows), ds(r.column, r.columns));
        if (r.write) {
          dma_copy(part, tile);
        } else {
          dma_copy(tile, part);
        }
      }
    std::size_t expected = 0;
    for (const Region& b : regions[1])
      for (const Region& a : regions[0])
        expected += (a.write || b.write) && a.row < b.row + b.rows && b.row < a.row + a.rows &&
                    a.column < b.column + b.columns && b.column < a.column + a.columns;
    t.l.run();
    // Each racing access is reported once or more; a read stops at its first.
    const bool found = t.l.diagnostics().errors() > 0 || !t.l.diagnostics().all().empty();
    EXPECT_EQ(found, expected > 0) << round;
    racing += expected > 0;
  }
  EXPECT_GT(racing, 10);
  EXPECT_LT(racing, 60);
}

}  // namespace
}  // namespace headway::chip
