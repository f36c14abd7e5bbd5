// Statistics of rows and their largest values, against float64.
#include "chip/vector_statistics.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "chip/harness.h"
#include "chip/layouts.h"

namespace headway::chip {
namespace {

using Numbers = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Numbers row(const Numbers& all, std::int64_t n, std::int64_t r) {
  return {all.begin() + r * n, all.begin() + (r + 1) * n};
}

// Inputs of all layouts, dtypes and buffers in turn.
void for_each_source(const std::vector<std::array<std::int64_t, 2>>& shapes,
                     const std::function<void(const Layout&, Buffer, DType, std::int64_t, std::int64_t)>& f) {
  std::size_t turn = 0;
  for (const auto& [p, n] : shapes)
    for (const Layout& layout : layouts())
      for (const DType dtype :
           {DType::f32, DType::bf16, computable_dtypes()[turn++ % computable_dtypes().size()]})
        f(layout, turn % 2 ? Buffer::sbuf : Buffer::psum, dtype, p, n);
}

// --- bn_stats and bn_aggr ---

Numbers stats_of(const Numbers& x) {
  Numbers stats;
  for (std::size_t parity = 0; parity < 2; ++parity) {
    double count = 0, sum = 0, squares = 0;
    for (std::size_t i = parity; i < x.size(); i += 2) ++count, sum += x[i];
    const double mean = count == 0 ? 0 : sum / count;
    for (std::size_t i = parity; i < x.size(); i += 2) squares += (x[i] - mean) * (x[i] - mean);
    stats.insert(stats.end(), {count, mean, squares});
  }
  return stats;
}

TEST(BnStats, CountsEvenAndOddElementsApart) {
  for_each_source({{1, 1}, {128, 2}, {128, 512}, {40, 33}, {32, 100}},
                  [](const Layout& l, Buffer b, DType d, auto p, auto n) {
                    Harness h;
                    const Tile x = l.make(h.nki, b, d, p, n), y = h.nki.sbuf(DType::f32, {p, 6});
                    h.fill(x, d == DType::u8 || d == DType::u16 || d == DType::u32 ? 0 : -3, 4);
                    bn_stats(y, x);
                    h.run();
                    const Numbers nx = h.numbers(x), got = h.numbers(y);
                    for (std::int64_t r = 0; r < p; ++r)
                      // Sums of up to 256 numbers of up to 4, and of squares of up to 49: partial sums of 32
                      // round 32 times, then four more.
                      expect_close(row(got, 6, r), stats_of(row(nx, n, r)), 3e-6, 2e-5);
                  });
}

TEST(BnStats, AFarMeanCostsNoDigitsOfTheVariance) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {1, 512}), stats = h.nki.sbuf(DType::f32, {1, 6}),
             mean = h.nki.sbuf(DType::f32, {1, 2});
  const Numbers nx = h.fill(x, 1000, 1001);
  bn_stats(stats, x);
  bn_aggr(mean, stats);
  h.run();
  const Numbers expected = stats_of(nx);
  EXPECT_NEAR(h.numbers(stats)[2] / expected[2], 1, 1e-5);
  const double m = std::accumulate(nx.begin(), nx.end(), 0.0) / 512;
  double v = 0;
  for (const double a : nx) v += (a - m) * (a - m) / 512;
  EXPECT_NEAR(h.numbers(mean)[0], m, 1e-3 * 0.2);
  EXPECT_NEAR(h.numbers(mean)[1] / v, 1, 1e-4);
}

TEST(BnStats, ConvertsToAnyDtype) {
  for (const DType dtype : computable_dtypes()) {
    Harness h;
    const Tile x = h.nki.sbuf(DType::f32, {3, 30}), y = h.nki.psum(dtype, {3, 6});
    const Numbers nx = h.fill(x, 0, 3);
    bn_stats(y, x);
    h.run();
    Numbers expected;
    for (int r = 0; r < 3; ++r)
      for (const double e : stats_of(row(nx, 30, r))) expected.push_back(e);
    expect_stored(h.numbers(y), expected, dtype, 1e-6, 1e-6);
  }
}

TEST(BnAggr, JoinsAllTriples) {
  for (const std::int64_t tiles : {1, 2, 5}) {
    const std::int64_t n = 96;
    Harness h;
    const Tile x = h.nki.sbuf(DType::f32, {50, tiles * n}), stats = h.nki.sbuf(DType::f32, {50, 6 * tiles}),
               y = h.nki.sbuf(DType::f32, {50, 2});
    const Numbers nx = h.fill(x, -1, 3);
    // Tiles of unequal length: counts weigh.
    for (std::int64_t t = 0; t < tiles; ++t)
      bn_stats(stats(ds(0, 50), ds(6 * t, 6)), x(ds(0, 50), ds(t * n, n - 7 * t)));
    bn_aggr(y, stats);
    h.run();
    Numbers expected;
    for (std::int64_t r = 0; r < 50; ++r) {
      Numbers all;
      for (std::int64_t t = 0; t < tiles; ++t)
        for (std::int64_t i = 0; i < n - 7 * t; ++i)
          all.push_back(nx[static_cast<std::size_t>(r * tiles * n + t * n + i)]);
      const double mean = std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
      double squares = 0;
      for (const double a : all) squares += (a - mean) * (a - mean);
      expected.insert(expected.end(), {mean, squares / static_cast<double>(all.size())});
    }
    expect_close(h.numbers(y), expected, 2e-6, 2e-6);
  }
}

TEST(BnAggr, TakesAnyLayoutAndDtype) {
  for_each_source({{1, 3}, {128, 6}, {20, 12}, {64, 300}},
                  [](const Layout& l, Buffer b, DType d, auto p, auto n) {
                    Harness h;
                    const Tile x = l.make(h.nki, b, d, p, n), y = h.nki.psum(DType::f32, {p, 2});
                    h.fill(x, 1, 4);
                    bn_aggr(y, x);
                    h.run();
                    const Numbers nx = h.numbers(x);
                    Numbers expected;
                    for (std::int64_t r = 0; r < p; ++r) {
                      const Numbers t = row(nx, n, r);
                      double count = 0, sum = 0, squares = 0;
                      for (std::size_t i = 0; i < t.size(); i += 3) count += t[i], sum += t[i] * t[i + 1];
                      const double mean = sum / count;
                      for (std::size_t i = 0; i < t.size(); i += 3)
                        squares += t[i + 2] + t[i] * (t[i + 1] - mean) * (t[i + 1] - mean);
                      expected.insert(expected.end(), {mean, squares / count});
                    }
                    expect_close(h.numbers(y), expected, 1e-5);
                  });
}

// --- max8 ---

Numbers largest8(Numbers x) {
  std::sort(x.begin(), x.end(), std::greater());
  x.resize(8);
  return x;
}

TEST(Max8, SortsTheLargestDescending) {
  for_each_source({{1, 8}, {128, 9}, {20, 64}, {32, 200}, {128, 513}},
                  [](const Layout& l, Buffer b, DType d, auto p, auto n) {
                    Harness h;
                    Tile x = l.make(h.nki, b, d, p, n);
                    const Tile y = h.nki.psum(DType::f32, {p, 8});
                    // Few different values of narrow dtypes: values that are there twice count twice.
                    h.fill(x, d == DType::u8 || d == DType::u16 || d == DType::u32 ? 0 : -100, 100);
                    max8(y, x);
                    h.run();
                    const Numbers nx = h.numbers(x), got = h.numbers(y);
                    for (std::int64_t r = 0; r < p; ++r)
                      ASSERT_EQ(row(got, 8, r), largest8(row(nx, n, r))) << l.name << name_of(d);
                  });
}

TEST(Max8, GoesToTheLimitAndConverts) {
  for (const DType dtype : computable_dtypes()) {
    Harness h;
    const Tile x = h.nki.sbuf(DType::f32, {2, 16384}), y = h.nki.sbuf(dtype, {2, 8});
    Numbers nx = h.fill(x, -100, 100);
    for (std::size_t i = 0; i < 8; ++i)
      nx[i * 2000 + 1] = 101.3 + static_cast<double>(i);  // ascending: each displaces
    for (std::size_t i = 0; i < 8; ++i) nx[2 * 16384 - 1 - i] = -101.3 - static_cast<double>(i);
    h.set(x, nx);
    max8(y, x);
    h.run();
    const Numbers back = h.numbers(x);
    Numbers expected = largest8(row(back, 16384, 0));
    for (const double e : largest8(row(back, 16384, 1))) expected.push_back(e);
    expect_stored(h.numbers(y), expected, dtype, 0, 0);
  }
}

TEST(Max8, NaNIsLargerThanNothing) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {1, 200}), y = h.nki.sbuf(DType::f32, {1, 8}),
             z = h.nki.sbuf(DType::f32, {1, 8});
  Numbers nx(200, std::nan(""));
  nx[3] = 5;
  nx[150] = 7;
  nx[199] = -kInfinity;
  h.set(x, nx);
  max8(y, x);
  max8(z, x(ds(0, 1), ds(0, 9)));
  h.run();
  EXPECT_EQ(h.numbers(y),
            (Numbers{7, 5, -kInfinity, -kInfinity, -kInfinity, -kInfinity, -kInfinity, -kInfinity}));
  EXPECT_EQ(h.numbers(z)[0], 5);
}

TEST(Max8, MayWriteOverItsSource) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {128, 40});
  const Numbers nx = h.fill(x);
  max8(x(ds(0, 128), ds(10, 8)), x);
  h.run();
  const Numbers got = h.numbers(x(ds(0, 128), ds(10, 8)));
  for (int r = 0; r < 128; ++r) EXPECT_EQ(row(got, 8, r), largest8(row(nx, 40, r)));
}

// --- nc_find_index8 and nc_match_replace8 ---

// Places by the documentation: each value takes the first place that holds it and that an equal one before it
// hasn't taken.
std::vector<std::int64_t> places(const Numbers& x, const Numbers& vals, bool descending) {
  std::vector<std::int64_t> found(8, -1);
  std::vector<bool> taken(x.size());
  for (std::size_t k = 0; k < 8; ++k) {
    const std::size_t column = descending ? 7 - k : k;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (taken[i] || x[i] != vals[column]) continue;
      taken[i] = true;
      found[column] = static_cast<std::int64_t>(i);
      break;
    }
  }
  return found;
}
std::vector<std::uint64_t> as_bits(const std::vector<std::int64_t>& places, DType dtype) {
  std::vector<std::uint64_t> bits;
  for (const std::int64_t p : places)
    bits.push_back(static_cast<std::uint64_t>(p) & (dtype == DType::u16 ? 0xffff : 0xffffffff));
  return bits;
}

TEST(FindAndReplace, AgreeWithTheirDefinition) {
  std::size_t turn = 0;
  for_each_source({{1, 8}, {128, 9}, {20, 64}, {32, 209}, {64, 512}},
                  [&](const Layout& l, Buffer b, DType d, auto p, auto n) {
                    Harness h;
                    const DType index = ++turn % 2 ? DType::u32 : DType::u16;
                    const Tile x = l.make(h.nki, b, d, p, n), vals = h.nki.sbuf(DType::bf16, {p, 2, 4}),
                               idx = h.nki.sbuf(index, {p, 8}), idx2 = h.nki.psum(index, {p, 8}),
                               y = layouts()[turn % 6].make(h.nki, Buffer::sbuf, DType::f32, p, n);
                    // Small whole numbers: many equal ones, and some that aren't there.
                    h.fill(x, 0, 20);
                    Numbers some = h.numbers(x);
                    for (double& v : some) v = std::floor(v);
                    if (l.writable) h.set(x, some);
                    Numbers nv = h.fill(vals, 0, 24);
                    for (double& v : nv) v = std::floor(v);
                    h.set(vals, nv);
                    nc_find_index8(idx, x, vals);
                    nc_match_replace8(y, x, vals, -5, {.dst_idx = idx2});
                    h.run();
                    const Numbers nx = h.numbers(x), ny = h.numbers(y);
                    const auto got = h.bits(idx), got2 = h.bits(idx2);
                    for (std::int64_t r = 0; r < p; ++r) {
                      const Numbers data = row(nx, n, r), wanted = row(nv, 8, r);
                      const auto ascending = as_bits(places(data, wanted, false), index);
                      ASSERT_TRUE(std::equal(ascending.begin(), ascending.end(), got.begin() + 8 * r))
                          << l.name << name_of(d);
                      const auto found = places(data, wanted, true);
                      const auto descending = as_bits(found, index);
                      ASSERT_TRUE(std::equal(descending.begin(), descending.end(), got2.begin() + 8 * r))
                          << l.name << name_of(d);
                      Numbers replaced = data;
                      for (const std::int64_t place : found)
                        if (place >= 0) replaced[static_cast<std::size_t>(place)] = -5;
                      ASSERT_EQ(row(ny, n, r), replaced) << l.name << name_of(d);
                    }
                  });
}

TEST(FindAndReplace, TheDocumentedExample) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {1, 11}), vals = h.nki.sbuf(DType::f32, {1, 8}),
             up = h.nki.sbuf(DType::u32, {1, 8}), down = h.nki.sbuf(DType::u32, {1, 8});
  h.set(x, {1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8});
  h.set(vals, {3, 8, 8, 8, 8, 8, 8, 8});
  nc_find_index8(up, x, vals);
  nc_match_replace8(x, x, vals, 0, {.dst_idx = down});
  h.run();
  EXPECT_EQ(h.numbers(up), (Numbers{2, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(h.numbers(down), (Numbers{2, 10, 9, 8, 7, 6, 5, 4}));
  EXPECT_EQ(h.numbers(x), (Numbers{1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(FindAndReplace, EdgesOfEquality) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {1, 9}), vals = h.nki.sbuf(DType::f32, {1, 8}),
             up = h.nki.sbuf(DType::u16, {1, 8}), y = h.nki.sbuf(DType::f32, {1, 9});
  const double nan = std::nan("");
  h.set(x, {nan, 5, 0, -0.0, 7, kInfinity, 7, 1, 2});
  h.set(vals, {nan, -0.0, 0, 0, kInfinity, 5, 6, 7});
  nc_find_index8(up, x, vals);
  // A replacement that is itself searched for isn't found again: 5 becomes 6 at place 1, and 6 is nowhere.
  nc_match_replace8(y, x, vals, 6);
  h.run();
  EXPECT_EQ(h.numbers(up), (Numbers{65535, 2, 3, 65535, 5, 1, 65535, 4}));
  const Numbers ny = h.numbers(y);
  EXPECT_TRUE(std::isnan(ny[0]));
  EXPECT_EQ(Numbers(ny.begin() + 1, ny.end()), (Numbers{6, 6, 6, 6, 6, 7, 1, 2}));
}

TEST(FindAndReplace, ReadAllBeforeTheyWrite) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::f32, {32, 60}), idx = h.nki.sbuf(DType::u32, {32, 60});
  h.fill(t);
  const Tile data = t(ds(0, 32), ds(0, 50)), vals = t(ds(0, 32), ds(20, 8)), moved = t(ds(0, 32), ds(5, 50));
  const Numbers nx = h.numbers(data), nv = h.numbers(vals);
  nc_match_replace8(moved, data, vals, 9);
  // The places of the values in themselves, written over them.
  h.fill(idx, 0, 1000000);
  const Tile same = idx(ds(0, 32), ds(0, 8));
  nc_find_index8(same, idx, same);
  h.run();
  const Numbers got = h.numbers(moved);
  for (int r = 0; r < 32; ++r) {
    Numbers expected = row(nx, 50, r);
    for (const std::int64_t place : places(expected, row(nv, 8, r), true))
      if (place >= 0) expected[static_cast<std::size_t>(place)] = 9;
    EXPECT_EQ(row(got, 50, r), expected);
    EXPECT_EQ(row(h.numbers(same), 8, r), (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

TEST(Statistics, GiveTheSameOnAnyNumberOfThreads) {
  for (int which = 0; which < 5; ++which)
    expect_same_on_two_threads([&](Harness& h) {
      const Tile x = h.nki.sbuf(DType::f32, {128, 501}), eight = h.nki.sbuf(DType::f32, {128, 8}),
                 six = h.nki.sbuf(DType::f32, {128, 6}), idx = h.nki.sbuf(DType::u32, {128, 8}),
                 two = h.nki.sbuf(DType::f32, {128, 2}), y = h.nki.sbuf(DType::bf16, {128, 501});
      h.fill(x);
      max8(eight, x);
      bn_stats(six, x);
      bn_aggr(two, x);
      nc_find_index8(idx, x, eight);
      nc_match_replace8(y, x, eight, 0);
      return std::array{eight, six, two, idx, y}[static_cast<std::size_t>(which)];
    });
}

TEST(Statistics, RefuseWhatTheVectorEngineCant) {
  Harness h;
  Recorder& nki = h.nki;
  const Tile x = nki.sbuf(DType::f32, {64, 516}), six = nki.sbuf(DType::f32, {64, 6}),
             eight = nki.sbuf(DType::f32, {64, 8}), idx = nki.sbuf(DType::u32, {64, 8}),
             hbm = nki.private_hbm(DType::f32, {64, 516}), packed = nki.sbuf(DType::f8e4m3fn_x4, {64, 516}),
             y = nki.sbuf(DType::f32, {64, 516});
  const Tile long_row = nki.sbuf(DType::u8, {64, 16386}),
             deep = nki.sbuf(DType::f32, {64, 2, 2, 8}).permute({0, 2, 1, 3});
  const auto columns = [](const Tile& t, std::int64_t n) { return t(ds(0, 64), ds(0, n)); };
  // bn_stats
  EXPECT_BREAKS("row-length", "1 to 512 elements a partition, not 513", bn_stats(six, columns(x, 513)));
  EXPECT_BREAKS("shape", "must be [64, 6]", bn_stats(eight, columns(x, 512)));
  EXPECT_BREAKS("buffer", "bn_stats, data", bn_stats(six, columns(hbm, 512)));
  EXPECT_BREAKS("buffer", "dst", bn_stats(nki.private_hbm(DType::f32, {64, 6}), columns(x, 512)));
  EXPECT_BREAKS("dtype", "data", bn_stats(six, columns(packed, 512)));
  EXPECT_BREAKS("dtype", "dst", bn_stats(columns(packed, 6), columns(x, 512)));
  // bn_aggr
  EXPECT_BREAKS("row-length", "7 elements", bn_aggr(columns(six, 2), columns(x, 7)));
  EXPECT_BREAKS("shape", "must be [64, 2]", bn_aggr(six, columns(x, 9)));
  EXPECT_BREAKS("buffer", "data", bn_aggr(columns(six, 2), columns(hbm, 9)));
  EXPECT_BREAKS("buffer", "dst", bn_aggr(columns(hbm, 2), columns(x, 9)));
  EXPECT_BREAKS("dtype", "data", bn_aggr(columns(six, 2), columns(packed, 9)));
  EXPECT_BREAKS("dtype", "dst", bn_aggr(columns(packed, 2), columns(x, 9)));
  // max8
  EXPECT_BREAKS("row-length", "8 to 16384 elements a partition, not 7", max8(eight, columns(x, 7)));
  EXPECT_BREAKS("row-length", "not 16385", max8(eight, columns(long_row, 16385)));
  EXPECT_BREAKS("rank", "3 extents, partitions included, not 4", max8(eight, deep));
  EXPECT_BREAKS("rank", "2 extents", max8(eight.reshape({64, 2, 4}), x));
  EXPECT_BREAKS("shape", "must be [64, 8]", max8(six, x));
  EXPECT_BREAKS("buffer", "src", max8(eight, hbm));
  EXPECT_BREAKS("buffer", "dst", max8(columns(hbm, 8), x));
  EXPECT_BREAKS("dtype", "src", max8(eight, packed));
  EXPECT_BREAKS("dtype", "dst", max8(columns(packed, 8), x));
  // nc_find_index8
  EXPECT_BREAKS("row-length", "not 7", nc_find_index8(idx, columns(x, 7), eight));
  EXPECT_BREAKS("row-length", "not 16385", nc_find_index8(idx, columns(long_row, 16385), eight));
  EXPECT_BREAKS("rank", "data", nc_find_index8(idx, deep, eight));
  EXPECT_BREAKS("rank", "vals", nc_find_index8(idx, x, eight.reshape({64, 2, 2, 2})));
  EXPECT_BREAKS("rank", "dst", nc_find_index8(idx.reshape({64, 2, 4}), x, eight));
  EXPECT_BREAKS("shape", "vals", nc_find_index8(idx, x, six));
  EXPECT_BREAKS("shape", "dst", nc_find_index8(columns(idx, 7), x, eight));
  EXPECT_BREAKS("dtype", "must be uint16 or uint32, not int32",
                nc_find_index8(nki.sbuf(DType::i32, {64, 8}), x, eight));
  EXPECT_BREAKS("dtype", "data", nc_find_index8(idx, packed, eight));
  EXPECT_BREAKS("dtype", "vals", nc_find_index8(idx, x, columns(packed, 8)));
  EXPECT_BREAKS("buffer", "data", nc_find_index8(idx, hbm, eight));
  EXPECT_BREAKS("buffer", "vals", nc_find_index8(idx, x, columns(hbm, 8)));
  EXPECT_BREAKS("buffer", "dst", nc_find_index8(nki.private_hbm(DType::u32, {64, 8}), x, eight));
  // nc_match_replace8
  EXPECT_BREAKS("row-length", "1 to 16384 elements a partition, not 16385",
                nc_match_replace8(columns(long_row, 16385), columns(long_row, 16385), eight, 0));
  EXPECT_BREAKS("shape", "dst", nc_match_replace8(columns(y, 8), x, eight, 0));
  EXPECT_BREAKS("partitions", "dst", nc_match_replace8(y(ds(0, 32)), x, eight, 0));
  EXPECT_BREAKS("shape", "vals", nc_match_replace8(y, x, six, 0));
  EXPECT_BREAKS("dtype", "vals", nc_match_replace8(y, x, columns(packed, 8), 0));
  EXPECT_BREAKS("dtype", "data", nc_match_replace8(y, packed, eight, 0));
  EXPECT_BREAKS("dtype", "nc_match_replace8, dst", nc_match_replace8(packed, x, eight, 0));
  EXPECT_BREAKS("buffer", "dst", nc_match_replace8(hbm, x, eight, 0));
  EXPECT_BREAKS("buffer", "data", nc_match_replace8(y, hbm, eight, 0));
  EXPECT_BREAKS("buffer", "vals", nc_match_replace8(y, x, columns(hbm, 8), 0));
  EXPECT_BREAKS("dtype", "dst_idx", nc_match_replace8(y, x, eight, 0, {.dst_idx = eight}));
  EXPECT_BREAKS("shape", "dst_idx", nc_match_replace8(y, x, eight, 0, {.dst_idx = columns(idx, 7)}));
  EXPECT_BREAKS("buffer", "dst_idx",
                nc_match_replace8(y, x, eight, 0, {.dst_idx = nki.private_hbm(DType::u32, {64, 8})}));
  EXPECT_BREAKS("overlap", "dst_idx",
                nc_match_replace8(y, x, eight, 0, {.dst_idx = columns(y, 8).reinterpret(DType::u32)}));
  EXPECT_EQ(nki.program().instructions.size(), 0u);
}

}  // namespace
}  // namespace headway::chip
