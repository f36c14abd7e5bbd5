// The machine and its cores: what only shows when programs run.
#include "chip/machine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "chip/dma_engine.h"
#include "chip/harness.h"
#include "chip/sync_engine.h"
#include "chip/tensor_engine.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_copy.h"

namespace headway::chip {
namespace {

std::vector<float> counting(std::size_t n) {
  std::vector<float> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  return numbers;
}

// Where the next line of a test is: "machine_test.cc:LINE".
std::string next_line(Here here = Here::current()) {
  return "machine_test.cc:" + std::to_string(here.line() + 1);
}

TEST(Execute, FromInputsToOutputs) {
  Recorder nki("k", trn2());
  const Tile x = nki.input("x", DType::f32, {128, 20}), y = nki.output("y", DType::f32, {128, 20});
  const Tile z = nki.output("z", DType::bf16, {20});
  const Tile t = nki.sbuf(DType::f32, {128, 20});
  dma_copy(t, x);
  tensor_scalar(t, t, Alu::multiply, 3.0);
  dma_copy(y, t);
  dma_copy(z.reshape({1, 20}), t(ds(1, 1)));
  const Program program = nki.finish();
  std::vector<float> in = counting(2560), out(2560);
  std::vector<std::uint16_t> narrow(20);
  ThreadPool pool(1, false);
  Diagnostics diagnostics;
  execute(trn2(), program, {{{DType::f32, {128, 20}, in.data()}}},
          {{{DType::f32, {128, 20}, out.data()}, {DType::bf16, {20}, narrow.data()}}}, pool, diagnostics);
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], 3 * static_cast<float>(i));
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_EQ(std::bit_cast<float>(std::uint32_t{narrow[i]} << 16),
              round_to_bf16(3 * static_cast<float>(20 + i)));
  EXPECT_TRUE(diagnostics.all().empty());
}

TEST(Execute, InputsThatAKernelWritesStayAsTheyAre) {
  Recorder nki("k", trn2());
  const Tile x = nki.input("x", DType::f32, {64, 8}), y = nki.output("y", DType::f32, {64, 8});
  const Tile t = nki.sbuf(DType::f32, {64, 8});
  dma_copy(t, x);
  tensor_scalar(t, t, Alu::add, 1.0);
  dma_copy(x, t);
  dma_copy(y, x);
  const Program program = nki.finish();
  const std::vector<float> in = counting(512);
  std::vector<float> mine = in, out(512);
  ThreadPool pool(1, false);
  for (int run = 0; run < 2; ++run) {
    Diagnostics diagnostics;
    execute(trn2(), program, {{{DType::f32, {64, 8}, mine.data()}}}, {{{DType::f32, {64, 8}, out.data()}}},
            pool, diagnostics);
    EXPECT_EQ(mine, in);
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], in[i] + 1);
  }
}

TEST(Execute, ConstantsArePartOfTheProgram) {
  Recorder nki("k", trn2());
  const std::vector<float> numbers = counting(24);
  const Tile c = nki.constant("c", DType::f32, {4, 6}, std::as_bytes(std::span(numbers)));
  const Tile y = nki.output("y", DType::f32, {4, 6}), t = nki.sbuf(DType::f32, {4, 6});
  dma_copy(t, c);
  dma_copy(y, t);
  const Program program = nki.finish();
  std::vector<float> out(24);
  ThreadPool pool(1, false);
  Diagnostics diagnostics;
  execute(trn2(), program, {}, {{{DType::f32, {4, 6}, out.data()}}}, pool, diagnostics);
  EXPECT_EQ(out, numbers);
}

// What the caller gets wrong.
TEST(Execute, Bindings) {
  Recorder nki("scale", trn2());
  const Tile x = nki.input("x", DType::f32, {4, 6}), y = nki.output("y", DType::f32, {4, 6});
  const Tile t = nki.sbuf(DType::f32, {4, 6});
  dma_copy(t, x);
  dma_copy(y, t);
  const Program program = nki.finish();
  std::vector<float> in(24), out(24);
  ThreadPool pool(1, false);
  const auto refusal = [&](const std::vector<ConstArray>& inputs,
                           const std::vector<Array>& outputs) -> std::string {
    Diagnostics diagnostics;
    try {
      execute(trn2(), program, inputs, outputs, pool, diagnostics);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const ConstArray good{DType::f32, {4, 6}, in.data()};
  const Array place{DType::f32, {4, 6}, out.data()};
  EXPECT_EQ(refusal({good}, {place}), "");
  EXPECT_NE(refusal({}, {place}).find("scale: takes 1 inputs, not 0"), std::string::npos)
      << refusal({}, {place});
  EXPECT_NE(refusal({good, good}, {place}).find("takes 1 inputs, not 2"), std::string::npos);
  EXPECT_NE(
      refusal({{DType::i32, {4, 6}, in.data()}}, {place}).find("input 'x' is float32[4, 6], not int32[4, 6]"),
      std::string::npos);
  EXPECT_NE(refusal({{DType::f32, {6, 4}, in.data()}}, {place}).find("not float32[6, 4]"), std::string::npos);
  EXPECT_NE(refusal({good}, {}).find("gives 1 outputs, not 0"), std::string::npos);
  EXPECT_NE(refusal({good}, {{DType::f32, {6, 4}, out.data()}}).find("output 'y' is [4, 6], not [6, 4]"),
            std::string::npos);
  EXPECT_NE(
      refusal({good}, {{DType::f16, {4, 6}, out.data()}}).find("'y' is float32[4, 6], not float16[4, 6]"),
      std::string::npos);

  Diagnostics diagnostics;
  const auto machine = [&](std::size_t programs, int lnc) {
    Machine(trn2(), std::vector<const Program*>(programs, &program), lnc, pool, diagnostics);
  };
  EXPECT_NO_THROW(machine(4, 1));
  EXPECT_THROW(machine(4, 2), InputError);  // recorded for one core
  EXPECT_THROW(machine(0, 1), InputError);
  EXPECT_THROW(machine(3, 2), InputError);
  EXPECT_THROW(machine(2, 0), InputError);
  EXPECT_THROW(machine(static_cast<std::size_t>(trn2().cores) + 1, 1), InputError);
}

TEST(Execute, BoundAgainTakesTheLastInputs) {
  Recorder nki("k", trn2());
  const Tile x = nki.input("x", DType::f32, {1, 4}), t = nki.sbuf(DType::f32, {1, 4});
  dma_copy(t, x);
  const std::vector<float> first = {1, 2, 3, 4}, second = {5, 6, 7, 8};
  std::vector<float> got(4);
  ThreadPool pool(1, false);
  Diagnostics diagnostics;
  Machine machine(trn2(), {&nki.program()}, 1, pool, diagnostics);
  machine.bind(0, {{{DType::f32, {1, 4}, first.data()}}});
  machine.run(Machine::Tensors::keep);
  machine.bind(0, {{{DType::f32, {1, 4}, second.data()}}});
  dma_copy(t, x);
  machine.run(Machine::Tensors::keep);
  machine.read(0, t.view().tensor, {DType::f32, {1, 4}, got.data()});
  EXPECT_EQ(got, second);
}

TEST(Unwritten, SaysWhoAllocatedWhoReadsAndWhoWroteNearby) {
  Harness h;
  const std::string declared = next_line();
  const Tile t = h.nki.sbuf(DType::f32, {128, 64}, {.name = "acc"});
  const Tile out = h.nki.sbuf(DType::f32, {128, 64}), x = h.nki.sbuf(DType::f32, {128, 64});
  h.fill(x);
  const std::string written = next_line();
  tensor_copy(t(ds(0, 128), ds(0, 60)), x(ds(0, 128), ds(0, 60)));
  const std::string reads = next_line();
  tensor_tensor(out, x, t, Alu::add);
  const std::string text = error_of([&] { h.run(); });
  EXPECT_EQ(
      text.find(
          reads +
          ": tensor_tensor, data2: reads partition 0, byte 240 of 'acc' float32[128, 64], which was never "
          "written"),
      0u)
      << text;
  EXPECT_NE(text.find("'acc' float32[128, 64] in SBUF is declared at " + declared), std::string::npos)
      << text;
  EXPECT_NE(text.find("bytes near it were last written by tensor_copy at " + written), std::string::npos)
      << text;
  EXPECT_NE(text.find("[unwritten]"), std::string::npos);
}

TEST(Unwritten, IsFoundToTheByteInAnyPattern) {
  struct Case {
    std::function<Tile(const Tile&)> writes, reads;
    const char* place;  // null: legal
  };
  const std::vector<Case> cases = {
      {[](const Tile& t) { return t(ds(0, 64)); }, [](const Tile& t) { return t(ds(32, 32)); }, nullptr},
      {[](const Tile& t) { return t(ds(0, 64)); }, [](const Tile& t) { return t(ds(0, 128), ds(5, 2)); },
       "partition 64, byte 20"},
      {[](const Tile& t) { return t(ds(0, 32), range(0, 16, 2)); },
       [](const Tile& t) { return t(ds(0, 32), range(0, 16, 4)); }, nullptr},
      {[](const Tile& t) { return t(ds(0, 32), range(0, 16, 2)); },
       [](const Tile& t) { return t(ds(0, 32), range(0, 16, 3)); }, "partition 0, byte 12"},
      {[](const Tile& t) { return t(ds(32, 1), ds(3, 1)); },
       [](const Tile& t) { return t(ds(32, 1), ds(3, 1)).broadcast(1, 9); }, nullptr},
      {[](const Tile& t) { return t(ds(32, 1), ds(3, 1)); },
       [](const Tile& t) { return t(ds(32, 2), ds(3, 1)).broadcast(1, 9); }, "partition 33, byte 12"},
      {[](const Tile& t) {
         return t(ds(0, 4), ds(0, 12)).reshape({4, 3, 4});
       },
       [](const Tile& t) {
         return t(ds(0, 4)).reshape({4, 4, 4})(ds(0, 4), ds(0, 4), ds(1, 2));
       },
       "partition 0, byte 52"},
      {[](const Tile& t) { return t.reinterpret(DType::u8)(ds(0, 1), ds(0, 7)); },
       [](const Tile& t) { return t.reinterpret(DType::bf16)(ds(0, 1), ds(0, 4)); }, "partition 0, byte 7"}};
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (Buffer buffer : {Buffer::sbuf, Buffer::psum}) {
      Harness h;
      const Tile t =
          buffer == Buffer::sbuf ? h.nki.sbuf(DType::f32, {128, 16}) : h.nki.psum(DType::f32, {128, 16});
      h.fill(cases[i].writes(t));
      const Tile from = cases[i].reads(t), to = h.nki.sbuf(from.dtype(), from.shape());
      tensor_copy(to, from);
      if (cases[i].place) {
        EXPECT_BREAKS("unwritten", cases[i].place, h.run());
      } else {
        EXPECT_NO_THROW(h.run()) << i;
      }
    }
}

TEST(Unwritten, InHbmAndInOutputs) {
  Harness h;
  const Tile x = h.nki.private_hbm(DType::f32, {4, 10}, {.name = "x"}), t = h.nki.sbuf(DType::f32, {4, 10});
  h.fill(x(ds(0, 3)));
  dma_copy(t, x);
  EXPECT_BREAKS(
      "unwritten",
      "reads byte 120 of 'x' float32[4, 10], which was never written; 'x' float32[4, 10] in private HBM",
      h.run());

  Recorder nki("k", trn2());
  const std::string declared = next_line();
  const Tile y = nki.output("y", DType::f32, {4, 10});
  const Tile source = nki.input("x", DType::f32, {2, 10}), tile = nki.sbuf(DType::f32, {2, 10});
  dma_copy(tile, source);
  dma_copy(y(ds(0, 2)), tile);
  const Program program = nki.finish();
  std::vector<float> in(20), out(40);
  ThreadPool pool(1, false);
  Diagnostics diagnostics;
  const std::string text = error_of([&] {
    execute(trn2(), program, {{{DType::f32, {2, 10}, in.data()}}}, {{{DType::f32, {4, 10}, out.data()}}},
            pool, diagnostics);
  });
  EXPECT_NE(text.find("'y': reads byte 80 of 'y'"), std::string::npos) << text;
  EXPECT_NE(text.find("declared at " + declared), std::string::npos) << text;
}

TEST(Unwritten, InputsThatWereNotBound) {
  Harness h;
  const Tile x = h.nki.input("x", DType::f32, {1, 4}), t = h.nki.sbuf(DType::f32, {1, 4});
  dma_copy(t, x);
  EXPECT_BREAKS("unwritten", "'x'", h.run());
}

TEST(DynamicOffsets, MoveAndAreBounded) {
  for (int from : {0, 5, 12, 13, -1, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()})
    for (bool by_register : {true, false})
      for (bool chip : {true, false}) {
        Harness h;
        const Tile t = chip ? h.nki.sbuf(DType::f32, {1, 16}, {.name = "t"})
                            : h.nki.private_hbm(DType::f32, {1, 16}, {.name = "t"});
        const Tile index = h.nki.sbuf(DType::i32, {1, 1}), out = h.nki.sbuf(DType::f32, {1, 4});
        const auto numbers = h.fill(t);
        h.set(index, {static_cast<double>(from)});
        const Register r = register_alloc(h.nki, from);
        const Tile window = t(ds(0, 1), ds(0, 4));
        dma_copy(out, by_register ? window.moved_by(r, 1) : window.moved_by(index, 1));
        if (from >= 0 && from <= 12) {
          h.run();
          EXPECT_EQ(h.numbers(out), std::vector<double>(numbers.begin() + from, numbers.begin() + from + 4));
        } else {
          EXPECT_BREAKS("out-of-bounds", "a dynamic offset of " + std::to_string(from), h.run());
        }
      }
  Harness h;
  const Tile t = h.nki.private_hbm(DType::f32, {1, 16}, {.name = "t"}),
             index = h.nki.sbuf(DType::u32, {1, 1});
  h.fill(t);
  h.set(index, {4294967295.0});
  // The largest index and stride: still only out of bounds.
  dma_copy(h.nki.sbuf(DType::f32, {1, 4}),
           t(ds(0, 1), ds(0, 4)).moved_by(index, (std::int64_t{1} << 31) - 1));
  EXPECT_BREAKS("out-of-bounds", "a dynamic offset of 4294967295", h.run());
  Harness g;
  const Tile x = g.nki.private_hbm(DType::f32, {8, 4}, {.name = "x"}), rows = g.nki.sbuf(DType::u32, {4, 1});
  g.fill(x);
  g.set(rows, {7, 0, 4294967295.0, 1});
  dma_copy(g.nki.sbuf(DType::f32, {4, 4}), x(ds(0, 4)).rows_at(rows, (std::int64_t{1} << 31) - 1));
  EXPECT_BREAKS("out-of-bounds", "index 7 of row 0 reaches bytes", g.run());
}

TEST(DynamicOffsets, NeedAWrittenIndex) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::f32, {1, 16}), index = h.nki.sbuf(DType::i32, {1, 1}, {.name = "where"});
  h.fill(t);
  dma_copy(h.nki.sbuf(DType::f32, {1, 4}), t(ds(0, 1), ds(0, 4)).moved_by(index, 1));
  EXPECT_BREAKS("unwritten", "'where'", h.run());
}

// --- Collecting ---

struct Collecting {
  Diagnostics diagnostics{Diagnostics::Mode::collect};
  Recorder nki{"k", trn2(), &diagnostics};
  ThreadPool pool{1, false};
  std::unique_ptr<Machine> machine;
  void run() {
    machine =
        std::make_unique<Machine>(trn2(), std::vector<const Program*>{&nki.program()}, 1, pool, diagnostics);
    machine->run(Machine::Tensors::keep);
  }
  std::vector<float> numbers(const Tile& tile) {
    std::vector<float> all(static_cast<std::size_t>(tile.view().elements()));
    machine->read(0, tile.view().tensor, {DType::f32, tile.shape(), all.data()});
    return all;
  }
  std::vector<std::string> rules() const {
    std::vector<std::string> names;
    for (const Diagnostic& d : diagnostics.all()) names.push_back(d.rule);
    return names;
  }
};

TEST(Collecting, ReportsSeveralErrorsOfOneRun) {
  Collecting c;
  const Tile a = c.nki.sbuf(DType::f32, {4, 4}, {.name = "a"}),
             b = c.nki.sbuf(DType::f32, {4, 4}, {.name = "b"}), sum = c.nki.sbuf(DType::f32, {4, 4}),
             next = c.nki.sbuf(DType::f32, {4, 4}), good = c.nki.sbuf(DType::f32, {4, 4}),
             apart = c.nki.sbuf(DType::f32, {4, 4});
  memset(good, 2.0f);
  tensor_tensor(sum, a, good, Alu::add);     // a: never written
  tensor_tensor(next, sum, good, Alu::add);  // of a poisoned operand: no report
  tensor_tensor(apart, b, good, Alu::add);   // b: never written
  tensor_tensor(good, good, good, Alu::add);
  c.run();
  EXPECT_EQ(c.rules(), (std::vector<std::string>{"unwritten", "unwritten"}));
  EXPECT_EQ(c.diagnostics.errors(), 2u);
  EXPECT_NE(c.diagnostics.all()[0].message.find("'a'"), std::string::npos);
  EXPECT_NE(c.diagnostics.all()[1].message.find("'b'"), std::string::npos);
  for (float x : c.numbers(next)) EXPECT_TRUE(std::isnan(x));
  for (float x : c.numbers(good)) EXPECT_EQ(x, 4);
}

TEST(Collecting, PoisonsOnlyWhatWouldHaveBeenWritten) {
  Collecting c;
  const Tile a = c.nki.sbuf(DType::f32, {4, 4}), out = c.nki.sbuf(DType::f32, {4, 4});
  memset(out, 1.0f);
  tensor_copy(out(ds(0, 4), ds(1, 2)), a(ds(0, 4), ds(0, 2)));
  c.run();
  EXPECT_EQ(c.diagnostics.errors(), 1u);
  const auto numbers = c.numbers(out);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(std::isnan(numbers[i]), i % 4 == 1 || i % 4 == 2) << i;
}

TEST(Collecting, BrokenInstructionsPoisonWithoutRunning) {
  Collecting c;
  const Tile a = c.nki.sbuf(DType::f32, {4, 4}), out = c.nki.sbuf(DType::f32, {4, 4}),
             more = c.nki.sbuf(DType::f32, {4, 4});
  memset(a, 1.0f);
  tensor_tensor(out, a, c.nki.sbuf(DType::f32, {4, 5}), Alu::add);
  EXPECT_EQ(c.rules(), std::vector<std::string>{"shape"});
  tensor_tensor(more, a, out, Alu::add);
  c.run();
  EXPECT_EQ(c.rules(), std::vector<std::string>{"shape"});  // the poisoned operand says nothing
  for (float x : c.numbers(more)) EXPECT_TRUE(std::isnan(x));
  // A matmul may go on adding to what a broken one should have started.
  Collecting d;
  const Tile s = d.nki.sbuf(DType::f32, {4, 4}), p = d.nki.psum(DType::f32, {4, 4});
  memset(s, 1.0f);
  nc_matmul(p, s, d.nki.sbuf(DType::f32, {5, 4}));
  nc_matmul(p, s, s, {.accumulate = true});
  d.run();
  EXPECT_EQ(d.rules(), std::vector<std::string>{"partitions"});
}

TEST(Collecting, SaysOnceWhatALoopDoesOften) {
  Collecting c;
  const Tile a = c.nki.sbuf(DType::f32, {4, 4}), out = c.nki.sbuf(DType::f32, {4, 4});
  fori_loop(c.nki, 0, 10, 1, [&](Register) { tensor_copy(out, a); });
  c.run();
  EXPECT_EQ(c.diagnostics.all().size(), 1u);
  EXPECT_EQ(c.diagnostics.errors(), 1u);
}

TEST(Collecting, ABrokenLoopStillEnds) {
  Collecting c;
  const Tile a = c.nki.sbuf(DType::f32, {4, 4});
  fori_loop(c.nki, 0, 10, 0, [&](Register) { memset(a, 1.0f); });
  EXPECT_EQ(c.rules(), std::vector<std::string>{"loop-step"});
  EXPECT_NO_THROW(c.run());
  EXPECT_EQ(c.rules(), std::vector<std::string>{"loop-step"});
}

TEST(Collecting, DynamicPlacesOutOfBounds) {
  Collecting c;
  const Tile x = c.nki.private_hbm(DType::f32, {8, 4}), t = c.nki.sbuf(DType::f32, {8, 4}),
             out = c.nki.sbuf(DType::f32, {8, 4});
  memset(t, 1.0f);
  dma_copy(x, t);
  const Register far = register_alloc(c.nki, 100);
  dma_copy(out(ds(0, 1)), x(ds(0, 1)).moved_by(far, 4));
  dma_copy(x(ds(0, 1)).moved_by(far, 4), t(ds(0, 1)));
  dma_copy(out(ds(1, 7)), x(ds(0, 7)));
  c.run();
  EXPECT_EQ(c.rules(), (std::vector<std::string>{"out-of-bounds", "out-of-bounds"}));
  const auto numbers = c.numbers(out);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(std::isnan(numbers[i]), i < 4) << i;
}

// --- How long tensors live ---

TEST(Lifetime, VirtualTensorsEndWithTheirLastUse) {
  for (const auto tensors : {Machine::Tensors::release, Machine::Tensors::keep}) {
    Recorder nki("k", trn2());
    const Tile a = nki.sbuf(DType::f32, {4, 4}), b = nki.sbuf(DType::f32, {4, 4}),
               fixed = nki.sbuf(DType::f32, {4, 4}, {.address = Address{0, 0}});
    const Tile y = nki.output("y", DType::f32, {4, 4});
    memset(a, 1.0f);
    memset(b, 2.0f);
    memset(fixed, 3.0f);
    dma_copy(y, b);
    ThreadPool pool(1, false);
    Diagnostics diagnostics;
    Machine machine(trn2(), {&nki.program()}, 1, pool, diagnostics);
    machine.run(tensors);
    std::vector<float> numbers(16);
    const auto read = [&](const Tile& t) {
      machine.read(0, t.view().tensor, {DType::f32, {4, 4}, numbers.data()});
    };
    if (tensors == Machine::Tensors::release) {
      EXPECT_BREAKS("unwritten", "never written", read(a));
      EXPECT_BREAKS("unwritten", "never written", read(b));
    } else {
      EXPECT_NO_THROW(read(a));
      EXPECT_NO_THROW(read(b));
    }
    EXPECT_NO_THROW(read(fixed));
    EXPECT_NO_THROW(read(y));
    EXPECT_EQ(numbers, std::vector<float>(16, 2));
  }
}

// Memory that is used again must not look written.
TEST(Lifetime, AReusedTensorIsNew) {
  Recorder nki("k", trn2());
  const Tile out = nki.sbuf(DType::f32, {4, 4}), a = nki.sbuf(DType::f32, {4, 4});
  memset(a, 1.0f);
  const Tile b = nki.sbuf(DType::f32, {4, 4}, {.name = "b"});
  memset(b(ds(0, 4), ds(0, 1)), 1.0f);
  tensor_copy(out, b);
  ThreadPool pool(1, false);
  Diagnostics diagnostics;
  Machine machine(trn2(), {&nki.program()}, 1, pool, diagnostics);
  EXPECT_BREAKS("unwritten", "'b'", machine.run());
}

TEST(Lifetime, TensorsOfALoopAreNewInEachRound) {
  for (const bool inside : {false, true}) {
    Harness h;
    const Tile x = h.nki.sbuf(DType::f32, {1, 4}), out = h.nki.sbuf(DType::f32, {1, 1});
    h.fill(x);
    std::optional<Tile> t;
    if (!inside) t = h.nki.sbuf(DType::f32, {1, 4}, {.name = "t"});
    fori_loop(h.nki, 0, 3, 1, [&](Register i) {
      if (inside) t = h.nki.sbuf(DType::f32, {1, 4}, {.name = "t"});
      tensor_copy((*t)(ds(0, 1), ds(0, 1)).moved_by(i, 1), x(ds(0, 1), ds(0, 1)).moved_by(i, 1));
      tensor_copy(out, (*t)(ds(0, 1), ds(0, 1)));
    });
    if (inside) {
      EXPECT_BREAKS("unwritten", "'t'", h.run());
    } else {
      EXPECT_NO_THROW(h.run());
    }
  }
}

TEST(Lifetime, TensorsUsedInALoopLiveToItsEnd) {
  Recorder nki("k", trn2());
  const Tile t = nki.sbuf(DType::f32, {1, 4}), y = nki.output("y", DType::f32, {1, 4});
  memset(t, 1.0f);
  fori_loop(nki, 0, 3, 1, [&](Register) {
    fori_loop(nki, 0, 2, 1, [&](Register) { tensor_scalar(t, t, Alu::add, 1.0); });
    dma_copy(y, t);
  });
  const Program program = nki.finish();
  std::vector<float> out(4);
  ThreadPool pool(1, false);
  Diagnostics diagnostics;
  execute(trn2(), program, {}, {{{DType::f32, {1, 4}, out.data()}}}, pool, diagnostics);
  EXPECT_EQ(out, std::vector<float>(4, 7));
}

TEST(Machine, ProgramsMayGetLonger) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {4, 4});
  memset(a, 1.0f);
  h.run();
  EXPECT_EQ(h.numbers(a), std::vector<double>(16, 1));
  const Tile b = h.nki.psum(DType::f32, {4, 4});
  tensor_scalar(b, a, Alu::add, 1.0);
  const Register r = register_alloc(h.nki, 3);
  h.run();
  EXPECT_EQ(h.numbers(b), std::vector<double>(16, 2));
  EXPECT_EQ(h.core().register_value(r), 3);
  h.run();  // nothing is done twice
  EXPECT_EQ(h.numbers(b), std::vector<double>(16, 2));
}

TEST(Machine, TheSameBitsForAnyNumberOfThreads) {
  std::vector<std::uint64_t> first;
  for (int threads : {1, 2, 3}) {
    Harness h(trn2(), threads);
    const Tile a = h.nki.sbuf(DType::f32, {128, 512}), b = h.nki.sbuf(DType::bf16, {128, 512}),
               p = h.nki.psum(DType::f32, {128, 512});
    h.fill(a);
    h.fill(b);
    tensor_tensor(a, a, b, Alu::multiply);
    tensor_scalar(b, a, Alu::add, 0.3, {.op1 = Alu::multiply, .operand1 = Scalar(a(ds(0, 128), ds(7, 1)))});
    nc_matmul(p, b(ds(0, 128), ds(0, 128)), b);
    h.run();
    const auto bits = h.bits(p);
    if (first.empty()) first = bits;
    EXPECT_EQ(bits, first) << threads;
  }
}

}  // namespace
}  // namespace headway::chip
