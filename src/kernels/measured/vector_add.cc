#include "base/error.h"
#include "chip/vector_arithmetic.h"
#include "kernels/measured/common.h"
#include "kernels/measured/measured.h"

namespace headway::kernels {
namespace {

using namespace chip;

// An attribute that is a whole number from 1.
std::int64_t whole(const std::string& kernel, const Attributes& attributes, const std::string& name,
                   double fallback) {
  const double value = attributes.number(name, fallback);
  if (!(value >= 1 && value <= 1e6) || value != static_cast<double>(static_cast<std::int64_t>(value)))
    throw InputError(kernel, "'" + name + "' is not a whole number from 1");
  return static_cast<std::int64_t>(value);
}

std::int64_t length_of(const std::string& kernel, const Tiles& inputs) {
  if (inputs[0].shape() != inputs[1].shape() || inputs[0].shape().size() != 1)
    throw InputError(kernel, "a and b must be vectors of one length");
  return inputs[0].extent(0);
}

void by_rows(Recorder& nki, const Tiles& inputs, const Attributes& attributes) {
  const std::string kernel = "measured/vector_add_rows";
  const std::int64_t n = length_of(kernel, inputs), rows = whole(kernel, attributes, "rows", 1);
  require_multiple(kernel, "the length", n, rows);
  const DType dtype = inputs[0].dtype();
  const Tile out = nki.output("out", dtype, {n});
  const auto columns = [&](const Tile& vector, std::int64_t i) {
    return vector(ds(i, rows)).reshape({rows, 1});
  };
  for (std::int64_t i = 0; i < n; i += rows) {
    const Tile a = nki.sbuf(dtype, {rows, 1}), b = nki.sbuf(dtype, {rows, 1}),
               sum = nki.sbuf(dtype, {rows, 1});
    dma_copy(a, columns(inputs[0], i));
    dma_copy(b, columns(inputs[1], i));
    tensor_scalar(sum, a, Alu::add, b, {.engine = Engine::vector});
    dma_copy(columns(out, i), sum);
  }
}

void stream(Recorder& nki, const Tiles& inputs, const Attributes& attributes) {
  const std::string kernel = "measured/vector_add_stream";
  const std::int64_t n = length_of(kernel, inputs), free = whole(kernel, attributes, "free", 2);
  require_multiple(kernel, "the length", n, kPartitions * free);
  const DType dtype = inputs[0].dtype();
  const Tile out = nki.output("out", dtype, {n});
  const auto columns = [&](const Tile& vector, std::int64_t i) {
    return vector.reshape({kPartitions, n / kPartitions})(ds(0, kPartitions), ds(i, free));
  };
  for (std::int64_t i = 0; i < n / kPartitions; i += free) {
    const Tile a = nki.sbuf(dtype, {kPartitions, free}), b = nki.sbuf(dtype, {kPartitions, free}),
               sum = nki.sbuf(dtype, {kPartitions, free});
    dma_copy(a, columns(inputs[0], i));
    dma_copy(b, columns(inputs[1], i));
    tensor_tensor(sum, a, b, Alu::add, {.engine = Engine::vector});
    dma_copy(columns(out, i), sum);
  }
}

std::vector<std::vector<double>> reference(const std::vector<Parameter>&,
                                           const std::vector<std::vector<double>>& values,
                                           const Attributes&) {
  std::vector<double> sum = values[0];
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[1][i];
  return {sum};
}

std::vector<Parameter> inputs() { return {{"a", DType::f32, {1280}}, {"b", DType::f32, {1280}}}; }

}  // namespace

Kernel measured_vector_add_rows() {
  return {"measured/vector_add_rows", "a + b, a few partitions at a time; attribute rows", inputs(), by_rows,
          reference};
}
Kernel measured_vector_add_stream() {
  return {"measured/vector_add_stream", "a + b on 128 partitions, a few columns at a time; attribute free",
          inputs(), stream, reference};
}

}  // namespace headway::kernels
