#include "graph/operators/linear.h"
#include "base/dtype.h"
#include "host/kernel.h"
#include "host/reference/references.h"

namespace headway::host {
namespace {

// An operand of a matrix product as the machine multiplies it.
template <class T>
T operand(T value, const Options& options) {
  return options.bf16_products ? static_cast<T>(round_to_bf16(static_cast<float>(value))) : value;
}

// x [rows, in], weight [out, in] -> y [rows, out]
template <class T>
void linear(const Call& call) {
  const T* x = call.inputs[0].as<T>();
  const T* weight = call.inputs[1].as<T>();
  T* y = call.outputs[0].as<T>();
  const std::int64_t rows = graph::rows(call.inputs[0].shape);
  const std::int64_t out = call.inputs[1].shape[0], in = call.inputs[1].shape[1];
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t o = 0; o < out; ++o) {
      T sum = 0;
      for (std::int64_t i = 0; i < in; ++i)
        sum += operand(x[r * in + i], call.options) * operand(weight[o * in + i], call.options);
      y[r * out + o] = sum;
    }
  }
}

// dy [rows, out], weight [out, in] -> dx [rows, in]
template <class T>
void linear_grad_input(const Call& call) {
  const T* dy = call.inputs[0].as<T>();
  const T* weight = call.inputs[1].as<T>();
  T* dx = call.outputs[0].as<T>();
  const std::int64_t rows = graph::rows(call.inputs[0].shape);
  const std::int64_t out = call.inputs[1].shape[0], in = call.inputs[1].shape[1];
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < in; ++i) {
      T sum = 0;
      for (std::int64_t o = 0; o < out; ++o)
        sum += operand(dy[r * out + o], call.options) * operand(weight[o * in + i], call.options);
      dx[r * in + i] = sum;
    }
  }
}

// dy [rows, out], x [rows, in] -> dweight [out, in]
template <class T>
void linear_grad_weight(const Call& call) {
  const T* dy = call.inputs[0].as<T>();
  const T* x = call.inputs[1].as<T>();
  T* dweight = call.outputs[0].as<T>();
  const std::int64_t rows = graph::rows(call.inputs[0].shape);
  const std::int64_t out = call.inputs[0].shape.back(), in = call.inputs[1].shape.back();
  for (std::int64_t o = 0; o < out; ++o) {
    for (std::int64_t i = 0; i < in; ++i) {
      T sum = 0;
      for (std::int64_t r = 0; r < rows; ++r)
        sum += operand(dy[r * out + o], call.options) * operand(x[r * in + i], call.options);
      dweight[o * in + i] = sum;
    }
  }
}

}  // namespace

void register_linear_references() {
  Reference("linear", linear<float>, linear<double>);
  Reference("linear_grad_input", linear_grad_input<float>, linear_grad_input<double>);
  Reference("linear_grad_weight", linear_grad_weight<float>, linear_grad_weight<double>);
}

}  // namespace headway::host
