// The rules that all instructions share, each broken by an instruction made for it.
#include "chip/check.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>
#include <set>

#include "chip/harness.h"
#include "chip/sync_engine.h"
#include "chip/vector_arithmetic.h"

namespace headway::chip {
namespace {

// Two operands, one of each other kind of field, and any rule.
struct Probe final : Instruction {
  using Rule = std::function<void(Check&, const Probe&)>;
  View a, b;
  Scalar scalar;
  Register reg;
  RegisterOr value = 0;
  int choice = 0;
  Engines runs_on = Engine::vector | Engine::scalar;
  Rule rule;

  std::string_view name() const override { return "probe"; }
  void visit(Fields& fields) override {
    fields.view("a", a, Access::write);
    fields.view("b", b, Access::read);
    fields.scalar("scalar", scalar);
    fields.reg("reg", reg, Access::read);
    fields.register_or("value", value);
    static constexpr std::string_view kNames[] = {"one", "two"};
    fields.chosen("choice", choice, kNames);
  }
  void check(Check& check) const override {
    if (rule) rule(check, *this);
  }
  void apply(Core&) const override {}
  Engines engines(const Check&) const override { return runs_on; }
};

class Rules : public testing::Test {
 public:
  Rules() { nki.new_register(); }
  Harness h;
  Recorder& nki = h.nki;

  void probe(
      const View& a, const View& b, const std::function<void(Probe&)>& fill = [](Probe&) {}) {
    auto instruction = std::make_unique<Probe>();
    instruction->a = a;
    instruction->b = b;
    fill(*instruction);
    nki.record(std::move(instruction), Here::current());
  }
  void probe(const View& a, const View& b, const Probe::Rule& rule) {
    probe(a, b, [&](Probe& p) { p.rule = rule; });
  }
  void look(const View& view) { probe(good(), view); }
  View good() { return nki.sbuf(DType::f32, {1, 1}); }
};

TEST_F(Rules, OfDeclarations) {
  EXPECT_BREAKS("dtype", "no NeuronCore stores float64", nki.sbuf(DType::f64, {8, 8}));
  EXPECT_BREAKS("tensor-shape", "in SBUF has 1 extents, it may have 2 to 8", nki.sbuf(DType::f32, {8}));
  EXPECT_BREAKS("tensor-shape", "in PSUM has 9 extents", nki.psum(DType::f32, Shape(9, 1)));
  EXPECT_BREAKS("tensor-shape", "in private HBM has 0 extents, it may have 1 to 8",
                nki.private_hbm(DType::f32, {}));
  EXPECT_BREAKS("tensor-shape", "extents of [8, 0] are not all at least 1", nki.sbuf(DType::f32, {8, 0}));
  EXPECT_BREAKS("tensor-shape", "at least 1", nki.private_hbm(DType::f32, {-3}));
  EXPECT_BREAKS("tensor-shape", "[1048576, 1048576, 2] has more than 2^40 elements",
                nki.private_hbm(DType::f32, {1 << 20, 1 << 20, 2}));
  EXPECT_BREAKS("partitions", "129 partitions, SBUF has 128", nki.sbuf(DType::f32, {129, 1}));
  EXPECT_BREAKS("partitions", "PSUM has 128", nki.psum(DType::f32, {200, 1}));
  EXPECT_BREAKS("address", "tensors in HBM have no explicit address",
                nki.private_hbm(DType::f32, {8}, {.address = Address{0, 0}}));
  EXPECT_BREAKS("address", "partitions 64 to 191 are not within 0 to 127",
                nki.sbuf(DType::f32, {128, 1}, {.address = Address{64, 0}}));
  EXPECT_BREAKS("address", "partitions -1 to 6", nki.sbuf(DType::f32, {8, 1}, {.address = Address{-1, 0}}));
  EXPECT_BREAKS("address", "byte 6 is not aligned to the 4 bytes of float32",
                nki.sbuf(DType::f32, {8, 1}, {.address = Address{0, 6}}));
  EXPECT_BREAKS("psum-bank", "byte 1024 is not the start of a PSUM bank (banks of 2048 bytes)",
                nki.psum(DType::f32, {8, 1}, {.address = Address{0, 1024}}));
  // The message names tensor and line.
  EXPECT_BREAKS("dtype", "check_test.cc:", nki.sbuf(DType::f64, {8, 8}, {.name = "acc"}));
  EXPECT_BREAKS("dtype", "'acc'", nki.sbuf(DType::f64, {8, 8}, {.name = "acc"}));
}

TEST_F(Rules, OfCapacity) {
  const std::int64_t usable = trn2().sbuf_usable_bytes;
  ASSERT_EQ(usable % 4, 0);
  EXPECT_NO_THROW(nki.sbuf(DType::f32, {128, usable / 4}));
  EXPECT_NO_THROW(nki.sbuf(DType::u8, {1, 4}, {.address = Address{0, usable - 4}}));
  EXPECT_NO_THROW(nki.psum(DType::f32, {128, 4096}));
  EXPECT_BREAKS("capacity", fmt::format("{} bytes a partition, SBUF has {} on trn2", usable + 4, usable),
                nki.sbuf(DType::f32, {128, usable / 4 + 1}));
  EXPECT_BREAKS("capacity", "16388 bytes a partition, PSUM has 16384 on trn2",
                nki.psum(DType::f32, {1, 4097}));
  EXPECT_BREAKS("capacity",
                fmt::format("bytes {} to {} of a partition are not within the {} that SBUF has", usable - 4,
                            usable + 3, usable),
                nki.sbuf(DType::u8, {1, 8}, {.address = Address{0, usable - 4}}));
  EXPECT_BREAKS("capacity", "not within", nki.sbuf(DType::u8, {1, 8}, {.address = Address{0, -8}}));
  EXPECT_BREAKS("capacity", "not within", nki.psum(DType::f32, {1, 8}, {.address = Address{0, 16384}}));
  Harness other(trn1());
  EXPECT_BREAKS("capacity", fmt::format("SBUF has {} on trn1", trn1().sbuf_usable_bytes),
                other.nki.sbuf(DType::f32, {128, usable / 4}));
}

TEST_F(Rules, OfViews) {
  const Tile t = nki.sbuf(DType::f32, {128, 64}, {.name = "t"}),
             x = nki.private_hbm(DType::f32, {16, 64}, {.name = "x"});
  EXPECT_NO_THROW(look(t));
  const auto with = [](const View& view, const std::function<void(View&)>& change) {
    View changed = view;
    change(changed);
    return changed;
  };
  EXPECT_BREAKS("view", "there is no tensor 99", look(with(t, [](View& v) { v.tensor = 99; })));
  EXPECT_BREAKS("dtype", "no NeuronCore computes in float64",
                look(with(t, [](View& v) { v.dtype = DType::f64; })));
  EXPECT_BREAKS("view", "a view of SBUF has 2 to 5 extents, not 1",
                look(with(t, [](View& v) { v.rank = 1; })));
  EXPECT_BREAKS("view", "a view of private HBM has 1 to 5 extents, not 0",
                look(with(x, [](View& v) { v.rank = 0; })));
  EXPECT_BREAKS("view", "not 6", look(with(x, [](View& v) { v.rank = 6; })));
  EXPECT_BREAKS("view", "extent 1 is 0", look(with(t, [](View& v) { v.pairs[1].count = 0; })));
  EXPECT_BREAKS("view", "at most 2^40 elements", look(with(x, [](View& v) {
                  v.pairs[0] = v.pairs[1] = {0, 1 << 30};
                })));
  EXPECT_BREAKS("view", "HBM has no partitions", look(with(x, [](View& v) { v.partition = 1; })));
  EXPECT_BREAKS("view", "there is no dynamic offset 3", look(with(x, [](View& v) { v.dynamic = 3; })));
  EXPECT_BREAKS("pattern", "an extent of 65536: counts are 16 bits, at most 65535",
                look(t(ds(0, 1), ds(0, 1)).broadcast(1, 65536)));
  EXPECT_NO_THROW(look(t(ds(0, 1), ds(0, 1)).broadcast(1, 65535)));
  EXPECT_BREAKS("pattern", "a step of 32768 elements: steps are 16 bits, -32768 to 32767",
                look(nki.sbuf(DType::u8, {1, 65536})(ds(0, 1), range(0, 65536, 32768))));
  EXPECT_NO_THROW(look(nki.sbuf(DType::u8, {1, 65536})(ds(0, 1), range(0, 65535, 32767))));
  EXPECT_NO_THROW(look(nki.private_hbm(DType::u8, {1, 1 << 20})(
      ds(0, 1), range(0, 1 << 20, 32768))));  // DMA has no such limit
  EXPECT_BREAKS("pattern", "partitions follow each other, their step is 2",
                look(with(t(ds(0, 32)), [](View& v) { v.pairs[0].step = 2; })));
  // Bounds.
  EXPECT_BREAKS("out-of-bounds", "partitions 96 to 159 of 't', which has 128",
                look(with(t(ds(0, 64)), [](View& v) { v.partition = 96; })));
  EXPECT_BREAKS("out-of-bounds", "partitions -32 to -1",
                look(with(t(ds(0, 32)), [](View& v) { v.partition = -32; })));
  EXPECT_BREAKS("out-of-bounds", "bytes 4 to 259 of a partition of 't', which has 256",
                look(with(t, [](View& v) { v.offset = 1; })));
  EXPECT_BREAKS("out-of-bounds", "bytes -4 to 251", look(with(t, [](View& v) { v.offset = -1; })));
  EXPECT_BREAKS("out-of-bounds", "bytes -252 to 3", look(with(t, [](View& v) { v.pairs[1].step = -1; })));
  EXPECT_NO_THROW(look(with(t, [](View& v) {
    v.pairs[1].step = -1;
    v.offset = 63;
  })));
  EXPECT_BREAKS("out-of-bounds", "bytes 0 to 4115 of 'x', which has 4096", look(with(x, [](View& v) {
                  v.pairs[0] = {65, 16}, v.pairs[1] = {1, 54};
                })));
  EXPECT_BREAKS("out-of-bounds", "bytes 16384 to 16639 of 'x', which has 4096",
                look(x.pattern({{1, 64}}, 1 << 12)));
  EXPECT_BREAKS("out-of-bounds", "is outside 'x'", look(with(x, [](View& v) { v.offset = INT64_MIN; })));
  EXPECT_BREAKS("out-of-bounds", "is outside 'x'", look(with(x, [](View& v) { v.offset = INT64_MAX; })));
  EXPECT_BREAKS("out-of-bounds", "outside 'x'", look(with(x, [](View& v) {
                  v.pairs[0] = {INT32_MAX, 1 << 30};
                  v.pairs[1].count = 1;
                })));
}

TEST_F(Rules, OfStartPartitions) {
  const Tile t = nki.sbuf(DType::f32, {128, 4}),
             low = nki.sbuf(DType::f32, {32, 4}, {.address = Address{32, 0}});
  for (int rows = 1; rows <= 128; ++rows)
    for (int start = 0; start + rows <= 128; ++start) {
      const bool legal = rows > 64 ? start == 0 : rows > 32 ? start % 64 == 0 : start % 32 == 0;
      if (legal) {
        EXPECT_NO_THROW(look(t(ds(start, rows))));
      } else {
        EXPECT_THROW(look(t(ds(start, rows))), KernelError) << rows << " from " << start;
      }
    }
  EXPECT_BREAKS("start-partition", "100 partitions must start at partition 0, not 28", look(t(ds(28, 100))));
  EXPECT_BREAKS("start-partition", "33 partitions must start at partition 0 or 64, not 32",
                look(t(ds(32, 33))));
  EXPECT_BREAKS("start-partition", "8 partitions must start at partition 0, 32, 64 or 96, not 3",
                look(t(ds(3, 8))));
  // Physical partitions count.
  EXPECT_NO_THROW(look(low));
  EXPECT_BREAKS("start-partition", "not 48", look(low(ds(16, 16))));
  EXPECT_BREAKS("start-partition", "not 16",
                look(nki.sbuf(DType::f32, {32, 4}, {.address = Address{16, 0}})));
  // DMA reaches any partition.
  EXPECT_NO_THROW(probe(good(), t(ds(3, 8)), [](Probe& p) { p.runs_on = Engine::dma; }));
}

TEST_F(Rules, OfDynamicOffsets) {
  const Tile t = nki.sbuf(DType::f32, {128, 64}), x = nki.private_hbm(DType::f32, {16, 64}, {.name = "x"});
  const Tile one = nki.sbuf(DType::i32, {1, 1}), column = nki.sbuf(DType::u32, {16, 1}),
             wide = nki.sbuf(DType::u32, {8, 2});
  EXPECT_NO_THROW(look(t.moved_by(one, 1)));
  EXPECT_NO_THROW(look(x.moved_by(Register{0}, 64)));
  EXPECT_NO_THROW(look(x.rows_at(column, 64)));
  EXPECT_NO_THROW(look(x.rows_at(wide, 64)));  // 16 elements
  EXPECT_NO_THROW(look(x(ds(0, 1)).broadcast(0, 4096).rows_at(nki.sbuf(DType::i32, {128, 32}), 64)));
  EXPECT_BREAKS("dynamic-offset", "an index can't have a dynamic offset itself",
                look(t.moved_by(one.moved_by(Register{0}, 1), 1)));
  EXPECT_BREAKS("dynamic-offset", "a stride of 2147483648 elements doesn't fit into 32 bits",
                look(t.moved_by(Register{0}, std::int64_t{1} << 31)));
  EXPECT_BREAKS("dynamic-offset", "the index must lie in SBUF, not in PSUM",
                look(t.moved_by(nki.psum(DType::i32, {1, 1}), 1)));
  EXPECT_BREAKS("dynamic-offset", "not in private HBM",
                look(x.rows_at(nki.private_hbm(DType::i32, {16, 1}), 64)));
  EXPECT_BREAKS("dynamic-offset", "the index must be int32 or uint32, not int16",
                look(t.moved_by(nki.sbuf(DType::i16, {1, 1}), 1)));
  EXPECT_BREAKS("dynamic-offset", "the index must have 1 elements, not be [1, 2]",
                look(t.moved_by(nki.sbuf(DType::i32, {1, 2}), 1)));
  EXPECT_BREAKS("dynamic-offset", "the index must have 16 elements, not be [15, 1]",
                look(x.rows_at(column(ds(0, 15)), 64)));
  EXPECT_BREAKS("dynamic-offset", "rows by index are in HBM only, 't3' is in SBUF",
                look(nki.sbuf(DType::f32, {16, 4}, {.name = "t3"}).rows_at(column, 64)));
  EXPECT_BREAKS("dynamic-offset", "one dynamic offset at most", t.moved_by(one, 1).moved_by(one, 1));
  EXPECT_BREAKS("register", "there is no register 77", look(t.moved_by(Register{77}, 1)));
  // What a row covers must fit wherever it starts.
  EXPECT_BREAKS(
      "out-of-bounds", "of 'x', which has 4096",
      look(x(ds(0, 1)).broadcast(0, 16).reshape({16, 64}).pattern({{64, 16}, {64, 17}}).rows_at(column, 64)));
}

TEST_F(Rules, OfFields) {
  const View g = good();
  EXPECT_BREAKS("register", "reg: there is no register 5", probe(g, g, [](Probe& p) { p.reg = {5}; }));
  EXPECT_BREAKS("register", "value: there is no register 6",
                probe(g, g, [](Probe& p) { p.value = Register{6}; }));
  EXPECT_BREAKS("choice", "choice: 2 is none of the 2 choices", probe(g, g, [](Probe& p) { p.choice = 2; }));
  EXPECT_BREAKS("choice", "-1 is none", probe(g, g, [](Probe& p) { p.choice = -1; }));
  EXPECT_BREAKS("view", "scalar: there is no tensor 40", probe(g, g, [](Probe& p) {
                  View v;
                  v.tensor = 40;
                  p.scalar = Scalar(v);
                }));
  // Instruction, operand and line are named.
  EXPECT_BREAKS("register", "check_test.cc:", probe(g, g, [](Probe& p) { p.reg = {5}; }));
  EXPECT_BREAKS("register", "probe, reg:", probe(g, g, [](Probe& p) { p.reg = {5}; }));
}

TEST_F(Rules, OfEngines) {
  const View g = good();
  EXPECT_NO_THROW(probe(g, g, [](Probe& p) { p.engine = Engine::scalar; }));
  EXPECT_BREAKS("engine", "engine: the gpsimd engine can't run it with these operands; scalar, vector can",
                probe(g, g, [](Probe& p) { p.engine = Engine::gpsimd; }));
  EXPECT_BREAKS("engine", "no engine of trn2 can run it with these operands",
                probe(g, g, [](Probe& p) { p.runs_on = {}; }));
}

TEST_F(Rules, ThatInstructionsCall) {
  const Tile s = nki.sbuf(DType::f32, {64, 8}, {.name = "s"}), p = nki.psum(DType::f32, {64, 8}),
             q = nki.psum(DType::bf16, {64, 8}), x = nki.private_hbm(DType::i8, {64, 8}, {.name = "x"}),
             mx = nki.sbuf(DType::f8e4m3fn_x4, {64, 8}), scale = nki.sbuf(DType::f8e8m0fnu, {64, 8});
  const auto refuse = [&](const View& a, const View& b, const Probe::Rule& rule) { probe(a, b, rule); };
  using P = const Probe&;
  EXPECT_NO_THROW(refuse(s, p, [](Check& c, P i) {
    c.on_chip("b", i.b);
    c.in_sbuf("a", i.a);
    c.dtype("a", i.a, {DType::bf16, DType::f32});
    c.computable("a", i.a);
    c.same_dtype("a", i.a, "b", i.b);
    c.same_size("a", i.a, "b", i.b);
    c.row_of("a", i.a, 64, 8);
    c.not_both_psum("a", i.a, "b", i.b);
    c.generation(3, "this");
    c.disjoint("a", i.a, "b", i.b);
    c.scalar("scalar", i.scalar, 64);
  }));
  EXPECT_BREAKS("buffer", "probe, b: must lie in SBUF or PSUM, 'x' lies in private HBM",
                refuse(s, x, [](Check& c, P i) { c.on_chip("b", i.b); }));
  EXPECT_BREAKS("buffer", "must lie in SBUF, 't", refuse(s, p, [](Check& c, P i) { c.in_sbuf("b", i.b); }));
  EXPECT_BREAKS("dtype", "must be bfloat16 or int8, not float32", refuse(s, s, [](Check& c, P i) {
                  c.dtype("a", i.a, {DType::bf16, DType::i8});
                }));
  EXPECT_BREAKS("dtype", "float8_e4m3fn_x4 is storage",
                refuse(s, mx, [](Check& c, P i) { c.computable("b", i.b); }));
  EXPECT_BREAKS("dtype", "float8_e8m0fnu is storage",
                refuse(s, scale, [](Check& c, P i) { c.computable("b", i.b); }));
  EXPECT_BREAKS("dtype", "a: is float32, but b is bfloat16; they must be the same",
                refuse(s, q, [](Check& c, P i) { c.same_dtype("a", i.a, "b", i.b); }));
  EXPECT_BREAKS("partitions", "a: has 64 partitions, but b has 32",
                refuse(s, s(ds(0, 32)), [](Check& c, P i) { c.same_partitions("a", i.a, "b", i.b); }));
  EXPECT_BREAKS("partitions", "has 64 partitions",
                refuse(s, s(ds(0, 32)), [](Check& c, P i) { c.same_size("a", i.a, "b", i.b); }));
  EXPECT_BREAKS("shape", "has 8 elements a partition, but b has 7",
                refuse(s, s(ds(0, 64), ds(0, 7)), [](Check& c, P i) { c.same_row("a", i.a, "b", i.b); }));
  EXPECT_BREAKS("shape", "a: has 8 elements",
                refuse(s, s(ds(0, 64), ds(0, 7)), [](Check& c, P i) { c.same_size("a", i.a, "b", i.b); }));
  EXPECT_BREAKS("shape", "must be [64, 1], not [64, 8]",
                refuse(s, s, [](Check& c, P i) { c.row_of("a", i.a, 64, 1); }));
  EXPECT_BREAKS("both-psum", "a: and b both lie in PSUM; one of them must lie in SBUF",
                refuse(p, q, [](Check& c, P i) { c.not_both_psum("a", i.a, "b", i.b); }));
  EXPECT_BREAKS("generation", "the thing needs NeuronCore-v4; trn2 has NeuronCore-v3",
                refuse(s, s, [](Check& c, P) { c.generation(4, "the thing"); }));
  EXPECT_BREAKS("overlap", "a: shares bytes with b; they must be apart",
                refuse(s, s(ds(0, 64), ds(3, 2)), [](Check& c, P i) { c.disjoint("a", i.a, "b", i.b); }));
  const auto scalar = [&](const Tile& tile) {
    probe(s, s, [&](Probe& i) {
      i.scalar = Scalar(tile);
      i.rule = [](Check& c, P me) { c.scalar("scalar", me.scalar, 64); };
    });
  };
  EXPECT_NO_THROW(scalar(s(ds(0, 64), ds(0, 1))));
  EXPECT_BREAKS("buffer", "scalar: must lie in SBUF or PSUM", scalar(x(ds(0, 64), ds(0, 1))));
  EXPECT_BREAKS("dtype", "scalar: float8_e4m3fn_x4", scalar(mx(ds(0, 64), ds(0, 1))));
  EXPECT_BREAKS("shape", "scalar: must be [64, 1], not [32, 1]", scalar(s(ds(0, 32), ds(0, 1))));
}

TEST_F(Rules, OfWholePrograms) {
  const std::vector<std::byte> bytes(8);
  EXPECT_BREAKS("constant", "'c': has 8 bytes, its shape needs 16",
                nki.constant("c", DType::f32, {4}, bytes));
  {
    Recorder r("k", trn2());
    r.constant("c", DType::f32, {2}, bytes);
    Program program = r.finish();
    Diagnostics diagnostics;
    EXPECT_TRUE(Check::whole(trn2(), program, diagnostics));
    program.constants.clear();
    EXPECT_BREAKS("constant", "'c': has 0 bytes, its shape needs 8",
                  Check::whole(trn2(), program, diagnostics));
  }
  {
    Recorder r("k", trn2());
    fori_begin(r, r.new_register(), 0, 5);
    EXPECT_BREAKS("loop-nesting", "1 register loops are still open", r.finish());
    EXPECT_BREAKS("loop-nesting", "while_end ends no loop", {
      fori_end(r);
      while_end(r, r.new_register());
    });
  }
  const auto shuffled = [&](const std::vector<int>& order) {
    Recorder r("k", trn2());
    fori_begin(r, r.new_register(), 0, 5);
    fori_end(r);
    while_begin(r, r.new_register());
    while_end(r, r.new_register());
    Program program = r.finish();
    std::vector<std::unique_ptr<Instruction>> all;
    for (int i : order) all.push_back(copy(*program.instructions[static_cast<std::size_t>(i)]));
    program.instructions = std::move(all);
    Diagnostics diagnostics;
    Check::whole(trn2(), program, diagnostics);
  };
  EXPECT_NO_THROW(shuffled({0, 2, 3, 2, 0, 1, 3, 1}));
  EXPECT_BREAKS("loop-nesting", "fori_end ends no loop", shuffled({0, 1, 1}));
  EXPECT_BREAKS("loop-nesting", "while_end ends a fori_begin", shuffled({0, 2, 3, 3}));
  EXPECT_BREAKS("loop-nesting", "fori_end ends a while_begin", shuffled({2, 1}));
  EXPECT_BREAKS("loop-nesting", "the loop is never ended", shuffled({0, 2, 3}));
}

// A loop that can't begin takes its end with it, and nothing else.
TEST_F(Rules, OfBrokenLoopsInFiles) {
  Recorder r("k", trn2());
  fori_loop(r, 0, 5, 1, [&](Register) { fori_loop(r, 0, 5, 1, [&](Register) {}); });
  Program program = r.finish();
  dynamic_cast<ForiBegin&>(*program.instructions[1]).step = 0;
  Diagnostics all(Diagnostics::Mode::collect);
  EXPECT_FALSE(Check::whole(trn2(), program, all));
  EXPECT_EQ(all.errors(), 1u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(program.instructions[i]->broken, i == 1 || i == 2) << i;
}

TEST_F(Rules, ReportsEverythingWhenCollecting) {
  Diagnostics all(Diagnostics::Mode::collect);
  Recorder r("k", trn2(), &all);
  const Tile a = r.sbuf(DType::f32, {64, 8}), b = r.sbuf(DType::f32, {64, 9});
  const Tile huge = r.sbuf(DType::f32, {128, 1 << 20}, {.name = "huge"});
  EXPECT_EQ(all.errors(), 1u);
  EXPECT_EQ(all.all()[0].rule, "capacity");
  EXPECT_EQ(all.all()[0].operand, "'huge'");
  EXPECT_EQ(all.all()[0].where.substr(0, 14), "check_test.cc:");
  // Slices of it are those of the tensor that was asked for; what uses it is broken, without another report.
  tensor_tensor(huge(ds(0, 64), ds(1 << 19, 8)), a, a, Alu::add);
  EXPECT_EQ(all.errors(), 1u);
  EXPECT_TRUE(r.program().instructions[0]->broken);
  // One instruction may break several rules; the next one is looked at too.
  tensor_tensor(a(ds(32, 32)), b, a, Alu::add);
  const std::size_t errors = all.errors();
  EXPECT_EQ(errors, 4u);  // partitions and elements of data1, partitions of data2
  tensor_tensor(a, a, a, Alu::add);
  EXPECT_FALSE(r.program().instructions[2]->broken);
  EXPECT_EQ(all.errors(), errors);
  for (int again = 0; again < 2; ++again) tensor_tensor(a, a, b, Alu::add);
  EXPECT_EQ(all.errors(), errors + 1);  // the same line says it once
  // Impossible shapes have a stand-in too, and constants of another size.
  r.sbuf(DType::f32, {0, 8});
  r.private_hbm(DType::f64, {8});
  r.constant("c", DType::f32, {4}, std::vector<std::byte>(8));
  EXPECT_EQ(all.all().back().rule, "constant");
  EXPECT_EQ(all.errors(), errors + 4);
}

// --- Overlap against sets of bytes ---

std::set<std::pair<std::int64_t, std::int64_t>> bytes_of(const Program& program, const View& view,
                                                         bool same_tensor) {
  const Tensor& t = program.tensors[view.tensor];
  const bool chip = is_on_chip(t.buffer);
  const Address base = t.address && !same_tensor ? *t.address : Address{};
  std::set<std::pair<std::int64_t, std::int64_t>> all;
  std::vector<std::int64_t> offsets = {view.offset};
  for (int d = chip ? 1 : 0; d < view.rank; ++d) {
    std::vector<std::int64_t> next;
    for (std::int64_t at : offsets)
      for (int i = 0; i < view.pairs[static_cast<std::size_t>(d)].count; ++i)
        next.push_back(at + i * view.pairs[static_cast<std::size_t>(d)].step);
    offsets = next;
  }
  for (std::int64_t row = 0; row < (chip ? view.rows() : 1); ++row)
    for (std::int64_t at : offsets)
      for (int byte = 0; byte < size_of(view.dtype); ++byte)
        all.insert(
            {chip ? base.partition + view.partition + row : 0, base.byte + at * size_of(view.dtype) + byte});
  return all;
}

TEST(MayOverlap, IsExact) {
  std::mt19937 random(17);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  Recorder r("k", trn2());
  r.sbuf(DType::u8, {8, 200});
  r.sbuf(DType::u8, {8, 200}, {.address = Address{0, 64}});
  r.sbuf(DType::u8, {4, 100}, {.address = Address{2, 100}});
  r.psum(DType::u8, {8, 200}, {.address = Address{0, 0}});
  r.private_hbm(DType::u8, {400});
  int together = 0, apart = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const auto any = [&](TensorId tensor) {
      View v;
      v.tensor = tensor;
      const bool chip = tensor != 4;
      v.dtype = draw(0, 1) ? DType::u8 : DType::f32;
      v.rank = static_cast<std::uint8_t>(draw(chip ? 2 : 1, chip ? 5 : 4));
      v.offset = draw(0, 20);
      for (int d = 0; d < v.rank; ++d) v.pairs[static_cast<std::size_t>(d)] = {draw(-9, 9), draw(1, 3)};
      if (chip) {
        v.pairs[0] = {1, draw(1, 3)};
        v.partition = draw(0, 3);
      }
      return v;
    };
    const auto first = static_cast<TensorId>(draw(0, 4));
    const View a = any(first), b = any(draw(0, 1) ? first : static_cast<TensorId>(draw(0, 4)));
    const Tensor &ta = r.program().tensors[a.tensor], &tb = r.program().tensors[b.tensor];
    bool expected = false;
    if (a.tensor == b.tensor || (ta.address && tb.address && ta.buffer == tb.buffer)) {
      const auto ba = bytes_of(r.program(), a, a.tensor == b.tensor),
                 bb = bytes_of(r.program(), b, a.tensor == b.tensor);
      for (const auto& byte : ba) expected |= bb.contains(byte);
    }
    ASSERT_EQ(may_overlap(r.program(), a, b), expected) << to_string(a, ta) << " and " << to_string(b, tb);
    ++(expected ? together : apart);
  }
  EXPECT_GT(together, 2000);
  EXPECT_GT(apart, 2000);
}

TEST(MayOverlap, DynamicOffsetsLeadAnywhereWithinTheirPartitions) {
  Recorder r("k", trn2());
  const Tile t = r.sbuf(DType::f32, {128, 64}), other = r.sbuf(DType::f32, {128, 64});
  const Tile moved = t(ds(0, 32), ds(0, 1)).moved_by(r.new_register(), 1);
  EXPECT_TRUE(may_overlap(r.program(), moved, t(ds(0, 32), ds(50, 2))));
  EXPECT_TRUE(may_overlap(r.program(), t(ds(0, 128), ds(50, 2)), moved));
  EXPECT_FALSE(may_overlap(r.program(), moved, t(ds(32, 32))));
  EXPECT_FALSE(may_overlap(r.program(), moved, other));
}

}  // namespace
}  // namespace headway::chip
