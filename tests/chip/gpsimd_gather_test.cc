#include "chip/gpsimd_gather.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "chip/harness.h"

namespace headway::chip {
namespace {

using Numbers = std::vector<double>;
using Bits = std::vector<std::uint64_t>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::vector<DType> stored_dtypes() {
  std::vector<DType> all = computable_dtypes();
  all.push_back(DType::f8e8m0fnu);
  all.push_back(DType::f4e2m1fn_x4);
  all.push_back(DType::f8e5m2_x4);
  return all;
}

// Random bits in every element, whatever they mean.
Bits fill_bits(Harness& h, const Tile& tile, std::mt19937& random) {
  const DType raw[] = {DType::u8, DType::u8, DType::u16, DType::u16, DType::u32};
  const Tile words = tile.reinterpret(raw[size_of(tile.dtype())]);
  Numbers numbers(at(tile.view().elements()));
  for (double& number : numbers)
    number = size_of(tile.dtype()) == 4 ? random() : random() % (1u << (8 * size_of(tile.dtype())));
  h.set(words, numbers);
  return h.bits(tile);
}

Numbers random_indices(std::int64_t count, std::int64_t below, std::mt19937& random) {
  Numbers indices(at(count));
  for (double& index : indices) index = static_cast<double>(random() % static_cast<std::uint64_t>(below));
  return indices;
}

// --- local_gather ---

// NumPy's semantics from the documentation: the indices of 16 partitions, column-major, taken in each of
// them.
Bits local_gather_of(const Bits& src, std::int64_t partitions, const Numbers& index, std::int64_t each,
                     std::int64_t valid) {
  const auto per_row = static_cast<std::int64_t>(src.size()) / partitions;
  const auto columns = static_cast<std::int64_t>(index.size()) / partitions;
  Bits result;
  for (std::int64_t p = 0; p < partitions; ++p) {
    Numbers flat;
    for (std::int64_t c = 0; c < columns; ++c)
      for (std::int64_t lane = 0; lane < 16; ++lane)
        flat.push_back(index[at((p / 16 * 16 + lane) * columns + c)]);
    for (std::int64_t j = 0; j < valid; ++j)
      for (std::int64_t e = 0; e < each; ++e)
        result.push_back(src[at(p * per_row + static_cast<std::int64_t>(flat[at(j)]) + e)]);
  }
  return result;
}

TEST(LocalGather, GathersInEveryDtype) {
  std::mt19937 random(1);
  for (const DType dtype : stored_dtypes()) {
    for (const std::int64_t partitions : {16, 32, 48, 128}) {
      for (const std::int64_t each : {1, 2, 4, 8, 16, 32}) {
        Harness h;
        const Tile src = h.nki.sbuf(dtype, {partitions, 70}), index = h.nki.sbuf(DType::u16, {partitions, 3});
        const std::int64_t valid = each == 4 ? 48 : 37;
        const Tile dst = h.nki.sbuf(dtype, {partitions, valid * each});
        const Bits from = fill_bits(h, src, random);
        const Numbers indices = random_indices(partitions * 3, 70 - each + 1, random);
        h.set(index, indices);
        local_gather(dst, src, index,
                     {.num_elem_per_idx = static_cast<std::int32_t>(each),
                      .num_valid_indices = each == 4 ? 0 : static_cast<std::int32_t>(valid)});
        h.run();
        ASSERT_EQ(h.bits(dst), local_gather_of(from, partitions, indices, each, valid))
            << name_of(dtype) << " " << partitions << " " << each;
      }
    }
  }
}

TEST(LocalGather, GathersThroughViews) {
  std::mt19937 random(2);
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8}) {
    Harness h;
    // Every second element of two of three rows; results to permuted extents; indices in every second column.
    const Tile src = h.nki.sbuf(dtype, {128, 3, 41})(range(64, 96), range(1, 3), range(0, 41, 2));
    const Tile index = h.nki.sbuf(DType::u16, {32, 8})(range(0, 32), range(1, 8, 2));
    const Tile dst = h.nki.sbuf(dtype, {32, 4, 32}).permute({0, 2, 1});
    const Bits from = fill_bits(h, src, random);
    const Numbers indices = random_indices(32 * 4, 42 - 1, random);
    h.set(index, indices);
    local_gather(dst, src, index, {.num_elem_per_idx = 2});
    h.run();
    ASSERT_EQ(h.bits(dst), local_gather_of(from, 32, indices, 2, 64)) << name_of(dtype);
  }
}

TEST(LocalGather, TakesAsManyIndicesAsAllowedOnOneOrTwoThreads) {
  std::vector<Bits> results;
  for (const int threads : {1, 2}) {
    std::mt19937 random(3);
    Harness h(trn2(), threads);
    const Tile src = h.nki.sbuf(DType::bf16, {128, 1000}), index = h.nki.sbuf(DType::u16, {128, 256});
    const Tile dst = h.nki.sbuf(DType::bf16, {128, 4096});
    const Bits from = fill_bits(h, src, random);
    const Numbers indices = random_indices(128 * 256, 1000, random);
    h.set(index, indices);
    local_gather(dst, src, index);
    h.run();
    results.push_back(h.bits(dst));
    EXPECT_EQ(results.back(), local_gather_of(from, 128, indices, 1, 4096));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(LocalGather, MayWriteWhatItReads) {
  std::mt19937 random(4);
  Harness h;
  const Tile tile = h.nki.sbuf(DType::f32, {64, 40}), index = h.nki.sbuf(DType::u16, {32, 2});
  const Tile src = tile(range(0, 32)), dst = tile(range(0, 32), range(3, 35));
  fill_bits(h, tile, random);
  const Bits from = h.bits(src);
  const Numbers indices = random_indices(64, 40, random);
  h.set(index, indices);
  local_gather(dst, src, index);
  h.run();
  EXPECT_EQ(h.bits(dst), local_gather_of(from, 32, indices, 1, 32));
}

TEST(LocalGather, RefusesWhatTheHardwareCant) {
  Harness h;
  const Tile src = h.nki.sbuf(DType::f32, {32, 64}), index = h.nki.sbuf(DType::u16, {32, 2}),
             dst = h.nki.sbuf(DType::f32, {32, 32});
  EXPECT_BREAKS("buffer", "dst", local_gather(h.nki.psum(DType::f32, {32, 32}), src, index));
  EXPECT_BREAKS("buffer", "src_buffer", local_gather(dst, h.nki.psum(DType::f32, {32, 64}), index));
  EXPECT_BREAKS("buffer", "index", local_gather(dst, src, h.nki.psum(DType::u16, {32, 2})));
  EXPECT_BREAKS("dtype", "must be the same", local_gather(h.nki.sbuf(DType::i32, {32, 32}), src, index));
  EXPECT_BREAKS("dtype", "must be uint16", local_gather(dst, src, h.nki.sbuf(DType::u32, {32, 2})));
  EXPECT_BREAKS("partitions", "index", local_gather(dst, src, h.nki.sbuf(DType::u16, {16, 2})));
  EXPECT_BREAKS("partitions", "dst", local_gather(h.nki.sbuf(DType::f32, {16, 32}), src, index));
  EXPECT_BREAKS("partitions-of-16", "has 24 partitions",
                local_gather(dst(range(0, 24)), src(range(0, 24)), index(range(0, 24))));
  for (const std::int32_t each : {0, 3, 64, -1})
    EXPECT_BREAKS("elements-per-index", "none of 1, 2, 4, 8, 16, 32",
                  local_gather(dst, src, index, {.num_elem_per_idx = each}));
  EXPECT_BREAKS("index-count", "33 of the 32", local_gather(dst, src, index, {.num_valid_indices = 33}));
  EXPECT_BREAKS("index-count", "-1 of the 32", local_gather(dst, src, index, {.num_valid_indices = -1}));
  EXPECT_BREAKS("index-count", "4112 indices", local_gather(dst, src, h.nki.sbuf(DType::u16, {32, 257})));
  EXPECT_BREAKS("shape", "must have 64 elements", local_gather(dst, src, index, {.num_elem_per_idx = 2}));
  EXPECT_BREAKS("shape", "must have 31 elements", local_gather(dst, src, index, {.num_valid_indices = 31}));
}

TEST(LocalGather, RefusesIndicesOutOfBounds) {
  Harness h;
  const Tile src = h.nki.sbuf(DType::f32, {16, 64}), index = h.nki.sbuf(DType::u16, {16, 1}),
             dst = h.nki.sbuf(DType::f32, {16, 30});
  h.fill(src);
  Numbers indices(16, 62);
  indices[15] = 63;  // past the valid ones
  h.set(index, indices);
  local_gather(dst, src, index, {.num_elem_per_idx = 2, .num_valid_indices = 15});
  h.run();
  local_gather(dst(range(0, 16), range(0, 16)), src(range(0, 16), range(0, 62)), index);
  EXPECT_BREAKS("out-of-bounds", "index 62 of partition 0 reaches element 62 of src_buffer, which has 62",
                h.run());
}

// --- nc_n_gather ---

Bits gather_of(const Bits& data, std::int64_t partitions, const Numbers& indices) {
  const auto per_row = static_cast<std::int64_t>(data.size()) / partitions;
  const auto each = static_cast<std::int64_t>(indices.size()) / partitions;
  Bits result;
  for (std::int64_t p = 0; p < partitions; ++p)
    for (std::int64_t j = 0; j < each; ++j)
      result.push_back(data[at(p * per_row + static_cast<std::int64_t>(indices[at(p * each + j)]))]);
  return result;
}

TEST(NcNGather, GathersInEveryDtype) {
  std::mt19937 random(5);
  for (const DType dtype : stored_dtypes()) {
    for (const std::int64_t partitions : {1, 31, 64, 128}) {
      for (const std::int64_t n : {1, 13, 520}) {
        Harness h;
        const Tile data = h.nki.sbuf(dtype, {partitions, 97}),
                   indices = h.nki.sbuf(DType::u32, {partitions, n}),
                   dst = h.nki.sbuf(dtype, {partitions, n});
        const Bits from = fill_bits(h, data, random);
        const Numbers places = random_indices(partitions * n, 97, random);
        h.set(indices, places);
        nc_n_gather(dst, data, indices);
        h.run();
        ASSERT_EQ(h.bits(dst), gather_of(from, partitions, places))
            << name_of(dtype) << " " << partitions << " " << n;
      }
    }
  }
}

TEST(NcNGather, FlattensFreeExtents) {
  std::mt19937 random(6);
  for (const DType dtype : {DType::f32, DType::f16, DType::i8}) {
    Harness h;
    const Tile data = h.nki.sbuf(dtype, {64, 4, 5, 6}).permute({0, 3, 1, 2})(range(0, 64), range(0, 6, 2));
    const Tile repeated = h.nki.sbuf(dtype, {64, 1}).broadcast(1, 60);
    const Tile indices = h.nki.sbuf(DType::u32, {64, 7, 9})(range(0, 64), range(0, 7), range(1, 9));
    const Tile dst = h.nki.sbuf(dtype, {128, 8, 7})(range(64, 128)).permute({0, 2, 1});
    const Bits from = fill_bits(h, data, random);
    fill_bits(h, repeated.sliced({range(0, 64), range(0, 1)}), random);
    const Bits repeats = h.bits(repeated);
    const Numbers places = random_indices(64 * 56, 60, random);
    h.set(indices, places);
    nc_n_gather(dst, data, indices);
    h.run();
    ASSERT_EQ(h.bits(dst), gather_of(from, 64, places)) << name_of(dtype);
    nc_n_gather(dst, repeated, indices);
    h.run();
    ASSERT_EQ(h.bits(dst), gather_of(repeats, 64, places)) << name_of(dtype);
  }
}

TEST(NcNGather, MayWriteWhatItReads) {
  std::mt19937 random(7);
  Harness h;
  const Tile data = h.nki.sbuf(DType::u32, {64, 50}), indices = h.nki.sbuf(DType::u32, {64, 50});
  const Bits from = fill_bits(h, data, random);
  const Numbers places = random_indices(64 * 50, 50, random);
  h.set(indices, places);
  nc_n_gather(data, data, indices);  // in place
  h.run();
  const Bits once = gather_of(from, 64, places);
  EXPECT_EQ(h.bits(data), once);
  // Onto other partitions and over the indices themselves.
  nc_n_gather(data(range(32, 64)), data(range(0, 32)), indices(range(32, 64)));
  nc_n_gather(indices(range(0, 64), range(1, 50)), data, indices(range(0, 64), range(0, 49)));
  h.run();
  Bits moved = once;
  const Bits upper =
      gather_of({once.begin(), once.begin() + 32 * 50}, 32, {places.begin() + 32 * 50, places.end()});
  std::copy(upper.begin(), upper.end(), moved.begin() + 32 * 50);
  EXPECT_EQ(h.bits(data), moved);
  Numbers most;
  for (std::size_t p = 0; p < 64; ++p)
    most.insert(most.end(), places.begin() + at(50 * static_cast<std::int64_t>(p)),
                places.begin() + at(50 * static_cast<std::int64_t>(p)) + 49);
  EXPECT_EQ(h.bits(indices(range(0, 64), range(1, 50))), gather_of(moved, 64, most));
}

TEST(NcNGather, IsTheSameOnTwoThreads) {
  std::vector<Bits> results;
  for (const int threads : {1, 2}) {
    std::mt19937 random(8);
    Harness h(trn2(), threads);
    const Tile data = h.nki.sbuf(DType::f32, {128, 900}), indices = h.nki.sbuf(DType::u32, {128, 1100}),
               dst = h.nki.sbuf(DType::f32, {128, 1100});
    fill_bits(h, data, random);
    h.set(indices, random_indices(128 * 1100, 900, random));
    nc_n_gather(dst, data, indices);
    h.run();
    results.push_back(h.bits(dst));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(NcNGather, RefusesWhatTheHardwareCant) {
  Harness h;
  const Tile data = h.nki.sbuf(DType::f32, {32, 64}), indices = h.nki.sbuf(DType::u32, {32, 8}),
             dst = h.nki.sbuf(DType::f32, {32, 8});
  EXPECT_BREAKS("buffer", "dst", nc_n_gather(h.nki.psum(DType::f32, {32, 8}), data, indices));
  EXPECT_BREAKS("buffer", "data", nc_n_gather(dst, h.nki.psum(DType::f32, {32, 64}), indices));
  EXPECT_BREAKS("buffer", "indices", nc_n_gather(dst, data, h.nki.psum(DType::u32, {32, 8})));
  EXPECT_BREAKS("dtype", "must be the same", nc_n_gather(h.nki.sbuf(DType::bf16, {32, 8}), data, indices));
  EXPECT_BREAKS("dtype", "must be uint32", nc_n_gather(dst, data, h.nki.sbuf(DType::i32, {32, 8})));
  EXPECT_BREAKS("partitions", "data", nc_n_gather(dst, h.nki.sbuf(DType::f32, {31, 64}), indices));
  EXPECT_BREAKS("partitions", "dst", nc_n_gather(h.nki.sbuf(DType::f32, {31, 8}), data, indices));
  EXPECT_BREAKS("shape", "has 9", nc_n_gather(h.nki.sbuf(DType::f32, {32, 9}), data, indices));
  h.fill(data);
  Numbers places(32 * 8, 63);
  h.set(indices, places);
  nc_n_gather(dst, data, indices);
  h.run();
  places[8 * 30 + 5] = 4294967295;
  h.set(indices, places);
  nc_n_gather(dst, data, indices);
  EXPECT_BREAKS("out-of-bounds", "index 4294967295 of partition 30", h.run());
}

// --- topk ---

struct Snake {
  Numbers elements;
  std::vector<std::int64_t> best;  // places, ascending by value; among equals the lower place last
};

// Fills group `g` of a source with n elements drawn from `draw`, and sorts.
template <class Draw>
Snake fill_snake(Numbers& source, std::int64_t columns, std::int64_t g, std::int64_t n, std::int64_t k,
                 Draw&& draw) {
  Snake snake;
  for (std::int64_t s = 0; s < n; ++s) {
    const double value = stored(DType::bf16, draw());
    source[at((16 * g + s % 16) * columns + s / 16)] = value;
    snake.elements.push_back(value);
  }
  std::vector<std::int64_t> order(at(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const double x = snake.elements[at(a)], y = snake.elements[at(b)];
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
    return x > y;
  });
  snake.best.assign(order.begin(), order.begin() + k);
  std::reverse(snake.best.begin(), snake.best.end());
  return snake;
}

TEST(Topk, FindsTheLargestOfEachGroup) {
  std::mt19937 random(9);
  std::normal_distribution<double> normal;
  for (const std::int64_t partitions : {16, 48, 128}) {
    for (const std::int64_t n : {8, 15, 16, 42, 1000, 4099}) {
      for (const std::int64_t k : {std::int64_t{1}, std::int64_t{7}, n / 3, n}) {
        if (k < 1 || k > n) continue;
        const std::int64_t columns = (n + 15) / 16 + 2;
        Harness h;
        const Tile src = h.nki.sbuf(DType::bf16, {partitions, columns}),
                   val = h.nki.sbuf(DType::bf16, {partitions, k}),
                   idx = h.nki.sbuf(DType::u32, {partitions, k});
        Numbers source(at(partitions * columns), 1e30);  // what lies past n would win
        std::vector<Snake> snakes;
        for (std::int64_t g = 0; g < partitions / 16; ++g)
          snakes.push_back(fill_snake(source, columns, g, n, k, [&] {
            // Few different values: many ties.
            return g % 2 ? std::round(normal(random)) : normal(random);
          }));
        h.set(src, source);
        topk(val, idx, src, n);
        h.run();
        const std::int64_t written = (k + 15) / 16;
        const Numbers values = h.numbers(val(range(0, partitions), range(0, written))),
                      places = h.numbers(idx(range(0, partitions), range(0, written)));
        for (std::int64_t p = 0; p < partitions; ++p)
          for (std::int64_t c = 0; c < written; ++c) {
            const std::int64_t j = 16 * c + p % 16;
            const double value = values[at(p * written + c)], place = places[at(p * written + c)];
            if (j >= k) {
              ASSERT_TRUE(std::isnan(value));
              ASSERT_EQ(place, 4294967295.0);
              continue;
            }
            const Snake& snake = snakes[at(p / 16)];
            ASSERT_EQ(place, static_cast<double>(snake.best[at(j)])) << n << " " << k << " result " << j;
            ASSERT_EQ(value, snake.elements[at(snake.best[at(j)])]);
          }
        if (written < k) {
          EXPECT_FALSE(h.written(val(range(0, 1), range(written, written + 1))));
        }
      }
    }
  }
}

TEST(Topk, OrdersInfinitiesZerosAndNan) {
  Harness h;
  const Tile src = h.nki.sbuf(DType::bf16, {16, 1}), val = h.nki.sbuf(DType::bf16, {16, 8}),
             idx = h.nki.sbuf(DType::u32, {16, 8});
  const double infinity = std::numeric_limits<double>::infinity();
  h.set(src(range(0, 8)), {std::nan(""), -0.0, infinity, 0.0, -infinity, -1, 1e-38, -1e-40});
  topk(val, idx, src, 8);  // the other eight were never written, and aren't read
  h.run();
  const Numbers places = h.numbers(idx(range(0, 16), range(0, 1)));
  const Numbers expected = {0, 4, 5, 7, 3, 1, 6, 2};
  EXPECT_EQ(Numbers(places.begin(), places.begin() + 8), expected);
  EXPECT_EQ(h.bits(val(range(0, 8), range(0, 1)))[5], 0x8000u);  // its own sign
}

TEST(Topk, TakesAsManyAsAllowedOnOneOrTwoThreads) {
  std::vector<Bits> results;
  for (const int threads : {1, 2}) {
    std::mt19937 random(10);
    Harness h(trn2(), threads);
    const Tile src = h.nki.sbuf(DType::bf16, {32, 4096}), val = h.nki.sbuf(DType::bf16, {32, 32767}),
               idx = h.nki.sbuf(DType::u32, {32, 32767});
    fill_bits(h, src, random);
    topk(val, idx, src, 65535);
    h.run();
    results.push_back(h.bits(idx(range(0, 32), range(0, 2048))));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Topk, MayWriteOverItsSource) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  Harness h;
  const Tile src = h.nki.sbuf(DType::bf16, {64, 6}), idx = h.nki.sbuf(DType::u32, {32, 20});
  Numbers source(64 * 6, 0);
  std::vector<Snake> snakes;
  for (std::int64_t g = 0; g < 4; ++g)
    snakes.push_back(fill_snake(source, 6, g, 96, 6, [&] { return normal(random); }));
  h.set(src, source);
  // The results of groups 0 and 1 go where groups 2 and 3 lie, those of 0 and 1 over themselves.
  topk(src(range(32, 64)), idx(range(0, 32), range(0, 6)), src(range(0, 32)), 96);
  topk(src(range(0, 32)), idx(range(0, 32), range(6, 12)), src(range(0, 32)), 96);
  h.run();
  for (const std::int64_t first : {0, 32}) {
    const Numbers values = h.numbers(src(range(first, first + 32), range(0, 1)));
    for (std::int64_t p = 0; p < 32; ++p) {
      const Snake& snake = snakes[at(p / 16)];
      if (p % 16 < 6) {
        ASSERT_EQ(values[at(p)], snake.elements[at(snake.best[at(p % 16)])]);
      }
    }
  }
}

TEST(Topk, RefusesWhatTheHardwareCant) {
  Harness h;
  const Tile src = h.nki.sbuf(DType::bf16, {32, 4}), val = h.nki.sbuf(DType::bf16, {32, 8}),
             idx = h.nki.sbuf(DType::u32, {32, 8});
  EXPECT_BREAKS("buffer", "val_dst", topk(h.nki.psum(DType::bf16, {32, 8}), idx, src, 64));
  EXPECT_BREAKS("buffer", "idx_dst", topk(val, h.nki.psum(DType::u32, {32, 8}), src, 64));
  EXPECT_BREAKS("buffer", "src", topk(val, idx, h.nki.psum(DType::bf16, {32, 4}), 64));
  EXPECT_BREAKS("dtype", "val_dst", topk(h.nki.sbuf(DType::f32, {32, 8}), idx, src, 64));
  EXPECT_BREAKS("dtype", "idx_dst", topk(val, h.nki.sbuf(DType::i32, {32, 8}), src, 64));
  EXPECT_BREAKS("dtype", "src", topk(val, idx, h.nki.sbuf(DType::f16, {32, 4}), 64));
  EXPECT_BREAKS("shape", "one free extent", topk(h.nki.sbuf(DType::bf16, {32, 2, 4}), idx, src, 64));
  EXPECT_BREAKS("shape", "one free extent", topk(val, h.nki.sbuf(DType::u32, {32, 2, 4}), src, 64));
  EXPECT_BREAKS("shape", "one free extent", topk(val, idx, h.nki.sbuf(DType::bf16, {32, 2, 2}), 64));
  EXPECT_BREAKS("shape", "has 9", topk(val, h.nki.sbuf(DType::u32, {32, 9}), src, 64));
  EXPECT_BREAKS("partitions", "idx_dst", topk(val, h.nki.sbuf(DType::u32, {16, 8}), src, 64));
  EXPECT_BREAKS("partitions", "val_dst", topk(val, idx, h.nki.sbuf(DType::bf16, {16, 4}), 64));
  EXPECT_BREAKS("partitions-of-16", "has 8", topk(val(range(0, 8)), idx(range(0, 8)), src(range(0, 8)), 64));
  EXPECT_BREAKS("topk-n", "7 is not within 8 to 65535", topk(val, idx, src, 7));
  EXPECT_BREAKS("topk-n", "65536", topk(val, idx, src, 65536));
  EXPECT_BREAKS("topk-k", "9 results of 8 elements",
                topk(h.nki.sbuf(DType::bf16, {32, 9}), h.nki.sbuf(DType::u32, {32, 9}), src, 8));
  EXPECT_BREAKS("topk-k", "at most 32767",
                topk(h.nki.sbuf(DType::bf16, {32, 32768}), h.nki.sbuf(DType::u32, {32, 32768}),
                     h.nki.sbuf(DType::bf16, {32, 4096}), 65535));
  EXPECT_BREAKS("shape", "take 5 columns, src has 4", topk(val, idx, src, 65));
  const Tile bytes = h.nki.sbuf(DType::u32, {32, 12});
  EXPECT_BREAKS("overlap", "idx_dst",
                topk(bytes.reinterpret(DType::bf16)(range(0, 32), range(8, 16)),
                     bytes(range(0, 32), range(0, 8)), src, 64));
  Harness old(trn1());
  EXPECT_BREAKS("generation", "NeuronCore-v3",
                topk(old.nki.sbuf(DType::bf16, {32, 8}), old.nki.sbuf(DType::u32, {32, 8}),
                     old.nki.sbuf(DType::bf16, {32, 4}), 64));
}

}  // namespace
}  // namespace headway::chip
