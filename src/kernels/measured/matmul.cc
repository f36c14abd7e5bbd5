#include "base/error.h"
#include "chip/tensor_engine.h"
#include "chip/vector_arithmetic.h"
#include "kernels/measured/common.h"
#include "kernels/measured/measured.h"

namespace headway::kernels {
namespace {

using namespace chip;

constexpr std::int64_t kM = kPartitions, kN = kMovingColumns, kK = kPartitions;

// Shapes in tiles of 128 x 512 x 128, each a multiple of so many.
struct Sizes {
  Sizes(const std::string& kernel, const Tiles& inputs, std::int64_t in_m = 1, std::int64_t in_n = 1,
        std::int64_t in_k = 1) {
    if (inputs[1].extent(0) != inputs[0].extent(0))
      throw InputError(kernel, "lhsT and rhs must be [K, M] and [K, N]");
    require_multiple(kernel, "K", inputs[0].extent(0), kK * in_k);
    require_multiple(kernel, "M", inputs[0].extent(1), kM * in_m);
    require_multiple(kernel, "N", inputs[1].extent(1), kN * in_n);
    k = inputs[0].extent(0) / kK;
    m = inputs[0].extent(1) / kM;
    n = inputs[1].extent(1) / kN;
  }
  std::int64_t k = 0, m = 0, n = 0;
};

Tile output(Recorder& nki, const Tiles& inputs) {
  return nki.output("c", inputs[0].dtype(), {inputs[0].extent(1), inputs[1].extent(1)});
}

Tile load(const Tile& from) {
  const Tile tile = from.recorder().sbuf(from.dtype(), from.shape());
  dma_copy(tile, from);
  return tile;
}
Tile load_left(const Tiles& inputs, std::int64_t k, std::int64_t m) {
  return load(inputs[0](ds(k * kK, kK), ds(m * kM, kM)));
}
Tile load_right(const Tiles& inputs, std::int64_t k, std::int64_t n) {
  return load(inputs[1](ds(k * kK, kK), ds(n * kN, kN)));
}

void store(const Tile& c, std::int64_t m, std::int64_t n, const Tile& sum) {
  const Tile result = c.recorder().sbuf(c.dtype(), {kM, kN});
  tensor_copy(result, sum);
  dma_copy(c(ds(m * kM, kM), ds(n * kN, kN)), result);
}

void tiled(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Sizes sizes("measured/matmul_tiled", inputs);
  const Tile c = output(nki, inputs);
  for (std::int64_t m = 0; m < sizes.m; ++m)
    for (std::int64_t n = 0; n < sizes.n; ++n) {
      const Tile sum = nki.psum(DType::f32, {kM, kN});
      for (std::int64_t k = 0; k < sizes.k; ++k) {
        const Tile left = load_left(inputs, k, m), right = load_right(inputs, k, n);
        nc_matmul(sum, left, right);
      }
      store(c, m, n, sum);
    }
}

// All tiles of a row of tiles of the left operand, or of a column of the right one.
std::vector<Tile> load_column(const Tiles& inputs, std::int64_t tiles, std::int64_t index,
                              Tile (*load_one)(const Tiles&, std::int64_t, std::int64_t)) {
  std::vector<Tile> column;
  for (std::int64_t k = 0; k < tiles; ++k) column.push_back(load_one(inputs, k, index));
  return column;
}

Tile sum_of_products(Recorder& nki, const std::vector<Tile>& left, const std::vector<Tile>& right) {
  const Tile sum = nki.psum(DType::f32, {kM, kN});
  for (std::size_t k = 0; k < left.size(); ++k) nc_matmul(sum, left[k], right[k]);
  return sum;
}

void hoisted(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Sizes sizes("measured/matmul_hoisted", inputs);
  const Tile c = output(nki, inputs);
  for (std::int64_t m = 0; m < sizes.m; ++m) {
    const std::vector<Tile> left = load_column(inputs, sizes.k, m, load_left);
    for (std::int64_t n = 0; n < sizes.n; ++n)
      store(c, m, n, sum_of_products(nki, left, load_column(inputs, sizes.k, n, load_right)));
  }
}

void blocked(Recorder& nki, const Tiles& inputs, const Attributes&) {
  constexpr std::int64_t kInBlock = 2;
  const Sizes sizes("measured/matmul_blocked", inputs, kInBlock, kInBlock);
  const Tile c = output(nki, inputs);
  for (std::int64_t m = 0; m < sizes.m; m += kInBlock) {
    std::vector<std::vector<Tile>> left;
    for (std::int64_t i = 0; i < kInBlock; ++i)
      left.push_back(load_column(inputs, sizes.k, m + i, load_left));
    for (std::int64_t n = 0; n < sizes.n; n += kInBlock) {
      std::vector<std::vector<Tile>> right;
      for (std::int64_t j = 0; j < kInBlock; ++j)
        right.push_back(load_column(inputs, sizes.k, n + j, load_right));
      for (std::int64_t i = 0; i < kInBlock; ++i)
        for (std::int64_t j = 0; j < kInBlock; ++j)
          store(c, m + i, n + j,
                sum_of_products(nki, left[static_cast<std::size_t>(i)], right[static_cast<std::size_t>(j)]));
    }
  }
}

void fully_blocked(Recorder& nki, const Tiles& inputs, const Attributes&) {
  constexpr std::int64_t kInM = 16, kInN = 2, kInK = 8, kPiece = 4;
  const Sizes sizes("measured/matmul_fully_blocked", inputs, kInM, kInN, kInK);
  const Tile c = output(nki, inputs);
  const auto part = [](const Tile& tile, std::int64_t i, std::int64_t size) {
    return tile(ds(0, tile.extent(0)), ds(i * size, size));
  };
  for (std::int64_t n = 0; n < sizes.n; n += kInN) {
    std::vector<Tile> totals;  // [m][j]
    for (std::int64_t i = 0; i < sizes.m * kInN; ++i) {
      totals.push_back(nki.sbuf(c.dtype(), {kM, kN}));
      memset(totals.back(), 0.0f, {.engine = Engine::vector});
    }
    for (std::int64_t k = 0; k < sizes.k; k += kInK) {
      std::vector<Tile> right;
      for (std::int64_t l = 0; l < kInK; ++l)
        right.push_back(load(inputs[1](ds((k + l) * kK, kK), ds(n * kN, kInN * kN))));
      for (std::int64_t m = 0; m < sizes.m; m += kInM) {
        // In pieces of 2 KiB a partition, each free again when its last product is done: SBUF can't hold two
        // blocks, and yet the published profile shows an array that never waits.
        std::vector<std::vector<Tile>> left(kInK);
        for (std::int64_t i = 0; i < kInM; i += kPiece)
          for (std::int64_t l = 0; l < kInK; ++l)
            left[static_cast<std::size_t>(l)].push_back(
                load(inputs[0](ds((k + l) * kK, kK), ds((m + i) * kM, kPiece * kM))));
        for (std::int64_t j = 0; j < kInN; ++j)
          for (std::int64_t i = 0; i < kInM; ++i) {
            const Tile sum = nki.psum(DType::f32, {kM, kN});
            for (std::size_t l = 0; l < left.size(); ++l)
              nc_matmul(sum, part(left[l][static_cast<std::size_t>(i / kPiece)], i % kPiece, kM),
                        part(right[l], j, kN));
            const Tile& total = totals[static_cast<std::size_t>((m + i) * kInN + j)];
            tensor_tensor(total, total, sum, Alu::add, {.engine = Engine::vector});
          }
      }
    }
    for (std::int64_t m = 0; m < sizes.m; ++m) {
      const Tile packed = nki.sbuf(c.dtype(), {kM, kInN * kN});
      for (std::int64_t j = 0; j < kInN; ++j)
        tensor_copy(part(packed, j, kN), totals[static_cast<std::size_t>(m * kInN + j)],
                    {.engine = Engine::vector});
      dma_copy(c(ds(m * kM, kM), ds(n * kN, kInN * kN)), packed);
    }
  }
}

std::vector<std::vector<double>> reference(const std::vector<Parameter>& inputs,
                                           const std::vector<std::vector<double>>& values,
                                           const Attributes&) {
  return {product(values[0], values[1], static_cast<std::size_t>(inputs[0].shape[0]),
                  static_cast<std::size_t>(inputs[0].shape[1]),
                  static_cast<std::size_t>(inputs[1].shape[1]))};
}

Kernel kernel(std::string_view name, std::string_view summary, Shape left, Shape right,
              void (*record)(Recorder&, const Tiles&, const Attributes&)) {
  return {name,
          summary,
          {{"lhsT", DType::f32, std::move(left)}, {"rhs", DType::f32, std::move(right)}},
          record,
          reference};
}

}  // namespace

Kernel measured_matmul_tiled() {
  return kernel("measured/matmul_tiled", "c = lhsT^T rhs, operands loaded for each product", {256, 128},
                {256, 512}, tiled);
}
Kernel measured_matmul_hoisted() {
  return kernel("measured/matmul_hoisted", "c = lhsT^T rhs, loads hoisted", {256, 128}, {256, 512}, hoisted);
}
Kernel measured_matmul_blocked() {
  return kernel("measured/matmul_blocked", "c = lhsT^T rhs, blocks of 2 x 2 tiles", {256, 256}, {256, 1024},
                blocked);
}
Kernel measured_matmul_fully_blocked() {
  return kernel("measured/matmul_fully_blocked", "c = lhsT^T rhs, blocks of 16 x 2 x 8 tiles", {1024, 2048},
                {1024, 1024}, fully_blocked);
}

}  // namespace headway::kernels
