#include "base/error.h"
#include "chip/scalar_engine.h"
#include "chip/tensor_engine.h"
#include "chip/vector_arithmetic.h"
#include "kernels/measured/common.h"
#include "kernels/measured/measured.h"

namespace headway::kernels {
namespace {

using namespace chip;

constexpr std::int64_t kM = kPartitions, kN = kMovingColumns, kK = kPartitions;

// The source loads tiles in the innermost loop, where nothing orders them: the compiler loads each input
// once, in whole rows.
void gemm(Recorder& nki, const Tiles& inputs, const std::string& kernel, bool with_gelu) {
  const Tile &left = inputs[0], &right = inputs[1], &bias = inputs[2];
  const std::int64_t k = left.extent(0), m = left.extent(1), n = right.extent(1);
  if (right.extent(0) != k || bias.shape() != Shape{1, n})
    throw InputError(kernel, "lhsT, rhs and bias must be [K, M], [K, N] and [1, N]");
  require_multiple(kernel, "K", k, kK);
  require_multiple(kernel, "M", m, kM);
  require_multiple(kernel, "N", n, kN);
  const DType dtype = left.dtype();
  const Tile c = nki.output("c", dtype, {m, n});

  const PartitionBroadcast on_all(nki, bias.dtype());
  std::vector<Tile> left_tiles, right_tiles;
  for (std::int64_t l = 0; l < k; l += kK) {
    left_tiles.push_back(nki.sbuf(dtype, {kK, m}));
    dma_copy(left_tiles.back(), left(ds(l, kK)));
    right_tiles.push_back(nki.sbuf(right.dtype(), {kK, n}));
    dma_copy(right_tiles.back(), right(ds(l, kK)));
  }
  const Tile bias_row = nki.sbuf(bias.dtype(), {1, n});
  dma_copy(bias_row, bias);

  for (std::int64_t i = 0; i < m; i += kM)
    for (std::int64_t j = 0; j < n; j += kN) {
      const Tile sum = nki.psum(DType::f32, {kM, kN});
      for (std::size_t l = 0; l < left_tiles.size(); ++l)
        nc_matmul(sum, left_tiles[l](ds(0, kK), ds(i, kM)), right_tiles[l](ds(0, kK), ds(j, kN)));
      const Tile copied = nki.sbuf(dtype, {kM, kN}), shifted = nki.sbuf(dtype, {kM, kN});
      tensor_copy(copied, sum);
      tensor_tensor(shifted, copied, on_all(bias_row(ds(0, 1), ds(j, kN))), Alu::add);
      Tile result = shifted;
      if (with_gelu) {
        result = nki.sbuf(dtype, {kM, kN});
        activation(result, Function::gelu, shifted);
      }
      dma_copy(c(ds(i, kM), ds(j, kN)), result);
    }
}

void gemm_bias(Recorder& nki, const Tiles& inputs, const Attributes&) {
  gemm(nki, inputs, "measured/gemm_bias", false);
}
void gemm_gelu(Recorder& nki, const Tiles& inputs, const Attributes&) {
  gemm(nki, inputs, "measured/gemm_gelu", true);
}

void gelu_alone(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Tile& x = inputs[0];
  require_multiple("measured/gelu", "M", x.extent(0), kM);
  require_multiple("measured/gelu", "N", x.extent(1), kN);
  const Tile out = nki.output("out", x.dtype(), x.shape());
  for (std::int64_t i = 0; i < x.extent(0); i += kM)
    for (std::int64_t j = 0; j < x.extent(1); j += kN) {
      const Tile tile = nki.sbuf(x.dtype(), {kM, kN}), result = nki.sbuf(x.dtype(), {kM, kN});
      dma_copy(tile, x(ds(i, kM), ds(j, kN)));
      activation(result, Function::gelu, tile);
      dma_copy(out(ds(i, kM), ds(j, kN)), result);
    }
}

std::vector<double> gemm_reference(const std::vector<Parameter>& inputs,
                                   const std::vector<std::vector<double>>& values) {
  const auto k = static_cast<std::size_t>(inputs[0].shape[0]),
             m = static_cast<std::size_t>(inputs[0].shape[1]),
             n = static_cast<std::size_t>(inputs[1].shape[1]);
  std::vector<double> c = product(values[0], values[1], k, m, n);
  for (std::size_t i = 0; i < c.size(); ++i) c[i] += values[2][i % n];
  return c;
}

std::vector<double> gelu_of(std::vector<double> x) {
  for (double& value : x) value = gelu(value);
  return x;
}

using Values = std::vector<std::vector<double>>;
Values bias_reference(const std::vector<Parameter>& inputs, const Values& values, const Attributes&) {
  return {gemm_reference(inputs, values)};
}
Values fused_reference(const std::vector<Parameter>& inputs, const Values& values, const Attributes&) {
  return {gelu_of(gemm_reference(inputs, values))};
}
Values gelu_reference(const std::vector<Parameter>&, const Values& values, const Attributes&) {
  return {gelu_of(values[0])};
}

std::vector<Parameter> inputs() {
  return {{"lhsT", DType::f32, {128, 128}}, {"rhs", DType::f32, {128, 512}}, {"bias", DType::f32, {1, 512}}};
}

}  // namespace

Kernel measured_gemm_bias() {
  return {"measured/gemm_bias", "c [M, N] = lhsT [K, M]^T rhs [K, N] + bias", inputs(), gemm_bias,
          bias_reference};
}
Kernel measured_gemm_gelu() {
  return {"measured/gemm_gelu", "GELU of lhsT [K, M]^T rhs [K, N] + bias in one kernel", inputs(), gemm_gelu,
          fused_reference};
}
Kernel measured_gelu() {
  return {"measured/gelu",
          "GELU of x, tile by tile",
          {{"x", DType::f32, {128, 512}}},
          gelu_alone,
          gelu_reference};
}

}  // namespace headway::kernels
