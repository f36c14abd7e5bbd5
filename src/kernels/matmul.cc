#include <algorithm>

#include "base/error.h"
#include "chip/dma_engine.h"
#include "chip/tensor_engine.h"
#include "chip/vector_copy.h"
#include "kernels/library.h"

namespace headway::kernels {
namespace {

using namespace chip;

void matmul(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Tile &a = inputs[0], &b = inputs[1];
  const std::int64_t k = a.extent(0), m = a.extent(1), n = b.extent(1);
  if (b.extent(0) != k)
    throw InputError("matmul", "a and b differ in their first extent, which is contracted");
  const Tile c = nki.output("c", a.dtype(), {m, n});

  constexpr std::int64_t kM = 128, kN = 512, kK = 128;
  for (std::int64_t i = 0; i < m; i += kM)
    for (std::int64_t j = 0; j < n; j += kN) {
      const Range rows = range(i, std::min(m, i + kM)), columns = range(j, std::min(n, j + kN));
      const Tile sum = nki.psum(DType::f32, {rows.stop - i, columns.stop - j});
      for (std::int64_t l = 0; l < k; l += kK) {
        const Range part = range(l, std::min(k, l + kK));
        const Tile a_tile = nki.sbuf(a.dtype(), {part.stop - l, rows.stop - i});
        const Tile b_tile = nki.sbuf(b.dtype(), {part.stop - l, columns.stop - j});
        dma_copy(a_tile, a(part, rows));
        dma_copy(b_tile, b(part, columns));
        nc_matmul(sum, a_tile, b_tile);
      }
      const Tile result = nki.sbuf(c.dtype(), sum.shape());
      tensor_copy(result, sum);
      dma_copy(c(rows, columns), result);
    }
}

std::vector<std::vector<double>> reference(const std::vector<Parameter>& inputs,
                                           const std::vector<std::vector<double>>& values,
                                           const Attributes&) {
  const auto k = static_cast<std::size_t>(inputs[0].shape[0]),
             m = static_cast<std::size_t>(inputs[0].shape[1]),
             n = static_cast<std::size_t>(inputs[1].shape[1]);
  std::vector<double> c(m * n, 0);
  for (std::size_t l = 0; l < k; ++l)
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += values[0][l * m + i] * values[1][l * n + j];
  return {c};
}

}  // namespace

Kernel matmul_kernel() {
  return {"matmul",
          "c [M, N] = a [K, M]^T b [K, N], in tiles of 128 x 128 x 512",
          {{"a", DType::f32, {512, 512}}, {"b", DType::f32, {512, 512}}},
          matmul,
          reference};
}

}  // namespace headway::kernels
