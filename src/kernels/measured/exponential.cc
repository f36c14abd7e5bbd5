#include <cmath>

#include "chip/scalar_engine.h"
#include "kernels/measured/common.h"
#include "kernels/measured/measured.h"

namespace headway::kernels {
namespace {

using namespace chip;

void exponential(Recorder& nki, const Tiles& inputs, const Attributes& attributes) {
  const Tile& x = inputs[0];
  const Tile out = nki.output("out", x.dtype(), x.shape());
  const Tile tile = nki.sbuf(x.dtype(), x.shape()), result = nki.sbuf(x.dtype(), x.shape());
  const DmaCopyOptions software = {.dge_mode = DgeMode::swdge};
  const DmaCopyOptions hardware = {.dge_mode = DgeMode::hwdge, .engine = Engine::sync};
  dma_copy(tile, x, attributes.flag("sync", true) ? hardware : software);
  activation(result, Function::exp, tile);
  dma_copy(out, result, software);
}

std::vector<std::vector<double>> reference(const std::vector<Parameter>&,
                                           const std::vector<std::vector<double>>& values,
                                           const Attributes&) {
  std::vector<double> out = values[0];
  for (double& x : out) x = std::exp(x);
  return {out};
}

}  // namespace

Kernel measured_exponential() {
  return {"measured/exponential",
          "exp of one tile; attribute sync",
          {{"x", DType::bf16, {128, 128}}},
          exponential,
          reference};
}

}  // namespace headway::kernels
