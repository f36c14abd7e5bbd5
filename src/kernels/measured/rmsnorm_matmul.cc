#include <cmath>

#include "base/error.h"
#include "chip/scalar_engine.h"
#include "chip/tensor_engine.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_reduce.h"
#include "kernels/measured/common.h"
#include "kernels/measured/measured.h"

namespace headway::kernels {
namespace {

using namespace chip;

constexpr std::int64_t kTile = kPartitions, kColumns = kMovingColumns;
const DmaCopyOptions kPrepared = {.dge_mode = DgeMode::none};

struct Sizes {
  Sizes(const std::string& kernel, const Tiles& inputs)
      : m(inputs[0].extent(0)), k(inputs[0].extent(1)), n(inputs[1].extent(1)) {
    if (inputs[1].extent(0) != k || inputs[0].dtype() != DType::f32 || inputs[1].dtype() != DType::f32)
      throw InputError(kernel, "x and w must be [M, K] and [K, N], float32");
    require_multiple(kernel, "M", m, kTile);
    require_multiple(kernel, "K", k, kTile);
    require_multiple(kernel, "N", n, kColumns);
  }
  std::int64_t m, k, n;
};

// 1 / sqrt(mean of squares) of each row of x [128, K].
Tile inverse_rms(Recorder& nki, const Tile& x, const Tile& zero) {
  const Tile squares = nki.sbuf(DType::f32, x.shape()), sum = nki.sbuf(DType::f32, {kTile, 1}),
             inverse = nki.sbuf(DType::f32, {kTile, 1});
  activation(squares, Function::square, x, {.bias = zero});
  tensor_reduce(sum, Alu::add, squares, {1});
  activation(inverse, Function::rsqrt, sum, {.bias = zero, .scale = 1 / static_cast<float>(x.extent(1))});
  return inverse;
}

// A block of 128 columns of x, transposed, in float32 in SBUF.
Tile transposed_block(Recorder& nki, const Tile& x, std::int64_t block, const Tile& identity) {
  const Tile result = nki.sbuf(DType::f32, {kTile, kTile});
  tensor_copy(result,
              transposed_blocks(x(ds(0, kTile), ds(block * kTile, kTile)), identity).reshape({kTile, kTile}));
  return result;
}

void whole(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Sizes sizes("measured/rmsnorm_matmul", inputs);
  const Tile &x = inputs[0], &w = inputs[1];
  const Tile out = nki.output("out", DType::f32, {sizes.m, sizes.n});
  const Tile zero = nki.sbuf(DType::f32, {kTile, 1});
  memset(zero, 0.0f);
  const Tile identity = load_identity(nki, DType::f32, kPrepared);
  std::vector<Tile> weights;
  for (std::int64_t l = 0; l < sizes.k; l += kTile) {
    weights.push_back(nki.sbuf(DType::f32, {kTile, sizes.n}));
    dma_copy(weights.back(), w(ds(l, kTile)), kPrepared);
  }
  for (std::int64_t i = 0; i < sizes.m; i += kTile) {
    const Tile rows = nki.sbuf(DType::f32, {kTile, sizes.k}), normal = nki.sbuf(DType::f32, {kTile, sizes.k});
    dma_copy(rows, x(ds(i, kTile)), kPrepared);
    const Tile inverse = inverse_rms(nki, rows, zero);
    tensor_scalar(normal, rows, Alu::multiply, inverse);
    std::vector<Tile> blocks;
    for (std::int64_t l = 0; l < sizes.k / kTile; ++l)
      blocks.push_back(transposed_block(nki, normal, l, identity));
    for (std::int64_t j = 0; j < sizes.n; j += kColumns) {
      const Tile sum = nki.psum(DType::f32, {kTile, kColumns}),
                 result = nki.sbuf(DType::f32, {kTile, kColumns});
      for (std::size_t l = 0; l < blocks.size(); ++l)
        nc_matmul(sum, blocks[l], weights[l](ds(0, kTile), ds(j, kColumns)));
      tensor_copy(result, sum);
      dma_copy(out(ds(i, kTile), ds(j, kColumns)), result, kPrepared);
    }
  }
}

// data = high + low, both bfloat16, up to 2^-16 of it.
struct Split {
  Split(Recorder& nki, const Tile& data)
      : high(nki.sbuf(DType::bf16, data.shape())), low(nki.sbuf(DType::bf16, data.shape())) {
    const Tile rest = nki.sbuf(DType::f32, data.shape());
    tensor_copy(high, data);
    tensor_tensor(rest, data, high, Alu::subtract);
    tensor_copy(low, rest);
  }
  Tile high, low;
};

void split(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Sizes sizes("measured/rmsnorm_matmul_split", inputs);
  const Tile &x = inputs[0], &w = inputs[1];
  const Tile out = nki.output("out", DType::f32, {sizes.m, sizes.n});
  const Tile zero = nki.sbuf(DType::f32, {kTile, 1});
  memset(zero, 0.0f);
  const Tile identity = load_identity(nki, DType::f32, kPrepared);
  std::vector<Split> weights;
  for (std::int64_t l = 0; l < sizes.k; l += kTile) {
    const Tile rows = nki.sbuf(DType::f32, {kTile, sizes.n});
    dma_copy(rows, w(ds(l, kTile)), kPrepared);
    weights.emplace_back(nki, rows);
  }
  for (std::int64_t i = 0; i < sizes.m; i += kTile) {
    const Tile rows = nki.sbuf(DType::f32, {kTile, sizes.k});
    dma_copy(rows, x(ds(i, kTile)), kPrepared);
    const Tile inverse = inverse_rms(nki, rows, zero);
    std::vector<Split> blocks;
    for (std::int64_t l = 0; l < sizes.k / kTile; ++l)
      blocks.emplace_back(nki, transposed_block(nki, rows, l, identity));
    for (std::int64_t j = 0; j < sizes.n; j += kColumns) {
      const Tile sum = nki.psum(DType::f32, {kTile, kColumns}),
                 result = nki.sbuf(DType::f32, {kTile, kColumns});
      for (std::size_t l = 0; l < blocks.size(); ++l) {
        const Tile high = weights[l].high(ds(0, kTile), ds(j, kColumns)),
                   low = weights[l].low(ds(0, kTile), ds(j, kColumns));
        nc_matmul(sum, blocks[l].high, high);
        nc_matmul(sum, blocks[l].high, low);
        nc_matmul(sum, blocks[l].low, high);
      }
      tensor_scalar(result, sum, Alu::multiply, inverse);
      dma_copy(out(ds(i, kTile), ds(j, kColumns)), result, kPrepared);
    }
  }
}

std::vector<std::vector<double>> reference(const std::vector<Parameter>& inputs,
                                           const std::vector<std::vector<double>>& values,
                                           const Attributes&) {
  const auto m = static_cast<std::size_t>(inputs[0].shape[0]),
             k = static_cast<std::size_t>(inputs[0].shape[1]),
             n = static_cast<std::size_t>(inputs[1].shape[1]);
  std::vector<double> transposed(k * m);
  for (std::size_t i = 0; i < m; ++i) {
    double squares = 0;
    for (std::size_t l = 0; l < k; ++l) squares += values[0][i * k + l] * values[0][i * k + l];
    for (std::size_t l = 0; l < k; ++l)
      transposed[l * m + i] = values[0][i * k + l] / std::sqrt(squares / static_cast<double>(k));
  }
  return {product(transposed, values[1], k, m, n)};
}

std::vector<Parameter> inputs() { return {{"x", DType::f32, {256, 256}}, {"w", DType::f32, {256, 512}}}; }

}  // namespace

Kernel measured_rmsnorm_matmul() {
  return {"measured/rmsnorm_matmul", "x / rms(x), times w, in float32", inputs(), whole, reference};
}
Kernel measured_rmsnorm_matmul_split() {
  return {"measured/rmsnorm_matmul_split", "x / rms(x), times w, as three products of bfloat16", inputs(),
          split, reference};
}

}  // namespace headway::kernels
