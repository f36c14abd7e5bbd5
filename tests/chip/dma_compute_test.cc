#include <numeric>

#include "chip/dma_engine.h"
#include "chip/harness.h"
#include "chip/sync_engine.h"

namespace headway::chip {
namespace {

// Sums of float32 in the order of the sources, each addition rounded, then the dtype of dst: exact.
std::vector<double> sums(DType dtype, const std::vector<std::vector<double>>& sources) {
  std::vector<double> out;
  for (std::size_t i = 0; i < sources[0].size(); ++i) {
    auto sum = static_cast<float>(sources[0][i]);
    for (std::size_t s = 1; s < sources.size(); ++s) sum += static_cast<float>(sources[s][i]);
    out.push_back(stored(dtype, static_cast<double>(sum)));
  }
  return out;
}

TEST(DmaCompute, AddsInFloat32) {
  for (int threads : {1, 2})
    for (std::size_t count : {1u, 2u, 3u, 16u})
      for (DType to : {DType::f32, DType::bf16, DType::i32, DType::f8e4m3})
        for (const Shape& shape : {Shape{1, 1}, Shape{7, 13}, Shape{128, 300}}) {
          Harness h(trn2(), threads);
          const DType from[] = {DType::f32, DType::bf16, DType::i16, DType::f16};
          std::vector<View> srcs;
          std::vector<std::vector<double>> numbers;
          for (std::size_t s = 0; s < count; ++s) {
            const Tile src = s % 2 ? h.nki.sbuf(from[s % 4], shape) : h.nki.private_hbm(from[s % 4], shape);
            numbers.push_back(h.fill(src, -9, 9));
            srcs.push_back(src);
          }
          const Tile dst = count % 2 ? h.nki.sbuf(to, shape) : h.nki.private_hbm(to, shape);
          dma_compute(dst, srcs, Alu::add, {.scales = std::vector<float>(count, 1.0f)});
          h.run();
          EXPECT_EQ(h.numbers(dst), sums(to, numbers));
        }
}

// Element counts match, shapes need not; row-major order.
TEST(DmaCompute, ShapesMayDiffer) {
  Harness h;
  const Tile a = h.nki.private_hbm(DType::f32, {6, 10}), b = h.nki.sbuf(DType::f32, {4, 15}),
             dst = h.nki.private_hbm(DType::f32, {60});
  const std::vector<double> x = h.fill(a), y = h.fill(b);
  dma_compute(dst, {a, b.permute({0, 1})}, Alu::add);
  h.run();
  EXPECT_EQ(h.numbers(dst), sums(DType::f32, {x, y}));
}

TEST(DmaCompute, IntoASource) {
  Harness h;
  const Tile a = h.nki.private_hbm(DType::f32, {100, 50}), b = h.nki.private_hbm(DType::f32, {100, 50});
  const std::vector<double> x = h.fill(a), y = h.fill(b);
  dma_compute(a, {a, b}, Alu::add);
  h.run();
  EXPECT_EQ(h.numbers(a), sums(DType::f32, {x, y}));
}

TEST(DmaCompute, AcrossASourceReadsBeforeItWrites) {
  for (int threads : {1, 2}) {
    Harness h(trn2(), threads);
    const Tile x = h.nki.private_hbm(DType::f32, {20001});
    const std::vector<double> numbers = h.fill(x);
    dma_compute(x(range(1, 20001)), {x(range(0, 20000)), x(range(1, 20001))}, Alu::add);
    h.run();
    const std::vector<double> got = h.numbers(x);
    for (std::size_t i = 1; i < got.size(); ++i)
      ASSERT_EQ(got[i], stored(DType::f32, numbers[i - 1] + numbers[i]));
  }
}

// dst[index[r]] += src[r]
TEST(DmaCompute, ScattersReadingModifyingWriting) {
  for (int threads : {1, 2})
    for (bool dst_first : {true, false})
      for (DType dtype : {DType::f32, DType::bf16}) {
        Harness h(trn2(), threads);
        const Tile table = h.nki.shared_hbm(dtype, {300, 40, 5}), src = h.nki.sbuf(DType::f32, {128, 200}),
                   index = h.nki.sbuf(DType::i32, {128, 1});
        std::vector<double> expected = h.fill(table);
        const std::vector<double> numbers = h.fill(src);
        std::vector<double> rows(128);
        for (std::size_t r = 0; r < 128; ++r) rows[r] = static_cast<double>((r * 7 + 3) % 300);
        h.set(index, rows);
        const auto places = [&] { return table.reshape({300, 200})(ds(0, 128)).rows_at(index, 200); };
        // Each names its index anew, as kernels do.
        const std::vector<View> srcs =
            dst_first ? std::vector<View>{places(), src} : std::vector<View>{src, places()};
        dma_compute(places(), srcs, Alu::add);
        h.run();
        for (std::size_t r = 0; r < 128; ++r)
          for (std::size_t i = 0; i < 200; ++i) {
            double& value = expected[static_cast<std::size_t>(rows[r]) * 200 + i];
            value = sums(dtype, {{value}, {numbers[r * 200 + i]}})[0];
          }
        EXPECT_EQ(h.numbers(table), expected);
      }
}

// dst[r] += table[index[r]]
TEST(DmaCompute, GathersReadingModifyingWriting) {
  for (int threads : {1, 2})
    for (bool dst_first : {true, false}) {
      Harness h(trn2(), threads);
      const Tile table = h.nki.input("table", DType::bf16, {300, 200}),
                 dst = h.nki.sbuf(DType::f32, {128, 200}), index = h.nki.sbuf(DType::u32, {128, 1});
      const std::vector<double> numbers = h.fill(table), rows = h.fill(index, 0, 300);
      std::vector<double> expected = h.fill(dst);
      const Tile gathered = table(ds(0, 128)).rows_at(index, 200);
      dma_compute(dst, dst_first ? std::vector<View>{dst, gathered} : std::vector<View>{gathered, dst},
                  Alu::add);
      h.run();
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = stored(DType::f32,
                             expected[i] + numbers[static_cast<std::size_t>(rows[i / 200]) * 200 + i % 200]);
      EXPECT_EQ(h.numbers(dst), expected);
    }
}

TEST(DmaCompute, RowsOutOfBoundsAreAnErrorOrLeftOut) {
  const auto add = [](Harness& h, bool scatter, OobMode mode) {
    const Tile table = h.nki.private_hbm(DType::f32, {4, 2}), tile = h.nki.sbuf(DType::f32, {3, 2}),
               index = h.nki.sbuf(DType::i32, {3, 1});
    h.set(table, {1, 2, 3, 4, 5, 6, 7, 8});
    h.set(tile, {10, 20, 30, 40, 50, 60});
    h.set(index, {3, -1, 0});
    const Tile rows = table(ds(0, 3)).rows_at(index, 2);
    if (scatter) {
      dma_compute(rows, {rows, tile}, Alu::add, {.oob_mode = mode});
    } else {
      dma_compute(tile, {tile, rows}, Alu::add, {.oob_mode = mode});
    }
    h.run();
    return h.numbers(scatter ? table : tile);
  };
  Harness a, b, c, d;
  EXPECT_EQ(add(a, true, OobMode::skip), (std::vector<double>{51, 62, 3, 4, 5, 6, 17, 28}));
  EXPECT_EQ(add(b, false, OobMode::skip), (std::vector<double>{17, 28, 30, 40, 51, 62}));
  EXPECT_BREAKS("out-of-bounds", "index -1 of row 1", add(c, true, OobMode::error));
  EXPECT_BREAKS("out-of-bounds", "index -1 of row 1", add(d, false, OobMode::error));
}

// --- Rules ---

struct Rules : testing::Test {
  Harness h;
  Tile a = h.nki.sbuf(DType::f32, {8, 4}), b = h.nki.private_hbm(DType::f32, {8, 4}),
       c = h.nki.private_hbm(DType::f32, {8, 4}), index = h.nki.sbuf(DType::i32, {8, 1});
};
using DmaComputeRules = Rules;

TEST_F(DmaComputeRules, Sources) {
  EXPECT_BREAKS("sources", "has 0 tensors", dma_compute(a, {}, Alu::add));
  EXPECT_BREAKS("sources", "has 17 tensors; it may have 1 to 16",
                dma_compute(a, std::vector<View>(17, b), Alu::add));
  EXPECT_BREAKS("shape", "srcs: has 4 elements, but dst has 32", dma_compute(a, {b, b(ds(0, 1))}, Alu::add));
  EXPECT_BREAKS("buffer", "srcs", dma_compute(a, {b, h.nki.psum(DType::f32, {8, 4})}, Alu::add));
  EXPECT_BREAKS("buffer", "dst", dma_compute(h.nki.psum(DType::f32, {8, 4}), {b, c}, Alu::add));
  EXPECT_BREAKS("dtype", "float8_e4m3fn_x4",
                dma_compute(a, {b, h.nki.private_hbm(DType::f8e4m3fn_x4, {8, 4})}, Alu::add));
  EXPECT_BREAKS("repeated-write", "share their place",
                dma_compute(b(ds(0, 1)).broadcast(0, 8), {a, c}, Alu::add));
}

TEST_F(DmaComputeRules, Parameters) {
  EXPECT_BREAKS("reduce-op", "is multiply; DMA engines only add", dma_compute(a, {b, c}, Alu::multiply));
  EXPECT_BREAKS("scales", "has 1 values for 2 sources", dma_compute(a, {b, c}, Alu::add, {.scales = {1}}));
  EXPECT_BREAKS("scales", "has 0.5; all must be 1", dma_compute(a, {b, c}, Alu::add, {.scales = {1, 0.5}}));
  EXPECT_BREAKS("oob-mode", "skip needs rows by index",
                dma_compute(a, {b, c}, Alu::add, {.oob_mode = OobMode::skip}));
  EXPECT_BREAKS("unique-indices", "must be true",
                dma_compute(a, {b, c}, Alu::add, {.unique_indices = false}));
}

TEST_F(DmaComputeRules, PlacesAreFixedOrByIndex) {
  EXPECT_BREAKS("dge-mode", "moves by one offset",
                dma_compute(a, {b, c.moved_by(register_alloc(h.nki, 0), 4)}, Alu::add));
  EXPECT_BREAKS("dge-mode", "moves by one offset",
                dma_compute(b.moved_by(register_alloc(h.nki, 0), 4), {a, c}, Alu::add));
}

TEST_F(DmaComputeRules, RowsByIndex) {
  const Tile rows = b.rows_at(index, 4), other = b.rows_at(h.nki.sbuf(DType::i32, {8, 1}), 4);
  EXPECT_BREAKS("sources", "has 3 tensors; with rows by index it must have 2",
                dma_compute(rows, {rows, a, a}, Alu::add));
  EXPECT_BREAKS("sources", "one of the two must be dst itself", dma_compute(rows, {other, a}, Alu::add));
  EXPECT_BREAKS("sources", "one of the two must be dst itself", dma_compute(a, {rows, c}, Alu::add));
  EXPECT_BREAKS("sources", "only one of dst and the data", dma_compute(rows, {rows, other}, Alu::add));
  EXPECT_BREAKS("buffer", "must lie in SBUF", dma_compute(rows, {rows, c}, Alu::add));
  EXPECT_BREAKS("buffer", "dst: must lie in SBUF", dma_compute(c, {c, rows}, Alu::add));
  EXPECT_BREAKS("index", "must be [8, 1]",
                dma_compute(a, {a, b.rows_at(h.nki.sbuf(DType::i32, {4, 2}), 4)}, Alu::add));
  EXPECT_BREAKS("shape", "rows by index are [8, 4], the data is [4, 8]",
                dma_compute(rows, {rows, h.nki.sbuf(DType::f32, {4, 8})}, Alu::add));
  Harness old(trn1());
  const Tile old_table = old.nki.private_hbm(DType::f32, {8, 4}), old_tile = old.nki.sbuf(DType::f32, {8, 4});
  EXPECT_BREAKS(
      "generation", "by index needs NeuronCore-v3",
      dma_compute(old_tile, {old_tile, old_table.rows_at(old.nki.sbuf(DType::i32, {8, 1}), 4)}, Alu::add));
}

TEST_F(DmaComputeRules, IndicesAreUniqueWhenItRuns) {
  h.fill(a);
  h.fill(b);
  h.set(index, {0, 1, 2, 3, 4, 5, 2, 7});
  const Tile rows = b.rows_at(index, 4);
  dma_compute(rows, {rows, a}, Alu::add);
  EXPECT_BREAKS("unique-indices", "rows 2 and 6 go to the same place", h.run());
}

}  // namespace
}  // namespace headway::chip
