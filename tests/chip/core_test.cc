// A core's memory and state, as instructions see them.
#include "chip/core.h"

#include <gtest/gtest.h>

#include "chip/harness.h"
#include "chip/sync_engine.h"
#include "chip/tensor_engine.h"
#include "chip/vector_copy.h"

namespace headway::chip {
namespace {

// Tensors with addresses share the physical memory.
TEST(Addresses, ShareMemory) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {64, 16}, {.address = Address{0, 64}});
  const Tile b =
      h.nki.sbuf(DType::u16, {32, 8}, {.address = Address{32, 72}});  // 4 elements of rows 32 to 63 of a
  const Tile virtual_one = h.nki.sbuf(DType::f32, {64, 16});
  h.fill(a);
  const auto before = h.bits(a);
  const auto shared = h.bits(b);
  for (std::size_t r = 0; r < 32; ++r)
    for (std::size_t i = 0; i < 8; ++i)
      ASSERT_EQ(shared[r * 8 + i], before[(32 + r) * 16 + 2 + i / 2] >> (16 * (i % 2)) & 0xffff);
  h.set(b, std::vector<double>(256, 7));
  const auto after = h.bits(a);
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool in_b = i / 16 >= 32 && i % 16 >= 2 && i % 16 < 6;
    ASSERT_EQ(after[i], in_b ? 0x00070007u : before[i]);
  }
  EXPECT_FALSE(h.written(virtual_one));
  EXPECT_TRUE(h.core().overlap(a, b));
  EXPECT_FALSE(h.core().overlap(a(ds(0, 32)), b));
  EXPECT_FALSE(h.core().overlap(a, virtual_one));
}

TEST(Addresses, TheSamePlace) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {64, 16}, {.address = Address{0, 64}});
  const Tile b = h.nki.sbuf(DType::i32, {64, 8}, {.address = Address{0, 80}});
  const Tile c = h.nki.sbuf(DType::f32, {64, 16}),
             p = h.nki.psum(DType::f32, {64, 16}, {.address = Address{0, 0}});
  const Tile q = h.nki.sbuf(DType::f32, {64, 16}, {.address = Address{0, 0}});
  Core& core = h.core();
  h.machine().synchronise();
  EXPECT_TRUE(core.same_place(a, a));
  EXPECT_TRUE(core.same_place(a(ds(0, 64), ds(4, 8)), b));
  EXPECT_TRUE(core.same_place(c, c.reinterpret(DType::i32)));
  EXPECT_FALSE(core.same_place(a(ds(0, 64), ds(3, 8)), b));
  EXPECT_FALSE(core.same_place(a(ds(0, 32), ds(4, 8)), b));
  EXPECT_FALSE(core.same_place(a(ds(32, 32), ds(4, 8)), b(ds(0, 32))));
  EXPECT_FALSE(core.same_place(c.reinterpret(DType::bf16), c));
  EXPECT_FALSE(core.same_place(a, c));
  EXPECT_FALSE(core.same_place(p, q));
  const Register r = h.nki.new_register();
  h.machine().synchronise();
  EXPECT_FALSE(core.same_place(c.moved_by(r, 1), c));
}

// --- The states of PSUM ---

TEST(PsumStates, FollowWhoWroteAnElement) {
  Harness h;
  const Tile c = h.nki.psum(DType::f32, {64, 100});
  const Tile window = c(ds(0, 64), ds(20, 30)), around = c(ds(0, 64), ds(0, 60));
  Core& core = h.core();
  h.machine().synchronise();
  using A = Core::Accumulation;
  EXPECT_EQ(core.accumulation(c), A::fresh);
  core.set_psum_state(window, PsumState::matmul);
  EXPECT_EQ(core.accumulation(window), A::running);
  EXPECT_EQ(core.accumulation(c(ds(0, 64), ds(50, 50))), A::fresh);
  EXPECT_EQ(core.accumulation(around), A::mixed);
  const auto states = core.psum_states(around);
  for (std::size_t i = 0; i < states.size(); ++i)
    EXPECT_EQ(states[i], i % 60 >= 20 && i % 60 < 50 ? PsumState::matmul : PsumState::never);
  core.set_psum_state(c, PsumState::matmul);
  EXPECT_EQ(core.accumulation(c), A::running);
  // Whatever else writes makes it other: in any dtype, through any pattern.
  h.set(c.reinterpret(DType::u8)(ds(32, 1), ds(43, 1)), {1});
  const auto now = core.psum_states(c);
  for (std::size_t i = 0; i < now.size(); ++i)
    EXPECT_EQ(now[i], i == 32 * 100 + 10 ? PsumState::other : PsumState::matmul) << i;
  EXPECT_EQ(core.accumulation(c), A::mixed);
  h.set(c, std::vector<double>(6400, 0));
  EXPECT_EQ(core.accumulation(c), A::mixed);
  core.set_psum_state(c, PsumState::never);
  EXPECT_EQ(core.accumulation(c), A::fresh);
}

TEST(PsumStates, AreNewInEachRoundOfALoop) {
  Harness h;
  const Tile s = h.nki.sbuf(DType::f32, {16, 8}), v = h.nki.sbuf(DType::f32, {16, 30}),
             out = h.nki.sbuf(DType::f32, {8, 30});
  h.set(s, std::vector<double>(128, 1));
  h.set(v, std::vector<double>(480, 1));
  fori_loop(h.nki, 0, 4, 1, [&](Register) {
    const Tile c = h.nki.psum(DType::f32, {8, 30});
    nc_matmul(c, s, v);
    nc_matmul(c, s, v);
    tensor_copy(out, c);
  });
  h.run();
  EXPECT_EQ(h.numbers(out), std::vector<double>(240, 32));
}

// --- What instructions are given ---

TEST(Core, ScalarsByLane) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::i16, {32, 4}), column = t(ds(0, 32), ds(2, 1));
  const auto numbers = h.fill(column, -300, 300);
  std::vector<float> values(32);
  h.core().scalar("s", Scalar(column), values);
  EXPECT_EQ(std::vector<double>(values.begin(), values.end()), numbers);
  h.core().scalar("s", Scalar(-7), values);
  EXPECT_EQ(values, std::vector<float>(32, -7));
  std::vector<std::uint32_t> bits(32);
  h.core().scalar_bits("s", Scalar(column), bits);
  for (std::size_t r = 0; r < 32; ++r)
    EXPECT_EQ(bits[r], static_cast<std::uint16_t>(static_cast<std::int16_t>(numbers[r])));
  h.core().scalar_bits("s", Scalar(-1), bits);
  EXPECT_EQ(bits[31], 0xffffffffu);
  EXPECT_BREAKS("unwritten", "s: reads partition 0",
                h.core().scalar("s", Scalar(t(ds(0, 32), ds(0, 1))), values));
}

TEST(Core, MarksWhatATargetGot) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::f32, {32, 4}), x = h.nki.private_hbm(DType::f32, {8, 4});
  h.machine().synchronise();
  Core& core = h.core();
  core.target("t", t);
  EXPECT_FALSE(h.written(t(ds(0, 1), ds(0, 1))));
  std::vector<std::uint8_t> rows(32), elements(128);
  rows[3] = rows[31] = 1;
  core.mark_rows(t, rows);
  for (std::int64_t r = 0; r < 32; ++r) EXPECT_EQ(h.written(t(ds(r, 1))), r == 3 || r == 31);
  elements[4 * 7 + 2] = 1;
  core.mark_elements(t, elements);
  EXPECT_TRUE(h.written(t(ds(7, 1), ds(2, 1))));
  EXPECT_FALSE(h.written(t(ds(7, 1), ds(1, 1))));
  const Tile index = h.nki.sbuf(DType::i32, {4, 1}), rows_of_x = x(ds(0, 4)).rows_at(index, 4);
  h.set(index, {6, 0, 99, 3});
  core.target("x", rows_of_x, OobMode::skip);
  core.mark_rows(rows_of_x, std::vector<std::uint8_t>{1, 0, 1, 1});
  for (std::int64_t r = 0; r < 8; ++r) EXPECT_EQ(h.written(x(ds(r, 1))), r == 6 || r == 3) << r;
}

TEST(Core, ScratchIsKeptAndAligned) {
  Harness h(trn2(), 2);
  Core& core = h.core();
  float* first = core.scratch(0, 100, 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(core.scratch(0, 50, 0), first);
  EXPECT_NE(core.scratch(0, 100, 1), first);
  EXPECT_NE(core.scratch(1, 100, 0), first);
  EXPECT_THROW(core.scratch(0, 1, 8), Bug);
}

}  // namespace
}  // namespace headway::chip
