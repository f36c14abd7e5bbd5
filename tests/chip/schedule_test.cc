#include "chip/schedule.h"

#include "chip/cores.h"
#include "chip/dma_engine.h"
#include "chip/launch.h"
#include "chip/sync_engine.h"

namespace headway::chip {
namespace {

Tile shared_tensor(Launch& l, int core) { return l.nki(core).shared_hbm(DType::f32, {8}); }

TEST(Deadlock, WhereACoreEndsBeforeTheBarrier) {
  Launch l(2, 2);
  core_barrier(shared_tensor(l, 0), {0, 1});
  shared_tensor(l, 1);
  const std::string text = error_of([&] { l.run(); });
  EXPECT_NE(text.find("[deadlock]"), std::string::npos) << text;
  EXPECT_NE(text.find("core 0 waits at schedule_test.cc:"), std::string::npos) << text;
  EXPECT_NE(text.find("in core_barrier(data='t0'"), std::string::npos) << text;
  EXPECT_NE(text.find("for core 1; core 1 has ended"), std::string::npos) << text;
}

TEST(Deadlock, WhereCoresMeetAtDifferentPlaces) {
  Launch l(2, 2);
  const Tile a = l.nki(0).sbuf(DType::f32, {4, 4}), b = l.nki(1).sbuf(DType::f32, {4, 4});
  l.fill(a);
  l.fill(b);
  sendrecv(a, a, 1, 1, 0);
  sendrecv(b, b, 0, 0, 1);  // another pipe
  const std::string text = error_of([&] { l.run(); });
  EXPECT_NE(text.find("[deadlock]"), std::string::npos) << text;
  EXPECT_NE(text.find("pipe_id=0"), std::string::npos) << text;
  EXPECT_NE(text.find("for core 1; core 1 waits"), std::string::npos) << text;
  EXPECT_NE(text.find("pipe_id=1"), std::string::npos) << text;
}

TEST(Deadlock, WhereBarriersAreAboutDifferentTensors) {
  Launch l(2, 2);
  const Tile a = shared_tensor(l, 0);
  shared_tensor(l, 1);
  const Tile b = shared_tensor(l, 1);
  core_barrier(a, {0, 1});
  core_barrier(b, {0, 1});
  EXPECT_BREAKS("deadlock", "core 1 waits", l.run());
}

TEST(Deadlock, CollectingGoesOnWithTheOthers) {
  Launch l(4, 2, 1, Diagnostics::Mode::collect);
  core_barrier(shared_tensor(l, 0), {0, 1});
  std::vector<Tile> outs;
  for (int c : {2, 3}) {
    const Tile shared = shared_tensor(l, c);
    core_barrier(shared, {0, 1});
    const Register r = register_alloc(l.nki(c), c);
    outs.push_back(l.nki(c).sbuf(DType::i32, {1, 1}));
    register_store(outs.back(), r);
  }
  l.run();
  ASSERT_EQ(l.diagnostics().errors(), 1u);
  EXPECT_EQ(l.diagnostics().all()[0].rule, "deadlock");
  EXPECT_EQ(l.numbers(outs[0]), (std::vector<double>{2}));
  EXPECT_EQ(l.numbers(outs[1]), (std::vector<double>{3}));
}

// The lowest core runs first, and others only when it waits: without a barrier, core 1 sees all of core 0's
// work.
TEST(Schedule, LowestCoreFirst) {
  Launch l(2, 1);
  std::vector<Tile> tiles;
  for (int c = 0; c < 2; ++c) {
    tiles.push_back(l.nki(c).sbuf(DType::i32, {1, 1}));
    const Register r = register_alloc(l.nki(c), c + 10);
    register_store(tiles.back(), r);
  }
  l.run();
  EXPECT_EQ(l.numbers(tiles[0]), (std::vector<double>{10}));
  EXPECT_EQ(l.numbers(tiles[1]), (std::vector<double>{11}));
  EXPECT_EQ(l.machine().instructions_run(), 4u);
}

// A core that waited goes on in a later run, when its partner got there.
TEST(Schedule, ProgramsMayGrowBetweenRuns) {
  Launch l(2, 2);
  const Tile a = shared_tensor(l, 0), b = shared_tensor(l, 1);
  core_barrier(a, {0, 1});
  core_barrier(b, {0, 1});
  l.run();
  core_barrier(a, {0, 1});
  core_barrier(b, {0, 1});
  l.run();
  EXPECT_EQ(l.machine().instructions_run(), 4u);
}

TEST(Endless, LoopsEndAtTheBudget) {
  for (Diagnostics::Mode mode : {Diagnostics::Mode::stop, Diagnostics::Mode::collect}) {
    Launch l(2, 1, 1, mode);
    const Register one = register_alloc(l.nki(0), 1);
    while_loop(l.nki(0), one, [&](Register) { return one; });
    const Tile out = l.nki(1).sbuf(DType::i32, {1, 1});
    register_store(out, register_alloc(l.nki(1), 5));
    l.machine().max_instructions = 1000;
    if (mode == Diagnostics::Mode::stop) {
      EXPECT_BREAKS("endless", "have run 1000 instructions", l.run());
    } else {
      l.run();
      EXPECT_EQ(l.diagnostics().all()[0].rule, "endless");
      EXPECT_FALSE(l.written(out));  // the budget is that of all cores together
    }
  }
}

TEST(Endless, MeetingsCount) {
  Launch l(2, 2);
  for (int c = 0; c < 2; ++c) {
    const Tile shared = shared_tensor(l, c);
    const Register one = register_alloc(l.nki(c), 1);
    while_loop(l.nki(c), one, [&](Register) {
      core_barrier(shared, {0, 1});
      return one;
    });
  }
  l.machine().max_instructions = 500;
  EXPECT_BREAKS("endless", "instructions", l.run());
}

}  // namespace
}  // namespace headway::chip
