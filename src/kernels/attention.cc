#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "chip/dma_engine.h"
#include "chip/gpsimd_engine.h"
#include "chip/scalar_engine.h"
#include "chip/tensor_engine.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_copy.h"
#include "chip/vector_reduce.h"
#include "kernels/library.h"

namespace headway::kernels {
namespace {

using namespace chip;

constexpr std::int64_t kQueries = 128, kKeys = 512, kBlock = 128;

// data [P, F] in SBUF to [F, P] in SBUF, through the Tensor engine.
Tile transposed(Recorder& nki, const Tile& data) {
  const Shape shape = {data.extent(1), data.extent(0)};
  const Tile in_psum = nki.psum(data.dtype(), shape), result = nki.sbuf(data.dtype(), shape);
  nc_transpose(in_psum, data);
  tensor_copy(result, in_psum);
  return result;
}

void attention(Recorder& nki, const Tiles& inputs, const Attributes& attributes) {
  const Tile &q = inputs[0], &k = inputs[1], &v = inputs[2];
  const std::int64_t queries = q.extent(0), keys = k.extent(0), d = q.extent(1);
  if (d > 128 || k.extent(1) != d || v.extent(1) != d || v.extent(0) != keys)
    throw InputError("attention", "q, k, v must be [T, D], [S, D], [S, D] with D at most 128");
  const bool causal = attributes.flag("causal", false);
  const auto scale = static_cast<float>(attributes.number("scale", 1 / std::sqrt(static_cast<double>(d))));
  const DType dtype = q.dtype();
  const Tile out = nki.output("out", dtype, {queries, d});

  // K^T and V stay in SBUF for all queries.
  std::vector<Tile> k_transposed, v_blocks;
  for (std::int64_t j = 0; j < keys; j += kKeys) {
    const std::int64_t n = std::min(kKeys, keys - j);
    const Tile kt = nki.sbuf(dtype, {d, n});
    for (std::int64_t b = 0; b < n; b += kBlock) {
      const std::int64_t rows = std::min(kBlock, n - b);
      const Tile block = nki.sbuf(dtype, {rows, d}), value = nki.sbuf(dtype, {rows, d});
      dma_copy(block, k(ds(j + b, rows)));
      dma_copy(value, v(ds(j + b, rows)));
      tensor_copy(kt(ds(0, d), ds(b, rows)), transposed(nki, block));
      v_blocks.push_back(value);
    }
    k_transposed.push_back(kt);
  }

  for (std::int64_t i = 0; i < queries; i += kQueries) {
    const std::int64_t m = std::min(kQueries, queries - i);
    const Tile q_tile = nki.sbuf(dtype, {m, d});
    dma_copy(q_tile, q(ds(i, m)));
    const Tile qt = transposed(nki, q_tile);

    // Of the keys seen so far: -scale max, sum of exponentials, and the weighted sum of values.
    const Tile least = nki.sbuf(DType::f32, {m, 1}), sum = nki.sbuf(DType::f32, {m, 1});
    const Tile total = nki.sbuf(DType::f32, {m, d});
    memset(least, std::numeric_limits<float>::max());
    memset(sum, 0.0f);
    memset(total, 0.0f);

    for (std::int64_t j = 0; j < keys; j += kKeys) {
      const std::int64_t n = std::min(kKeys, keys - j);
      if (causal && j > i + m - 1) break;
      Tile scores = nki.psum(DType::f32, {m, n});
      nc_matmul(scores, qt, k_transposed[static_cast<std::size_t>(j / kKeys)]);
      if (causal && j + n - 1 > i) {  // the diagonal: query i + p sees key j + f where i + p - j - f >= 0
        const Tile seen = nki.sbuf(DType::f32, {m, n});
        tensor_copy(seen, scores);
        affine_select(seen, {{-1, static_cast<std::int32_t>(n)}}, 1, seen, -1e30f,
                      {.cmp_op = Alu::greater_equal, .offset = static_cast<std::int32_t>(i - j)});
        scores = seen;
      }
      // The new maximum, and by how much what is there shrinks.
      const Tile now = nki.sbuf(DType::f32, {m, 1}), shrink = nki.sbuf(DType::f32, {m, 1});
      tensor_reduce(now, Alu::maximum, scores, {1});
      tensor_scalar(now, now, Alu::multiply, -scale, {.op1 = Alu::minimum, .operand1 = Scalar(least)});
      tensor_tensor(shrink, now, least, Alu::subtract);
      activation(shrink, Function::exp, shrink);
      tensor_copy(least, now);
      const Tile weights = nki.sbuf(dtype, {m, n}), block_sum = nki.sbuf(DType::f32, {m, 1});
      activation(weights, Function::exp, scores,
                 {.bias = least,
                  .scale = scale,
                  .reduce_op = Alu::add,
                  .reduce_res = block_sum,
                  .reduce_cmd = ReduceCmd::reset_reduce});
      scalar_tensor_tensor(sum, sum, Alu::multiply, shrink, Alu::add, block_sum);
      // Weights times values, over blocks of 128 keys.
      const Tile block_total = nki.psum(DType::f32, {m, d});
      for (std::int64_t b = 0; b < n; b += kBlock) {
        const std::int64_t rows = std::min(kBlock, n - b);
        nc_matmul(block_total, transposed(nki, weights(ds(0, m), ds(b, rows))),
                  v_blocks[static_cast<std::size_t>((j + b) / kBlock)]);
      }
      scalar_tensor_tensor(total, total, Alu::multiply, shrink, Alu::add, block_total);
    }
    const Tile result = nki.sbuf(dtype, {m, d});
    reciprocal(sum, sum);
    tensor_scalar(result, total, Alu::multiply, sum);
    dma_copy(out(ds(i, m)), result);
  }
}

std::vector<std::vector<double>> reference(const std::vector<Parameter>& inputs,
                                           const std::vector<std::vector<double>>& values,
                                           const Attributes& attributes) {
  const auto queries = static_cast<std::size_t>(inputs[0].shape[0]),
             keys = static_cast<std::size_t>(inputs[1].shape[0]),
             d = static_cast<std::size_t>(inputs[0].shape[1]);
  const double scale = attributes.number("scale", 1 / std::sqrt(static_cast<double>(d)));
  const bool causal = attributes.flag("causal", false);
  std::vector<double> out(queries * d, 0), weights(keys);
  for (std::size_t i = 0; i < queries; ++i) {
    const std::size_t seen = causal ? std::min(keys, i + 1) : keys;
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t j = 0; j < seen; ++j) {
      weights[j] = 0;
      for (std::size_t l = 0; l < d; ++l) weights[j] += scale * values[0][i * d + l] * values[1][j * d + l];
      most = std::max(most, weights[j]);
    }
    for (std::size_t j = 0; j < seen; ++j) sum += weights[j] = std::exp(weights[j] - most);
    for (std::size_t j = 0; j < seen; ++j)
      for (std::size_t l = 0; l < d; ++l) out[i * d + l] += weights[j] / sum * values[2][j * d + l];
  }
  return {out};
}

}  // namespace

Kernel attention_kernel() {
  return {"attention",
          "softmax(scale q k^T) v of one head, flash style; attributes causal, scale",
          {{"q", DType::f32, {512, 128}}, {"k", DType::f32, {512, 128}}, {"v", DType::f32, {512, 128}}},
          attention,
          reference};
}

}  // namespace headway::kernels
