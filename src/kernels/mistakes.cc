// Kernels that are wrong on purpose, the way people get them wrong.
#include "chip/cores.h"
#include "chip/dma_engine.h"
#include "chip/scalar_engine.h"
#include "chip/sync_engine.h"
#include "chip/tensor_engine.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_copy.h"
#include "chip/vector_reduce.h"
#include "kernels/library.h"

namespace headway::kernels {
namespace {

using namespace chip;

// Two cores scale half the rows of x each, in place, then each adds up both halves, without waiting for the
// other.
void race(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Tile& x = inputs[0];  // [256, C]
  const std::int64_t columns = x.extent(1), mine = 128 * nki.program_id();
  const Tile out = nki.output("out", DType::f32, {256, columns});
  const Tile half = nki.sbuf(DType::f32, {128, columns}, {.name = "half"});
  dma_copy(half, x(ds(mine, 128)));
  tensor_scalar(half, half, Alu::multiply, 0.5f);
  dma_copy(x(ds(mine, 128)), half);
  // core_barrier(x, {0, 1}) is missing here.
  const Tile first = nki.sbuf(DType::f32, {128, columns}), second = nki.sbuf(DType::f32, {128, columns});
  dma_copy(first, x(ds(0, 128)));
  dma_copy(second, x(ds(128, 128)));
  tensor_tensor(first, first, second, Alu::add);
  dma_copy(out(ds(mine, 128)), first);
}

// A key goes into the cache at a position that is only known when the kernel runs; the cache has 1024 rows,
// and the position is 1024.
void out_of_bounds(Recorder& nki, const Tiles& inputs, const Attributes& attributes) {
  const Tile &cache = inputs[0], &key = inputs[1];  // [1024, D] and [1, D]
  const std::int64_t d = key.extent(1);
  const Tile row = nki.sbuf(key.dtype(), {1, d}, {.name = "row"});
  dma_copy(row, key);
  const Register position =
      register_alloc(nki, static_cast<std::int32_t>(attributes.number("position", 1024)));
  dma_copy(cache(ds(0, 1)).moved_by(position, d), row);
}

// Rows of 1000 columns go through tiles of 512: the second tile is filled with 488 and used with 512.
void unwritten(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Tile& x = inputs[0];  // [128, C]
  const std::int64_t columns = x.extent(1);
  const Tile most = nki.output("most", DType::f32, {128, 2});
  for (std::int64_t j = 0; j < columns && j < 1024; j += 512) {
    const std::int64_t n = std::min<std::int64_t>(512, columns - j);
    const Tile tile = nki.sbuf(DType::f32, {128, 512}, {.name = "tile"});
    const Tile largest = nki.sbuf(DType::f32, {128, 1});
    dma_copy(tile(ds(0, 128), ds(0, n)), x(ds(0, 128), ds(j, n)));
    tensor_reduce(largest, Alu::maximum, tile, {1});
    dma_copy(most(ds(0, 128), ds(j / 512, 1)), largest);
  }
}

}  // namespace

Kernel race_mistake() {
  return {"mistakes/race",
          "two cores read each other's rows without a barrier",
          {{"x", DType::f32, {256, 512}}},
          race,
          nullptr,
          2};
}
Kernel out_of_bounds_mistake() {
  return {"mistakes/out_of_bounds",
          "a row is written behind the end of a cache",
          {{"cache", DType::f32, {1024, 128}}, {"key", DType::f32, {1, 128}}},
          out_of_bounds};
}
Kernel unwritten_mistake() {
  return {"mistakes/unwritten",
          "the last tile is used whole, but was filled in part",
          {{"x", DType::f32, {128, 1000}}},
          unwritten};
}

}  // namespace headway::kernels
