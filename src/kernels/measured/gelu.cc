#include <algorithm>

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

Range all() { return ds(0, kPartitions); }

// How tiles of 128 x 512 of a matrix are joined for a transfer: along a row first, then row after row.
struct Joined {
  explicit Joined(const Tile& matrix) : dtype(matrix.dtype()) {
    const std::int64_t fit = kJoinedBytes / size_of(dtype), n = matrix.extent(1);
    columns = kN;
    while (columns * 2 <= fit && n % (columns * 2) == 0) columns *= 2;
    if (columns == n) rows = std::min(matrix.extent(0), std::max<std::int64_t>(1, fit / n) * kM);
  }
  DType dtype;
  std::int64_t rows = kM, columns = kN;

  std::int64_t count(std::int64_t i, std::int64_t m) const { return std::min(rows, m - i) / kM; }
  Tile tile(Recorder& nki) const { return nki.sbuf(dtype, {kM, rows / kM, columns}); }
  Tile part(const Tile& matrix, std::int64_t i, std::int64_t j) const {
    const std::int64_t tiles = count(i, matrix.extent(0));
    return matrix(ds(i, tiles * kM))
        .reshape({tiles, kM, matrix.extent(1)})
        .permute({1, 0, 2})(all(), ds(0, tiles), ds(j, columns));
  }
  void load(const Tile& matrix, std::int64_t i, std::int64_t j, const Tile& to) const {
    dma_copy(to(all(), ds(0, count(i, matrix.extent(0)))), part(matrix, i, j));
  }
  void store(const Tile& matrix, std::int64_t i, std::int64_t j, const Tile& from) const {
    dma_copy(part(matrix, i, j), from(all(), ds(0, count(i, matrix.extent(0)))));
  }
};

// The source loads tiles in the innermost loop, copies sums out of PSUM before it adds the bias, and stores
// tile by tile. What is known of its profiles (events counted at 256 x 512 x 1024) fits only a compiler that
// loads each input once, joins transfers up to 4 KiB of a partition, broadcasts the bias once, and adds it to
// what is in PSUM.
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

  const std::vector<Tile> left_tiles = load_joined(left), right_tiles = load_joined(right);
  const Tile bias_row = nki.sbuf(bias.dtype(), {1, n}), shift = nki.sbuf(bias.dtype(), {kPartitions, n});
  dma_copy(bias_row, bias);
  const PartitionBroadcast on_all(nki, bias.dtype());
  for (std::int64_t j = 0; j < n; j += kN)
    tensor_copy(shift(all(), ds(j, kN)), on_all(bias_row(ds(0, 1), ds(j, kN))));

  const Joined joined(c);
  for (std::int64_t i = 0; i < m; i += joined.rows)
    for (std::int64_t j = 0; j < n; j += joined.columns) {
      const Tile result = joined.tile(nki);
      for (std::int64_t r = 0; r < joined.count(i, m); ++r)
        for (std::int64_t s = 0; s < joined.columns; s += kN) {
          const Tile sum = nki.psum(DType::f32, {kM, kN}), out = result(all(), at(r), ds(s, kN));
          for (std::size_t l = 0; l < left_tiles.size(); ++l)
            nc_matmul(sum, left_tiles[l](all(), ds(i + r * kM, kM)), right_tiles[l](all(), ds(j + s, kN)));
          const Tile shifted = with_gelu ? nki.sbuf(dtype, {kM, kN}) : out;
          tensor_tensor(shifted, sum, shift(all(), ds(j + s, kN)), Alu::add);
          if (with_gelu) activation(out, Function::gelu, shifted);
        }
      joined.store(c, i, j, result);
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
  const Joined joined(x);
  for (std::int64_t i = 0; i < x.extent(0); i += joined.rows)
    for (std::int64_t j = 0; j < x.extent(1); j += joined.columns) {
      const Tile from = joined.tile(nki), result = joined.tile(nki);
      joined.load(x, i, j, from);
      for (std::int64_t r = 0; r < joined.count(i, x.extent(0)); ++r)
        for (std::int64_t s = 0; s < joined.columns; s += kN)
          activation(result(all(), at(r), ds(s, kN)), Function::gelu, from(all(), at(r), ds(s, kN)));
      joined.store(out, i, j, result);
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
