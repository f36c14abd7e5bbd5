#include "chip/tensor_engine.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.h"
#include "chip/dma_engine.h"
#include "chip/harness.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_copy.h"

namespace headway::chip {
namespace {

// [K, M]^T [K, N] in float64.
std::vector<double> product(const std::vector<double>& s, const std::vector<double>& v, std::int64_t k,
                            std::int64_t m, std::int64_t n) {
  std::vector<double> c(static_cast<std::size_t>(m * n), 0);
  for (std::int64_t l = 0; l < k; ++l)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        c[static_cast<std::size_t>(i * n + j)] +=
            s[static_cast<std::size_t>(l * m + i)] * v[static_cast<std::size_t>(l * n + j)];
  return c;
}

// A sum of k products of numbers up to 2, in float32: each step rounds by half a unit of at most 4k.
double bound(std::int64_t k) { return static_cast<double>(4 * k) * static_cast<double>(k) * 6e-8; }

void expect_product(DType stationary, DType moving, std::int64_t k, std::int64_t m, std::int64_t n) {
  Harness h;
  const Tile s = h.nki.sbuf(stationary, {k, m}), v = h.nki.sbuf(moving, {k, n}),
             c = h.nki.psum(DType::f32, {m, n});
  const auto ns = h.fill(s), nv = h.fill(v);
  nc_matmul(c, s, v);
  h.run();
  expect_close(h.numbers(c), product(ns, nv, k, m, n), 0, bound(k));
}

TEST(NcMatmul, MultipliesAllShapes) {
  for (const auto& [k, m, n] : std::vector<std::array<std::int64_t, 3>>{{1, 1, 1},
                                                                        {128, 128, 512},
                                                                        {128, 128, 1},
                                                                        {128, 1, 512},
                                                                        {1, 128, 512},
                                                                        {32, 17, 33},
                                                                        {97, 101, 509},
                                                                        {64, 64, 64},
                                                                        {128, 14, 31},
                                                                        {2, 3, 65}})
    expect_product(DType::f32, DType::f32, k, m, n);
}

TEST(NcMatmul, MultipliesAllDtypes) {
  const std::vector<DType> small = {DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2};
  for (DType a : small)
    for (DType b : small) expect_product(a, b, 64, 48, 80);
  for (DType a : {DType::f32, DType::tf32})
    for (DType b : {DType::f32, DType::tf32}) expect_product(a, b, 64, 48, 80);
}

TEST(NcMatmul, ReadsAndWritesAnyPattern) {
  Harness h;
  // A strided stationary operand, a moving one of several extents with a zero step, a destination inside a
  // larger tile.
  const Tile big_s = h.nki.sbuf(DType::bf16, {128, 200}), big_v = h.nki.sbuf(DType::f16, {128, 6, 20});
  const Tile c = h.nki.psum(DType::f32, {128, 2, 256});
  const auto ns = h.fill(big_s), nv = h.fill(big_v);
  const Tile s = big_s(ds(32, 32), range(10, 90, 4)), v = big_v(ds(32, 32), ds(1, 4), range(0, 20, 2));
  const Tile repeated = big_v(ds(32, 32), ds(5, 1), ds(3, 5)).broadcast(1, 3);
  const Tile to = c(ds(0, 20), at(0), ds(7, 40)), other = c(ds(32, 20), at(1), ds(100, 15));
  nc_matmul(to, s, v);
  nc_matmul(other, s, repeated);
  std::vector<double> ps, pv, pr;
  for (std::int64_t p = 32; p < 64; ++p) {
    for (std::int64_t i = 10; i < 90; i += 4) ps.push_back(ns[static_cast<std::size_t>(p * 200 + i)]);
    for (std::int64_t i = 1; i < 5; ++i)
      for (std::int64_t j = 0; j < 20; j += 2)
        pv.push_back(nv[static_cast<std::size_t>((p * 6 + i) * 20 + j)]);
    for (int repeat = 0; repeat < 3; ++repeat)
      for (std::int64_t j = 3; j < 8; ++j) pr.push_back(nv[static_cast<std::size_t>((p * 6 + 5) * 20 + j)]);
  }
  h.run();
  expect_close(h.numbers(to), product(ps, pv, 32, 20, 40), 0, bound(32));
  expect_close(h.numbers(other), product(ps, pr, 32, 20, 15), 0, bound(32));
  EXPECT_FALSE(h.written(c(ds(0, 20), at(0), ds(6, 1))));
  EXPECT_FALSE(h.written(c(ds(20, 1), at(0), ds(7, 40))));
}

TEST(NcMatmul, AccumulatesByDefaultWhatMatmulsStarted) {
  Harness h;
  const Tile s = h.nki.sbuf(DType::f32, {128, 64}), v = h.nki.sbuf(DType::f32, {128, 100});
  const Tile c = h.nki.psum(DType::f32, {64, 100});
  const auto ns = h.fill(s), nv = h.fill(v);
  nc_matmul(c, s, v);
  nc_matmul(c, s, v);
  // An overlapping window: three times in it, twice around it.
  nc_matmul(c(ds(0, 64), ds(20, 30)), s, v(ds(0, 128), ds(20, 30)));
  h.run();
  auto expected = product(ns, nv, 128, 64, 100);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] *= i % 100 >= 20 && i % 100 < 50 ? 3 : 2;
  expect_close(h.numbers(c), expected, 0, 3 * bound(128));
  nc_matmul(c, s, v, {.accumulate = false});
  h.run();
  expect_close(h.numbers(c), product(ns, nv, 128, 64, 100), 0, bound(128));
  nc_matmul(c, s, v, {.accumulate = true});
  h.run();
  for (double& e : expected = product(ns, nv, 128, 64, 100)) e *= 2;
  expect_close(h.numbers(c), expected, 0, 2 * bound(128));
}

TEST(NcMatmul, StartsElementsThatOverlappingWindowsDidNotReach) {
  Harness h;
  const Tile s = h.nki.sbuf(DType::f32, {16, 8}), v = h.nki.sbuf(DType::f32, {16, 30});
  const Tile c = h.nki.psum(DType::f32, {8, 30});
  const auto ns = h.fill(s), nv = h.fill(v);
  nc_matmul(c(ds(0, 8), ds(0, 20)), s, v(ds(0, 16), ds(0, 20)));
  nc_matmul(c(ds(0, 8), ds(10, 20)), s, v(ds(0, 16), ds(10, 20)));
  h.run();
  auto expected = product(ns, nv, 16, 8, 30);
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (i % 30 >= 10 && i % 30 < 20) expected[i] *= 2;
  expect_close(h.numbers(c), expected, 0, 2 * bound(16));
}

TEST(NcMatmul, ANewTensorAtAnOldAddressStartsAnew) {
  Harness h;
  const Tile s = h.nki.sbuf(DType::f32, {16, 8}), v = h.nki.sbuf(DType::f32, {16, 30});
  const Tile first = h.nki.psum(DType::f32, {8, 30}, {.address = Address{0, 2048}});
  const auto ns = h.fill(s), nv = h.fill(v);
  nc_matmul(first, s, v);
  nc_matmul(first, s, v);
  const Tile second = h.nki.psum(DType::f32, {8, 30}, {.address = Address{0, 2048}});
  nc_matmul(second, s, v);
  h.run();
  expect_close(h.numbers(second), product(ns, nv, 16, 8, 30), 0, bound(16));
  expect_close(h.numbers(first), product(ns, nv, 16, 8, 30), 0, bound(16));  // the same bytes
}

TEST(NcMatmul, WarnsWhereAccumulationIsUndefined) {
  for (const std::optional<bool> accumulate : {std::optional<bool>(), std::optional<bool>(true)}) {
    Harness h;
    const Tile s = h.nki.sbuf(DType::f32, {16, 8}), v = h.nki.sbuf(DType::f32, {16, 30});
    const Tile c = h.nki.psum(DType::f32, {8, 30});
    const auto ns = h.fill(s), nv = h.fill(v), nc = h.fill(c);
    nc_matmul(c, s, v, {.accumulate = accumulate});
    h.run();
    ASSERT_EQ(h.diagnostics().all().size(), 1u);
    const std::string text = h.diagnostics().all()[0].text();
    EXPECT_NE(text.find("no matmul started"), std::string::npos) << text;
    EXPECT_EQ(h.diagnostics().errors(), 0u);
    auto expected = product(ns, nv, 16, 8, 30);
    if (accumulate)
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += nc[i];
    expect_close(h.numbers(c), expected, 0, 2 * bound(16));
  }
}

TEST(NcMatmul, RefusesToAddToWhatWasNeverWritten) {
  Harness h;
  const Tile s = h.nki.sbuf(DType::f32, {16, 8}), v = h.nki.sbuf(DType::f32, {16, 30});
  const Tile c = h.nki.psum(DType::f32, {8, 30});
  h.fill(s);
  h.fill(v);
  nc_matmul(c, s, v, {.accumulate = true});
  EXPECT_BREAKS("unwritten", "never written", h.run());
  // Nor to part of what was.
  Harness g;
  const Tile s2 = g.nki.sbuf(DType::f32, {16, 8}), v2 = g.nki.sbuf(DType::f32, {16, 30}),
             c2 = g.nki.psum(DType::f32, {8, 30});
  g.fill(s2);
  g.fill(v2);
  nc_matmul(c2(ds(0, 8), ds(0, 20)), s2, v2(ds(0, 16), ds(0, 20)));
  nc_matmul(c2, s2, v2, {.accumulate = true});
  EXPECT_BREAKS("unwritten", "partition 0, byte 80", g.run());
}

TEST(NcMatmul, DoubleRowSumsBothHalves) {
  for (DType a : {DType::f8e4m3, DType::f8e5m2}) {
    Harness h;
    const Tile s = h.nki.sbuf(a, {128, 2, 100}), v = h.nki.sbuf(DType::f8e4m3, {128, 2, 300});
    const Tile c = h.nki.psum(DType::f32, {100, 300});
    const auto ns = h.fill(s), nv = h.fill(v);
    nc_matmul(c, s, v, {.perf_mode = MatmulPerf::double_row});
    h.run();
    std::vector<double> expected(100 * 300, 0);
    for (std::size_t p = 0; p < 128; ++p)
      for (std::size_t half = 0; half < 2; ++half)
        for (std::size_t i = 0; i < 100; ++i)
          for (std::size_t j = 0; j < 300; ++j)
            expected[i * 300 + j] += ns[(p * 2 + half) * 100 + i] * nv[(p * 2 + half) * 300 + j];
    expect_close(h.numbers(c), expected, 0, bound(256));
  }
}

TEST(NcMatmul, TransposeModePassesBitsThrough) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f8e5m2}) {
    Harness h;
    const Tile data = h.nki.sbuf(dtype, {64, 48}), identity = h.nki.sbuf(dtype, {64, 64});
    const Tile out = h.nki.psum(size_of(dtype) == 1 ? DType::u16 : dtype, {48, 64});
    auto numbers = h.fill(data);
    numbers[5] = std::numeric_limits<double>::quiet_NaN();
    numbers[7] = -std::numeric_limits<double>::infinity();
    h.set(data, numbers);
    std::vector<double> ones(64 * 64, 0);
    for (std::size_t i = 0; i < 64; ++i) ones[i * 64 + i] = 1;
    h.set(identity, ones);
    nc_matmul(out, data, identity, {.is_transpose = true});
    h.run();
    const auto in = h.bits(data), got = h.bits(out);
    for (std::size_t r = 0; r < 64; ++r)
      for (std::size_t i = 0; i < 48; ++i) ASSERT_EQ(got[i * 64 + r], in[r * 48 + i]);
  }
}

TEST(NcMatmul, TransposeModeNeedsAnIdentity) {
  Harness h;
  const Tile data = h.nki.sbuf(DType::f32, {8, 8}), not_identity = h.nki.sbuf(DType::f32, {8, 8});
  const Tile out = h.nki.psum(DType::f32, {8, 8});
  h.fill(data);
  h.set(not_identity, std::vector<double>(64, 1));
  nc_matmul(out, data, not_identity, {.is_transpose = true});
  EXPECT_BREAKS("transpose-identity", "column 0", h.run());
}

TEST(NcMatmul, HoldsOnezeroPromises) {
  Harness h;
  const Tile s = h.nki.sbuf(DType::f32, {8, 8}), v = h.nki.sbuf(DType::f32, {8, 8});
  const Tile c = h.nki.psum(DType::f32, {8, 8});
  h.set(s, std::vector<double>(64, 1));
  h.set(v, std::vector<double>(64, 0.5));
  nc_matmul(c, s, v, {.is_stationary_onezero = true});
  h.run();
  nc_matmul(c, s, v, {.is_moving_onezero = true});
  EXPECT_BREAKS("onezero", "0.5", h.run());
}

TEST(NcMatmul, TilesOfTheArrayComputeTheSame) {
  Harness h;
  const Tile s = h.nki.sbuf(DType::bf16, {128, 64}), v = h.nki.sbuf(DType::bf16, {128, 100});
  const Tile c = h.nki.psum(DType::f32, {64, 100});
  const auto ns = h.fill(s), nv = h.fill(v);
  nc_matmul(c, s(ds(64, 64)), v(ds(64, 64)),
            {.tile_position = ArrayTile{64, 0}, .tile_size = ArrayTile{64, 64}});
  h.run();
  expect_close(h.numbers(c),
               product({ns.begin() + 64 * 64, ns.end()}, {nv.begin() + 64 * 100, nv.end()}, 64, 64, 100), 0,
               bound(64));
}

TEST(NcMatmul, TheSameBitsForAnyNumberOfThreads) {
  std::vector<std::uint64_t> first;
  for (int threads : {1, 2, 3}) {
    Harness h(trn2(), threads);
    const Tile s = h.nki.sbuf(DType::bf16, {128, 128}), v = h.nki.sbuf(DType::f32, {128, 512});
    const Tile s32 = h.nki.sbuf(DType::f32, {128, 128}), c = h.nki.psum(DType::f32, {128, 512});
    h.fill(s);
    h.fill(v);
    h.fill(s32);
    nc_matmul(c, s32, v);
    nc_matmul(c, s32, v);
    h.run();
    const auto bits = h.bits(c);
    if (first.empty()) first = bits;
    EXPECT_EQ(bits, first);
  }
}

// A moving operand that is used again is kept in another layout; it must never outlive what is written to it.
TEST(NcMatmul, SeesEveryWriteToAMovingOperandThatIsUsedAgain) {
  Random random(5);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f8e4m3}) {
    for (int threads : {1, 2, 3}) {
      const bool twice = dtype == DType::f8e4m3;
      const std::int64_t k = 96, m = 50, n = 70, halves = twice ? 2 : 1;
      Harness h(trn2(), threads);
      const Tile s = h.nki.sbuf(dtype, {k, halves, m}), v = h.nki.sbuf(dtype, {k, halves, n});
      const Tile ones = h.nki.sbuf(dtype, {k, 1});
      const auto ns = h.fill(s), no = h.fill(ones);
      auto nv = h.fill(v);
      std::vector<std::pair<Tile, std::vector<double>>> products;
      for (int step = 0; step < 24; ++step) {
        if (step > 0 && random.below(4) == 0) {  // a column changes, through one engine or another
          const auto half = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(halves)));
          const auto column = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n)));
          const Tile to = v(ds(0, k), at(half), ds(column, 1));
          if (random.below(2) == 0)
            tensor_copy(to, ones);
          else
            dma_copy(to, ones);
          for (std::int64_t r = 0; r < k; ++r)
            nv[static_cast<std::size_t>((r * halves + half) * n + column)] = no[static_cast<std::size_t>(r)];
        }
        // Views of one operand, each kept for itself.
        const std::int64_t first = random.below(2) == 0 ? 0 : 33, count = n - first;
        const Tile c = h.nki.psum(DType::f32, {m, count});
        const Tile part = v(ds(0, k), ds(0, halves), ds(first, count));
        if (twice)
          nc_matmul(c, s, part, {.perf_mode = MatmulPerf::double_row});
        else
          nc_matmul(c, s(ds(0, k), at(0), ds(0, m)), v(ds(0, k), at(0), ds(first, count)));
        std::vector<double> expected(static_cast<std::size_t>(m * count), 0);
        for (std::int64_t l = 0; l < k * halves; ++l)
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < count; ++j)
              expected[static_cast<std::size_t>(i * count + j)] +=
                  ns[static_cast<std::size_t>(l * m + i)] * nv[static_cast<std::size_t>(l * n + first + j)];
        products.emplace_back(c, expected);
      }
      h.run();
      for (const auto& [c, expected] : products) expect_close(h.numbers(c), expected, 0, bound(k * halves));
    }
  }
}

TEST(NcMatmul, Rules) {
  Harness h;
  Recorder& nki = h.nki;
  const Tile s = nki.sbuf(DType::bf16, {128, 128}), v = nki.sbuf(DType::bf16, {128, 512});
  const Tile c = nki.psum(DType::f32, {128, 512});
  EXPECT_BREAKS("buffer", "SBUF", nc_matmul(c, nki.psum(DType::f32, {128, 128}), v));
  EXPECT_BREAKS("buffer", "PSUM", nc_matmul(nki.sbuf(DType::f32, {128, 512}), s, v));
  EXPECT_BREAKS("dtype", "int8", nc_matmul(c, nki.sbuf(DType::i8, {128, 128}), v));
  EXPECT_BREAKS("dtype", "only with each other", nc_matmul(c, nki.sbuf(DType::f32, {128, 128}), v));
  EXPECT_BREAKS("generation", "NeuronCore-v4", nc_matmul(c, nki.sbuf(DType::f8e4m3fn, {128, 128}), v));
  EXPECT_BREAKS("dtype", "must be float32", nc_matmul(nki.psum(DType::bf16, {128, 512}), s, v));
  EXPECT_BREAKS("partitions", "128", nc_matmul(c, s, v(ds(0, 64))));
  EXPECT_BREAKS("matmul-size", "at most 128", nc_matmul(c, nki.sbuf(DType::bf16, {128, 129}), v));
  EXPECT_BREAKS("matmul-size", "at most 512",
                nc_matmul(nki.psum(DType::f32, {128, 600}), s, nki.sbuf(DType::bf16, {128, 600})));
  EXPECT_BREAKS("shape", "[128, 512]", nc_matmul(nki.psum(DType::f32, {128, 511}), s, v));
  EXPECT_BREAKS("psum-bank", "cross a PSUM bank",
                nc_matmul(nki.psum(DType::f32, {128, 1024})(ds(0, 128), ds(256, 512)), s, v));
  const Register r = nki.new_register();
  EXPECT_BREAKS("dynamic-offset", "dynamic place",
                nc_matmul(nki.psum(DType::f32, {128, 1024})(ds(0, 128), ds(0, 512)).moved_by(r, 1), s, v));
  EXPECT_BREAKS("array-tile", "come together", nc_matmul(c, s, v, {.tile_size = ArrayTile{128, 128}}));
  EXPECT_BREAKS("array-tile", "32, 64 or 128",
                nc_matmul(c, s, v, {.tile_position = ArrayTile{0, 0}, .tile_size = ArrayTile{96, 128}}));
  EXPECT_BREAKS("array-tile", "can't start at 32",
                nc_matmul(c, s, v, {.tile_position = ArrayTile{32, 0}, .tile_size = ArrayTile{64, 128}}));
  EXPECT_BREAKS("array-tile", "rows to contract",
                nc_matmul(c, s, v, {.tile_position = ArrayTile{0, 0}, .tile_size = ArrayTile{64, 128}}));
  EXPECT_BREAKS("array-tile", "stationary columns",
                nc_matmul(c, s, v, {.tile_position = ArrayTile{0, 0}, .tile_size = ArrayTile{128, 64}}));
  EXPECT_BREAKS(
      "accumulate", "can't be added",
      nc_matmul(nki.psum(DType::bf16, {128, 512}), s, v, {.accumulate = true, .is_transpose = true}));
  EXPECT_BREAKS("dtype", "gives", nc_matmul(c, s, v, {.is_transpose = true}));
  const Tile d = nki.sbuf(DType::f8e4m3, {128, 2, 128}), e = nki.sbuf(DType::f8e4m3, {128, 2, 512});
  EXPECT_BREAKS("double-row", "[K, 2, ...]",
                nc_matmul(c, nki.sbuf(DType::f8e4m3, {128, 256}), e, {.perf_mode = MatmulPerf::double_row}));
  EXPECT_BREAKS("double-row", "fp8 only",
                nc_matmul(c, nki.sbuf(DType::bf16, {128, 2, 128}), e, {.perf_mode = MatmulPerf::double_row}));
  EXPECT_BREAKS("double-row", "can't transpose",
                nc_matmul(c, d, e, {.is_transpose = true, .perf_mode = MatmulPerf::double_row}));
  EXPECT_BREAKS("double-row", "column tiles",
                nc_matmul(c, d, e,
                          {.tile_position = ArrayTile{0, 0},
                           .tile_size = ArrayTile{128, 64},
                           .perf_mode = MatmulPerf::double_row}));
  EXPECT_BREAKS("start-partition", "0 or 64",
                nc_matmul(nki.psum(DType::f32, {128, 512}), s(ds(32, 64)), v(ds(32, 64))));
}

TEST(NcMatmul, RulesOfOtherChips) {
  Harness one(trn1());
  EXPECT_BREAKS("generation", "trn1 has NeuronCore-v2",
                nc_matmul(one.nki.psum(DType::f32, {8, 8}), one.nki.sbuf(DType::f8e4m3, {8, 2, 8}),
                          one.nki.sbuf(DType::f8e4m3, {8, 2, 8}), {.perf_mode = MatmulPerf::double_row}));
  EXPECT_BREAKS("array-tile", "64 or 128",
                nc_matmul(one.nki.psum(DType::f32, {8, 8}), one.nki.sbuf(DType::bf16, {8, 8}),
                          one.nki.sbuf(DType::bf16, {8, 8}),
                          {.tile_position = ArrayTile{0, 0}, .tile_size = ArrayTile{32, 128}}));
  Harness three(trn3());
  EXPECT_BREAKS("dtype", "don't mix",
                nc_matmul(three.nki.psum(DType::f32, {8, 8}), three.nki.sbuf(DType::f8e4m3fn, {8, 8}),
                          three.nki.sbuf(DType::f8e4m3, {8, 8})));
  EXPECT_BREAKS("dtype", "not modelled",
                nc_matmul(three.nki.psum(DType::bf16, {8, 8}), three.nki.sbuf(DType::bf16, {8, 8}),
                          three.nki.sbuf(DType::bf16, {8, 8})));
}

TEST(NcTranspose, MovesBits) {
  for (DType dtype : {DType::f32, DType::bf16, DType::u8, DType::i32, DType::f8e4m3}) {
    for (const auto& [p, f] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {128, 128}, {1, 128}, {128, 1}, {97, 45}, {32, 32}, {3, 5}}) {
      Harness h;
      const Tile data = h.nki.sbuf(dtype, {p, f}), out = h.nki.psum(dtype, {f, p});
      h.fill(data, 0, 100);
      nc_transpose(out, data);
      h.run();
      const auto in = h.bits(data), got = h.bits(out);
      for (std::int64_t r = 0; r < p; ++r)
        for (std::int64_t i = 0; i < f; ++i)
          ASSERT_EQ(got[static_cast<std::size_t>(i * p + r)], in[static_cast<std::size_t>(r * f + i)]);
    }
  }
}

TEST(NcTranspose, OnTheVectorEngineBetweenAnyBuffersAndPatterns) {
  Harness h;
  const Tile data = h.nki.psum(DType::bf16, {64, 100}), out = h.nki.sbuf(DType::bf16, {128, 90});
  h.fill(data);
  const Tile from = data(ds(32, 20), range(1, 91, 3)), to = out(ds(96, 30), range(3, 43, 2));
  nc_transpose(to, from, {.engine = Engine::vector});
  h.run();
  const auto in = h.bits(from), got = h.bits(to);
  for (std::size_t r = 0; r < 20; ++r)
    for (std::size_t i = 0; i < 30; ++i) ASSERT_EQ(got[i * 20 + r], in[r * 30 + i]);
}

TEST(NcTranspose, InPlace) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::f32, {32, 32});
  h.fill(t);
  const auto in = h.bits(t);
  nc_transpose(t, t);
  h.run();
  const auto got = h.bits(t);
  for (std::size_t r = 0; r < 32; ++r)
    for (std::size_t i = 0; i < 32; ++i) ASSERT_EQ(got[i * 32 + r], in[r * 32 + i]);
}

TEST(NcTranspose, Rules) {
  Harness h;
  Recorder& nki = h.nki;
  EXPECT_BREAKS("dtype", "must be the same",
                nc_transpose(nki.psum(DType::f32, {8, 8}), nki.sbuf(DType::bf16, {8, 8})));
  EXPECT_BREAKS("shape", "[9, 8]", nc_transpose(nki.psum(DType::f32, {8, 9}), nki.sbuf(DType::f32, {8, 9})));
  EXPECT_BREAKS("transpose-size", "128 x 128",
                nc_transpose(nki.psum(DType::f32, {128, 8}), nki.sbuf(DType::f32, {8, 129})));
  EXPECT_BREAKS("engine", "no engine",
                nc_transpose(nki.sbuf(DType::f32, {64, 64}), nki.sbuf(DType::f32, {64, 64})));
  EXPECT_BREAKS(
      "engine", "gpsimd engine can't run it with these operands; tensor, vector can",
      nc_transpose(nki.psum(DType::f32, {8, 8}), nki.sbuf(DType::f32, {8, 8}), {.engine = Engine::gpsimd}));
  EXPECT_BREAKS("buffer", "HBM",
                nc_transpose(nki.psum(DType::f32, {8, 8}), nki.input("x", DType::f32, {8, 8})));
}

}  // namespace
}  // namespace headway::chip
