#include "chip/dma_engine.h"

#include <algorithm>
#include <numeric>

#include "chip/harness.h"
#include "chip/places.h"
#include "chip/sync_engine.h"

namespace headway::chip {
namespace {

std::vector<double> counting(std::int64_t n, double first = 1) {
  std::vector<double> numbers(static_cast<std::size_t>(n));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

Tile declare(Recorder& nki, Buffer buffer, DType dtype, const Shape& shape) {
  switch (buffer) {
    case Buffer::sbuf:
      return nki.sbuf(dtype, shape);
    case Buffer::psum:
      return nki.psum(dtype, shape);
    case Buffer::private_hbm:
      return nki.private_hbm(dtype, shape);
    default:
      return nki.shared_hbm(dtype, shape);
  }
}

// Random views of random tensors: counts given, steps padded, in any order of nesting, forwards or backwards,
// at an offset.
class Views {
 public:
  Views(Recorder& nki, std::uint32_t seed) : nki_(nki), random_(seed) {}

  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  // Splits n into up to `most` factors.
  std::vector<std::int32_t> factors(std::int64_t n, int most) {
    std::vector<std::int32_t> counts;
    while (static_cast<int>(counts.size()) + 1 < most && n > 1 && pick(0, 3) != 0) {
      std::vector<std::int64_t> divisors;
      for (std::int64_t d = 1; d <= n; ++d)
        if (n % d == 0) divisors.push_back(d);
      const std::int64_t d =
          divisors[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(divisors.size()) - 1))];
      counts.push_back(static_cast<std::int32_t>(d));
      n /= d;
    }
    counts.push_back(static_cast<std::int32_t>(n));
    std::shuffle(counts.begin(), counts.end(), random_);
    return counts;
  }

  Tile of(Buffer buffer, DType dtype, std::int64_t n, bool repeats) {
    const bool chip = is_on_chip(buffer);
    std::vector<std::int32_t> counts = factors(n, kMaxPairs);
    if (chip) {
      std::stable_partition(counts.begin(), counts.end(), [](std::int32_t count) { return count <= 128; });
      if (counts[0] > 128) counts.insert(counts.begin(), 1);
      if (counts.size() == 1) counts.push_back(1);
      if (counts.size() > kMaxPairs) return of(buffer, dtype, n, repeats);
    }
    std::vector<std::size_t> nesting(counts.size() - (chip ? 1 : 0));
    std::iota(nesting.begin(), nesting.end(), chip ? 1 : 0);
    std::shuffle(nesting.begin(), nesting.end(), random_);
    View view;
    view.dtype = dtype;
    view.rank = static_cast<std::uint8_t>(counts.size());
    std::int64_t extent = 1;
    view.offset = pick(0, 3);
    for (std::size_t d : nesting) {
      std::int64_t step = extent + (pick(0, 2) == 0 ? pick(0, 5) : 0);
      if (repeats && pick(0, 4) == 0) step = 0;
      extent = std::max(extent, step * (counts[d] - 1) + extent);
      const bool backwards = pick(0, 5) == 0;
      if (backwards) view.offset += step * (counts[d] - 1);
      view.pairs[d] = {static_cast<std::int32_t>(backwards ? -step : step), counts[d]};
    }
    const std::int64_t size = extent + 3 + pick(0, 3);
    if (chip) {
      if (size > 30000) return of(buffer, dtype, n, repeats);
      const std::int64_t partitions = pick(counts[0], 128);
      view.partition = static_cast<std::int32_t>(pick(0, partitions - counts[0]));
      view.pairs[0] = {1, counts[0]};
      view.tensor = declare(nki_, buffer, dtype, {partitions, size}).view().tensor;
    } else {
      view.tensor = declare(nki_, buffer, dtype, {size}).view().tensor;
    }
    return {nki_, view};
  }

 private:
  Recorder& nki_;
  std::mt19937 random_;
};

Tile all_of(Recorder& nki, const Tile& tile) {
  return {nki, whole(nki.program().tensors[tile.view().tensor], tile.view().tensor)};
}

// Expects that the tensor of `dst` holds what it held, but where the view is the elements of `src`,
// converted.
void expect_moved(Harness& h, const Tile& dst, const std::vector<double>& before, const Tile& src,
                  const std::vector<double>& from) {
  std::vector<double> expected = before;
  const std::vector<std::int64_t> to = places(h.nki.program(), dst), at = places(h.nki.program(), src);
  ASSERT_EQ(to.size(), at.size());
  for (std::size_t i = 0; i < to.size(); ++i) {
    const double value = from[static_cast<std::size_t>(at[i])];
    expected[static_cast<std::size_t>(to[i])] =
        dst.dtype() == src.dtype() ? value : stored(dst.dtype(), value);
  }
  EXPECT_EQ(h.numbers(all_of(h.nki, dst)), expected)
      << to_string(src, h.nki.program().tensors[src.view().tensor]) << " to "
      << to_string(dst, h.nki.program().tensors[dst.view().tensor]);
}

// Any shapes, steps, places and buffers on either side; the same bits on one thread and on two.
TEST(DmaCopy, MovesElementsInRowMajorOrderBetweenAnyViews) {
  const Buffer buffers[] = {Buffer::sbuf, Buffer::private_hbm, Buffer::shared_hbm};
  const DType dtypes[] = {DType::f32, DType::bf16, DType::u8, DType::i32};
  const std::int64_t sizes[] = {1, 2, 7, 16, 60, 128, 210, 1024, 4096, 60 * 512};
  for (std::uint32_t seed = 0; seed < 240; ++seed) {
    Harness h(trn2(), 1 + static_cast<int>(seed % 2));
    Views views(h.nki, seed);
    const auto any = [&](auto& list) {
      return list[static_cast<std::size_t>(views.pick(0, std::size(list) - 1))];
    };
    const DType dtype = any(dtypes);
    const std::int64_t n = any(sizes);
    const Tile src = views.of(any(buffers), dtype, n, true), dst = views.of(any(buffers), dtype, n, false);
    const std::vector<double> from = h.fill(all_of(h.nki, src), 0, 100),
                              before = h.fill(all_of(h.nki, dst), 0, 100);
    dma_copy(dst, src);
    h.run();
    expect_moved(h, dst, before, src, from);
  }
}

TEST(DmaCopy, ConvertsThroughFloat32) {
  for (DType from : computable_dtypes()) {
    for (DType to : computable_dtypes()) {
      Harness h;
      const Tile src = h.nki.private_hbm(from, {5, 7}), dst = h.nki.sbuf(to, {7, 5});
      const std::vector<double> numbers = h.fill(src, 0, 200), before = h.fill(dst);
      dma_copy(dst, src);
      h.run();
      expect_moved(h, dst, before, src, numbers);
    }
  }
}

TEST(DmaCopy, IntegersOfTheSameDtypeKeepAllBitsOthersPassFloat32) {
  Harness h;
  const Tile src = h.nki.private_hbm(DType::i32, {1, 3}), same = h.nki.sbuf(DType::i32, {1, 3}),
             other = h.nki.sbuf(DType::u32, {1, 3});
  h.set(src, {16777217, -5, 2147483647});
  dma_copy(same, src);
  dma_copy(other, src);
  h.run();
  EXPECT_EQ(h.numbers(same), (std::vector<double>{16777217, -5, 2147483647}));
  EXPECT_EQ(h.numbers(other), (std::vector<double>{16777216, 0, 2147483648.0}));
}

TEST(DmaCopy, PackedDtypesMoveAsTheyAre) {
  Harness h;
  const Tile src = h.nki.private_hbm(DType::f8e4m3fn_x4, {2, 3}),
             dst = h.nki.sbuf(DType::f8e4m3fn_x4, {2, 3});
  h.set(src, {1, 2, 3, 4, 5, 4294967295.0});
  dma_copy(dst, src);
  h.run();
  EXPECT_EQ(h.numbers(dst), (std::vector<double>{1, 2, 3, 4, 5, 4294967295.0}));
}

// Row-major HBM, one tile of it: element (p, f) of the tile is element (64 + p, 256 + f) of the matrix.
TEST(DmaCopy, LoadsATileOfAMatrix) {
  for (int threads : {1, 2}) {
    Harness h(trn2(), threads);
    const Tile matrix = h.nki.input("x", DType::f32, {256, 1024}), tile = h.nki.sbuf(DType::f32, {128, 512});
    const std::vector<double> numbers = h.fill(matrix);
    dma_copy(tile, matrix(ds(64, 128), ds(256, 512)));
    h.run();
    const std::vector<double> got = h.numbers(tile);
    for (std::size_t p = 0; p < 128; ++p)
      for (std::size_t f = 0; f < 512; ++f) ASSERT_EQ(got[p * 512 + f], numbers[(64 + p) * 1024 + 256 + f]);
  }
}

TEST(DmaCopy, OverlappingViewsAreReadBeforeTheyAreWritten) {
  for (int threads : {1, 2}) {
    Harness h(trn2(), threads);
    const Tile x = h.nki.private_hbm(DType::f32, {40000});
    const std::vector<double> numbers = h.fill(x);
    dma_copy(x(range(1, 40000)), x(range(0, 39999)));  // moved by one
    dma_copy(x, x.pattern({{-1, 40000}}, 39999));      // turned around
    h.run();
    const std::vector<double> got = h.numbers(x);
    for (std::size_t i = 0; i < 39999; ++i) ASSERT_EQ(got[i], numbers[39998 - i]);
    EXPECT_EQ(got[39999], numbers[0]);
  }
}

TEST(DmaCopy, ToItselfChangesNothing) {
  Harness h;
  const Tile x = h.nki.private_hbm(DType::bf16, {4, 4});
  const std::vector<double> numbers = h.fill(x);
  dma_copy(x, x);
  h.run();
  EXPECT_EQ(h.numbers(x), numbers);
}

// Step 0 broadcasts a row of HBM over partitions.
TEST(DmaCopy, RepeatsARow) {
  Harness h;
  const Tile row = h.nki.private_hbm(DType::f32, {1, 40}), dst = h.nki.sbuf(DType::f32, {128, 40});
  const std::vector<double> numbers = h.fill(row);
  dma_copy(dst, row.broadcast(0, 128));
  h.run();
  const std::vector<double> got = h.numbers(dst);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], numbers[i % 40]);
}

TEST(DmaCopy, StartsAtAnyPartition) {
  Harness h;
  const Tile src = h.nki.sbuf(DType::f32, {128, 3}), dst = h.nki.sbuf(DType::f32, {128, 3});
  const std::vector<double> numbers = h.fill(src);
  dma_copy(dst(ds(5, 100)), src(ds(17, 100)));
  h.run();
  const std::vector<double> got = h.numbers(dst(ds(5, 100)));
  EXPECT_TRUE(std::equal(got.begin(), got.end(), numbers.begin() + 17 * 3));
}

TEST(DmaCopy, FollowsARegisterAndAScalarOnEitherSide) {
  Harness h;
  const Tile src = h.nki.private_hbm(DType::f32, {10, 4}), dst = h.nki.private_hbm(DType::f32, {10, 4});
  const Tile index = h.nki.sbuf(DType::i32, {1, 1});
  const std::vector<double> numbers = h.fill(src);
  h.fill(dst);
  h.set(index, {3});
  const Register row = register_alloc(h.nki, 7);
  dma_copy(dst(ds(0, 2)).moved_by(index, 4), src(ds(1, 2)).moved_by(row, 4));
  h.run();
  const std::vector<double> got = h.numbers(dst(ds(3, 2)));
  EXPECT_TRUE(std::equal(got.begin(), got.end(), numbers.begin() + 8 * 4));
}

TEST(DmaCopy, AScalarOffsetOutOfBoundsIsAnErrorOrSkipsTheTransfer) {
  for (bool on_src : {false, true}) {
    const auto copy = [&](Harness& h, OobMode mode, std::int32_t offset) {
      const Tile tensor = h.nki.private_hbm(DType::f32, {10, 4}), tile = h.nki.sbuf(DType::f32, {2, 4});
      h.set(tensor, counting(40));
      h.set(tile, counting(8, 101));
      const Tile moving = tensor(ds(0, 2)).moved_by(register_alloc(h.nki, offset), 4);
      if (on_src) {
        dma_copy(tile, moving, {.oob_mode = mode});
      } else {
        dma_copy(moving, tile, {.oob_mode = mode});
      }
      h.run();
      return on_src ? h.numbers(tile) : h.numbers(tensor);
    };
    for (std::int32_t offset : {9, -1, 1000000}) {
      Harness bad, skipped;
      EXPECT_BREAKS("out-of-bounds", "dynamic offset of " + std::to_string(offset),
                    copy(bad, OobMode::error, offset));
      EXPECT_EQ(copy(skipped, OobMode::skip, offset), on_src ? counting(8, 101) : counting(40));
    }
    Harness inside;
    const std::vector<double> got = copy(inside, OobMode::skip, 8);
    if (on_src) {
      EXPECT_EQ(got, counting(8, 33));
    } else {
      EXPECT_TRUE(std::equal(got.begin() + 32, got.end(), counting(8, 101).begin()));
    }
  }
}

// dst[r] = data[index[r]]: the reference page's gather, index in any order, repeated rows.
TEST(DmaCopy, GathersRows) {
  for (int threads : {1, 2}) {
    for (DType index_dtype : {DType::i32, DType::u32}) {
      for (DType to : {DType::bf16, DType::f32}) {
        Harness h(trn2(), threads);
        const Tile data = h.nki.input("data", DType::bf16, {50, 300}),
                   index = h.nki.sbuf(index_dtype, {128, 1}), dst = h.nki.sbuf(to, {128, 300});
        const std::vector<double> numbers = h.fill(data), rows = h.fill(index, 0, 50);
        dma_copy(dst, data(ds(0, 1)).broadcast(0, 128).rows_at(index, 300));
        h.run();
        const std::vector<double> got = h.numbers(dst);
        for (std::size_t r = 0; r < 128; ++r)
          for (std::size_t f = 0; f < 300; ++f)
            ASSERT_EQ(got[r * 300 + f], numbers[static_cast<std::size_t>(rows[r]) * 300 + f]);
      }
    }
  }
}

// A gather into a tile of another shape: row-major order holds.
TEST(DmaCopy, GathersIntoOtherShapes) {
  Harness h;
  const Tile data = h.nki.private_hbm(DType::f32, {20, 6}), index = h.nki.sbuf(DType::i32, {8, 1}),
             dst = h.nki.sbuf(DType::f32, {16, 3});
  const std::vector<double> numbers = h.fill(data), rows = h.fill(index, 0, 20);
  h.fill(dst);
  dma_copy(dst, data(ds(0, 8)).rows_at(index, 6), {.oob_mode = OobMode::skip});
  h.run();
  const std::vector<double> got = h.numbers(dst);
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i], numbers[static_cast<std::size_t>(rows[i / 6]) * 6 + i % 6]);
}

TEST(DmaCopy, ScattersRowsConvertingThem) {
  for (int threads : {1, 2}) {
    Harness h(trn2(), threads);
    const Tile dst = h.nki.output("out", DType::bf16, {200, 256}), index = h.nki.sbuf(DType::i32, {128, 1}),
               src = h.nki.sbuf(DType::f32, {128, 256});
    std::vector<double> expected = h.fill(dst);
    const std::vector<double> numbers = h.fill(src);
    std::vector<double> rows = counting(128, 0);
    for (double& row : rows) row = 199 - row;
    h.set(index, rows);
    dma_copy(dst(ds(0, 128)).rows_at(index, 256), src, {.dge_mode = DgeMode::swdge});
    h.run();
    for (std::size_t r = 0; r < 128; ++r)
      for (std::size_t f = 0; f < 256; ++f)
        expected[(199 - r) * 256 + f] = stored(DType::bf16, numbers[r * 256 + f]);
    EXPECT_EQ(h.numbers(dst), expected);
  }
}

TEST(DmaCopy, RowsGoToRowsWhereBothSidesHaveAnIndex) {
  Harness h;
  const Tile src = h.nki.private_hbm(DType::f32, {20, 6}), dst = h.nki.private_hbm(DType::f32, {20, 6});
  const Tile from = h.nki.sbuf(DType::i32, {3, 1}), to = h.nki.sbuf(DType::i32, {3, 1});
  const std::vector<double> numbers = h.fill(src);
  std::vector<double> expected = h.fill(dst);
  h.set(from, {4, 19, 4});
  h.set(to, {0, 5, 2});
  dma_copy(dst(ds(0, 3)).rows_at(to, 6), src(ds(0, 3)).rows_at(from, 6));
  h.run();
  for (auto [a, b] : {std::pair{4, 0}, {19, 5}, {4, 2}})
    std::copy_n(numbers.begin() + a * 6, 6, expected.begin() + b * 6);
  EXPECT_EQ(h.numbers(dst), expected);
}

// Rows 0, 3, 6 ... of 128, of which those from 43 on are out of bounds: the documents' own examples.
TEST(DmaCopy, RowsOutOfBoundsAreAnErrorOrLeftOut) {
  const auto gather = [](Harness& h, OobMode mode) {
    const Tile data = h.nki.private_hbm(DType::f32, {128, 512}), index = h.nki.sbuf(DType::i32, {64, 1}),
               dst = h.nki.sbuf(DType::f32, {64, 512});
    const std::vector<double> numbers = h.fill(data);
    h.set(dst, std::vector<double>(64 * 512, -1));
    std::vector<double> rows = counting(64, 0);
    for (double& row : rows) row *= 3;
    h.set(index, rows);
    dma_copy(dst, data(ds(0, 64)).rows_at(index, 512), {.oob_mode = mode});
    h.run();
    std::vector<double> expected(64 * 512, -1);
    for (std::size_t r = 0; r < 43; ++r)
      std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(r * 3 * 512), 512,
                  expected.begin() + static_cast<std::ptrdiff_t>(r * 512));
    EXPECT_EQ(h.numbers(dst), expected);
  };
  const auto scatter = [](Harness& h, OobMode mode) {
    const Tile data = h.nki.private_hbm(DType::f32, {128, 512}), index = h.nki.sbuf(DType::i32, {64, 1}),
               src = h.nki.sbuf(DType::f32, {64, 512});
    const std::vector<double> numbers = h.fill(src);
    h.set(data, std::vector<double>(128 * 512, -1));
    std::vector<double> rows = counting(64, 0);
    for (double& row : rows) row *= 3;
    h.set(index, rows);
    dma_copy(data(ds(0, 64)).rows_at(index, 512), src, {.oob_mode = mode});
    h.run();
    std::vector<double> expected(128 * 512, -1);
    for (std::size_t r = 0; r < 43; ++r)
      std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(r * 512), 512,
                  expected.begin() + static_cast<std::ptrdiff_t>(r * 3 * 512));
    EXPECT_EQ(h.numbers(data), expected);
  };
  Harness a, b, c, d;
  gather(a, OobMode::skip);
  scatter(b, OobMode::skip);
  EXPECT_BREAKS("out-of-bounds", "index 129 of row 43", gather(c, OobMode::error));
  EXPECT_BREAKS("out-of-bounds", "index 129 of row 43", scatter(d, OobMode::error));
}

TEST(DmaCopy, WhatIsLeftOutCountsAsUnwritten) {
  Harness h;
  const Tile data = h.nki.private_hbm(DType::i32, {4, 2}), index = h.nki.sbuf(DType::u32, {3, 1}),
             dst = h.nki.sbuf(DType::i32, {3, 2}), wide = h.nki.sbuf(DType::i32, {1, 6});
  h.set(data, {1, 2, 3, 4, 5, 16777217, 7, 8});
  h.set(index, {2, 9, 0});
  dma_copy(dst, data(ds(0, 3)).rows_at(index, 2), {.oob_mode = OobMode::skip});
  dma_copy(wide, data(ds(0, 3)).rows_at(index, 2), {.oob_mode = OobMode::skip});
  h.run();
  EXPECT_EQ(h.numbers(dst(ds(0, 1))), (std::vector<double>{5, 16777217}));
  EXPECT_FALSE(h.written(dst(ds(1, 1))));
  EXPECT_EQ(h.numbers(dst(ds(2, 1))), (std::vector<double>{1, 2}));
  EXPECT_TRUE(h.written(wide(ds(0, 1), ds(0, 2))));
  EXPECT_FALSE(h.written(wide(ds(0, 1), ds(2, 1))));
  EXPECT_FALSE(h.written(wide(ds(0, 1), ds(3, 1))));
  EXPECT_TRUE(h.written(wide(ds(0, 1), ds(4, 2))));
}

TEST(DmaCopy, AGatherWithinATensorReadsBeforeItWrites) {
  Harness h;
  const Tile x = h.nki.private_hbm(DType::f32, {4, 2}), index = h.nki.sbuf(DType::i32, {4, 1});
  h.set(x, counting(8));
  h.set(index, {3, 0, 1, 2});
  dma_copy(x, x.rows_at(index, 2));
  h.run();
  EXPECT_EQ(h.numbers(x), (std::vector<double>{7, 8, 1, 2, 3, 4, 5, 6}));
}

TEST(DmaCopy, ScatteredRowsThatMeetAreWarnedOfAndTheLastStays) {
  for (int threads : {1, 2}) {
    Harness h(trn2(), threads);
    const Tile dst = h.nki.private_hbm(DType::f32, {64, 400}), index = h.nki.sbuf(DType::i32, {64, 1}),
               src = h.nki.sbuf(DType::f32, {64, 400});
    const std::vector<double> numbers = h.fill(src);
    h.fill(dst);
    // The rows that meet are the last of one thread and the first of another, where two divide them.
    std::vector<double> rows(64);
    for (std::size_t r = 0; r < 64; ++r) rows[r] = static_cast<double>(r < 32 ? r : r - 1);
    h.set(index, rows);
    dma_copy(dst(ds(0, 64)).rows_at(index, 400), src);
    h.run();
    const std::vector<double> got = h.numbers(dst(ds(31, 1)));
    EXPECT_TRUE(std::equal(got.begin(), got.end(), numbers.begin() + 32 * 400));
    ASSERT_EQ(h.diagnostics().all().size(), 1u);
    EXPECT_EQ(h.diagnostics().all()[0].rule, "repeated-write");
    EXPECT_EQ(h.diagnostics().all()[0].severity, Severity::warning);
  }
}

// --- Rules ---

TEST(DmaCopyRules, Buffers) {
  Harness h;
  const Tile psum = h.nki.psum(DType::f32, {8, 4}), sbuf = h.nki.sbuf(DType::f32, {8, 4});
  EXPECT_BREAKS("buffer", "src: must lie in SBUF or private HBM", dma_copy(sbuf, psum));
  EXPECT_BREAKS("buffer", "dst", dma_copy(psum, sbuf));
}

TEST(DmaCopyRules, AsManyElements) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {8, 4}), b = h.nki.private_hbm(DType::f32, {33});
  EXPECT_BREAKS("shape", "dst: has 32 elements, but src has 33", dma_copy(a, b));
}

TEST(DmaCopyRules, HardwareDescriptorsDontConvert) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {8, 4}), b = h.nki.private_hbm(DType::bf16, {8, 4});
  EXPECT_BREAKS("dtype", "is float32, but src is bfloat16", dma_copy(a, b, {.dge_mode = DgeMode::hwdge}));
}

TEST(DmaCopyRules, PackedDtypesDontConvert) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {8, 4}), b = h.nki.private_hbm(DType::f8e5m2_x4, {8, 4});
  EXPECT_BREAKS("dtype", "src: float8_e5m2_x4", dma_copy(a, b));
  EXPECT_BREAKS("dtype", "dst: float8_e5m2_x4", dma_copy(b, a));
}

TEST(DmaCopyRules, ModesAndGenerations) {
  Harness h, old(trn1());
  const Tile a = h.nki.sbuf(DType::f32, {8, 4}), b = h.nki.private_hbm(DType::f32, {8, 4}),
             index = h.nki.sbuf(DType::i32, {8, 1});
  const Tile moving = b.moved_by(register_alloc(h.nki, 0), 4), gather = b.rows_at(index, 4);
  EXPECT_BREAKS("dge-mode", "can't follow a dynamic offset",
                dma_copy(a, moving, {.dge_mode = DgeMode::none}));
  EXPECT_BREAKS("dge-mode", "rows by index need swdge (or unknown), not hwdge",
                dma_copy(a, gather, {.dge_mode = DgeMode::hwdge}));
  EXPECT_BREAKS("dge-mode", "can't follow", dma_copy(gather, a, {.dge_mode = DgeMode::none}));
  for (DgeMode mode : {DgeMode::unknown, DgeMode::swdge, DgeMode::hwdge})
    dma_copy(a, moving, {.dge_mode = mode});

  const Tile c = old.nki.sbuf(DType::f32, {8, 4}), d = old.nki.private_hbm(DType::f32, {8, 4}),
             old_index = old.nki.sbuf(DType::i32, {8, 1});
  EXPECT_BREAKS("generation", "hwdge needs NeuronCore-v3", dma_copy(c, d, {.dge_mode = DgeMode::hwdge}));
  EXPECT_BREAKS("generation", "by index needs NeuronCore-v3", dma_copy(c, d.rows_at(old_index, 4)));
}

TEST(DmaCopyRules, TheEngineIsChosenWithHardwareDescriptorsOnly) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {8, 4}), b = h.nki.private_hbm(DType::f32, {8, 4});
  EXPECT_BREAKS("engine", "scalar or sync with dge_mode hwdge", dma_copy(a, b, {.engine = Engine::sync}));
  EXPECT_BREAKS("engine", "scalar or sync",
                dma_copy(a, b, {.dge_mode = DgeMode::hwdge, .engine = Engine::vector}));
  dma_copy(a, b, {.dge_mode = DgeMode::hwdge, .engine = Engine::sync});
  dma_copy(a, b, {.dge_mode = DgeMode::hwdge, .engine = Engine::scalar});
}

TEST(DmaCopyRules, Priority) {
  Harness h, next(trn3());
  const Tile a = h.nki.sbuf(DType::f32, {8, 4}), b = h.nki.private_hbm(DType::f32, {8, 4});
  EXPECT_BREAKS("generation", "priority needs NeuronCore-v4", dma_copy(a, b, {.priority = 0}));
  const Tile c = next.nki.sbuf(DType::f32, {8, 4}), d = next.nki.private_hbm(DType::f32, {8, 4});
  dma_copy(c, d, {.priority = 3});
  EXPECT_BREAKS("priority", "must be 0 to 3, not 4", dma_copy(c, d, {.priority = 4}));
}

TEST(DmaCopyRules, Index) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {8, 4}), b = h.nki.private_hbm(DType::f32, {8, 4}),
             wide = h.nki.sbuf(DType::i32, {4, 2}), long_one = h.nki.sbuf(DType::i32, {16, 1}),
             index = h.nki.sbuf(DType::i32, {4, 1});
  EXPECT_BREAKS("index", "must be [8, 1], one for each row, not [4, 2]", dma_copy(a, b.rows_at(wide, 4)));
  EXPECT_BREAKS("index", "not [16, 1]", dma_copy(b.rows_at(long_one, 4), a));
  EXPECT_BREAKS("shape", "where both sides have an index",
                dma_copy(b(ds(0, 4)).rows_at(index, 4),
                         b.reshape({8, 2, 2})(ds(0, 8), at(0)).rows_at(h.nki.sbuf(DType::i32, {8, 1}), 2)));
}

TEST(DmaCopyRules, EachElementIsWrittenOnce) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {4, 8}), row = h.nki.private_hbm(DType::f32, {1, 8}),
             b = h.nki.private_hbm(DType::f32, {64});
  EXPECT_BREAKS("repeated-write", "depends on timing", dma_copy(row.broadcast(0, 4), a));
  // Steps 2 and 3 miss each other for two rounds and meet in the third.
  dma_copy(b.pattern({{3, 2}, {2, 3}}), b.pattern({{3, 2}, {1, 3}}, 32));
  EXPECT_BREAKS("repeated-write", "share their place",
                dma_copy(b.pattern({{3, 3}, {2, 4}}), b.pattern({{4, 3}, {1, 4}}, 32)));
  EXPECT_BREAKS("repeated-write", "share their place",
                dma_copy(a.pattern({{8, 1}, {2, 2}, {1, 4}}), b(ds(0, 8))));
}

TEST(DmaCopyRules, ReadsMustBeWritten) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {4, 8}), b = h.nki.private_hbm(DType::f32, {4, 8});
  dma_copy(a, b);
  EXPECT_BREAKS("unwritten", "src", h.run());
}

TEST(DmaCopy, EnginesFollowTheMode) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {8, 4}), b = h.nki.private_hbm(DType::f32, {8, 4});
  Check check(h.nki.spec(), h.nki.program(), h.diagnostics());
  DmaCopy copy;
  copy.dst = a;
  copy.src = b;
  const auto engines = [&](DgeMode mode) {
    copy.dge_mode = mode;
    return copy.engines(check);
  };
  EXPECT_TRUE(engines(DgeMode::unknown) == (Engine::dma | Engine::gpsimd | Engine::scalar | Engine::sync));
  EXPECT_TRUE(engines(DgeMode::swdge) == (Engine::dma | Engine::gpsimd));
  EXPECT_TRUE(engines(DgeMode::hwdge) == (Engine::dma | Engine::scalar | Engine::sync));
  EXPECT_TRUE(engines(DgeMode::none) == Engines(Engine::dma));
}

}  // namespace
}  // namespace headway::chip
