#include <cmath>

#include "base/error.h"
#include "chip/scalar_engine.h"
#include "kernels/measured/common.h"
#include "kernels/measured/measured.h"

namespace headway::kernels {
namespace {

using namespace chip;

void silu(Recorder& nki, const Tiles& inputs, const Attributes& attributes) {
  const Tile& x = inputs[0];
  require_multiple("measured/silu", "M", x.extent(0), kPartitions);
  const std::int64_t in_partition = x.extent(0) / kPartitions * x.extent(1);
  const double wanted = attributes.number("chunk", static_cast<double>(x.extent(1)));
  if (!(wanted >= 1 && wanted <= static_cast<double>(in_partition)) ||
      std::fmod(static_cast<double>(in_partition), wanted) != 0)
    throw InputError("measured/silu", "'chunk' doesn't divide the elements of a partition");
  const auto chunk = static_cast<std::int64_t>(wanted);
  const DmaCopyOptions prepared = {.dge_mode = DgeMode::none};

  const Tile out = nki.output("out", x.dtype(), x.shape());
  const Shape shape = {kPartitions, in_partition / chunk, chunk};
  const Tile from = x.reshape(shape), to = out.reshape(shape);
  for (std::int64_t i = 0; i < shape[1]; ++i) {
    const Tile tile = nki.sbuf(x.dtype(), {kPartitions, chunk}),
               result = nki.sbuf(x.dtype(), {kPartitions, chunk});
    dma_copy(tile, from(ds(0, kPartitions), at(i)), prepared);
    activation(result, Function::silu, tile);
    dma_copy(to(ds(0, kPartitions), at(i)), result, prepared);
  }
}

std::vector<std::vector<double>> reference(const std::vector<Parameter>&,
                                           const std::vector<std::vector<double>>& values,
                                           const Attributes&) {
  std::vector<double> out = values[0];
  for (double& x : out) x /= 1 + std::exp(-x);
  return {out};
}

}  // namespace

Kernel measured_silu() {
  return {"measured/silu",
          "x sigmoid(x), streamed; attribute chunk",
          {{"x", DType::f32, {256, 1024}}},
          silu,
          reference};
}

}  // namespace headway::kernels
