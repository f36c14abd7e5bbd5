#include <numeric>

#include "chip/dma_engine.h"
#include "chip/harness.h"
#include "chip/sync_engine.h"

namespace headway::chip {
namespace {

// Element (i, j, k, l) of `numbers`, of a shape padded with ones in front to four extents.
double element(const std::vector<double>& numbers, const Shape& shape, std::int64_t i, std::int64_t j,
               std::int64_t k, std::int64_t l) {
  return numbers[static_cast<std::size_t>(((i * shape[1] + j) * shape[2] + k) * shape[3] + l)];
}

Shape transposed(const Shape& s) {
  if (s.size() == 2) return {s[1], s[0]};
  if (s.size() == 3) return {s[2], s[1], s[0]};
  return {s[3], s[1], s[2], s[0]};
}

// dst from src by the definition: (1, 0), (2, 1, 0), (3, 1, 2, 0).
std::vector<double> expected_of(const std::vector<double>& src, const Shape& s) {
  std::vector<double> out;
  if (s.size() == 2) {
    for (std::int64_t a = 0; a < s[1]; ++a)
      for (std::int64_t b = 0; b < s[0]; ++b) out.push_back(element(src, {1, 1, s[0], s[1]}, 0, 0, b, a));
  } else if (s.size() == 3) {
    for (std::int64_t a = 0; a < s[2]; ++a)
      for (std::int64_t b = 0; b < s[1]; ++b)
        for (std::int64_t c = 0; c < s[0]; ++c)
          out.push_back(element(src, {1, s[0], s[1], s[2]}, 0, c, b, a));
  } else {
    for (std::int64_t a = 0; a < s[3]; ++a)
      for (std::int64_t b = 0; b < s[1]; ++b)
        for (std::int64_t c = 0; c < s[2]; ++c)
          for (std::int64_t d = 0; d < s[0]; ++d) out.push_back(element(src, s, d, b, c, a));
  }
  return out;
}

TEST(DmaTranspose, PermutesTheAxes) {
  for (int threads : {1, 2})
    for (bool hbm : {true, false})
      for (DType dtype : {DType::bf16, DType::f32, DType::i32, DType::u16, DType::f16})
        for (const Shape& shape :
             {Shape{1, 1}, Shape{128, 128}, Shape{5, 77}, Shape{127, 1}, Shape{1, 128}, Shape{4, 9, 30},
              Shape{100, 3, 17}, Shape{7, 2, 5, 33}, Shape{64, 1, 1, 128}}) {
          Harness h(trn2(), threads);
          const Tile src = hbm ? h.nki.private_hbm(dtype, shape) : h.nki.sbuf(dtype, shape);
          const Tile dst = h.nki.sbuf(dtype, transposed(shape));
          const std::vector<double> numbers = h.fill(src, 0, 1000);
          dma_transpose(dst, src);
          h.run();
          EXPECT_EQ(h.numbers(dst), expected_of(numbers, shape)) << to_string(shape);
        }
}

// Rows of HBM beyond the 128 of a tile, and parts of tensors on both sides, the rest untouched.
TEST(DmaTranspose, OfParts) {
  for (int threads : {1, 2}) {
    Harness h(trn2(), threads);
    const Tile matrix = h.nki.input("x", DType::bf16, {1024, 100}), dst = h.nki.sbuf(DType::bf16, {128, 600});
    const std::vector<double> numbers = h.fill(matrix), before = h.fill(dst);
    dma_transpose(dst(ds(11, 60), ds(50, 500)), matrix(ds(200, 500), ds(3, 60)), {.axes = {1, 0}});
    h.run();
    const std::vector<double> got = h.numbers(dst);
    for (std::size_t p = 0; p < 128; ++p)
      for (std::size_t f = 0; f < 600; ++f) {
        const bool inside = p >= 11 && p < 71 && f >= 50 && f < 550;
        ASSERT_EQ(got[p * 600 + f],
                  inside ? numbers[(200 + f - 50) * 100 + 3 + p - 11] : before[p * 600 + f]);
      }
  }
}

TEST(DmaTranspose, InPlaceReadsBeforeItWrites) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {50, 50});
  const std::vector<double> numbers = h.fill(x);
  dma_transpose(x, x);
  h.run();
  EXPECT_EQ(h.numbers(x), expected_of(numbers, {50, 50}));
}

TEST(DmaTranspose, ByTheHardware) {
  for (const Shape& shape :
       {Shape{16, 128}, Shape{16, 7}, Shape{1, 16, 64}, Shape{4, 12, 128}, Shape{2, 3, 8, 100}}) {
    Harness h;
    const Tile src = h.nki.private_hbm(DType::bf16, shape), dst = h.nki.sbuf(DType::bf16, transposed(shape));
    const std::vector<double> numbers = h.fill(src);
    dma_transpose(dst, src, {.dge_mode = DgeMode::hwdge});
    h.run();
    EXPECT_EQ(h.numbers(dst), expected_of(numbers, shape));
  }
}

// flat = index.T.flatten()[:rows]; dst = src[flat].T
TEST(DmaTranspose, GathersItsRows) {
  struct Case {
    std::int64_t index_rows, index_columns, rows;
    Shape rest;
  };
  for (int threads : {1, 2})
    for (const Case& c : {Case{32, 1, 32, {4, 128}}, Case{128, 1, 128, {128}}, Case{128, 2, 256, {64}},
                          Case{128, 3, 304, {100}}, Case{16, 1, 16, {1}}, Case{128, 2, 256, {1, 5, 90}},
                          Case{48, 1, 32, {3, 1, 20}}}) {
      Harness h(trn2(), threads);
      Shape table = c.rest, shape = c.rest;
      table.insert(table.begin(), 500);
      shape.insert(shape.begin(), c.rows);
      const std::int64_t row = elements(c.rest);
      const Tile data = h.nki.input("data", DType::bf16, table),
                 index = h.nki.sbuf(DType::u32, {c.index_rows, c.index_columns}),
                 dst = h.nki.sbuf(DType::bf16, transposed(shape));
      const std::vector<double> numbers = h.fill(data), rows = h.fill(index, 0, 500);
      dma_transpose(dst, data(ds(0, c.rows)).rows_at(index, row), {.dge_mode = DgeMode::swdge});
      h.run();
      std::vector<double> gathered;
      for (std::int64_t r = 0; r < c.rows; ++r) {
        // Column r / P, partition r % P.
        const auto from = static_cast<std::int64_t>(
            rows[static_cast<std::size_t>(r % c.index_rows * c.index_columns + r / c.index_rows)]);
        for (std::int64_t i = 0; i < row; ++i)
          gathered.push_back(numbers[static_cast<std::size_t>(from * row + i)]);
      }
      EXPECT_EQ(h.numbers(dst), expected_of(gathered, shape));
    }
}

TEST(DmaTranspose, RowsOutOfBoundsAreAnErrorOrKeepWhatWasThere) {
  const auto gather = [](Harness& h, OobMode mode) {
    const Tile data = h.nki.private_hbm(DType::bf16, {20, 8}), index = h.nki.sbuf(DType::u32, {16, 1}),
               dst = h.nki.sbuf(DType::bf16, {8, 16});
    const std::vector<double> numbers = h.fill(data);
    std::vector<double> rows(16), expected = h.fill(dst);
    for (std::size_t r = 0; r < 16; ++r) rows[r] = static_cast<double>(2 * r);  // 20 and more from r = 10 on
    h.set(index, rows);
    dma_transpose(dst, data(ds(0, 16)).rows_at(index, 8), {.oob_mode = mode});
    h.run();
    for (std::size_t r = 0; r < 10; ++r)
      for (std::size_t i = 0; i < 8; ++i) expected[i * 16 + r] = numbers[2 * r * 8 + i];
    EXPECT_EQ(h.numbers(dst), expected);
  };
  Harness skipped, bad;
  gather(skipped, OobMode::skip);
  EXPECT_BREAKS("out-of-bounds", "index 20 of row 10", gather(bad, OobMode::error));

  // Nor do they count as written.
  Harness h;
  const Tile data = h.nki.private_hbm(DType::bf16, {20, 8}), index = h.nki.sbuf(DType::u32, {16, 1}),
             dst = h.nki.sbuf(DType::bf16, {8, 16});
  h.fill(data);
  h.set(index, std::vector<double>{0, 99, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  dma_transpose(dst, data(ds(0, 16)).rows_at(index, 8), {.oob_mode = OobMode::skip});
  h.run();
  EXPECT_TRUE(h.written(dst(ds(0, 8), ds(0, 1))));
  EXPECT_FALSE(h.written(dst(ds(3, 1), ds(1, 1))));
  EXPECT_TRUE(h.written(dst(ds(0, 8), ds(2, 14))));
}

TEST(DmaTranspose, FollowsAScalarOffset) {
  for (std::int32_t offset : {3, 30}) {
    for (DgeMode mode : {DgeMode::unknown, DgeMode::swdge, DgeMode::hwdge}) {
      Harness h;
      const Tile data = h.nki.private_hbm(DType::bf16, {32, 8}), dst = h.nki.sbuf(DType::bf16, {8, 16});
      const std::vector<double> numbers = h.fill(data), before = h.fill(dst);
      dma_transpose(dst, data(ds(0, 16)).moved_by(register_alloc(h.nki, offset), 8),
                    {.dge_mode = mode, .oob_mode = OobMode::skip});
      h.run();
      const std::vector<double> rows(numbers.begin() + 24, numbers.begin() + 24 + 128);
      EXPECT_EQ(h.numbers(dst), offset == 3 ? expected_of(rows, {16, 8}) : before);
    }
  }
}

// --- Rules ---

struct Tiles {
  Harness h;
  Tile src, dst;
  explicit Tiles(const Shape& shape, DType dtype = DType::bf16, const Spec& spec = trn2())
      : h(spec), src(h.nki.private_hbm(dtype, shape)), dst(h.nki.sbuf(dtype, transposed(shape))) {}
};

TEST(DmaTransposeRules, Buffers) {
  Tiles t({16, 8});
  EXPECT_BREAKS("buffer", "dst: must lie in SBUF",
                dma_transpose(t.h.nki.private_hbm(DType::bf16, {8, 16}), t.src));
  EXPECT_BREAKS("buffer", "src: must lie in SBUF or",
                dma_transpose(t.dst, t.h.nki.psum(DType::bf16, {16, 8})));
}

TEST(DmaTransposeRules, AxesAndShapes) {
  Tiles t({4, 8, 3});
  EXPECT_BREAKS("axes", "[0, 1, 2] is not [2, 1, 0]", dma_transpose(t.dst, t.src, {.axes = {0, 1, 2}}));
  EXPECT_BREAKS("shape", "dst: is [3, 32], but src [4, 8, 3] transposed is [3, 8, 4]",
                dma_transpose(t.h.nki.sbuf(DType::bf16, {3, 32}), t.src));
  EXPECT_BREAKS("axes", "has 5 extents",
                dma_transpose(t.dst, t.h.nki.private_hbm(DType::bf16, {4, 2, 2, 2, 3})));
  EXPECT_BREAKS("axes", "has 1 extents", dma_transpose(t.dst, t.h.nki.private_hbm(DType::bf16, {96})));
}

TEST(DmaTransposeRules, Dtypes) {
  Tiles t({16, 8}), bytes({16, 8}, DType::u8), wide({16, 8}, DType::f32);
  EXPECT_BREAKS("dtype", "dst: is float16, but src is bfloat16",
                dma_transpose(t.h.nki.sbuf(DType::f16, {8, 16}), t.src));
  EXPECT_BREAKS("dtype", "is uint8; DMA transposes elements of 2 or 4 bytes",
                dma_transpose(bytes.dst, bytes.src));
  EXPECT_BREAKS("dtype", "hwdge transposes dtypes of 2 bytes",
                dma_transpose(wide.dst, wide.src, {.dge_mode = DgeMode::hwdge}));
}

TEST(DmaTransposeRules, Modes) {
  Tiles t({16, 8}), old({16, 8}, DType::bf16, trn1());
  dma_transpose(t.dst, t.src, {.dge_mode = DgeMode::none});
  EXPECT_BREAKS("dge-mode", "not swdge", dma_transpose(t.dst, t.src, {.dge_mode = DgeMode::swdge}));
  EXPECT_BREAKS(
      "dge-mode", "can't follow",
      dma_transpose(t.dst, t.src.moved_by(register_alloc(t.h.nki, 0), 8), {.dge_mode = DgeMode::none}));
  EXPECT_BREAKS("generation", "hwdge", dma_transpose(old.dst, old.src, {.dge_mode = DgeMode::hwdge}));
  EXPECT_BREAKS("oob-mode", "skip needs a dynamic offset",
                dma_transpose(t.dst, t.src, {.oob_mode = OobMode::skip}));
  EXPECT_BREAKS("generation", "priority", dma_transpose(t.dst, t.src, {.priority = 1}));
  EXPECT_BREAKS("repeated-write", "share their place",
                dma_transpose(t.dst(ds(0, 8), ds(0, 1)).broadcast(1, 16), t.src));
}

TEST(DmaTransposeRules, HardwareShapes) {
  const auto by_hardware = [](const Shape& shape) {
    Tiles t(shape);
    dma_transpose(t.dst, t.src, {.dge_mode = DgeMode::hwdge});
  };
  EXPECT_BREAKS("transpose-rows", "has 32 rows; hwdge takes 16", by_hardware({32, 8}));
  EXPECT_BREAKS("transpose-rows", "has 3 rows; hwdge takes 1, 2, 4, 8 or 16", by_hardware({3, 16, 8}));
  EXPECT_BREAKS("transpose-rows", "has 4 x 3 rows and columns", by_hardware({4, 3, 8}));
  EXPECT_BREAKS("transpose-rows", "has 2 x 4", by_hardware({2, 8, 4, 8}));
  Harness h;
  EXPECT_BREAKS("transpose-last", "has a last extent of 129",
                dma_transpose(h.nki.sbuf(DType::bf16, {128, 16}), h.nki.private_hbm(DType::bf16, {16, 129}),
                              {.dge_mode = DgeMode::hwdge}));
}

TEST(DmaTransposeRules, Gathers) {
  Harness h;
  const auto gather = [&](std::int64_t rows, const Shape& rest, const Shape& index, DType dtype = DType::bf16,
                          DType index_dtype = DType::u32, DgeMode mode = DgeMode::unknown) {
    Shape table = rest, shape = rest;
    table.insert(table.begin(), 500);
    shape.insert(shape.begin(), rows);
    const Tile data = h.nki.private_hbm(dtype, table);
    dma_transpose(h.nki.sbuf(dtype, transposed(shape)),
                  data(ds(0, rows)).rows_at(h.nki.sbuf(index_dtype, index), elements(rest)),
                  {.dge_mode = mode});
  };
  EXPECT_BREAKS("dtype", "need a dtype of 2 bytes", gather(16, {8}, {16, 1}, DType::f32));
  EXPECT_BREAKS("transpose-rows", "has 24 rows", gather(24, {8}, {32, 1}));
  EXPECT_BREAKS("transpose-middle", "one of its middle extents must be 1", gather(16, {2, 3, 8}, {16, 1}));
  EXPECT_BREAKS("index", "the index is int32; it must be uint32",
                gather(16, {8}, {16, 1}, DType::bf16, DType::i32));
  EXPECT_BREAKS("index", "has 3 extents", gather(16, {8}, {16, 1, 1}));
  EXPECT_BREAKS("index", "has 24 partitions", gather(16, {8}, {24, 1}));
  EXPECT_BREAKS("index", "has 8 partitions", gather(16, {8}, {8, 2}));
  EXPECT_BREAKS("index", "with several columns it must have 128", gather(32, {8}, {16, 2}));
  EXPECT_BREAKS("dynamic-offset", "must have 48 elements", gather(48, {8}, {32, 1}));
  EXPECT_BREAKS("dge-mode", "rows by index need swdge",
                gather(16, {8}, {16, 1}, DType::bf16, DType::u32, DgeMode::hwdge));
  EXPECT_BREAKS("transpose-last", "at most 128",
                dma_transpose(h.nki.sbuf(DType::bf16, {128, 16}),
                              h.nki.private_hbm(DType::bf16, {50, 130})(ds(0, 16)).rows_at(
                                  h.nki.sbuf(DType::u32, {16, 1}), 130)));
  Harness old(trn1());
  EXPECT_BREAKS("generation", "by index needs NeuronCore-v3",
                dma_transpose(old.nki.sbuf(DType::bf16, {8, 16}),
                              old.nki.private_hbm(DType::bf16, {50, 8})(ds(0, 16)).rows_at(
                                  old.nki.sbuf(DType::u32, {16, 1}), 8)));
}

}  // namespace
}  // namespace headway::chip
