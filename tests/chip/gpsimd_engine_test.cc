#include "chip/gpsimd_engine.h"

#include <cmath>
#include <limits>

#include "chip/harness.h"
#include "chip/sync_engine.h"

namespace headway::chip {
namespace {

using Numbers = std::vector<double>;

// Value (p, i) of a pattern in 32-bit integers: the documentation's nested loops, by division.
std::int32_t pattern_value(const std::vector<Pair>& pattern, std::int64_t offset, std::int64_t multiplier,
                           std::int64_t p, std::int64_t i) {
  std::int64_t value = offset + p * multiplier;
  for (std::size_t d = pattern.size(); d-- > 0;) {
    value += i % pattern[d].count * pattern[d].step;
    i /= pattern[d].count;
  }
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
}

// What a store of an int32 value leaves: 32-bit integers keep the bits, all else converts a float32.
double stored_int(DType dtype, std::int32_t value) {
  if (dtype == DType::i32) return value;
  if (dtype == DType::u32) return static_cast<std::uint32_t>(value);
  return stored(dtype, static_cast<float>(value));
}

// Views of a tile in SBUF with the given number of elements a partition, each in another way.
std::vector<Tile> views(Harness& h, DType dtype, std::int64_t partitions, std::int64_t n) {
  std::vector<Tile> all;
  all.push_back(h.nki.sbuf(dtype, {partitions, n}));  // whole
  all.push_back(
      h.nki.sbuf(dtype, {partitions, 2 * n + 3})(range(0, partitions), range(1, 2 * n + 1, 2)));  // strided
  if (partitions <= 32)
    all.push_back(h.nki.sbuf(dtype, {128, n + 5})(range(96, 96 + partitions), range(2, n + 2)));
  if (n % 6 == 0) {
    all.push_back(h.nki.sbuf(dtype, {partitions, 3, n / 3}).permute({0, 2, 1}));
    all.push_back(
        h.nki.sbuf(dtype, {partitions, 2, 5, n / 6})(range(0, partitions), range(0, 2), range(1, 4)));
  }
  return all;
}

// --- iota ---

TEST(Iota, FollowsItsPatternInEveryDtypeAndLayout) {
  const std::vector<Pair> pattern = {{-7, 2}, {100, 3}, {0, 2}, {3, 4}};
  for (const DType dtype : computable_dtypes()) {
    for (const std::int64_t partitions : {1, 17, 32, 128}) {
      Harness h;
      for (const Tile& dst : views(h, dtype, partitions, 48)) {
        iota(dst, {{-7, 2}, {100, 3}, {0, 2}, {3, 4}}, {.offset = -40, .channel_multiplier = 5});
        h.run();
        Numbers expected;
        for (std::int64_t p = 0; p < partitions; ++p)
          for (std::int64_t i = 0; i < 48; ++i)
            expected.push_back(stored_int(dtype, pattern_value(pattern, -40, 5, p, i)));
        // Exactly; but what float8_e4m3fn can't hold is NaN.
        ASSERT_NO_FATAL_FAILURE(expect_close(h.numbers(dst), expected, 0))
            << name_of(dtype) << " " << partitions;
      }
    }
  }
}

TEST(Iota, HasOneElementOrAWholePartition) {
  Harness h;
  const Tile one = h.nki.sbuf(DType::i32, {128, 1});
  const Tile longest = h.nki.sbuf(DType::f32, {1, 50000});
  iota(one, {{9, 1}}, {.channel_multiplier = -1});
  iota(longest, {{1, 50000}});
  h.run();
  const Numbers first = h.numbers(one), second = h.numbers(longest);
  for (int p = 0; p < 128; ++p) ASSERT_EQ(first[static_cast<std::size_t>(p)], -p);
  for (int i = 0; i < 50000; ++i) ASSERT_EQ(second[static_cast<std::size_t>(i)], i);
}

TEST(Iota, WrapsAroundIn32Bits) {
  Harness h;
  const Tile signed_ = h.nki.sbuf(DType::i32, {2, 3});
  const Tile unsigned_ = h.nki.sbuf(DType::u32, {2, 3});
  const std::int32_t most = std::numeric_limits<std::int32_t>::max();
  iota(signed_, {{1, 3}}, {.offset = most - 1, .channel_multiplier = most});
  iota(unsigned_, {{-1, 3}}, {.offset = 1});
  h.run();
  EXPECT_EQ(h.numbers(signed_), (Numbers{2147483646, 2147483647, -2147483648.0, -3, -2, -1}));
  EXPECT_EQ(h.numbers(unsigned_), (Numbers{1, 0, 4294967295, 1, 0, 4294967295}));
}

TEST(Iota, TakesItsOffsetFromARegister) {
  Harness h;
  const Tile dst = h.nki.sbuf(DType::i32, {1, 4});
  const Register offset = register_alloc(h.nki, -3);
  iota(dst, {{2, 4}}, {.offset = offset});
  h.run();
  EXPECT_EQ(h.numbers(dst), (Numbers{-3, -1, 1, 3}));
}

TEST(Iota, IsTheSameOnTwoThreads) {
  std::vector<std::vector<std::uint64_t>> bits;
  for (const int threads : {1, 2}) {
    Harness h(trn2(), threads);
    const Tile dst = h.nki.sbuf(DType::bf16, {128, 700});
    iota(dst, {{3, 7}, {-1, 100}}, {.offset = 1, .channel_multiplier = 11});
    h.run();
    bits.push_back(h.bits(dst));
  }
  EXPECT_EQ(bits[0], bits[1]);
}

TEST(Iota, RefusesWhatTheHardwareCant) {
  Harness h;
  const Tile dst = h.nki.sbuf(DType::f32, {128, 12});
  EXPECT_BREAKS("buffer", "SBUF", iota(h.nki.psum(DType::f32, {128, 12}), {{1, 12}}));
  EXPECT_BREAKS("dtype", "MX", iota(h.nki.sbuf(DType::f8e4m3fn_x4, {128, 12}), {{1, 12}}));
  EXPECT_BREAKS("affine-pattern", "1 to 4 pairs of step and count, not 10",
                iota(dst, {{1, 1}, {1, 1}, {1, 1}, {1, 3}, {1, 4}}));
  EXPECT_BREAKS("affine-pattern", "not 0 numbers", iota(dst, {}));
  EXPECT_BREAKS("affine-pattern", "a count of 0", iota(dst, {{1, 0}}));
  EXPECT_BREAKS("affine-pattern", "has 6 elements, but dst has 12", iota(dst, {{1, 2}, {1, 3}}));
  EXPECT_BREAKS("affine-pattern", "has more elements, but dst has 12",
                iota(dst, {{1, 2147483647}, {1, 2147483647}, {1, 2147483647}, {1, 2147483647}}));
  // What the recorder's function can't say, a program file can.
  auto wide = std::make_unique<Iota>();
  wide->dst = dst;
  wide->pattern = {std::int64_t{1} << 31, 12};
  EXPECT_BREAKS("int32", "2147483648 doesn't fit", h.nki.record(std::move(wide), Here::current()));
  auto odd = std::make_unique<Iota>();
  odd->dst = dst;
  odd->pattern = {1, 12, 3};
  EXPECT_BREAKS("affine-pattern", "not 3 numbers", h.nki.record(std::move(odd), Here::current()));
  auto channel = std::make_unique<Iota>();
  channel->dst = dst;
  channel->pattern = {1, 12};
  channel->channel_multiplier = -(std::int64_t{1} << 40);
  EXPECT_BREAKS("int32", "channel_multiplier", h.nki.record(std::move(channel), Here::current()));
}

TEST(Iota, RunsOnGpsimdAlone) {
  Harness h;
  const Tile dst = h.nki.sbuf(DType::f32, {128, 12});
  auto instruction = std::make_unique<Iota>();
  instruction->dst = dst;
  instruction->pattern = {1, 12};
  instruction->engine = Engine::vector;
  EXPECT_BREAKS("engine", "gpsimd can", h.nki.record(std::move(instruction), Here::current()));
}

// --- affine_select ---

bool compare(Alu op, std::int32_t value) {
  switch (op) {
    case Alu::equal:
      return value == 0;
    case Alu::not_equal:
      return value != 0;
    case Alu::greater:
      return value > 0;
    case Alu::greater_equal:
      return value >= 0;
    case Alu::less:
      return value < 0;
    default:
      return value <= 0;
  }
}

const std::vector<Alu> kComparisons = {Alu::equal,         Alu::not_equal, Alu::greater,
                                       Alu::greater_equal, Alu::less,      Alu::less_equal};

TEST(AffineSelect, SelectsInEveryDtypeAndLayout) {
  const std::vector<Pair> pattern = {{-2, 6}, {1, 8}};
  std::size_t turn = 0;
  for (const DType dtype : computable_dtypes()) {
    for (const std::int64_t partitions : {1, 32, 128}) {
      Harness h;
      const std::vector<Tile> tiles = views(h, dtype, partitions, 48),
                              results = views(h, dtype, partitions, 48);
      for (std::size_t v = 0; v < tiles.size(); ++v, ++turn) {
        const Numbers on_true = h.fill(tiles[v], 0, 100);
        const Alu op = kComparisons[turn % kComparisons.size()];
        const Tile& dst = results[(v + 1) % results.size()];
        affine_select(dst, {{-2, 6}, {1, 8}}, 3, tiles[v], 7.5f, {.cmp_op = op, .offset = -5});
        h.run();
        Numbers expected;
        for (std::int64_t p = 0; p < partitions; ++p)
          for (std::int64_t i = 0; i < 48; ++i)
            expected.push_back(compare(op, pattern_value(pattern, -5, 3, p, i))
                                   ? on_true[static_cast<std::size_t>(p * 48 + i)]
                                   : stored(dtype, 7.5));
        ASSERT_EQ(h.numbers(dst), expected) << name_of(dtype) << " " << partitions << " view " << v;
      }
    }
  }
}

TEST(AffineSelect, ConvertsThroughFloat32WhereDtypesDiffer) {
  for (const DType from : computable_dtypes()) {
    for (const DType to : computable_dtypes()) {
      if (from == to) continue;
      Harness h;
      const Tile tile = h.nki.sbuf(from, {4, 9}), dst = h.nki.sbuf(to, {4, 9});
      const Numbers on_true = h.fill(tile, 0, 200);
      affine_select(dst, {{1, 9}}, -2, tile, -1e9f, {.cmp_op = Alu::greater_equal});
      h.run();
      Numbers expected;
      for (std::int64_t p = 0; p < 4; ++p)
        for (std::int64_t i = 0; i < 9; ++i)
          expected.push_back(
              stored(to, i - 2 * p >= 0 ? on_true[static_cast<std::size_t>(9 * p + i)] : -1e9));
      ASSERT_NO_FATAL_FAILURE(expect_close(h.numbers(dst), expected, 0))
          << name_of(from) << " to " << name_of(to);
    }
  }
}

TEST(AffineSelect, KeepsAllBitsOfOneDtype) {
  Harness h;
  const Tile words = h.nki.sbuf(DType::i32, {1, 4}), word_dst = h.nki.sbuf(DType::i32, {1, 4});
  h.set(words, {16777217, -2147483647, 2147483647, 5});
  affine_select(word_dst, {{1, 4}}, 0, words, -3e9f, {.cmp_op = Alu::not_equal, .offset = -3});
  // A NaN that says more than that it is one.
  const Tile halves = h.nki.sbuf(DType::u16, {1, 2}), half_dst = h.nki.sbuf(DType::u16, {1, 2});
  h.set(halves, {0x7f81, 0xffc3});
  affine_select(half_dst.reinterpret(DType::bf16), {{1, 2}}, 0, halves.reinterpret(DType::bf16), 0,
                {.cmp_op = Alu::greater_equal});
  h.run();
  EXPECT_EQ(h.numbers(word_dst), (Numbers{16777217, -2147483647, 2147483647, -2147483648.0}));
  EXPECT_EQ(h.numbers(half_dst), (Numbers{0x7f81, 0xffc3}));
}

TEST(AffineSelect, ComparesIntegersExactly) {
  // As float32, 2^24 + 1 - 2^24 - 1 would be the only kind of zero; here neighbours differ.
  Harness h;
  const Tile tile = h.nki.sbuf(DType::f32, {1, 3}), dst = h.nki.sbuf(DType::f32, {1, 3});
  h.set(tile, {1, 2, 3});
  affine_select(dst, {{16777217, 3}}, 0, tile, 0, {.cmp_op = Alu::equal, .offset = -16777217});
  h.run();
  EXPECT_EQ(h.numbers(dst), (Numbers{0, 2, 0}));
}

TEST(AffineSelect, MasksInPlaceAndOntoShiftedElements) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i8}) {
    Harness h;
    const Tile tile = h.nki.sbuf(dtype, {128, 65});
    const Tile from = tile(range(0, 128), range(0, 64)), to = tile(range(0, 128), range(1, 65));
    const Numbers on_true = h.fill(tile, 0, 9);
    affine_select(to, {{-1, 64}}, 1, from, -4, {.cmp_op = Alu::greater_equal});  // shifted by one element
    affine_select(from, {{-1, 64}}, 1, from, -8, {.cmp_op = Alu::greater});      // in place
    h.run();
    Numbers expected;
    for (std::int64_t p = 0; p < 128; ++p) {
      Numbers row(on_true.begin() + p * 65, on_true.begin() + (p + 1) * 65);
      const Numbers before = row;
      for (std::int64_t i = 0; i < 64; ++i)
        row[static_cast<std::size_t>(i + 1)] = p - i >= 0 ? before[static_cast<std::size_t>(i)] : -4;
      for (std::int64_t i = 0; i < 64; ++i)
        if (p - i <= 0) row[static_cast<std::size_t>(i)] = -8;
      expected.insert(expected.end(), row.begin(), row.end());
    }
    ASSERT_EQ(h.numbers(tile), expected) << name_of(dtype);
  }
}

TEST(AffineSelect, TakesItsOffsetFromARegister) {
  Harness h;
  const Tile tile = h.nki.sbuf(DType::f32, {1, 4}), dst = h.nki.sbuf(DType::f32, {1, 4});
  h.set(tile, {1, 2, 3, 4});
  affine_select(dst, {{1, 4}}, 0, tile, 9, {.cmp_op = Alu::less, .offset = register_alloc(h.nki, -2)});
  h.run();
  EXPECT_EQ(h.numbers(dst), (Numbers{1, 2, 9, 9}));
}

TEST(AffineSelect, IsTheSameOnTwoThreads) {
  std::vector<std::vector<std::uint64_t>> bits;
  for (const int threads : {1, 2}) {
    Harness h(trn2(), threads);
    const Tile tile = h.nki.sbuf(DType::f32, {128, 640}), dst = h.nki.sbuf(DType::bf16, {128, 640});
    h.fill(tile);
    affine_select(dst, {{-1, 640}}, 4, tile, -1e30f, {.cmp_op = Alu::greater_equal});
    h.run();
    bits.push_back(h.bits(dst));
  }
  EXPECT_EQ(bits[0], bits[1]);
}

TEST(AffineSelect, RefusesWhatTheHardwareCant) {
  Harness h;
  const Tile tile = h.nki.sbuf(DType::f32, {64, 12}), dst = h.nki.sbuf(DType::f32, {64, 12});
  EXPECT_BREAKS("buffer", "dst", affine_select(h.nki.psum(DType::f32, {64, 12}), {{1, 12}}, 0, tile, 0));
  EXPECT_BREAKS("buffer", "on_true_tile",
                affine_select(dst, {{1, 12}}, 0, h.nki.psum(DType::f32, {64, 12}), 0));
  EXPECT_BREAKS("dtype", "dst", affine_select(h.nki.sbuf(DType::f8e5m2_x4, {64, 12}), {{1, 12}}, 0, tile, 0));
  EXPECT_BREAKS("dtype", "on_true_tile",
                affine_select(dst, {{1, 12}}, 0, h.nki.sbuf(DType::f8e8m0fnu, {64, 12}), 0));
  EXPECT_BREAKS("partitions", "has 32",
                affine_select(dst, {{1, 12}}, 0, h.nki.sbuf(DType::f32, {32, 12}), 0));
  EXPECT_BREAKS("shape", "has 13", affine_select(dst, {{1, 12}}, 0, h.nki.sbuf(DType::f32, {64, 13}), 0));
  EXPECT_BREAKS("affine-pattern", "has 11 elements", affine_select(dst, {{1, 11}}, 0, tile, 0));
  EXPECT_BREAKS("op", "add is no comparison",
                affine_select(dst, {{1, 12}}, 0, tile, 0, {.cmp_op = Alu::add}));
  auto channel = std::make_unique<AffineSelect>();
  channel->dst = dst;
  channel->on_true_tile = tile;
  channel->pattern = {1, 12};
  channel->channel_multiplier = std::int64_t{1} << 31;
  EXPECT_BREAKS("int32", "channel_multiplier", h.nki.record(std::move(channel), Here::current()));
}

// --- tensor_partition_reduce ---

TEST(TensorPartitionReduce, ReducesOverPartitions) {
  for (const DType from : computable_dtypes()) {
    for (const DType to : {DType::f32, DType::bf16, from}) {
      for (const std::int64_t partitions : {1, 31, 128}) {
        for (const Alu op : {Alu::add, Alu::average, Alu::maximum}) {
          Harness h;
          for (const Tile& data : views(h, from, partitions, 12)) {
            const Numbers values = h.fill(data, 0, 4);
            const Tile dst = h.nki.sbuf(to, {1, 12});
            tensor_partition_reduce(dst, op, data);
            h.run();
            Numbers expected;
            for (std::size_t i = 0; i < 12; ++i) {
              double sum = op == Alu::maximum ? -1e30 : 0;
              for (std::int64_t p = 0; p < partitions; ++p) {
                const double value = values[static_cast<std::size_t>(12 * p) + i];
                sum = op == Alu::maximum ? std::max(sum, value) : sum + value;
              }
              expected.push_back(op == Alu::average ? sum / static_cast<double>(partitions) : sum);
            }
            // The sum's own rounding: 128 adds of float32, each within 2^-24 of at most 512. Then one
            // rounding to the dtype, which may fall the other way where the sum lies that near to a tie: a
            // unit in the last place of `to`, relative to the sum.
            const double places = to == DType::f8e5m2                            ? 0.25
                                  : to == DType::f8e4m3 || to == DType::f8e4m3fn ? 0.125
                                  : to == DType::bf16                            ? 0x1p-7
                                  : to == DType::f16 || to == DType::tf32        ? 0x1p-10
                                                                                 : 0;
            for (double& value : expected) value = stored(to, value);
            ASSERT_NO_FATAL_FAILURE(
                expect_close(h.numbers(dst), expected, places, is_float(to) ? 128 * 512 * 0x1p-24 : 0))
                << name_of(from) << " to " << name_of(to) << ", " << partitions << " partitions";
          }
        }
      }
    }
  }
}

TEST(TensorPartitionReduce, AddsPartitionByPartitionInFloat32) {
  Harness h;
  const Tile data = h.nki.sbuf(DType::f32, {128, 33}), dst = h.nki.sbuf(DType::f32, {1, 33});
  const Numbers values = h.fill(data);
  tensor_partition_reduce(dst, Alu::add, data);
  h.run();
  Numbers expected;
  for (std::size_t i = 0; i < 33; ++i) {
    float sum = static_cast<float>(values[i]);
    for (std::size_t p = 1; p < 128; ++p) sum += static_cast<float>(values[33 * p + i]);
    expected.push_back(sum);
  }
  EXPECT_EQ(h.numbers(dst), expected);
}

TEST(TensorPartitionReduce, IsExactInWords) {
  Harness h;
  const Tile signed_ = h.nki.sbuf(DType::i32, {3, 2}), unsigned_ = h.nki.sbuf(DType::u32, {3, 2});
  h.set(signed_, {16777217, -5, 2, -2147483648.0, -4, 2147483647});
  h.set(unsigned_, {4294967295, 3, 4, 4294967290, 1, 7});
  const Tile a = h.nki.sbuf(DType::i32, {1, 2}), b = h.nki.sbuf(DType::i32, {1, 2}),
             c = h.nki.sbuf(DType::u32, {1, 2}), d = h.nki.sbuf(DType::u32, {1, 2});
  tensor_partition_reduce(a, Alu::add, signed_);
  tensor_partition_reduce(b, Alu::maximum, signed_);
  tensor_partition_reduce(c, Alu::add, unsigned_);
  tensor_partition_reduce(d, Alu::maximum, unsigned_);
  h.run();
  EXPECT_EQ(h.numbers(a), (Numbers{16777215, -6}));
  EXPECT_EQ(h.numbers(b), (Numbers{16777217, 2147483647}));
  EXPECT_EQ(h.numbers(c), (Numbers{4, 4}));
  EXPECT_EQ(h.numbers(d), (Numbers{4294967295, 4294967290}));
}

TEST(TensorPartitionReduce, ReducesBits) {
  for (const DType dtype : integer_dtypes()) {
    Harness h;
    const Tile data = h.nki.sbuf(dtype, {40, 10}), all = h.nki.sbuf(dtype, {1, 10}),
               any = h.nki.sbuf(dtype, {1, 10});
    h.fill(data, 0, 127);
    const std::vector<std::uint64_t> bits = h.bits(data);
    tensor_partition_reduce(all, Alu::bitwise_and, data);
    tensor_partition_reduce(any, Alu::bitwise_or, data);
    h.run();
    const std::vector<std::uint64_t> all_bits = h.bits(all), any_bits = h.bits(any);
    for (std::size_t i = 0; i < 10; ++i) {
      std::uint64_t expected_all = ~std::uint64_t{0}, expected_any = 0;
      for (std::size_t p = 0; p < 40; ++p) {
        expected_all &= bits[10 * p + i];
        expected_any |= bits[10 * p + i];
      }
      ASSERT_EQ(all_bits[i], expected_all) << name_of(dtype);
      ASSERT_EQ(any_bits[i], expected_any) << name_of(dtype);
    }
  }
}

TEST(TensorPartitionReduce, MayWriteWhatItReads) {
  Harness h;
  const Tile data = h.nki.sbuf(DType::f32, {4, 3});
  h.set(data, {1, 2, 3, 10, 20, 30, 100, 200, 300, 1000, 2000, 3000});
  tensor_partition_reduce(data(range(0, 1)), Alu::add, data);
  h.run();
  EXPECT_EQ(h.numbers(data(range(0, 1))), (Numbers{1111, 2222, 3333}));
}

TEST(TensorPartitionReduce, RefusesWhatTheHardwareCant) {
  Harness h;
  const Tile data = h.nki.sbuf(DType::f32, {64, 12}), dst = h.nki.sbuf(DType::f32, {1, 12});
  EXPECT_BREAKS("buffer", "dst", tensor_partition_reduce(h.nki.psum(DType::f32, {1, 12}), Alu::add, data));
  EXPECT_BREAKS("buffer", "data", tensor_partition_reduce(dst, Alu::add, h.nki.psum(DType::f32, {64, 12})));
  EXPECT_BREAKS("partitions", "has 2 partitions",
                tensor_partition_reduce(h.nki.sbuf(DType::f32, {2, 12}), Alu::add, data));
  EXPECT_BREAKS("shape", "has 13", tensor_partition_reduce(h.nki.sbuf(DType::f32, {1, 13}), Alu::add, data));
  EXPECT_BREAKS("op", "multiply is none of", tensor_partition_reduce(dst, Alu::multiply, data));
  EXPECT_BREAKS("dtype", "bitwise_or needs integers", tensor_partition_reduce(dst, Alu::bitwise_or, data));
  EXPECT_BREAKS("dtype", "must be the same",
                tensor_partition_reduce(h.nki.sbuf(DType::u16, {1, 12}), Alu::bitwise_and,
                                        h.nki.sbuf(DType::i16, {64, 12})));
  EXPECT_BREAKS("dtype", "MX",
                tensor_partition_reduce(dst, Alu::add, h.nki.sbuf(DType::f8e5m2_x4, {64, 12})));
  EXPECT_BREAKS("dtype", "MX",
                tensor_partition_reduce(h.nki.sbuf(DType::f8e5m2_x4, {1, 12}), Alu::add, data));
}

// --- sequence_bounds ---

// The documentation's two passes.
Numbers bounds(const Numbers& ids) {
  const auto n = static_cast<std::int64_t>(ids.size());
  Numbers first(ids.size()), last(ids.size());
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    first[at] = ids[at] == 0                      ? static_cast<double>(n)
                : i > 0 && ids[at] == ids[at - 1] ? first[at - 1]
                                                  : static_cast<double>(i);
  }
  for (std::int64_t i = n - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    last[at] = ids[at] == 0                          ? -1
               : i + 1 < n && ids[at] == ids[at + 1] ? last[at + 1]
                                                     : static_cast<double>(i + 1);
  }
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

TEST(SequenceBounds, FindsRuns) {
  std::mt19937 random(3);
  for (const DType from : {DType::f32, DType::i32}) {
    for (const DType to : {DType::f32, DType::i32}) {
      for (const std::int64_t n : {1, 2, 7, 512, 3001}) {
        Harness h;
        for (const int start : {0, 32}) {
          Numbers ids;
          while (static_cast<std::int64_t>(ids.size()) < n)
            ids.insert(ids.end(),
                       std::min<std::size_t>(random() % 9, static_cast<std::size_t>(n) - ids.size()),
                       random() % 4);
          const Tile segment_ids = h.nki.sbuf(from, {64, n})(range(start, start + 1));
          const Tile dst = h.nki.sbuf(to, {64, 2, n})(range(start, start + 1));
          h.set(segment_ids, ids);
          sequence_bounds(dst, segment_ids);
          h.run();
          ASSERT_EQ(h.numbers(dst), bounds(ids)) << n;
        }
      }
    }
  }
}

TEST(SequenceBounds, KeepsLargeIdsApart) {
  Harness h;
  const Tile segment_ids = h.nki.sbuf(DType::i32, {1, 4}), dst = h.nki.sbuf(DType::i32, {1, 2, 4});
  h.set(segment_ids, {16777216, 16777217, 16777217, 2147483647});
  sequence_bounds(dst, segment_ids);
  h.run();
  EXPECT_EQ(h.numbers(dst), (Numbers{0, 1, 1, 3, 1, 3, 3, 4}));
}

TEST(SequenceBounds, RefusesWhatTheHardwareCant) {
  Harness h;
  const Tile ids = h.nki.sbuf(DType::f32, {1, 8}), dst = h.nki.sbuf(DType::i32, {1, 2, 8});
  EXPECT_BREAKS("buffer", "dst", sequence_bounds(h.nki.psum(DType::f32, {1, 2, 8}), ids));
  EXPECT_BREAKS("buffer", "segment_ids", sequence_bounds(dst, h.nki.psum(DType::f32, {1, 8})));
  EXPECT_BREAKS("dtype", "dst", sequence_bounds(h.nki.sbuf(DType::bf16, {1, 2, 8}), ids));
  EXPECT_BREAKS("dtype", "segment_ids", sequence_bounds(dst, h.nki.sbuf(DType::u32, {1, 8})));
  EXPECT_BREAKS("partitions", "it must have 1", sequence_bounds(dst, h.nki.sbuf(DType::f32, {2, 8})));
  EXPECT_BREAKS("shape", "[1, 16]", sequence_bounds(h.nki.sbuf(DType::f32, {1, 2, 7}), ids));
}

TEST(SequenceBounds, RefusesIdsThatAreNone) {
  for (const double wrong :
       {-1.0, 1.5, static_cast<double>(std::numeric_limits<float>::infinity()), std::nan("")}) {
    Harness h;
    const Tile ids = h.nki.sbuf(DType::f32, {1, 3}), dst = h.nki.sbuf(DType::i32, {1, 2, 3});
    h.set(ids, {0, 2, wrong});
    sequence_bounds(dst, ids);
    EXPECT_BREAKS("segment-id", "element 2 is", h.run());
    EXPECT_FALSE(h.written(dst));
  }
}

// --- nonzero_with_count ---

TEST(NonzeroWithCount, ListsPositionsOfEachCore) {
  std::mt19937 random(4);
  for (const DType dtype : {DType::f32, DType::i32}) {
    for (const std::int64_t partitions : {1, 15, 17, 64, 128}) {
      for (const std::int64_t n : {1, 5, 400}) {
        Harness h;
        const Tile src = h.nki.sbuf(dtype, {partitions, n}),
                   dst = h.nki.sbuf(DType::i32, {partitions, n + 1});
        Numbers values(static_cast<std::size_t>(partitions * n)),
            expected(static_cast<std::size_t>(partitions * (n + 1)), 77);
        for (double& value : values) value = random() % 3 == 0 ? 0 : random() % 7 - 3.0;
        h.set(src, values);
        h.set(dst, expected);
        nonzero_with_count(dst, src, {.index_offset = 16, .padding_val = -9});
        h.run();
        for (std::int64_t p = 0; p < partitions; p += 16) {
          Numbers row;
          for (std::int64_t i = 0; i < n; ++i)
            if (values[static_cast<std::size_t>(p * n + i)] != 0) row.push_back(static_cast<double>(16 + i));
          const auto count = static_cast<double>(row.size());
          row.resize(static_cast<std::size_t>(n), -9);
          row.push_back(count);
          std::copy(row.begin(), row.end(), expected.begin() + p * (n + 1));
        }
        ASSERT_EQ(h.numbers(dst), expected) << name_of(dtype) << " " << partitions << " " << n;
      }
    }
  }
}

TEST(NonzeroWithCount, DoesAsDocumented) {
  Harness h;
  const Tile src = h.nki.sbuf(DType::f32, {1, 8}), dst = h.nki.sbuf(DType::i32, {1, 9});
  h.set(src, {0, 1, 1, 0, 0, 1, 0, 0});
  nonzero_with_count(dst, src, {.index_offset = 16});
  h.run();
  EXPECT_EQ(h.numbers(dst), (Numbers{17, 18, 21, -1, -1, -1, -1, -1, 3}));
}

TEST(NonzeroWithCount, CountsNanButNeitherZero) {
  Harness h;
  const Tile src = h.nki.sbuf(DType::f32, {1, 3}), dst = h.nki.sbuf(DType::i32, {1, 4});
  h.set(src, {-0.0, std::nan(""), 0});
  nonzero_with_count(dst, src);
  h.run();
  EXPECT_EQ(h.numbers(dst), (Numbers{1, -1, -1, 1}));
}

TEST(NonzeroWithCount, TouchesTheFirstPartitionOfEachCoreOnly) {
  Harness h;
  const Tile src = h.nki.sbuf(DType::f32, {128, 4}), dst = h.nki.sbuf(DType::i32, {128, 5});
  for (const int p : {0, 32, 64, 96})  // the other cores have nothing to read
    h.fill(src(range(p, p + 1)));
  nonzero_with_count(dst(range(32, 48)), src(range(32, 48)));
  h.run();
  EXPECT_TRUE(h.written(dst(range(32, 33))));
  EXPECT_FALSE(h.written(dst(range(33, 34))));
  nonzero_with_count(dst, src);
  EXPECT_BREAKS("unwritten", "partition 16", h.run());
}

TEST(NonzeroWithCount, MayWriteWhatItReads) {
  Harness h;
  const Tile tile = h.nki.sbuf(DType::i32, {128, 4});
  h.set(tile, Numbers(512, 1));
  nonzero_with_count(tile(range(0, 32)), tile(range(32, 64), range(0, 3)));
  nonzero_with_count(tile(range(0, 64)), tile(range(0, 64), range(1, 4)), {.index_offset = 5});
  h.run();
  EXPECT_EQ(h.numbers(tile(range(0, 1))), (Numbers{5, 6, 7, 3}));
  EXPECT_EQ(h.numbers(tile(range(1, 2))), (Numbers{1, 1, 1, 1}));
}

TEST(NonzeroWithCount, RefusesWhatTheHardwareCant) {
  Harness h;
  const Tile src = h.nki.sbuf(DType::f32, {128, 8}), dst = h.nki.sbuf(DType::i32, {128, 9});
  EXPECT_BREAKS("buffer", "dst", nonzero_with_count(h.nki.psum(DType::i32, {128, 9}), src));
  EXPECT_BREAKS("buffer", "src", nonzero_with_count(dst, h.nki.psum(DType::f32, {128, 8})));
  EXPECT_BREAKS("dtype", "dst", nonzero_with_count(h.nki.sbuf(DType::u32, {128, 9}), src));
  EXPECT_BREAKS("dtype", "src", nonzero_with_count(dst, h.nki.sbuf(DType::bf16, {128, 8})));
  EXPECT_BREAKS("partitions", "has 64", nonzero_with_count(h.nki.sbuf(DType::i32, {64, 9}), src));
  EXPECT_BREAKS("shape", "9, not 8", nonzero_with_count(h.nki.sbuf(DType::i32, {128, 8}), src));
  for (const bool padding : {false, true}) {
    auto wide = std::make_unique<NonzeroWithCount>();
    wide->dst = dst;
    wide->src = src;
    (padding ? wide->padding_val : wide->index_offset) = std::int64_t{1} << 31;
    EXPECT_BREAKS("int32", padding ? "padding_val" : "index_offset",
                  h.nki.record(std::move(wide), Here::current()));
  }
  Harness old(trn1());
  EXPECT_BREAKS("generation", "NeuronCore-v3",
                nonzero_with_count(old.nki.sbuf(DType::i32, {128, 9}), old.nki.sbuf(DType::f32, {128, 8})));
}

}  // namespace
}  // namespace headway::chip
