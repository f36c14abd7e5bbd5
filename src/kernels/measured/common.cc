#include "kernels/measured/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/number_format.h"
#include "chip/tensor_engine.h"

namespace headway::kernels {

using namespace chip;

void require_multiple(const std::string& kernel, const std::string& what, std::int64_t extent,
                      std::int64_t unit) {
  if (extent <= 0 || extent % unit != 0)
    throw InputError(kernel, fmt::format("{} is {}, not a multiple of {}", what, extent, unit));
}

Tile load_identity(Recorder& nki, DType dtype, const DmaCopyOptions& options) {
  const auto size = static_cast<std::size_t>(size_of(dtype)), n = static_cast<std::size_t>(kPartitions);
  std::vector<std::byte> bytes(n * n * size);
  for (std::size_t i = 0; i < n; ++i) encode(dtype, 1.0f, bytes.data() + (i * n + i) * size);
  const Shape shape = {kPartitions, kPartitions};
  const Tile identity = nki.sbuf(dtype, shape);
  dma_copy(identity, nki.constant(fmt::format("identity_{}", name_of(dtype)), dtype, shape, bytes), options);
  return identity;
}

std::vector<Tile> load_joined(const Tile& matrix) {
  Recorder& nki = matrix.recorder();
  const std::int64_t tiles = matrix.extent(0) / kPartitions, columns = matrix.extent(1);
  const std::int64_t fit = kJoinedBytes / size_of(matrix.dtype()),
                     together = std::max<std::int64_t>(1, fit / columns);
  std::vector<Tile> loaded;
  for (std::int64_t i = 0; i < tiles; i += together) {
    const std::int64_t count = std::min(together, tiles - i);
    const Tile group = nki.sbuf(matrix.dtype(), {kPartitions, count, columns});
    const Tile from = matrix(ds(i * kPartitions, count * kPartitions))
                          .reshape({count, kPartitions, columns})
                          .permute({1, 0, 2});
    for (std::int64_t j = 0; j < columns; j += fit) {
      const Range part = range(j, std::min(columns, j + fit)), all = ds(0, kPartitions), each = ds(0, count);
      dma_copy(group(all, each, part), from(all, each, part));
    }
    for (std::int64_t l = 0; l < count; ++l) loaded.push_back(group(ds(0, kPartitions), at(l)));
  }
  return loaded;
}

Tile transposed_blocks(const Tile& data, const Tile& identity) {
  Recorder& nki = data.recorder();
  const std::int64_t rows = data.extent(0), blocks = data.extent(1) / kPartitions;
  const Tile result = nki.psum(data.dtype(), {kPartitions, blocks, rows});
  for (std::int64_t b = 0; b < blocks; ++b)
    nc_matmul(result(ds(0, kPartitions), at(b)), data(ds(0, rows), ds(b * kPartitions, kPartitions)),
              identity(ds(0, rows), ds(0, rows)), {.is_moving_onezero = true, .is_transpose = true});
  return result;
}

PartitionBroadcast::PartitionBroadcast(Recorder& nki, DType dtype)
    : ones_(nki.sbuf(dtype, {1, kPartitions})) {
  memset(ones_, 1.0f);
}

Tile PartitionBroadcast::operator()(const Tile& row) const {
  Recorder& nki = row.recorder();
  const std::int64_t n = row.extent(1);
  if (n <= kMovingColumns) {
    const Tile result = nki.psum(DType::f32, {kPartitions, n});
    nc_matmul(result, ones_, row);
    return result;
  }
  const Tile result = nki.sbuf(DType::f32, {kPartitions, n});
  const bool scalar_copies = nki.spec().generation >= 3;
  Turns turns;
  for (std::int64_t i = 0; i < n; i += kMovingColumns) {
    const Range part = range(i, std::min(n, i + kMovingColumns));
    tensor_copy(result(ds(0, kPartitions), part), (*this)(row(ds(0, 1), part)),
                scalar_copies ? turns.next() : TensorCopyOptions());
  }
  return result;
}

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, std::size_t k,
                            std::size_t m, std::size_t n) {
  std::vector<double> c(m * n, 0);
  for (std::size_t l = 0; l < k; ++l)
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[l * m + i] * b[l * n + j];
  return c;
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

}  // namespace headway::kernels
