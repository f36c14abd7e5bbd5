#include "chip/sync_engine.h"

#include "chip/dma_engine.h"
#include "chip/harness.h"

namespace headway::chip {
namespace {

TEST(Registers, MoveLoadAndStore) {
  Harness h;
  const Tile src = h.nki.sbuf(DType::i32, {1, 1}), dst = h.nki.sbuf(DType::i32, {1, 3}),
             hbm = h.nki.private_hbm(DType::i32, {1});
  h.set(src, {-123456789});
  const Register a = register_alloc(h.nki, 7), b = register_alloc(h.nki), c = register_alloc(h.nki);
  register_move(h.nki, b, a);
  register_load(c, src);
  register_store(dst(at(0), at(0)), a);
  register_store(dst(at(0), at(1)), b);
  register_store(dst(at(0), at(2)), c);
  register_store(hbm, c);
  h.run();
  EXPECT_EQ(h.numbers(dst), (std::vector<double>{7, 7, -123456789}));
  EXPECT_EQ(h.numbers(hbm), (std::vector<double>{-123456789}));
}

// Small integers are extended by their sign; a store keeps the low bits.
TEST(Registers, HoldIntegersByValueAndFloatsByBits) {
  struct Case {
    DType dtype;
    double number;
    std::int32_t expected;
  };
  for (const Case& c :
       {Case{DType::i8, -5, -5}, Case{DType::u8, 251, 251}, Case{DType::i16, -300, -300},
        Case{DType::u16, 65236, 65236}, Case{DType::u32, 4294967291.0, -5}, Case{DType::i32, -5, -5},
        Case{DType::boolean, 1, 1}, Case{DType::f32, 1.5, 0x3fc00000}, Case{DType::tf32, -2, -0x40000000}}) {
    Harness h;
    const Tile src = h.nki.sbuf(c.dtype, {1, 1}), dst = h.nki.sbuf(DType::i32, {1, 1}),
               back = h.nki.sbuf(c.dtype, {1, 1});
    h.set(src, {c.number});
    const Register r = register_alloc(h.nki);
    register_load(r, src);
    register_store(dst, r);
    register_store(back, r);
    h.run();
    EXPECT_EQ(h.numbers(dst)[0], c.expected) << name_of(c.dtype);
    EXPECT_EQ(h.numbers(back)[0], c.number) << name_of(c.dtype);
  }
}

TEST(Registers, Rules) {
  Harness h;
  const Register r = register_alloc(h.nki, 1);
  EXPECT_BREAKS("shape", "src: must be one element, not [2, 1]",
                register_load(r, h.nki.sbuf(DType::i32, {2, 1})));
  EXPECT_BREAKS("shape", "dst: must be one element", register_store(h.nki.sbuf(DType::i32, {1, 2}), r));
  EXPECT_BREAKS("buffer", "src: must lie in SBUF or", register_load(r, h.nki.psum(DType::i32, {1, 1})));
  EXPECT_BREAKS("dtype", "not bfloat16", register_load(r, h.nki.sbuf(DType::bf16, {1, 1})));
  EXPECT_BREAKS("register", "there is no register 99", register_move(h.nki, Register{99}, 1));
  EXPECT_BREAKS("register", "there is no register 99", register_move(h.nki, r, Register{99}));
}

// Stores the loop's register in row i of a column of HBM, counting rounds.
std::vector<double> rounds_of(
    const std::function<void(Harness&, const std::function<void(Register)>&)>& loop) {
  Harness h;
  const Tile log = h.nki.private_hbm(DType::i32, {200, 1});
  std::vector<double> none(200, -77);
  h.set(log, none);
  const Tile count = h.nki.sbuf(DType::i32, {1, 1});
  h.set(count, {0});
  const Register position = register_alloc(h.nki, 0);
  const Tile one = h.nki.sbuf(DType::i32, {1, 200});  // the successor of each position
  std::vector<double> next(200);
  for (std::size_t i = 0; i < 200; ++i) next[i] = static_cast<double>(i + 1);
  h.set(one, next);
  loop(h, [&](Register i) {
    register_store(log(ds(0, 1)).moved_by(position, 1), i);
    register_load(position, one(ds(0, 1), ds(0, 1)).moved_by(position, 1));
  });
  h.run();
  std::vector<double> got = h.numbers(log);
  while (!got.empty() && got.back() == -77) got.pop_back();
  return got;
}

TEST(Loops, CountFromLowerToUpperByStep) {
  struct Case {
    std::int32_t lower, upper;
    std::int64_t step;
  };
  for (const Case& c : {Case{0, 5, 1}, Case{0, 0, 1}, Case{5, 2, 1}, Case{-3, 4, 2}, Case{0, 10, 4},
                        Case{7, 8, 100}, Case{2147483640, 2147483647, 5}}) {
    std::vector<double> expected;
    for (std::int64_t i = c.lower; i < c.upper; i += c.step) expected.push_back(static_cast<double>(i));
    EXPECT_EQ(
        rounds_of([&](Harness& h, const auto& body) { fori_loop(h.nki, c.lower, c.upper, c.step, body); }),
        expected);
    // The same bounds in registers.
    EXPECT_EQ(rounds_of([&](Harness& h, const auto& body) {
                const Register lower = register_alloc(h.nki, c.lower), upper = register_alloc(h.nki, c.upper);
                fori_loop(h.nki, lower, upper, c.step, body);
              }),
              expected);
  }
}

TEST(Loops, WritingTheLoopsRegisterOrItsBoundsChangesNothing) {
  EXPECT_EQ(rounds_of([](Harness& h, const auto& body) {
              const Register upper = register_alloc(h.nki, 4);
              fori_loop(h.nki, 0, upper, 1, [&](Register i) {
                body(i);
                register_move(h.nki, i, 100);
                register_move(h.nki, upper, 1);
              });
            }),
            (std::vector<double>{0, 1, 2, 3}));
}

TEST(Loops, Nest) {
  std::vector<double> expected;
  for (int i = 0; i < 4; ++i)
    for (int j = i; j < 3; ++j) expected.push_back(j);
  EXPECT_EQ(rounds_of([](Harness& h, const auto& body) {
              fori_loop(h.nki, 0, 4, 1, [&](Register i) { fori_loop(h.nki, i, 3, 1, body); });
            }),
            expected);
}

// An empty outer loop skips loops within.
TEST(Loops, EmptyOnesSkipWhatTheyHold) {
  EXPECT_EQ(rounds_of([](Harness& h, const auto& body) {
              fori_loop(h.nki, 0, 2, 1, [&](Register i) {
                fori_loop(h.nki, 1, i, 1, [&](Register) { fori_loop(h.nki, 0, 3, 1, body); });
                body(i);
              });
            }),
            (std::vector<double>{0, 1}));
}

// Goes on while the register that the body gives is not 0; tested before each round.
TEST(Loops, WhileARegisterIsNotZero) {
  const auto count_down = [](std::int32_t first) {
    return rounds_of([=](Harness& h, const auto& body) {
      const Tile less = h.nki.sbuf(DType::i32, {1, 10});
      h.set(less, {-1, 0, 1, 2, 3, 4, 5, 6, 7, 8});
      const Register start = register_alloc(h.nki, first);
      while_loop(h.nki, start, [&](Register r) {
        body(r);
        const Register next = register_alloc(h.nki);
        register_load(next, less(ds(0, 1), ds(0, 1)).moved_by(r, 1));
        return next;
      });
      body(start);  // a copy was counted down
    });
  };
  EXPECT_EQ(count_down(4), (std::vector<double>{4, 3, 2, 1, 4}));
  EXPECT_EQ(count_down(0), (std::vector<double>{0}));
}

// The documents' example: the body loads its own register and returns it.
TEST(Loops, AWhileBodyMayReturnItsRegister) {
  EXPECT_EQ(rounds_of([](Harness& h, const auto& body) {
              const Tile less = h.nki.sbuf(DType::i32, {1, 10});
              h.set(less, {-1, 0, 1, 2, 3, 4, 5, 6, 7, 8});
              while_loop(h.nki, register_alloc(h.nki, 3), [&](Register r) {
                body(r);
                register_load(r, less(ds(0, 1), ds(0, 1)).moved_by(r, 1));
                return r;
              });
            }),
            (std::vector<double>{3, 2, 1}));
}

// nl.fori_loop's example: row i of the input to row i of the output.
TEST(Loops, MoveAViewWithTheirRegister) {
  Harness h;
  const Tile data = h.nki.input("data", DType::f32, {12, 40}),
             out = h.nki.output("out", DType::f32, {12, 40});
  const std::vector<double> numbers = h.fill(data);
  std::vector<double> expected = h.fill(out);
  fori_loop(h.nki, 2, 12, 3, [&](Register i) {
    const Tile tile = h.nki.sbuf(DType::f32, {1, 40});
    dma_copy(tile, data(ds(0, 1)).moved_by(i, 40));
    dma_copy(out(ds(0, 1)).moved_by(i, 40), tile);
  });
  h.run();
  for (std::size_t row = 2; row < 12; row += 3)
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(row * 40), 40,
                expected.begin() + static_cast<std::ptrdiff_t>(row * 40));
  EXPECT_EQ(h.numbers(out), expected);
}

// A tensor declared in the body doesn't carry values into the next round.
TEST(Loops, TensorsOfTheBodyAreNewEachRound) {
  Harness h;
  const Tile out = h.nki.private_hbm(DType::i32, {1, 1});
  const Tile table = h.nki.private_hbm(DType::i32, {4, 1});
  h.set(table, {1, 2, 3, 4});
  fori_loop(h.nki, 0, 2, 1, [&](Register i) {
    const Tile mine = h.nki.sbuf(DType::i32, {1, 2});
    fori_loop(h.nki, i, 1, 1,
              [&](Register) { dma_copy(mine(ds(0, 1), ds(1, 1)), table(ds(0, 1))); });  // first round only
    dma_copy(out, mine(ds(0, 1), ds(1, 1)));
  });
  EXPECT_BREAKS("unwritten", "src", h.run());
}

TEST(Loops, Rules) {
  Harness h;
  const Register i = register_alloc(h.nki);
  EXPECT_BREAKS("loop-step", "must be 1 to 2147483647, not 0", fori_begin(h.nki, i, 0, 4, 0));
  EXPECT_BREAKS("loop-step", "not -1", fori_begin(h.nki, i, 0, 4, -1));
}

TEST(Loops, EndsMustHaveABeginOfTheirKind) {
  // A program as a file may hold it.
  const auto nest = [](auto... instructions) {
    Program program;
    program.registers = 1;
    (program.instructions.push_back(std::make_unique<decltype(instructions)>(instructions)), ...);
    Diagnostics diagnostics;
    Check::whole(trn2(), program, diagnostics);
  };
  EXPECT_BREAKS("loop-nesting", "while_begin: the loop is never ended", nest(WhileBegin()));
  EXPECT_BREAKS("loop-nesting", "the loop is never ended", nest(WhileBegin(), ForiBegin(), ForiEnd()));
  EXPECT_BREAKS("loop-nesting", "fori_end ends no loop", nest(ForiEnd(), ForiBegin()));
  EXPECT_BREAKS("loop-nesting", "while_end ends a fori_begin", nest(ForiBegin(), WhileEnd()));
  EXPECT_BREAKS("loop-nesting", "fori_end ends a while_begin", nest(WhileBegin(), ForiEnd()));
  nest(WhileBegin(), ForiBegin(), ForiEnd(), WhileEnd());
  // As it is recorded.
  Harness open, none, mixed;
  while_begin(open.nki, register_alloc(open.nki, 1));
  EXPECT_BREAKS("loop-nesting", "are still open", open.nki.finish());
  EXPECT_BREAKS("loop-nesting", "while_end ends no loop", while_end(none.nki, register_alloc(none.nki, 1)));
  // What runs while it is being recorded is told when it gets there.
  const Register r = register_alloc(mixed.nki, 0);
  fori_begin(mixed.nki, r, 0, 1);
  while_end(mixed.nki, r);
  EXPECT_BREAKS("loop-nesting", "while_end ends no loop of its kind", mixed.run());
}

TEST(Loops, KnowTheirRole) {
  EXPECT_EQ(loop_role(ForiBegin()), LoopRole::fori_begin);
  EXPECT_EQ(loop_role(ForiEnd()), LoopRole::fori_end);
  EXPECT_EQ(loop_role(WhileBegin()), LoopRole::while_begin);
  EXPECT_EQ(loop_role(WhileEnd()), LoopRole::while_end);
  EXPECT_EQ(loop_role(RegisterMove()), LoopRole::none);
}

// Collecting goes on after a loop that was refused, and ends.
TEST(Loops, CollectingRunsPastABrokenLoop) {
  Diagnostics diagnostics(Diagnostics::Mode::collect);
  Recorder nki("test", trn2(), &diagnostics);
  const Tile x = nki.sbuf(DType::i32, {1, 1});
  const Register r = register_alloc(nki, 3);
  fori_loop(nki, 0, 10, 0, [&](Register i) { register_store(x, i); });
  register_store(x, r);
  ThreadPool pool(1, false);
  Machine machine(trn2(), {&nki.program()}, 1, pool, diagnostics);
  machine.run(Machine::Tensors::keep);
  EXPECT_GE(diagnostics.errors(), 1u);
  EXPECT_EQ(diagnostics.all()[0].rule, "loop-step");
  std::int32_t value = 0;
  machine.read(0, x.view().tensor, {DType::i32, {1, 1}, &value});
  EXPECT_EQ(value, 3);
}

}  // namespace
}  // namespace headway::chip
