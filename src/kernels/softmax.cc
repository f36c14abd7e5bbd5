#include <algorithm>
#include <cmath>

#include "chip/dma_engine.h"
#include "chip/scalar_engine.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_reduce.h"
#include "kernels/library.h"

namespace headway::kernels {
namespace {

using namespace chip;

void softmax(Recorder& nki, const Tiles& inputs, const Attributes&) {
  const Tile& x = inputs[0];
  const std::int64_t rows = x.extent(0), columns = x.extent(1);
  const Tile y = nki.output("y", x.dtype(), {rows, columns});
  for (std::int64_t r = 0; r < rows; r += 128) {
    const Range part = range(r, std::min(rows, r + 128));
    const std::int64_t p = part.stop - r;
    const Tile t = nki.sbuf(DType::f32, {p, columns});
    const Tile least = nki.sbuf(DType::f32, {p, 1}), sum = nki.sbuf(DType::f32, {p, 1});
    dma_copy(t, x(part));
    tensor_reduce(least, Alu::maximum, t, {1}, {.negate = true});  // -max
    activation(
        t, Function::exp, t,
        {.bias = least, .reduce_op = Alu::add, .reduce_res = sum, .reduce_cmd = ReduceCmd::reset_reduce});
    reciprocal(sum, sum);
    tensor_scalar(t, t, Alu::multiply, sum);
    dma_copy(y(part), t);
  }
}

std::vector<std::vector<double>> reference(const std::vector<Parameter>& inputs,
                                           const std::vector<std::vector<double>>& values,
                                           const Attributes&) {
  std::vector<double> y = values[0];
  const auto columns = static_cast<std::size_t>(inputs[0].shape[1]);
  for (std::size_t r = 0; r < y.size(); r += columns) {
    double most = y[r], sum = 0;
    for (std::size_t i = 0; i < columns; ++i) most = std::max(most, y[r + i]);
    for (std::size_t i = 0; i < columns; ++i) sum += y[r + i] = std::exp(y[r + i] - most);
    for (std::size_t i = 0; i < columns; ++i) y[r + i] /= sum;
  }
  return {y};
}

}  // namespace

Kernel softmax_kernel() {
  return {
      "softmax", "y = softmax of each row of x [R, C]", {{"x", DType::f32, {512, 1024}}}, softmax, reference};
}

}  // namespace headway::kernels
