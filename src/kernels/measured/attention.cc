#include <algorithm>
#include <cmath>
#include <limits>

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

constexpr std::int64_t kTile = kPartitions, kChunk = kMovingColumns, kBlocks = kChunk / kTile;
constexpr std::int64_t kGroup = 4;  // tiles of queries that the compiler keeps in flight

// Constants have fixed addresses, so that their descriptors are hardware's work; those of arguments aren't.
const DmaCopyOptions kOnSync = {.dge_mode = DgeMode::hwdge, .engine = Engine::sync};

struct Sizes {
  Sizes(const char* kernel, const Tiles& inputs) : length(inputs[0].extent(1)) {
    for (const Tile& input : inputs)
      if (input.extent(0) != kTile || input.extent(1) != length || input.dtype() != inputs[0].dtype())
        throw InputError(kernel, "q, k, v must be [128, S] of one dtype");
    require_multiple(kernel, "S", length, kChunk);
  }
  std::int64_t length;
  std::int64_t tiles = length / kTile, chunks = length / kChunk;
};

Range all(std::int64_t rows = kTile) { return ds(0, rows); }
Range chunk(std::int64_t c) { return ds(c * kChunk, kChunk); }

// Rows [first 128, (first + count) 128) of an HBM matrix as [128, count, columns].
Tile tiles_of(const Tile& matrix, std::int64_t first, std::int64_t count) {
  return matrix(ds(first * kTile, count * kTile))
      .reshape({count, kTile, matrix.extent(1)})
      .permute({1, 0, 2});
}

// data [128, S], transposed block by block: [128, S / 128, 128] in float32, copied out of PSUM four blocks at
// a time.
Tile transposed(Recorder& nki, const Tile& data, const Tile& identity,
                const std::function<TensorCopyOptions()>& engine) {
  const std::int64_t length = data.extent(1);
  const Tile result = nki.sbuf(DType::f32, {kTile, length / kTile, kTile});
  for (std::int64_t c = 0; c < length / kChunk; ++c)
    tensor_copy(result(all(), ds(c * kBlocks, kBlocks)), transposed_blocks(data(all(), chunk(c)), identity),
                engine());
  return result;
}

// sum over blocks of weights[block]^T values[block], in PSUM.
Tile weighted_sum(Recorder& nki, const Tile& weights, const Tile& values) {
  const Tile sum = nki.psum(DType::f32, {kTile, kTile});
  for (std::int64_t b = 0; b < weights.extent(1); ++b)
    nc_matmul(sum, weights(all(), at(b)), values(all(), at(b)));
  return sum;
}

TensorCopyOptions on_scalar() { return {.engine = Engine::scalar}; }

// The compiler runs the steps of the softmax over all tiles before the next step, and joins the small ones.
void unfused(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Sizes sizes("measured/attention_unfused", inputs);
  const std::int64_t length = sizes.length, tiles = sizes.tiles, chunks = sizes.chunks;
  const std::int64_t together =
      std::max<std::int64_t>(1, kJoinedBytes / 4 / length);  // tiles of scores in a transfer
  const DType dtype = inputs[0].dtype();
  const Tile out = nki.output("out", dtype, {length, kTile});
  const Tile scores = nki.shared_hbm(DType::f32, {length, length}, {.name = "scores"});

  const Tile identity = load_identity(nki, DType::f32, kOnSync);
  const Tile identity_v = dtype == DType::f32 ? identity : load_identity(nki, dtype, kOnSync);
  std::vector<Tile> loaded;
  for (const Tile& input : inputs) {
    loaded.push_back(nki.sbuf(dtype, {kTile, length}));
    dma_copy(loaded.back(), input);
  }
  const Tile &q = loaded[0], &k = loaded[1], &v = loaded[2];

  Turns turns;
  for (std::int64_t i = 0; i < tiles; i += together) {
    const Tile group = nki.sbuf(DType::f32, {kTile, together, length});
    for (std::int64_t j = 0; j < together; ++j)
      for (std::int64_t c = 0; c < chunks; ++c) {
        const Tile score = nki.psum(DType::f32, {kTile, kChunk});
        nc_matmul(score, q(all(), ds((i + j) * kTile, kTile)), k(all(), chunk(c)));
        tensor_copy(group(all(), at(j), chunk(c)), score, turns.next());
      }
    dma_copy(tiles_of(scores, i, together), group);
  }
  const Tile v_blocks = transposed(nki, v, identity_v, on_scalar);

  std::vector<Tile> rows;  // of scores, a tile each
  for (std::int64_t i = 0; i < tiles; i += together) {
    const Tile group = nki.sbuf(DType::f32, {kTile, together, length});
    dma_copy(group, tiles_of(scores, i, together));
    for (std::int64_t j = 0; j < together; ++j) rows.push_back(group(all(), at(j)));
  }
  const Tile most = nki.sbuf(DType::f32, {kTile, tiles, chunks}),
             least = nki.sbuf(DType::f32, {kTile, tiles});
  for (std::int64_t i = 0; i < tiles; ++i)
    for (std::int64_t c = 0; c < chunks; ++c)
      tensor_reduce(most(all(), at(i), ds(c, 1)), Alu::maximum,
                    rows[static_cast<std::size_t>(i)](all(), chunk(c)), {1});
  tensor_reduce(least, Alu::maximum, most, {2}, {.negate = true});
  const Tile sums = nki.sbuf(DType::f32, {kTile, tiles, chunks}), sum = nki.sbuf(DType::f32, {kTile, tiles});
  std::vector<Tile> exponentials;
  for (std::int64_t i = 0; i < tiles; ++i) {
    exponentials.push_back(nki.sbuf(DType::f32, {kTile, length}));
    for (std::int64_t c = 0; c < chunks; ++c) {
      const Tile part = exponentials.back()(all(), chunk(c));
      activation(part, Function::exp, rows[static_cast<std::size_t>(i)](all(), chunk(c)),
                 {.bias = least(all(), ds(i, 1))});
      tensor_reduce(sums(all(), at(i), ds(c, 1)), Alu::add, part, {1});
    }
  }
  tensor_reduce(sum, Alu::add, sums, {2});
  const Tile inverse = nki.sbuf(DType::f32, {kTile, tiles});
  reciprocal(inverse, sum);
  for (std::int64_t i = 0; i < tiles; i += together) {
    const Tile group = nki.sbuf(DType::f32, {kTile, together, length});
    for (std::int64_t j = 0; j < together; ++j)
      for (std::int64_t c = 0; c < chunks; ++c)
        tensor_scalar(group(all(), at(j), chunk(c)),
                      exponentials[static_cast<std::size_t>(i + j)](all(), chunk(c)), Alu::multiply,
                      inverse(all(), ds(i + j, 1)), {.engine = Engine::vector});
    dma_copy(tiles_of(scores, i, together), group);
  }

  for (std::int64_t i = 0; i < tiles; i += kGroup) {
    const Tile result = nki.sbuf(dtype, {kTile, kGroup, kTile});
    for (std::int64_t j = 0; j < kGroup; j += together) {
      const Tile group = nki.sbuf(DType::f32, {kTile, together, length});
      dma_copy(group, tiles_of(scores, i + j, together));
      std::vector<Tile> weights;
      for (std::int64_t l = 0; l < together; ++l)
        weights.push_back(transposed(nki, group(all(), at(l)), identity, on_scalar));
      for (std::int64_t l = 0; l < together; ++l)
        tensor_copy(result(all(), at(j + l)),
                    weighted_sum(nki, weights[static_cast<std::size_t>(l)], v_blocks), turns.next());
    }
    dma_copy(tiles_of(out, i, kGroup), result);
  }
}

void fused(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Sizes sizes("measured/attention_fused", inputs);
  const std::int64_t length = sizes.length, tiles = sizes.tiles, chunks = sizes.chunks;
  const DType dtype = inputs[0].dtype();
  const Tile out = nki.output("out", dtype, {length, kTile});

  const Tile identity_v = load_identity(nki, dtype, kOnSync);
  const Tile identity = dtype == DType::f32 ? identity_v : load_identity(nki, DType::f32, kOnSync);
  const Tile v = nki.sbuf(dtype, {kTile, length}), q = nki.sbuf(dtype, {kTile, length}),
             k = nki.sbuf(dtype, {kTile, length});
  dma_copy(v, inputs[2]);  // first, as it is transposed first
  dma_copy(q, inputs[0]);
  dma_copy(k, inputs[1]);
  const Tile v_blocks = transposed(nki, v, identity_v, on_scalar);

  const Tile result = nki.sbuf(DType::f32, {kTile, tiles, kTile});  // the store converts
  for (std::int64_t first = 0; first < tiles; first += kGroup) {
    // The first chunk of scores stays in PSUM, where the softmax reads it; the others make room.
    Turns turns;
    std::vector<Tile> scores;
    for (std::int64_t i = 0; i < kGroup; ++i)
      for (std::int64_t c = 0; c < chunks; ++c) {
        const Tile score = nki.psum(DType::f32, {kTile, kChunk});
        nc_matmul(score, q(all(), ds((first + i) * kTile, kTile)), k(all(), chunk(c)));
        scores.push_back(c == 0 ? score : nki.sbuf(DType::f32, {kTile, kChunk}));
        if (c > 0) tensor_copy(scores.back(), score, turns.next());
      }
    const Tile most = nki.sbuf(DType::f32, {kTile, kGroup, chunks}),
               least = nki.sbuf(DType::f32, {kTile, kGroup});
    const Tile sums = nki.sbuf(DType::f32, {kTile, kGroup, chunks}),
               sum = nki.sbuf(DType::f32, {kTile, kGroup});
    const auto score = [&](std::int64_t i, std::int64_t c) {
      return scores[static_cast<std::size_t>(i * chunks + c)];
    };
    for (std::int64_t i = 0; i < kGroup; ++i)
      for (std::int64_t c = 0; c < chunks; ++c)
        tensor_reduce(most(all(), at(i), ds(c, 1)), Alu::maximum, score(i, c), {1});
    tensor_reduce(least, Alu::maximum, most, {2}, {.negate = true});
    std::vector<Tile> exponentials, weights;
    for (std::int64_t i = 0; i < kGroup; ++i) {
      exponentials.push_back(nki.sbuf(DType::f32, {kTile, length}));
      for (std::int64_t c = 0; c < chunks; ++c)
        activation(exponentials.back()(all(), chunk(c)), Function::exp, score(i, c),
                   {.bias = least(all(), ds(i, 1))});
    }
    // Vector sums a tile ahead of the transposes; it takes one copy in four off Scalar.
    int copies = 0;
    const auto engine = [&] {
      return TensorCopyOptions{.engine = copies++ % 4 == 0 ? Engine::vector : Engine::scalar};
    };
    for (std::int64_t i = 0; i <= kGroup; ++i) {
      if (i < kGroup)
        for (std::int64_t c = 0; c < chunks; ++c)
          tensor_reduce(sums(all(), at(i), ds(c, 1)), Alu::add,
                        exponentials[static_cast<std::size_t>(i)](all(), chunk(c)), {1});
      if (i > 0)
        weights.push_back(transposed(nki, exponentials[static_cast<std::size_t>(i - 1)], identity, engine));
    }
    tensor_reduce(sum, Alu::add, sums, {2});
    const Tile inverse = nki.sbuf(DType::f32, {kTile, kGroup});
    reciprocal(inverse, sum);
    for (std::int64_t i = 0; i < kGroup; ++i)
      tensor_scalar(result(all(), at(first + i)),
                    weighted_sum(nki, weights[static_cast<std::size_t>(i)], v_blocks), Alu::multiply,
                    inverse(all(), ds(i, 1)), {.engine = Engine::vector});
  }
  const std::int64_t in_store = kJoinedBytes / 4 / kTile;
  for (std::int64_t i = 0; i < tiles; i += in_store) {
    const std::int64_t count = std::min(in_store, tiles - i);
    dma_copy(tiles_of(out, i, count), result(all(), ds(i, count)));
  }
}

std::vector<std::vector<double>> reference(const std::vector<Parameter>& inputs,
                                           const std::vector<std::vector<double>>& values,
                                           const Attributes&) {
  const auto d = static_cast<std::size_t>(inputs[0].shape[0]),
             length = static_cast<std::size_t>(inputs[0].shape[1]);
  const std::vector<double> scores = product(values[0], values[1], d, length, length);
  std::vector<double> out(length * d, 0);
  for (std::size_t i = 0; i < length; ++i) {
    const double* row = scores.data() + i * length;
    const double most = *std::max_element(row, row + length);
    double sum = 0;
    for (std::size_t j = 0; j < length; ++j) {
      const double weight = std::exp(row[j] - most);
      sum += weight;
      for (std::size_t l = 0; l < d; ++l) out[i * d + l] += weight * values[2][l * length + j];
    }
    for (std::size_t l = 0; l < d; ++l) out[i * d + l] /= sum;
  }
  return {out};
}

std::vector<Parameter> inputs() {
  return {{"q", DType::f32, {128, 512}}, {"k", DType::f32, {128, 512}}, {"v", DType::f32, {128, 512}}};
}

}  // namespace

Kernel measured_attention_unfused() {
  return {"measured/attention_unfused", "softmax(q^T k) v^T in three passes through HBM", inputs(), unfused,
          reference};
}
Kernel measured_attention_fused() {
  return {"measured/attention_fused", "softmax(q^T k) v^T, nothing through HBM", inputs(), fused, reference};
}

}  // namespace headway::kernels
