#include <memory>

#include "graph/operators/linear.h"
#include "host/kernels/families.h"
#include "host/kernels/vectors.h"
#include "simd/gemm.h"

namespace headway::host {
namespace {

// The product that an operator is, without its addresses.
Gemm linear(const Shape& x, const Shape& weight) {
  Gemm g;
  g.m = graph::rows(x);
  g.n = weight[0];
  g.k = weight[1];
  g.b_transposed = true;
  return g;
}
Gemm linear_grad_input(const Shape& dy, const Shape& weight) {
  Gemm g;
  g.m = graph::rows(dy);
  g.n = weight[1];
  g.k = weight[0];
  return g;
}
Gemm linear_grad_weight(const Shape& dy, const Shape& x) {
  Gemm g;
  g.m = dy.back();
  g.n = x.back();
  g.k = graph::rows(dy);
  g.a_transposed = true;
  return g;
}

template <Gemm (*product)(const Shape&, const Shape&)>
class Product : public Kernel {
 public:
  void run(const Call& call) const override {
    Gemm g = product(call.inputs[0].shape, call.inputs[1].shape);
    g.a = call.inputs[0].as<float>();
    g.lda = call.inputs[0].shape.back();
    g.b = call.inputs[1].as<float>();
    g.ldb = call.inputs[1].shape.back();
    g.c = call.outputs[0].as<float>();
    g.ldc = call.outputs[0].shape.back();
    g.accumulate = call.accumulate[0];
    g.round_to_bf16 = call.options.bf16_products;
    gemm(g, call.pool, call.workspace);
  }
  std::int64_t workspace(std::span<const graph::Operator* const>, std::span<const graph::TensorType> inputs,
                         std::span<const graph::TensorType>, int threads) const override {
    const Gemm g = product(inputs[0].shape, inputs[1].shape);
    return gemm_workspace(g.m, g.n, g.k, threads);
  }
  bool can_accumulate(int) const override { return true; }
};

}  // namespace

void add_linear_kernels(Kernels& kernels) {
  kernels.add("linear", std::make_shared<Product<linear>>());
  kernels.add("linear_grad_input", std::make_shared<Product<linear_grad_input>>());
  kernels.add("linear_grad_weight", std::make_shared<Product<linear_grad_weight>>());
}

}  // namespace headway::host
