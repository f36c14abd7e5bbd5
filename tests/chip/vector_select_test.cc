// Selects and shuffles, against their definitions.
#include "chip/vector_select.h"

#include <cmath>
#include <limits>

#include "chip/harness.h"
#include "chip/layouts.h"

namespace headway::chip {
namespace {

using Numbers = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFill = -3.4028234663852886e38;

bool holds(Alu op, double a, double b) {
  switch (op) {
    case Alu::equal:
      return a == b;
    case Alu::less:
      return a < b;
    case Alu::less_equal:
      return a <= b;
    case Alu::greater:
      return a > b;
    case Alu::greater_equal:
      return a >= b;
    default:
      ADD_FAILURE();
      return false;
  }
}
constexpr Alu kComparisons[] = {Alu::equal, Alu::less, Alu::less_equal, Alu::greater, Alu::greater_equal};

// The documentation's NumPy equivalent; bounds have one number a row.
Numbers ranged(const Numbers& x, Alu op0, const Numbers& bound0, Alu op1, const Numbers& bound1,
               double start) {
  const std::size_t n = x.size() / bound0.size();
  Numbers y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double index = start + static_cast<double>(i % n);
    y.push_back(holds(op0, index, bound0[i / n]) && holds(op1, index, bound1[i / n]) ? x[i] : kFill);
  }
  return y;
}
Numbers row_maxima(const Numbers& y, std::size_t n) {
  Numbers maxima;
  for (std::size_t i = 0; i < y.size(); i += n)
    maxima.push_back(
        *std::max_element(y.begin() + static_cast<long>(i), y.begin() + static_cast<long>(i + n)));
  return maxima;
}
Numbers stored_all(DType dtype, Numbers numbers) {
  for (double& number : numbers) number = stored(dtype, number);
  return numbers;
}

// --- range_select ---

TEST(RangeSelect, ComparesEveryIndexAsItsDefinitionDoes) {
  const Numbers bounds = {-kInfinity, -1e9, -3, -2.5, -0.0, 0,    0.5,       1,           6.999,
                          7,          11,   12, 12.5, 40,   3e38, kInfinity, std::nan("")};
  const auto p = static_cast<std::int64_t>(bounds.size());
  for (const Alu op0 : kComparisons)
    for (const Alu op1 : kComparisons)
      for (const std::int64_t start : {0, -5, 7}) {
        Harness h;
        const Tile x = h.nki.sbuf(DType::f32, {p, 12}), y = h.nki.sbuf(DType::f32, {p, 12}),
                   b0 = h.nki.sbuf(DType::f32, {p, 1}), b1 = h.nki.psum(DType::f32, {p, 1}),
                   res = h.nki.sbuf(DType::f32, {p, 1});
        const Numbers nx = h.fill(x);
        h.set(b0, bounds);
        Numbers turned = bounds;
        std::rotate(turned.begin(), turned.begin() + (start + 20) % p, turned.end());
        h.set(b1, turned);
        range_select(y, x, op0, op1, b0, b1, {.reduce_res = res, .range_start = start});
        h.run();
        const Numbers expected =
            ranged(nx, op0, h.numbers(b0), op1, h.numbers(b1), static_cast<double>(start));
        ASSERT_EQ(h.numbers(y), expected);
        ASSERT_EQ(h.numbers(res), row_maxima(expected, 12));
      }
}

TEST(RangeSelect, GoesOverLayoutsDtypesAndShapes) {
  const std::vector<std::array<std::int64_t, 2>> shapes = {{1, 1}, {128, 1}, {32, 30}, {64, 77}, {128, 512}};
  for (const auto& [p, n] : shapes)
    for (const Layout& from : layouts())
      for (const Layout& to : layouts()) {
        if (!to.writable || (from.name != "whole" && to.name != "whole")) continue;
        for (const DType in : {DType::f32, DType::bf16, DType::f8e5m2})
          for (const DType out : {DType::f32, DType::f16}) {
            Harness h;
            const Tile x = from.make(h.nki, Buffer::sbuf, in, p, n),
                       y = to.make(h.nki, Buffer::psum, out, p, n), b0 = h.nki.sbuf(DType::f32, {p, 1}),
                       b1 = h.nki.sbuf(DType::f32, {p, 1}), res = h.nki.sbuf(DType::f32, {p, 1});
            h.fill(x);
            const Numbers nx = h.numbers(x), n0 = h.fill(b0, 90, 110),
                          n1 = h.fill(b1, 100, 100 + static_cast<double>(n));
            range_select(y, x, Alu::greater_equal, Alu::less, b0, b1,
                         {.reduce_res = res, .range_start = 100});
            h.run();
            const Numbers expected = ranged(nx, Alu::greater_equal, n0, Alu::less, n1, 100);
            ASSERT_EQ(h.numbers(y), stored_all(out, expected)) << from.name << " to " << to.name;
            ASSERT_EQ(h.numbers(res), row_maxima(expected, static_cast<std::size_t>(n)))
                << "the maximum of unconverted values";
          }
      }
}

TEST(RangeSelect, NarrowDtypesGetMinusInfinity) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {4, 8}), y = h.nki.sbuf(DType::bf16, {4, 8}),
             b = h.nki.sbuf(DType::f32, {4, 1}), wide = h.nki.sbuf(DType::f32, {4, 1}),
             narrow = h.nki.sbuf(DType::bf16, {4, 1});
  h.fill(x);
  h.fill(b, -2, -1);
  range_select(y, x, Alu::less, Alu::less, b, b, {.reduce_res = wide});
  range_select(y, x, Alu::less, Alu::less, b, b, {.reduce_res = narrow});
  h.run();
  EXPECT_EQ(h.numbers(y), Numbers(32, -kInfinity));
  EXPECT_EQ(h.numbers(wide), Numbers(4, kFill));
  EXPECT_EQ(h.numbers(narrow), Numbers(4, -kInfinity));
}

TEST(RangeSelect, WorksInPlaceAndOverlapping) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::f32, {64, 40}), u = h.nki.sbuf(DType::f32, {64, 40}),
             b0 = h.nki.sbuf(DType::f32, {64, 1}), b1 = h.nki.sbuf(DType::f32, {64, 1});
  const Numbers same = h.fill(t);
  h.fill(u);
  const Numbers left = h.numbers(u(ds(0, 64), ds(0, 37))), n0 = h.fill(b0, 0, 20), n1 = h.fill(b1, 10, 40);
  range_select(t, t, Alu::greater, Alu::less_equal, b0, b1);
  range_select(u(ds(0, 64), ds(3, 37)), u(ds(0, 64), ds(0, 37)), Alu::greater, Alu::less_equal, b0, b1);
  h.run();
  EXPECT_EQ(h.numbers(t), ranged(same, Alu::greater, n0, Alu::less_equal, n1, 0));
  EXPECT_EQ(h.numbers(u(ds(0, 64), ds(3, 37))), ranged(left, Alu::greater, n0, Alu::less_equal, n1, 0));
}

TEST(RangeSelect, ReachesTheLastExactIndex) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {1, 10}), y = h.nki.sbuf(DType::f32, {1, 10}),
             b = h.nki.sbuf(DType::f32, {1, 1});
  const Numbers nx = h.fill(x);
  h.set(b, {16777216});
  range_select(y, x, Alu::equal, Alu::equal, b, b, {.range_start = 16777216 - 9});
  h.run();
  Numbers expected(10, kFill);
  expected[9] = nx[9];
  EXPECT_EQ(h.numbers(y), expected);
}

// --- The registers, of both selects ---

TEST(Selects, KeepTheMaximumInTheRegisters) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {64, 12}), y = h.nki.sbuf(DType::f32, {64, 12}),
             b = h.nki.sbuf(DType::f32, {64, 1}), ones = h.nki.sbuf(DType::u8, {64, 12});
  const Numbers small = h.fill(x, -1, 0);
  h.fill(b, -2, -1);
  h.set(ones, Numbers(64 * 12, 1));
  const auto by_range = [&](ReduceCmd cmd, std::optional<View> res) {
    range_select(y, x, Alu::greater, Alu::greater, b, b, {.reduce_cmd = cmd, .reduce_res = res});
  };
  const auto by_predicate = [&](ReduceCmd cmd, std::optional<View> res) {
    select_reduce(y, ones, x, 0, {.reduce_res = res, .reduce_cmd = cmd});
  };
  const Tile res = h.nki.sbuf(DType::f32, {64, 1});
  const auto read = [&](const auto& select, ReduceCmd cmd) {
    select(cmd, res);
    h.run();
    return h.numbers(res);
  };
  const Numbers low = row_maxima(small, 12);
  EXPECT_EQ(read(by_range, ReduceCmd::idle), Numbers(64, 0)) << "at first";
  EXPECT_EQ(read(by_range, ReduceCmd::reset), Numbers(64, -kInfinity));
  EXPECT_EQ(h.numbers(y), small) << "dst is written all the same";
  EXPECT_EQ(read(by_predicate, ReduceCmd::reduce), low);
  Numbers large = small;
  for (double& v : large) v = stored(DType::f32, 3 - v);
  h.set(x, large);
  EXPECT_EQ(read(by_predicate, ReduceCmd::idle), low);
  EXPECT_EQ(read(by_range, ReduceCmd::reduce), row_maxima(large, 12));
  h.set(x, small);
  EXPECT_EQ(read(by_range, ReduceCmd::reduce), row_maxima(large, 12));
  EXPECT_EQ(read(by_predicate, ReduceCmd::reset_reduce), low);
  EXPECT_EQ(read(by_predicate, ReduceCmd::reset), Numbers(64, -kInfinity));
  by_range(ReduceCmd::reset_reduce, std::nullopt);
  EXPECT_EQ(read(by_predicate, ReduceCmd::idle), low) << "without reduce_res it waits in the registers";
  // Of the lanes of the operand: 32 to 63 only.
  h.set(x, large);
  select_reduce(y(ds(0, 32)), ones(ds(0, 32)), x(ds(32, 32)), 0, {.reduce_cmd = ReduceCmd::reduce});
  Numbers mixed = low;
  const Numbers high = row_maxima(large, 12);
  std::copy(high.begin() + 32, high.end(), mixed.begin() + 32);
  EXPECT_EQ(read(by_predicate, ReduceCmd::idle), mixed);
}

// --- select_reduce ---

TEST(SelectReduce, ChoosesByPredicate) {
  for (const DType predicate : {DType::i8, DType::u8, DType::i16, DType::u16})
    for (const Layout& from : layouts())
      for (const Layout& to : layouts()) {
        if (!to.writable || (from.name != "whole" && to.name != "whole")) continue;
        for (const bool reverse : {false, true})
          for (const std::int64_t n : {1, 50, 66}) {
            Harness h;
            const Tile c = from.make(h.nki, Buffer::sbuf, predicate, 32, n),
                       x = from.make(h.nki, Buffer::psum, DType::f32, 32, n),
                       y = to.make(h.nki, Buffer::sbuf, DType::f32, 32, n),
                       other = h.nki.sbuf(DType::f32, {32, 1}), res = h.nki.sbuf(DType::bf16, {32, 1});
            h.fill(c, 0, 3);
            h.fill(x);
            const Numbers nc = h.numbers(c), nx = h.numbers(x), no = h.fill(other);
            select_reduce(
                y, c, x, other,
                {.reduce_res = res, .reduce_cmd = ReduceCmd::reset_reduce, .reverse_pred = reverse});
            h.run();
            Numbers expected;
            for (std::size_t i = 0; i < nx.size(); ++i)
              expected.push_back((nc[i] != 0) != reverse ? nx[i] : no[i / static_cast<std::size_t>(n)]);
            ASSERT_EQ(h.numbers(y), expected) << from.name << " to " << to.name;
            ASSERT_EQ(h.numbers(res),
                      stored_all(DType::bf16, row_maxima(expected, static_cast<std::size_t>(n))));
          }
      }
}

TEST(SelectReduce, TakesAllDtypesButThree) {
  for (const DType in : computable_dtypes())
    for (const DType out : computable_dtypes()) {
      Harness h;
      const Tile x = h.nki.sbuf(in, {128, 20}), c = h.nki.sbuf(DType::i16, {128, 4, 5}),
                 y = h.nki.psum(out, {128, 20});
      if (in == DType::tf32 || in == DType::i32 || in == DType::u32) {
        EXPECT_BREAKS("dtype", "on_true", select_reduce(y, c, x, 0));
        continue;
      }
      const Numbers nx = h.fill(x, 0, 3), nc = h.fill(c, -1, 2);
      select_reduce(y, c, x, 2.5);
      h.run();
      Numbers expected;
      for (std::size_t i = 0; i < nx.size(); ++i) expected.push_back(nc[i] != 0 ? nx[i] : 2.5);
      ASSERT_EQ(h.numbers(y), stored_all(out, expected)) << name_of(in) << name_of(out);
    }
}

TEST(SelectReduce, ReadsAllBeforeItWrites) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {16, 40}), c = h.nki.sbuf(DType::u8, {16, 40});
  h.fill(x);
  const Numbers nc = h.fill(c, 0, 2), nx = h.numbers(x(ds(0, 16), ds(0, 36)));
  select_reduce(x(ds(0, 16), ds(4, 36)), c(ds(0, 16), ds(0, 36)), x(ds(0, 16), ds(0, 36)), 9);
  // The predicate's own memory.
  select_reduce(c(ds(0, 16), ds(1, 30)), c(ds(0, 16), ds(0, 30)), c(ds(0, 16), ds(10, 30)), 7);
  h.run();
  const Numbers got = h.numbers(x(ds(0, 16), ds(4, 36))), changed = h.numbers(c(ds(0, 16), ds(1, 30)));
  for (std::size_t r = 0; r < 16; ++r) {
    for (std::size_t i = 0; i < 36; ++i) ASSERT_EQ(got[r * 36 + i], nc[r * 40 + i] != 0 ? nx[r * 36 + i] : 9);
    for (std::size_t i = 0; i < 30; ++i)
      ASSERT_EQ(changed[r * 30 + i], nc[r * 40 + i] != 0 ? nc[r * 40 + 10 + i] : 7);
  }
}

// --- nc_stream_shuffle ---

std::vector<std::int64_t> rotated(std::int64_t by) {
  std::vector<std::int64_t> mask;
  for (std::int64_t i = 0; i < 32; ++i) mask.push_back((i + by) % 32);
  return mask;
}

TEST(StreamShuffle, MovesPartitionsWithinQuadrantsBitForBit) {
  for (const DType dtype : {DType::u8, DType::bf16, DType::f32, DType::i32, DType::f8e4m3fn_x4})
    for (const std::int64_t p : {32, 64, 96, 128})
      for (const Layout& from : layouts())
        for (const Layout& to : layouts()) {
          if (!to.writable || (from.name != "whole" && to.name != "whole")) continue;
          Harness h;
          const Tile x = from.make(h.nki, Buffer::sbuf, dtype, p, 10),
                     y = to.make(h.nki, Buffer::psum, dtype, p, 10);
          if (dtype == DType::i32 || is_packed(dtype)) {
            // More bits than float32 has.
            Numbers values;
            for (std::uint32_t i = 0; i < p * 10; ++i)
              values.push_back(static_cast<double>((i * 2654435761u) >> 1));
            h.set(x, values);
          } else {
            h.fill(x, 0, 200);
          }
          std::vector<std::int64_t> mask = rotated(5);
          mask[3] = 0;
          nc_stream_shuffle(y, x, mask);
          h.run();
          const auto in = h.bits(x), out = h.bits(y);
          for (std::int64_t r = 0; r < p; ++r)
            for (std::int64_t i = 0; i < 10; ++i)
              ASSERT_EQ(out[static_cast<std::size_t>(r * 10 + i)],
                        in[static_cast<std::size_t>(
                            (r / 32 * 32 + mask[static_cast<std::size_t>(r % 32)]) * 10 + i)])
                  << from.name << " to " << to.name << " " << name_of(dtype);
        }
}

TEST(StreamShuffle, KeepsNaNBits) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::u32, {32, 1}), y = h.nki.sbuf(DType::f32, {32, 1});
  h.set(x, Numbers(32, 0x7f800001));
  nc_stream_shuffle(y, x.reinterpret(DType::f32), rotated(1));
  h.run();
  EXPECT_EQ(h.bits(y), std::vector<std::uint64_t>(32, 0x7f800001));
}

TEST(StreamShuffle, LeavesPartitionsAtWill) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {64, 6}), y = h.nki.sbuf(DType::f32, {64, 6}),
             fresh = h.nki.sbuf(DType::f32, {64, 6});
  const Numbers nx = h.fill(x), ny = h.fill(y);
  std::vector<std::int64_t> mask(32, 255);
  mask[4] = 9;
  nc_stream_shuffle(y, x, mask);
  nc_stream_shuffle(fresh, x, mask);
  h.run();
  const Numbers got = h.numbers(y);
  for (std::size_t r = 0; r < 64; ++r)
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_EQ(got[r * 6 + i], r % 32 == 4 ? nx[(r / 32 * 32 + 9) * 6 + i] : ny[r * 6 + i]);
  for (std::int64_t r = 0; r < 64; ++r) EXPECT_EQ(h.written(fresh(ds(r, 1))), r % 32 == 4) << r;
}

TEST(StreamShuffle, WorksInPlace) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::bf16, {128, 33});
  const Numbers before = h.fill(x);
  nc_stream_shuffle(x, x, rotated(1));
  h.run();
  const Numbers after = h.numbers(x);
  for (std::size_t r = 0; r < 128; ++r)
    for (std::size_t i = 0; i < 33; ++i)
      ASSERT_EQ(after[r * 33 + i], before[(r / 32 * 32 + (r + 1) % 32) * 33 + i]);
}

TEST(StreamShuffle, SpreadsOnePartition) {
  // The library's broadcast: one partition of a tile of which no other was written, to a quadrant elsewhere,
  // and to a part of one.
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {128, 40}), y = h.nki.sbuf(DType::f32, {128, 40});
  h.fill(x(ds(0, 1)));
  const Numbers row = h.numbers(x(ds(0, 1)));
  const std::vector<std::int64_t> first(32, 0);
  nc_stream_shuffle(y(ds(64, 32)), x(ds(0, 1)), first);
  nc_stream_shuffle(y(ds(96, 7)), x(ds(0, 1)), first);
  nc_stream_shuffle(y(ds(0, 32)), x(ds(0, 32)), first);
  h.run();
  for (const std::int64_t r : {0, 31, 64, 80, 95, 96, 102}) EXPECT_EQ(h.numbers(y(ds(r, 1))), row) << r;
  EXPECT_FALSE(h.written(y(ds(103, 1))));
  EXPECT_FALSE(h.written(y(ds(32, 1))));
  // What it takes must have been written.
  nc_stream_shuffle(y(ds(0, 32)), x(ds(0, 32)), rotated(1));
  EXPECT_BREAKS("unwritten", "nc_stream_shuffle, src", h.run());
}

TEST(Selects, GiveTheSameOnAnyNumberOfThreads) {
  for (int which = 0; which < 4; ++which)
    expect_same_on_two_threads([&](Harness& h) {
      const Tile x = h.nki.sbuf(DType::f32, {128, 501}), y = h.nki.sbuf(DType::bf16, {128, 501}),
                 b0 = h.nki.sbuf(DType::f32, {128, 1}), b1 = h.nki.sbuf(DType::f32, {128, 1}),
                 res = h.nki.sbuf(DType::f32, {128, 1}), c = h.nki.sbuf(DType::i8, {128, 501}),
                 z = h.nki.sbuf(DType::f32, {128, 501}), s = h.nki.sbuf(DType::f32, {128, 501});
      h.fill(x);
      h.fill(c, 0, 2);
      h.fill(b0, 0, 300);
      h.fill(b1, 200, 500);
      range_select(y, x, Alu::greater, Alu::less, b0, b1, {.reduce_res = res});
      select_reduce(z, c, x, b0);
      nc_stream_shuffle(s, x, rotated(3));
      return std::array{y, res, z, s}[static_cast<std::size_t>(which)];
    });
}

TEST(Selects, RefuseWhatTheVectorEngineCant) {
  Harness h;
  Recorder& nki = h.nki;
  const Tile x = nki.sbuf(DType::f32, {64, 16}), y = nki.sbuf(DType::f32, {64, 16}),
             b = nki.sbuf(DType::f32, {64, 1}), hbm = nki.private_hbm(DType::f32, {64, 16}),
             hbm_column = nki.private_hbm(DType::f32, {64, 1}), i = nki.sbuf(DType::i32, {64, 16}),
             packed = nki.sbuf(DType::f8e4m3fn_x4, {64, 16}), half = nki.sbuf(DType::bf16, {64, 1});
  const Alu ge = Alu::greater_equal, lt = Alu::less;
  // range_select
  EXPECT_BREAKS("buffer", "range_select, dst", range_select(hbm, x, ge, lt, b, b));
  EXPECT_BREAKS("buffer", "on_true_tile", range_select(y, hbm, ge, lt, b, b));
  EXPECT_BREAKS("buffer", "bound0", range_select(y, x, ge, lt, hbm_column, b));
  EXPECT_BREAKS("buffer", "bound1", range_select(y, x, ge, lt, b, hbm_column));
  EXPECT_BREAKS("buffer", "reduce_res", range_select(y, x, ge, lt, b, b, {.reduce_res = hbm_column}));
  EXPECT_BREAKS("dtype", "dst", range_select(packed, x, ge, lt, b, b));
  EXPECT_BREAKS("dtype", "on_true_tile", range_select(y, packed, ge, lt, b, b));
  EXPECT_BREAKS("dtype", "must be floating point, not int32", range_select(y, i, ge, lt, b, b));
  EXPECT_BREAKS("dtype", "bound0", range_select(y, x, ge, lt, half, b));
  EXPECT_BREAKS("dtype", "bound1", range_select(y, x, ge, lt, b, half));
  EXPECT_BREAKS("dtype", "reduce_res",
                range_select(y, x, ge, lt, b, b, {.reduce_res = packed(ds(0, 64), ds(0, 1))}));
  EXPECT_BREAKS("partitions", "dst", range_select(y(ds(0, 32)), x, ge, lt, b, b));
  EXPECT_BREAKS("shape", "dst", range_select(y(ds(0, 64), ds(0, 8)), x, ge, lt, b, b));
  EXPECT_BREAKS("shape", "bound0", range_select(y, x, ge, lt, x, b));
  EXPECT_BREAKS("shape", "bound1", range_select(y, x, ge, lt, b, b(ds(0, 32))));
  EXPECT_BREAKS("shape", "reduce_res", range_select(y, x, ge, lt, b, b, {.reduce_res = x}));
  EXPECT_BREAKS("compare-op", "comp_op0", range_select(y, x, Alu::not_equal, lt, b, b));
  EXPECT_BREAKS("compare-op", "not add", range_select(y, x, ge, Alu::add, b, b));
  EXPECT_BREAKS("reduce-op", "must be maximum, not add",
                range_select(y, x, ge, lt, b, b, {.reduce_op = Alu::add}));
  EXPECT_BREAKS("reduce-cmd", "load_reduce",
                range_select(y, x, ge, lt, b, b, {.reduce_cmd = ReduceCmd::load_reduce}));
  EXPECT_BREAKS("range-start", "2^24", range_select(y, x, ge, lt, b, b, {.range_start = 16777216 - 14}));
  EXPECT_BREAKS("range-start", "2^24", range_select(y, x, ge, lt, b, b, {.range_start = -16777217}));
  EXPECT_BREAKS("range-start", "2^24",
                range_select(y, x, ge, lt, b, b, {.range_start = std::numeric_limits<std::int64_t>::max()}));
  EXPECT_BREAKS("false-value", "-3.4028235e+38, not 0",
                range_select(y, x, ge, lt, b, b, {.on_false_value = 0}));
  Harness first(trn1());
  const Tile old = first.nki.sbuf(DType::f32, {64, 16}), bound = first.nki.sbuf(DType::f32, {64, 1});
  EXPECT_BREAKS("generation", "range_select", range_select(old, old, ge, lt, bound, bound));
  // select_reduce
  const Tile c = nki.sbuf(DType::u8, {64, 16}), pc = nki.psum(DType::u8, {64, 16}),
             px = nki.psum(DType::f32, {64, 16});
  EXPECT_BREAKS("buffer", "select_reduce, dst", select_reduce(hbm, c, x, 0));
  EXPECT_BREAKS("buffer", "predicate", select_reduce(y, nki.private_hbm(DType::u8, {64, 16}), x, 0));
  EXPECT_BREAKS("buffer", "on_true", select_reduce(y, c, hbm, 0));
  EXPECT_BREAKS("buffer", "on_false", select_reduce(y, c, x, hbm_column));
  EXPECT_BREAKS("buffer", "reduce_res", select_reduce(y, c, x, 0, {.reduce_res = hbm_column}));
  EXPECT_BREAKS("both-psum", "predicate", select_reduce(y, pc, px, 0));
  EXPECT_BREAKS("dtype", "must be int8 or uint8 or int16 or uint16, not float32", select_reduce(y, x, x, 0));
  EXPECT_BREAKS("dtype", "not uint32", select_reduce(y, nki.sbuf(DType::u32, {64, 16}), x, 0));
  EXPECT_BREAKS("dtype", "dst", select_reduce(packed, c, x, 0));
  EXPECT_BREAKS("dtype", "on_true", select_reduce(y, c, packed, 0));
  EXPECT_BREAKS("dtype", "on_false", select_reduce(y, c, x, packed(ds(0, 64), ds(0, 1))));
  EXPECT_BREAKS("dtype", "reduce_res: must be floating point",
                select_reduce(y, c, x, 0, {.reduce_res = i(ds(0, 64), ds(0, 1))}));
  EXPECT_BREAKS("partitions", "dst", select_reduce(y(ds(0, 32)), c, x, 0));
  EXPECT_BREAKS("partitions", "predicate", select_reduce(y, c(ds(0, 32)), x, 0));
  EXPECT_BREAKS("shape", "dst", select_reduce(y(ds(0, 64), ds(0, 8)), c, x, 0));
  EXPECT_BREAKS("shape", "predicate", select_reduce(y, c(ds(0, 64), ds(0, 8)), x, 0));
  EXPECT_BREAKS("shape", "on_false", select_reduce(y, c, x, x));
  EXPECT_BREAKS("shape", "reduce_res", select_reduce(y, c, x, 0, {.reduce_res = x}));
  EXPECT_BREAKS("reduce-op", "must be maximum, not minimum",
                select_reduce(y, c, x, 0, {.reduce_op = Alu::minimum}));
  EXPECT_BREAKS("reduce-cmd", "load_reduce",
                select_reduce(y, c, x, 0, {.reduce_cmd = ReduceCmd::load_reduce}));
  // nc_stream_shuffle
  EXPECT_BREAKS("buffer", "nc_stream_shuffle, dst", nc_stream_shuffle(hbm, x, rotated(1)));
  EXPECT_BREAKS("buffer", "src", nc_stream_shuffle(y, hbm, rotated(1)));
  EXPECT_BREAKS("dtype", "is float32, but src is int32", nc_stream_shuffle(y, i, rotated(1)));
  EXPECT_BREAKS("shape", "dst", nc_stream_shuffle(y(ds(0, 64), ds(0, 8)), x, rotated(1)));
  EXPECT_BREAKS("shuffle-mask", "32 entries, not 31",
                nc_stream_shuffle(y, x, std::vector<std::int64_t>(31, 0)));
  EXPECT_BREAKS("shuffle-mask", "entry 31 is 32", nc_stream_shuffle(y, x, [] {
                  auto m = rotated(0);
                  m[31] = 32;
                  return m;
                }()));
  EXPECT_BREAKS("shuffle-mask", "entry 0 is -1", nc_stream_shuffle(y, x, [] {
                  auto m = rotated(0);
                  m[0] = -1;
                  return m;
                }()));
  EXPECT_BREAKS("shuffle-mask", "partition 0 of dst takes partition 5 of src, which has 1",
                nc_stream_shuffle(y(ds(0, 4)), x(ds(0, 1)), rotated(5)));
  EXPECT_BREAKS("shuffle-mask", "partition 32 of dst takes partition 32 of src",
                nc_stream_shuffle(y, x(ds(0, 32)), rotated(0)));
  // 64 active partitions because of the other operand.
  const Tile wide = nki.sbuf(DType::f32, {128, 16});
  EXPECT_BREAKS("start-partition", "src: 64 active partitions must start at partition 0 or 64, not 32",
                nc_stream_shuffle(y, wide(ds(32, 1)), std::vector<std::int64_t>(32, 255)));
  EXPECT_BREAKS("start-partition", "dst: 64 active partitions must start at partition 0 or 64, not 96",
                nc_stream_shuffle(wide(ds(96, 32)), wide(ds(0, 64)), rotated(0)));
  EXPECT_BREAKS("start-partition", "dst: 96 active partitions must start at partition 0, not 64",
                nc_stream_shuffle(wide(ds(64, 33)), wide(ds(0, 65)), rotated(0)));
  EXPECT_EQ(nki.program().instructions.size(), 0u);
}

}  // namespace
}  // namespace headway::chip
