#include "graph/operators/linear.h"

#include <memory>

#include "host/kernels/activation_functions.h"
#include "host/kernels/families.h"
#include "host/kernels/gemm.h"
#include "host/kernels/lanes.h"

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
    finish(call, g);
    gemm(g, call.pool, call.workspace);
  }
  // What regions do with finished rows.
  virtual void finish(const Call&, Gemm&) const {}
  std::int64_t workspace(std::span<const graph::Operator* const>, std::span<const graph::TensorType> inputs,
                         std::span<const graph::TensorType>, int threads) const override {
    const Gemm g = product(inputs[0].shape, inputs[1].shape);
    return gemm_workspace(g.m, g.n, g.k, threads);
  }
  bool can_accumulate(int) const override { return true; }
};

// x weight^T and its activation: the rows are activated while they are still in the cache. Inputs x, weight;
// outputs the product and y (the gradient needs both).
template <graph::ActivationKind kind>
class ProductActivation : public Product<linear> {
 public:
  void finish(const Call& call, Gemm& g) const override {
    float* y = call.outputs[1].as<float>();
    g.finished = [y, h = g.c, n = g.n](std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) {
      for (std::int64_t r = r0; r < r1; ++r) {
        for_lanes(r * n + c0, r * n + c1,
                  [&](std::int64_t i, auto at) { at.store(y + i, activated<kind>(at.load(h + i))); });
      }
    };
  }
  bool can_accumulate(int) const override { return false; }
};

// dy weight, times the activation's slope at h. Inputs dy, weight, h; output dh.
template <graph::ActivationKind kind>
class ProductActivationGrad : public Product<linear_grad_input> {
 public:
  void finish(const Call& call, Gemm& g) const override {
    const float* h = call.inputs[2].as<float>();
    g.finished = [h, dh = g.c, n = g.n](std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) {
      for (std::int64_t r = r0; r < r1; ++r) {
        for_lanes(r * n + c0, r * n + c1, [&](std::int64_t i, auto at) {
          at.store(dh + i, at.load(dh + i) * activation_slope<kind>(at.load(h + i)));
        });
      }
    };
  }
  bool can_accumulate(int) const override { return false; }
};

template <graph::ActivationKind kind>
void add_with_activation(Kernels& kernels) {
  const std::string name(graph::name_of(kind));
  kernels.add(Pattern{{{"linear", {"x", "w"}, {"h"}}, {name, {"h"}, {"y"}}}, {"x", "w"}, {"h", "y"}},
              std::make_shared<ProductActivation<kind>>());
  kernels.add(Pattern{{{"linear_grad_input", {"dy", "w"}, {"dact"}}, {name + "_grad", {"h", "dact"}, {"dh"}}},
                      {"dy", "w", "h"},
                      {"dh"}},
              std::make_shared<ProductActivationGrad<kind>>());
}

}  // namespace

void add_linear_kernels(Kernels& kernels) {
  add_with_activation<graph::ActivationKind::relu>(kernels);
  add_with_activation<graph::ActivationKind::relu2>(kernels);
  add_with_activation<graph::ActivationKind::gelu>(kernels);
  add_with_activation<graph::ActivationKind::silu>(kernels);
  kernels.add("linear", std::make_shared<Product<linear>>());
  kernels.add("linear_grad_input", std::make_shared<Product<linear_grad_input>>());
  kernels.add("linear_grad_weight", std::make_shared<Product<linear_grad_weight>>());
}

}  // namespace headway::host
