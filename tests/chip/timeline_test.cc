#include "chip/timeline.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "chip/array_clock.h"
#include "chip/cores.h"
#include "chip/dma_engine.h"
#include "chip/recorder.h"
#include "chip/scalar_engine.h"
#include "chip/shared_rate.h"
#include "chip/sync_engine.h"
#include "chip/tensor_engine.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_copy.h"
#include "chip/vector_reduce.h"

namespace headway::chip {
namespace {

const Spec& trn2() {
  static const Spec spec = Spec::load("trn2");
  return spec;
}
const Timing& timing() {
  static const Timing timing(trn2());
  return timing;
}

// Rows of x scaled, `tiles` of them of 128 x `columns` each, by way of SBUF.
struct Scale {
  std::int64_t tiles = 8, columns = 512, pieces = 1;  // loads a tile
  int buffers = 0;  // with addresses, used in turns; 0: as the lowering likes
};
Program scale(const Scale& s) {
  Recorder nki("scale", trn2());
  const Tile x = nki.input("x", DType::f32, {128 * s.tiles, s.columns});
  const Tile y = nki.output("y", DType::f32, {128 * s.tiles, s.columns});
  for (std::int64_t t = 0; t < s.tiles; ++t) {
    TensorOptions options;
    if (s.buffers > 0) options.address = Address{0, t % s.buffers * s.columns * 4};
    const Tile tile = nki.sbuf(DType::f32, {128, s.columns}, options);
    for (std::int64_t piece = 0; piece < s.pieces; ++piece) {
      const Range columns = ds(piece * s.columns / s.pieces, s.columns / s.pieces);
      dma_copy(tile(ds(0, 128), columns), x(ds(128 * t, 128), columns));
    }
    activation(tile, Function::exp, tile);
    dma_copy(y(ds(128 * t, 128)), tile);
  }
  return nki.finish();
}

Program products(std::int64_t count, DType dtype = DType::bf16) {
  Recorder nki("products", trn2());
  const Tile a = nki.sbuf(dtype, {128, 128}), b = nki.sbuf(dtype, {128, 512});
  memset(a, 1.0f);
  memset(b, 1.0f);
  const Tile c = nki.psum(DType::f32, {128, 512});
  for (std::int64_t i = 0; i < count; ++i) nc_matmul(c, a, b);
  return nki.finish();
}

Picoseconds total(const Program& program) { return time(program, timing()).total; }

TEST(Timeline, TheSameProgramTakesTheSameTime) {
  const Program program = scale({});
  const Timeline a = time(program, timing()), b = time(program, timing());
  EXPECT_EQ(a.total, b.total);
  ASSERT_EQ(a.events.size(), b.events.size());
  for (std::size_t i = 0; i < a.events.size(); ++i) {
    EXPECT_EQ(a.events[i].start, b.events[i].start);
    EXPECT_EQ(a.events[i].end, b.events[i].end);
    EXPECT_EQ(a.events[i].cause_event, b.events[i].cause_event);
  }
  // Nor does it matter where in memory the program is.
  EXPECT_EQ(total(scale({})), a.total);
}

TEST(Timeline, EnginesDoOneThingAtATimeAndNobodyStartsBeforeWhatItNeeds) {
  Recorder nki("mixed", trn2());
  Random random(3);
  std::vector<Tile> tiles;
  for (int i = 0; i < 6; ++i) {
    tiles.push_back(nki.sbuf(DType::f32, {128, 256}));
    memset(tiles.back(), 1.0f);
  }
  for (int i = 0; i < 400; ++i) {
    const Tile &to = tiles[random.below(6)], &from = tiles[random.below(6)];
    const Range columns = ds(static_cast<std::int64_t>(random.below(8)) * 32, 32);
    if (random.below(2) == 0)
      activation(to(ds(0, 128), columns), Function::exp, from(ds(0, 128), columns));
    else
      tensor_copy(to(ds(0, 128), columns), from(ds(0, 128), columns), {.engine = Engine::vector});
  }
  const Program program = nki.finish();
  const Timeline t = time(program, timing());
  std::array<std::vector<std::pair<Picoseconds, Picoseconds>>, 7> busy;
  for (std::size_t i = 0; i < t.events.size(); ++i) {
    const Event& e = t.events[i];
    busy[static_cast<std::size_t>(e.engine)].emplace_back(e.start, e.free);
    EXPECT_GT(e.free, e.start);
    EXPECT_GE(e.end, e.free);
    // Against every earlier instruction, by the views themselves.
    const auto now = operand_views(*program.instructions[e.instruction], program);
    for (std::size_t j = 0; j < i; ++j) {
      const Event& before = t.events[j];
      for (const OperandView& old : operand_views(*program.instructions[before.instruction], program))
        for (const OperandView& view : now) {
          if (old.access == Access::read && view.access == Access::read) continue;
          if (view.view->tensor != old.view->tensor || !may_overlap(program, *view.view, *old.view)) continue;
          EXPECT_GE(e.start, old.access == Access::read ? before.free : before.end) << i << " after " << j;
        }
    }
    if (e.cause_event >= 0) {
      EXPECT_LT(e.cause_event, static_cast<std::int32_t>(i));
    }
  }
  for (auto& spans : busy) {
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) EXPECT_GE(spans[i].first, spans[i - 1].second);
  }
}

// What the hardware guides promise.
TEST(Timeline, FewerTransfersAndBiggerTilesAreFaster) {
  const Picoseconds plain = total(scale({.tiles = 16, .columns = 512}));
  EXPECT_LT(total(scale({.tiles = 15, .columns = 512})), plain);
  EXPECT_GT(total(scale({.tiles = 16, .columns = 512, .pieces = 4})), plain);
  // The same bytes in tiles of a quarter of the size: descriptors of 512 B.
  EXPECT_LT(static_cast<double>(plain),
            0.8 * static_cast<double>(total(scale({.tiles = 64, .columns = 128}))));
}

TEST(Timeline, ASecondBufferHidesTransfers) {
  const Picoseconds one = total(scale({.tiles = 16, .buffers = 1})),
                    two = total(scale({.tiles = 16, .buffers = 2})),
                    four = total(scale({.tiles = 16, .buffers = 4})), any = total(scale({.tiles = 16}));
  EXPECT_LT(static_cast<double>(two), 0.7 * static_cast<double>(one));
  EXPECT_LE(four, two);
  EXPECT_LE(any, four);
}

TEST(Timeline, TransfersMoveEveryByteOnce) {
  const Program program = scale({.tiles = 5, .columns = 300});
  const Timeline t = time(program, timing());
  const std::int64_t bytes = 5 * 128 * 300 * 4;
  EXPECT_EQ(t.cores[0].traffic.hbm_read, bytes);
  EXPECT_EQ(t.cores[0].traffic.hbm_written, bytes);
  EXPECT_EQ(t.transfers.size(), 10u);
  for (const Transfer& x : t.transfers) {
    EXPECT_EQ(x.bytes, bytes / 5);
    const bool load = x.to == Buffer::sbuf;
    EXPECT_EQ(x.from, load ? Buffer::shared_hbm : Buffer::sbuf);
    EXPECT_TRUE(load || x.to == Buffer::shared_hbm);
    EXPECT_LT(t.events[x.event].start, x.start);
    EXPECT_LT(x.start, x.end);
    EXPECT_LT(x.end, x.visible);
  }
  // Not faster than the engines can.
  const double rate = trn2()["dma.engines"] * trn2()["dma.engine_bandwidth"];
  EXPECT_GT(seconds(t.total), 2 * static_cast<double>(bytes) / rate);
}

TEST(Timeline, ProductsRunAtTheClockOfTheArray) {
  // Beyond the warm-up, one column a cycle.
  const double cycles = 512 / 2.4e9;
  const double rest = seconds(total(products(3000)) - total(products(1000))) / 2000;
  EXPECT_NEAR(rest, cycles, 0.01 * cycles);
  const double wide = seconds(total(products(3000, DType::f32)) - total(products(1000, DType::f32))) / 2000;
  EXPECT_NEAR(wide, 4 * cycles, 0.04 * cycles);
  // Few products run at half of it.
  const double few = seconds(total(products(12)) - total(products(2))) / 10;
  EXPECT_NEAR(few, 2 * cycles, 0.04 * cycles);
}

TEST(ArrayClock, IsFullAfterSustainedWorkAndHalfAfterIdling) {
  ArrayClock clock(timing().tensor);
  const Picoseconds window = picoseconds(trn2()["tensor_engine.warm_up"]);
  EXPECT_EQ(clock.share(), 0.5);
  Picoseconds now = 0;
  for (int i = 0; i < 100; ++i) now = clock.run(now, 500);
  EXPECT_EQ(clock.share(), 1);
  ASSERT_EQ(clock.steps().size(), 2u);
  EXPECT_EQ(clock.steps()[1].start, window + window / 2);
  // Some work keeps it warm, none doesn't.
  for (int i = 0; i < 40; ++i) now = clock.run(now + window / 20, 500);
  EXPECT_EQ(clock.share(), 1);
  now = clock.run(now + 4 * window, 500);
  EXPECT_EQ(clock.steps().back().share, 0.5);
  // A product of one row of the array is next to no work.
  for (int i = 0; i < 100; ++i) now = clock.run(now, 500, 1.0 / 128);
  EXPECT_EQ(clock.share(), 0.5);
  // Work that crosses the change takes its cycles from both.
  ArrayClock other(timing().tensor);
  const Picoseconds change = window + window / 2;
  const double before = 1.2e9 * seconds(change);
  EXPECT_NEAR(seconds(other.run(0, before + 2400)), seconds(change) + 1e-6, 2e-12);
}

TEST(SharedRate, GivesWhatItHasAndNoMore) {
  Random random(1);
  SharedRate engines(16), memory(0.7);
  double work = 0, bytes = 0;
  Picoseconds last = 0;
  for (int i = 0; i < 3000; ++i) {
    const double w = random.uniform(1e3, 3e7), b = random.uniform(0, 1e6);
    const Demand demands[] = {{&engines, w, random.below(2) ? 16.0 : 4.0}, {&memory, b, 0.7}};
    const auto from = static_cast<Picoseconds>(random.below(2'000'000'000));
    const Span span = serve(demands, from);
    EXPECT_GE(span.start, from);
    EXPECT_GE(static_cast<double>(span.end - from), 0.999 * w / demands[0].most - 1);
    work += w;
    bytes += b;
    last = std::max(last, span.end);
  }
  double taken_work = 0, taken_bytes = 0;
  for (std::size_t bin = 0; bin <= static_cast<std::size_t>(last / SharedRate::kBin); ++bin) {
    EXPECT_GE(engines.left(bin), -1e-3 * engines.per_bin());
    EXPECT_GE(memory.left(bin), -1e-3 * memory.per_bin());
    taken_work += engines.per_bin() - engines.left(bin);
    taken_bytes += memory.per_bin() - memory.left(bin);
  }
  EXPECT_NEAR(taken_work, work, 1e-3 * work);
  EXPECT_NEAR(taken_bytes, bytes, 1e-3 * bytes);
}

TEST(SharedRate, AloneATransferTakesItsOwnTime) {
  for (Picoseconds from : {0, 100, 255'999, 256'000, 1'000'001}) {
    SharedRate rate(16);
    const Demand demand{&rate, 16 * 1e6, 16};
    const Span span = serve(std::span(&demand, 1), from);
    EXPECT_EQ(span.start, from);
    EXPECT_NEAR(static_cast<double>(span.end - from), 1e6, 20);
  }
}

TEST(Timeline, LoopsAreWhatTheirRoundsAre) {
  const auto record = [](bool loop) {
    Recorder nki("rounds", trn2());
    const Tile a = nki.sbuf(DType::f32, {128, 512}), b = nki.sbuf(DType::f32, {128, 512});
    memset(a, 1.0f);
    const auto body = [&] {
      tensor_copy(b, a);
      activation(a, Function::exp, b);
    };
    if (loop)
      fori_loop(nki, 0, 10, 1, [&](Register) { body(); });
    else
      for (int i = 0; i < 10; ++i) body();
    return nki.finish();
  };
  const Program loop = record(true), flat = record(false);
  const Timeline a = time(loop, timing()), b = time(flat, timing());
  EXPECT_EQ(a.events.size(), b.events.size());
  EXPECT_EQ(a.total, b.total);
  EXPECT_TRUE(a.warnings.empty());
}

TEST(Timeline, ALoopWithoutAnEndIsAnError) {
  Recorder nki("forever", trn2());
  const Tile a = nki.sbuf(DType::f32, {128, 8});
  const Register one = register_alloc(nki, 1);
  while_loop(nki, one, [&](Register r) {
    memset(a, 1.0f);
    return r;
  });
  const Program program = nki.finish();
  EXPECT_THROW(time(program, timing(), {.max_instructions = 1000}), InputError);
}

TEST(Timeline, ABoundThatDependsOnDataIsCountedOnceAndSaid) {
  Recorder nki("data", trn2());
  const Tile n = nki.input("n", DType::i32, {1, 1});
  const Tile a = nki.sbuf(DType::f32, {128, 8});
  const Register bound = register_alloc(nki);
  register_load(bound, n);
  fori_loop(nki, 0, bound, 1, [&](Register) { memset(a, 1.0f); });
  const Program program = nki.finish();
  const Timeline t = time(program, timing());
  ASSERT_EQ(t.warnings.size(), 1u);
  EXPECT_NE(t.warnings[0].find("depend on data"), std::string::npos);
}

// --- Lowering ---

TEST(Lower, HandsOutMemoryInTurnsAndNeverTwice) {
  Random random(7);
  Recorder nki("turns", trn2());
  std::vector<Tile> live;
  for (int i = 0; i < 500; ++i) {
    const Tile t = nki.sbuf(DType::f32, {128, 1 + static_cast<std::int64_t>(random.below(3000))});
    memset(t, 1.0f);
    live.push_back(t);
    if (live.size() > 8) {
      const std::size_t gone = random.below(live.size());
      memset(live[gone], 2.0f);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(gone));
    }
  }
  const Program program = nki.finish();
  const Lowered lowered = lower(program, trn2());
  EXPECT_TRUE(lowered.spilled.empty());
  for (const Placement& a : lowered.placements) {
    EXPECT_LE(a.byte + a.bytes, trn2().sbuf_usable_bytes);
    for (const Placement& b : lowered.placements) {
      if (a.tensor >= b.tensor || a.last < b.first || b.last < a.first) continue;
      EXPECT_TRUE(a.byte + a.bytes <= b.byte || b.byte + b.bytes <= a.byte)
          << a.tensor << " and " << b.tensor;
    }
  }
  // Whose memory it takes over, a tensor knows: the last before it at each byte.
  for (const Placement& heir : lowered.placements)
    for (const Placement& before : lowered.placements) {
      if (before.last >= heir.first || before.byte + before.bytes <= heir.byte ||
          heir.byte + heir.bytes <= before.byte)
        continue;
      bool hidden = false;  // others had all the bytes in between
      for (const Placement& c : lowered.placements)
        hidden |= c.tensor != heir.tensor && c.tensor != before.tensor && c.first > before.last &&
                  c.last < heir.first;
      bool known = false;
      for (std::uint32_t p = lowered.predecessors_from[heir.tensor];
           p < lowered.predecessors_from[heir.tensor + 1]; ++p)
        known |= lowered.predecessors[p] == before.tensor;
      EXPECT_TRUE(known || hidden) << heir.tensor << " after " << before.tensor;
    }
}

TEST(Lower, SpillsWhatDoesNotFitAndSaysSo) {
  Recorder nki("large", trn2());
  std::vector<Tile> tiles;
  for (int i = 0; i < 8; ++i) {
    tiles.push_back(nki.sbuf(DType::f32, {128, 8192}));  // 32 KiB each
    memset(tiles.back(), 1.0f);
  }
  const Tile y = nki.output("y", DType::f32, {128, 8192});
  for (const Tile& t : tiles) tensor_copy(tiles[0], t, {.engine = Engine::vector});
  dma_copy(y, tiles[0]);
  const Program program = nki.finish();
  const Lowered lowered = lower(program, trn2());
  EXPECT_FALSE(lowered.spilled.empty());
  EXPECT_LE(lowered.sbuf_peak, trn2().sbuf_usable_bytes);
  ASSERT_EQ(lowered.warnings.size(), 1u);
  EXPECT_NE(lowered.warnings[0].find("SBUF overflows"), std::string::npos) << lowered.warnings[0];
  const Timeline t = time(program, timing());
  EXPECT_GT(t.cores[0].traffic.spill_saved, 0);
  EXPECT_GT(t.cores[0].traffic.spill_loaded, 0);
}

// --- Several cores ---

Program half(int id, std::int64_t tiles, bool barrier) {
  Recorder nki("half", trn2(), nullptr, id, 2);
  const Tile x = nki.input("x", DType::f32, {128 * tiles, 4096}),
             y = nki.output("y", DType::f32, {128 * tiles, 4096});
  for (std::int64_t t = 0; t < tiles; ++t) {
    const Tile tile = nki.sbuf(DType::f32, {128, 4096});
    dma_copy(tile, x(ds(128 * t, 128)));
    if (id == 0) dma_copy(y(ds(128 * t, 128)), tile);
  }
  if (barrier) core_barrier(y, {0, 1});
  return nki.finish();
}

TEST(Timeline, CoresMeetAtBarriers) {
  const Program a = half(0, 6, true), b = half(1, 1, true);
  const Program* const both[] = {&a, &b};
  const Timeline t = time(both, timing());
  ASSERT_EQ(t.core_from.size(), 3u);
  const Event &last_a = t.events[t.core_from[1] - 1], &last_b = t.events.back();
  EXPECT_EQ(last_a.start, last_b.start);
  EXPECT_EQ(last_b.cause, Cause::meeting);
}

TEST(Timeline, CoresShareTheMemoryOfTheirStack) {
  const Program a = half(0, 24, false), b = half(1, 24, false);
  const Program* const both[] = {&a, &b};
  const Picoseconds together = time(both, timing()).total;
  EXPECT_GE(together, std::max(total(a), total(b)));
  // A stack with half the bandwidth can't feed both.
  Timing slow = timing();
  slow.stack_bandwidth.value /= 4;
  EXPECT_GT(static_cast<double>(time(both, slow).total), 1.3 * static_cast<double>(time(a, slow).total));
}

// Vector and Scalar read PSUM beside each other, but not the same bank.
TEST(Timeline, EnginesTakeTurnsAtABankOfPsum) {
  const auto record = [](std::int64_t bank) {
    Recorder nki("banks", trn2());
    const Tile psum = nki.psum(DType::f32, {128, 1024}, {.address = Address{0, 0}});
    const Tile a = nki.sbuf(DType::f32, {128, 256}), b = nki.sbuf(DType::f32, {128, 256});
    memset(psum, 1.0f);
    tensor_copy(a, psum(ds(0, 128), ds(0, 256)), {.engine = Engine::vector});
    tensor_copy(b, psum(ds(0, 128), ds(512 * bank + 256, 256)), {.engine = Engine::scalar});
    return nki.finish();
  };
  const Program same = record(0), other = record(1);
  const Timeline a = time(same, timing()), b = time(other, timing());
  EXPECT_EQ(a.events[2].cause, Cause::conflict);
  EXPECT_EQ(a.events[2].start, a.events[1].free);
  EXPECT_EQ(b.events[2].start, b.events[1].start);
}

// A performance mode of Vector needs the bus that GpSimd uses.
TEST(Timeline, PerformanceModesTakeTurnsWithGpsimd) {
  const auto record = [](DType dtype) {
    Recorder nki("bus", trn2());
    const Tile a = nki.sbuf(DType::f32, {128, 512}), b = nki.sbuf(dtype, {128, 512}), c = nki.sbuf(dtype, {128, 512});
    memset(b, 1.0f, {.engine = Engine::vector});
    memset(a, 1.0f, {.engine = Engine::gpsimd});
    reciprocal(c, b);                                  // one element a cycle or less
    tensor_copy(c, b, {.engine = Engine::vector});     // a performance mode
    return nki.finish();
  };
  const Program program = record(DType::bf16);
  const Timeline t = time(program, timing());
  const auto meets = [&](const Event& x, const Event& y) { return x.start < y.free && y.start < x.free; };
  EXPECT_FALSE(meets(t.events[1], t.events[0]));
  EXPECT_FALSE(meets(t.events[1], t.events[3]));
  EXPECT_TRUE(meets(t.events[1], t.events[2]));
}

TEST(Timeline, CausesLeadBackToTheBeginning) {
  const Program program = scale({.tiles = 6});
  const Timeline t = time(program, timing());
  const auto path = critical_path(t);
  ASSERT_FALSE(path.empty());
  EXPECT_EQ(t.events[path.front()].cause_event, -1);
  for (std::size_t i = 1; i < path.size(); ++i)
    EXPECT_EQ(t.events[path[i]].cause_event, static_cast<std::int32_t>(path[i - 1]));
}

}  // namespace
}  // namespace headway::chip
