// A new operator outside src/: a ReLU squared that lets a little of the negative side through,
//   y = x^2 for x > 0, -leak x^2 otherwise,
// with its gradient, its host kernels, and the name recipes call it by: activation = "leaky_relu2",
// [model.options] leak.
#include "leaky_relu2.h"
#include "graph/graph.h"
#include "host/kernel.h"
#include "model/builder.h"

namespace headway::examples {

std::vector<graph::TensorType> LeakyRelu2::infer(std::span<const graph::TensorType> in) const {
  graph::require(in.size() == 1, *this, "takes one operand", in);
  return {in[0]};
}

std::vector<graph::Value> LeakyRelu2::gradient(const graph::GradientRequest& r) const {
  return {r.graph.apply1(std::make_shared<LeakyRelu2Grad>(leak), {r.inputs[0], r.output_gradients[0]})};
}

std::vector<graph::TensorType> LeakyRelu2Grad::infer(std::span<const graph::TensorType> in) const {
  graph::require(in.size() == 2 && in[0] == in[1], *this, "takes x and dy of one shape", in);
  return {in[0]};
}

namespace {

// One thread and one loop are enough to try an idea; src/host/kernels shows how to make it fast.
template <class T>
void leaky_relu2(const host::Call& call) {
  const T leak = static_cast<T>(call.op<LeakyRelu2>().leak);
  const T* x = call.inputs[0].as<T>();
  T* y = call.outputs[0].as<T>();
  for (std::int64_t i = 0; i < call.inputs[0].count(); ++i) y[i] = (x[i] > 0 ? 1 : -leak) * x[i] * x[i];
}

template <class T>
void leaky_relu2_grad(const host::Call& call) {
  const T leak = static_cast<T>(call.op<LeakyRelu2Grad>().leak);
  const T* x = call.inputs[0].as<T>();
  const T* dy = call.inputs[1].as<T>();
  T* dx = call.outputs[0].as<T>();
  for (std::int64_t i = 0; i < call.inputs[0].count(); ++i) dx[i] = (x[i] > 0 ? 2 : -2 * leak) * x[i] * dy[i];
}

const host::Reference forward{"leaky_relu2", leaky_relu2<float>, leaky_relu2<double>};
const host::Reference backward{"leaky_relu2_grad", leaky_relu2_grad<float>, leaky_relu2_grad<double>};

const model::RegisterActivation by_name{
    "leaky_relu2", [](model::Builder& b, graph::Value x) {
      return b.graph.apply1(std::make_shared<LeakyRelu2>(b.config.option("leak", 0.1)), {x});
    }};

}  // namespace
}  // namespace headway::examples
