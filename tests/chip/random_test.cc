// Random numbers: the generators against their definitions, and what instructions take from them.
#include "chip/random.h"

#include <cmath>
#include <set>

#include "chip/harness.h"
#include "chip/layouts.h"

namespace headway::chip {
namespace {

using Numbers = std::vector<double>;

// x^32 + x^22 + x^2 + x + 1 as the documentation of this project has it: the register shifts right, and what
// falls out flips the taps.
std::uint32_t shifted(std::uint32_t state) {
  for (int i = 0; i < 32; ++i) {
    const bool out = state & 1;
    state >>= 1;
    if (out) state ^= (1u << 31) | (1u << 21) | (1u << 1) | 1u;
  }
  return state;
}

// Marsaglia, "Xorshift RNGs" (2003), section 3.1: xorwow.
struct ReferenceXorwow {
  std::uint32_t x, y, z, w, v, d;
  std::uint32_t next() {
    const std::uint32_t t = x ^ (x >> 2);
    x = y;
    y = z;
    z = w;
    w = v;
    v = (v ^ (v << 4)) ^ (t ^ (t << 1));
    return (d += 362437) + v;
  }
};

TEST(RandomState, TheShiftRegisterRunsThroughAllStates) {
  // Its step is linear over bits. It has period 2^32 - 1 if that many steps are the identity and no (2^32 -
  // 1) / q are, for the prime factors q. Matrices by columns.
  using Matrix = std::array<std::uint32_t, 32>;
  const auto apply = [](const Matrix& m, std::uint32_t v) {
    std::uint32_t r = 0;
    for (unsigned b = 0; b < 32; ++b)
      if (v >> b & 1) r ^= m[b];
    return r;
  };
  Matrix number{}, identity{};  // `number` is 32 steps
  for (unsigned b = 0; b < 32; ++b) {
    RandomState::ShiftRegister generator{1u << b};
    number[b] = generator.next();
    identity[b] = 1u << b;
    EXPECT_EQ(number[b], shifted(1u << b));
  }
  const auto times = [&](std::uint64_t count) {
    Matrix result = identity, square = number;
    for (; count > 0; count /= 2) {
      Matrix next;
      if (count % 2) {
        for (unsigned b = 0; b < 32; ++b) next[b] = apply(square, result[b]);
        result = next;
      }
      for (unsigned b = 0; b < 32; ++b) next[b] = apply(square, square[b]);
      square = next;
    }
    return result;
  };
  const std::uint64_t period = 0xffffffff;
  EXPECT_EQ(times(period), identity);
  for (const std::uint64_t q : {3, 5, 17, 257, 65537}) EXPECT_NE(times(period / q), identity) << q;
}

TEST(RandomState, LanesStartApart) {
  const RandomState state;
  std::set<std::uint32_t> seen;
  for (const auto& lane : state.vector) seen.insert(lane.state);
  for (const auto& lane : state.gpsimd) {
    seen.insert(lane.x.begin(), lane.x.end());
    seen.insert(lane.counter);
  }
  EXPECT_EQ(seen.size(), 128u * 7) << "no two words alike";
  EXPECT_FALSE(seen.contains(0));
  RandomState other;
  // A seed that would make a lane's state 0, in which the register would stay.
  other.seed_vector(0u - 5 * 0x9e3779b9u);
  EXPECT_NE(other.vector[4].state, 0u);
  EXPECT_NE(other.vector[5].state, state.vector[5].state);
}

TEST(Rng, TakesTheLowBitsOfEachLanesNumbers) {
  for (const DType dtype : integer_dtypes())
    for (const Layout& layout : layouts()) {
      if (!layout.writable) continue;
      Harness h;
      const Tile t = layout.make(h.nki, dtype == DType::u8 ? Buffer::psum : Buffer::sbuf, dtype, 20, 12);
      RandomState before = h.core().random;
      rng(t);
      rng(t);
      h.run();
      const int first = layout.name == "last partitions" ? 96 : 0;
      std::vector<std::uint64_t> expected;
      for (int r = 0; r < 20; ++r) {
        std::uint32_t state = before.vector[static_cast<std::size_t>(first + r)].state;
        for (int i = 0; i < 24; ++i) {
          state = shifted(state);
          if (i >= 12) expected.push_back(state & (0xffffffffu >> (32 - 8 * size_of(dtype))));
        }
      }
      EXPECT_EQ(h.bits(t), expected) << layout.name << name_of(dtype);
    }
}

TEST(Rng, RunsXorwowOnGpSimd) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::u32, {128, 100}), before = h.nki.sbuf(DType::u32, {128, 6}),
             after = h.nki.sbuf(DType::u32, {128, 6}),
             state = h.nki.sbuf(DType::u32, {32, 6}, {.address = Address{64, 0}});
  rand_get_state(before);
  rng(t, {.engine = Engine::gpsimd});
  rand_get_state(after);
  h.run();
  const auto words = h.bits(before), last = h.bits(after), numbers = h.bits(t);
  const auto word = [&](std::size_t i) { return static_cast<std::uint32_t>(words[i]); };
  for (std::size_t r = 0; r < 128; ++r) {
    ReferenceXorwow g{word(6 * r),     word(6 * r + 1), word(6 * r + 2),
                      word(6 * r + 3), word(6 * r + 4), word(6 * r + 5)};
    for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(numbers[r * 100 + i], g.next());
    ASSERT_EQ((std::vector<std::uint64_t>(last.begin() + 6 * static_cast<long>(r),
                                          last.begin() + 6 * static_cast<long>(r) + 6)),
              (std::vector<std::uint64_t>{g.x, g.y, g.z, g.w, g.v, g.d}));
  }
  // A state that was kept gives the same numbers again, in its lanes.
  const Tile again = h.nki.sbuf(DType::u32, {128, 100});
  h.set(state, Numbers(words.begin() + 64 * 6, words.begin() + 96 * 6));
  rand_set_state(state);
  rng(again, {.engine = Engine::gpsimd});
  h.run();
  const auto repeated = h.bits(again);
  EXPECT_TRUE(
      std::equal(numbers.begin() + 64 * 100, numbers.begin() + 96 * 100, repeated.begin() + 64 * 100));
  EXPECT_NE(numbers[0], repeated[0]) << "other lanes went on";
  EXPECT_EQ(h.diagnostics().all().size(), 0u);
}

TEST(Rng, SeedsRepeat) {
  Harness h;
  const Tile seed = h.nki.sbuf(DType::u32, {1, 1}), a = h.nki.sbuf(DType::u32, {128, 7}),
             b = h.nki.sbuf(DType::u32, {128, 7}), c = h.nki.sbuf(DType::u32, {128, 7}),
             g = h.nki.sbuf(DType::u32, {128, 7}), f = h.nki.psum(DType::f32, {1, 1});
  h.set(seed, {4000000000.0});
  h.set(f, {1.5});
  rng(g, {.engine = Engine::gpsimd});
  set_rng_seed(seed);
  rng(a);
  rng(c);
  set_rng_seed(seed);
  rng(b);
  h.run();
  EXPECT_EQ(h.bits(a), h.bits(b));
  EXPECT_NE(h.bits(a), h.bits(c)) << "the state goes on";
  // The same seed as bits of a float32; VectorE's seed doesn't touch GpSimd's generators.
  Harness other;
  const Tile as_float = other.nki.sbuf(DType::f32, {1, 1}), as_int = other.nki.sbuf(DType::i32, {1, 1}),
             x = other.nki.sbuf(DType::u32, {128, 7}), y = other.nki.sbuf(DType::u32, {128, 7}),
             z = other.nki.sbuf(DType::u32, {128, 7});
  other.set(as_float, {1.5});
  other.set(as_int, {0x3fc00000});
  set_rng_seed(as_float);
  rng(x);
  set_rng_seed(as_int);
  rng(y);
  rng(z, {.engine = Engine::gpsimd});
  other.run();
  EXPECT_EQ(other.bits(x), other.bits(y));
  EXPECT_EQ(other.bits(z), h.bits(g));
}

TEST(Rng, IsUniform) {
  // Each of 16 classes of 8 bits gets 1/16 of 65536 numbers: 4096 -+ 5 standard deviations of 62.
  for (const Engine engine : {Engine::vector, Engine::gpsimd})
    for (const int shift : {0, 4}) {
      Harness h;
      const Tile t = h.nki.sbuf(DType::u8, {128, 512});
      rng(t, {.engine = engine});
      h.run();
      std::array<int, 16> counts{};
      for (const std::uint64_t bits : h.bits(t)) ++counts[bits >> shift & 15];
      for (const int count : counts) EXPECT_NEAR(count, 4096, 310);
    }
}

TEST(Dropout, KeepsBitsOrWritesZero) {
  for (const DType dtype : computable_dtypes())
    for (const Layout& from : layouts())
      for (const Layout& to : layouts()) {
        if (!to.writable || (from.name != "whole" && to.name != "whole")) continue;
        Harness h;
        const Tile x = from.make(h.nki, Buffer::sbuf, dtype, 32, 66),
                   y = to.make(h.nki, Buffer::psum, dtype, 32, 66);
        h.fill(x, 1, 2);
        if (dtype == DType::i32) h.set(x, Numbers(32 * 66, 16777217));
        dropout(y, x, 0.25);
        const RandomState before = h.core().random;
        h.run();
        const auto in = h.bits(x), out = h.bits(y);
        const std::size_t first = from.name == "last partitions" ? 96 : 0;
        std::vector<std::uint64_t> expected;
        for (std::size_t r = 0; r < 32; ++r) {
          std::uint32_t state = before.vector[first + r].state;
          for (std::size_t i = 0; i < 66; ++i) {
            state = shifted(state);
            expected.push_back(std::floor(state / 256.0) / 0x1p24 < 0.25 ? 0 : in[r * 66 + i]);
          }
        }
        EXPECT_EQ(out, expected) << from.name << " to " << to.name << " " << name_of(dtype);
      }
}

TEST(Dropout, FollowsEachPartitionsProbability) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::bf16, {4, 512}), prob = h.nki.sbuf(DType::bf16, {4, 1});
  h.fill(x, 1, 2);
  const Numbers before = h.numbers(x);
  h.set(prob, {0, 1, 0.5, 100});
  dropout(x, x, prob);
  h.run();
  const Numbers after = h.numbers(x);
  std::array<int, 4> kept{};
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (after[i] != 0) {
      EXPECT_EQ(after[i], before[i]);
      ++kept[i / 512];
    }
  }
  EXPECT_EQ(kept[0], 512);
  EXPECT_EQ(kept[1], 0);
  EXPECT_NEAR(kept[2], 256, 5 * 11.3);
  EXPECT_EQ(kept[3], 0) << "what exceeds 1 drops everything";
}

TEST(Dropout, SharesItsLanesNumbersWithRng) {
  Harness h;
  const Tile seed = h.nki.sbuf(DType::u32, {1, 1}), x = h.nki.sbuf(DType::f32, {64, 10}),
             y = h.nki.sbuf(DType::f32, {64, 10}), straight = h.nki.sbuf(DType::u32, {64, 20}),
             after = h.nki.sbuf(DType::u32, {64, 10});
  h.set(seed, {77});
  h.fill(x);
  set_rng_seed(seed);
  rng(straight);
  set_rng_seed(seed);
  dropout(y, x, 0.5);
  rng(after);
  h.run();
  EXPECT_EQ(h.bits(after), h.bits(straight(ds(0, 64), ds(10, 10)))) << "ten of each lane's numbers are spent";
}

TEST(Dropout, ReadsAllBeforeItWrites) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::u32, {16, 40});
  h.fill(t, 1, 1e6);
  const Numbers before = h.numbers(t(ds(0, 16), ds(0, 37)));
  dropout(t(ds(0, 16), ds(3, 37)), t(ds(0, 16), ds(0, 37)), 0);
  h.run();
  EXPECT_EQ(h.numbers(t(ds(0, 16), ds(3, 37))), before);
}

TEST(Random, GivesTheSameOnAnyNumberOfThreads) {
  for (const Engine engine : {Engine::vector, Engine::gpsimd})
    expect_same_on_two_threads([&](Harness& h) {
      const Tile t = h.nki.sbuf(DType::i16, {128, 200});
      rng(t, {.engine = engine});
      rng(t, {.engine = engine});
      return t;
    });
  expect_same_on_two_threads([](Harness& h) {
    const Tile x = h.nki.sbuf(DType::f32, {128, 200});
    h.fill(x);
    dropout(x, x, 0.5);
    dropout(x, x, 0.5);
    return x;
  });
}

TEST(Random, RefusesWhatEnginesCant) {
  Harness h;
  Recorder& nki = h.nki;
  const Tile u = nki.sbuf(DType::u32, {64, 6}), in_psum = nki.psum(DType::u32, {64, 6}),
             f = nki.sbuf(DType::f32, {64, 6}), hbm = nki.private_hbm(DType::u32, {64, 6});
  EXPECT_BREAKS("dtype", "rng, dst", rng(f));
  EXPECT_BREAKS("dtype", "dst", rng(nki.sbuf(DType::boolean, {64, 6})));
  EXPECT_BREAKS("buffer", "dst", rng(hbm));
  EXPECT_BREAKS("engine", "gpsimd", rng(in_psum, {.engine = Engine::gpsimd}));
  EXPECT_BREAKS("engine", "scalar", rng(u, {.engine = Engine::scalar}));
  // Seeds and states
  EXPECT_BREAKS("shape", "set_rng_seed, src_seeds", set_rng_seed(u));
  EXPECT_BREAKS("dtype", "src_seeds", set_rng_seed(nki.sbuf(DType::u16, {1, 1})));
  EXPECT_BREAKS("buffer", "src_seeds", set_rng_seed(nki.private_hbm(DType::u32, {1, 1})));
  EXPECT_BREAKS("shape", "must be [64, 6]", rand_set_state(u(ds(0, 64), ds(0, 5))));
  EXPECT_BREAKS("dtype", "uint32", rand_set_state(f));
  EXPECT_BREAKS("buffer", "PSUM", rand_set_state(in_psum));
  EXPECT_BREAKS("shape", "must be [64, 6]", rand_get_state(nki.sbuf(DType::u32, {64, 24})));
  EXPECT_BREAKS("dtype", "uint32", rand_get_state(f));
  EXPECT_BREAKS("buffer", "PSUM", rand_get_state(in_psum));
  EXPECT_BREAKS("engine", "vector", rand_set_state(u, {.engine = Engine::vector}));
  EXPECT_BREAKS("engine", "vector", rand_get_state(u, {.engine = Engine::vector}));
  // Dropout
  const Tile g = nki.sbuf(DType::f32, {64, 6}), i = nki.sbuf(DType::i32, {64, 6}),
             half = nki.sbuf(DType::bf16, {64, 1});
  EXPECT_BREAKS("dtype", "is int32, but data is float32", dropout(i, f, 0.5));
  EXPECT_BREAKS("dtype", "data",
                dropout(nki.sbuf(DType::f8e5m2_x4, {64, 6}), nki.sbuf(DType::f8e5m2_x4, {64, 6}), 0.5));
  EXPECT_BREAKS("buffer", "dst", dropout(nki.private_hbm(DType::f32, {64, 6}), f, 0.5));
  EXPECT_BREAKS("buffer", "data", dropout(f, nki.private_hbm(DType::f32, {64, 6}), 0.5));
  EXPECT_BREAKS("partitions", "dst", dropout(g(ds(0, 32)), f, 0.5));
  EXPECT_BREAKS("shape", "dst", dropout(g(ds(0, 64), ds(0, 5)), f, 0.5));
  EXPECT_BREAKS("shape", "prob", dropout(g, f, half(ds(0, 32))));
  EXPECT_BREAKS("buffer", "prob", dropout(g, f, nki.private_hbm(DType::f32, {64, 1})));
  EXPECT_BREAKS("dtype", "must be float32 with data of int32", dropout(i, i, half));
  EXPECT_BREAKS("dtype", "must be floating point, not int32", dropout(g, f, i(ds(0, 64), ds(0, 1))));
  EXPECT_BREAKS("probability", "1.5", dropout(g, f, 1.5));
  EXPECT_BREAKS("probability", "-0.5", dropout(g, f, -0.5));
  dropout(g, f, half);
  dropout(i, i, g(ds(0, 64), ds(0, 1)));
  EXPECT_EQ(nki.program().instructions.size(), 2u);
}

TEST(Random, KnowsTheGenerations) {
  Harness first(trn1());
  const Tile u = first.nki.sbuf(DType::u32, {64, 6});
  EXPECT_BREAKS("generation", "rand_set_state", rand_set_state(u));
  EXPECT_BREAKS("generation", "rand_get_state", rand_get_state(u));
  EXPECT_BREAKS("engine", "gpsimd", rng(u, {.engine = Engine::gpsimd}));
  rng(u);
  Harness fourth(trn3());
  const Tile w = fourth.nki.sbuf(DType::u32, {64, 24});
  EXPECT_BREAKS("vector-state", "not modelled", rand_set_state(w, {.engine = Engine::vector}));
  EXPECT_BREAKS("vector-state", "not modelled", rand_get_state(w, {.engine = Engine::vector}));
}

TEST(Random, WarnsOfAStateThatStaysZero) {
  Harness h;
  const Tile state = h.nki.sbuf(DType::u32, {2, 6});
  h.set(state, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7});
  rand_set_state(state);
  h.run();
  const auto texts = warnings(h, "zero-state");
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("rand_set_state, src_seeds"), std::string::npos) << texts[0];
}

TEST(Random, AnOpenEngineIsTheVectorEngine) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::u32, {8, 8}), b = h.nki.sbuf(DType::u32, {8, 8}),
             seed = h.nki.sbuf(DType::u32, {1, 1});
  h.set(seed, {3});
  set_rng_seed(seed);
  rng(a, {.engine = Engine::unknown});
  set_rng_seed(seed);
  rng(b);
  h.run();
  EXPECT_EQ(h.bits(a), h.bits(b));
  Check check(trn2(), h.nki.program(), h.diagnostics());
  EXPECT_EQ(h.nki.program().instructions[1]->engines(check), Engines(Engine::vector));
}

}  // namespace
}  // namespace headway::chip
