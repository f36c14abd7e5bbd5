#include "graph/operators/elementwise.h"

#include <cmath>
#include <cstring>
#include <memory>

#include "graph/operators/linear.h"
#include "host/kernels/activation_functions.h"
#include "host/kernels/families.h"
#include "host/kernels/pieces.h"
#include "host/kernels/vectors.h"
#include "simd/lanes.h"
#include "simd/simd_math.h"

namespace headway::host {
namespace {

// Kernels whose outputs may take the memory of an input: `overwrites` per output.
template <void (*function)(const Call&), int... overwrites>
class Elementwise : public Kernel {
 public:
  void run(const Call& call) const override { function(call); }
  int may_overwrite(int output) const override {
    constexpr int inputs[] = {overwrites..., -1};
    return output < static_cast<int>(sizeof...(overwrites)) ? inputs[output] : -1;
  }
};

void add(const Call& call) {
  float* y = call.outputs[0].as<float>();
  const std::span<const Tensor> x = call.inputs;
  for_lanes(call.pool, call.outputs[0].count(), [&](std::int64_t i, auto at) {
    F32 sum = at.load(x[0].as<float>() + i);
    for (std::size_t k = 1; k < x.size(); ++k) sum += at.load(x[k].as<float>() + i);
    at.store(y + i, sum);
  });
}

void multiply(const Call& call) {
  const float *a = call.inputs[0].as<float>(), *b = call.inputs[1].as<float>();
  float* y = call.outputs[0].as<float>();
  for_lanes(call.pool, call.outputs[0].count(),
            [&](std::int64_t i, auto at) { at.store(y + i, at.load(a + i) * at.load(b + i)); });
}

template <graph::ActivationKind kind>
void activation(const Call& call) {
  const float* x = call.inputs[0].as<float>();
  float* y = call.outputs[0].as<float>();
  for_lanes(call.pool, call.outputs[0].count(),
            [&](std::int64_t i, auto at) { at.store(y + i, activated<kind>(at.load(x + i))); });
}

template <graph::ActivationKind kind>
void activation_grad(const Call& call) {
  const float *x = call.inputs[0].as<float>(), *dy = call.inputs[1].as<float>();
  float* dx = call.outputs[0].as<float>();
  for_lanes(call.pool, call.outputs[0].count(), [&](std::int64_t i, auto at) {
    at.store(dx + i, at.load(dy + i) * activation_slope<kind>(at.load(x + i)));
  });
}

void softcap(const Call& call) {
  const auto cap = static_cast<float>(call.op<graph::Softcap>().cap);
  const float* x = call.inputs[0].as<float>();
  float* y = call.outputs[0].as<float>();
  for_lanes(call.pool, call.outputs[0].count(),
            [&](std::int64_t i, auto at) { at.store(y + i, cap * tanh(at.load(x + i) * (1 / cap))); });
}

void softcap_grad(const Call& call) {
  const auto inverse = static_cast<float>(1 / call.op<graph::SoftcapGrad>().cap);
  const float *y = call.inputs[0].as<float>(), *dy = call.inputs[1].as<float>();
  float* dx = call.outputs[0].as<float>();
  for_lanes(call.pool, call.outputs[0].count(), [&](std::int64_t i, auto at) {
    const F32 t = at.load(y + i) * inverse;
    at.store(dx + i, at.load(dy + i) * (1.0f - t * t));
  });
}

void residual_mix(const Call& call) {
  const std::int64_t layer = call.op<graph::ResidualMix>().layer;
  const float *x = call.inputs[0].as<float>(), *x0 = call.inputs[1].as<float>();
  const float a = call.inputs[2].as<float>()[layer], b = call.inputs[3].as<float>()[layer];
  float* y = call.outputs[0].as<float>();
  for_lanes(call.pool, call.outputs[0].count(),
            [&](std::int64_t i, auto at) { at.store(y + i, a * at.load(x + i) + b * at.load(x0 + i)); });
}

// Workspace: the sums of dy x, then of dy x0, piece by piece.
class ResidualMixGradKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const std::int64_t layer = call.op<graph::ResidualMixGrad>().layer;
    const float *x = call.inputs[0].as<float>(), *x0 = call.inputs[1].as<float>();
    const float a = call.inputs[2].as<float>()[layer], b = call.inputs[3].as<float>()[layer];
    const float* dy = call.inputs[4].as<float>();
    float *dx = call.outputs[0].as<float>(), *dx0 = call.outputs[1].as<float>();
    const std::int64_t count = call.inputs[0].count(), pieces = piece_count(count);
    auto* sums = static_cast<float*>(call.workspace);
    sum_pieces(call.pool, count, sums, [&](std::int64_t begin, std::int64_t end) {
      F32 along_x{}, along_x0{};
      for_lanes(begin, end, [&](std::int64_t i, auto at) {
        const F32 d = at.load(dy + i);
        along_x += d * at.load(x + i);
        along_x0 += d * at.load(x0 + i);
        at.store(dx + i, a * d);
        at.store(dx0 + i, b * d);
      });
      sums[pieces + begin / kPiece] = sum(along_x0);
      return sum(along_x);
    });
    for (std::size_t k : {2, 3}) {
      float* d = call.outputs[k].as<float>();
      if (!call.accumulate[k]) std::fill_n(d, call.outputs[k].count(), 0.0f);
      d[layer] += static_cast<float>(total(k == 2 ? sums : sums + pieces, pieces));
    }
  }
  std::int64_t workspace(std::span<const graph::Operator* const>, std::span<const graph::TensorType> inputs,
                         std::span<const graph::TensorType>, int) const override {
    return 2 * piece_count(elements(inputs[0].shape)) * static_cast<std::int64_t>(sizeof(float));
  }
  bool can_accumulate(int output) const override { return output >= 2; }
  int may_overwrite(int output) const override { return output == 0 ? 4 : -1; }
};

void slice_columns(const Call& call) {
  const std::int64_t begin = call.op<graph::SliceColumns>().begin;
  const float* x = call.inputs[0].as<float>();
  float* y = call.outputs[0].as<float>();
  const std::int64_t n = call.inputs[0].shape.back(), width = call.outputs[0].shape.back();
  for_rows(call.pool, graph::rows(call.inputs[0].shape), width, [&](std::int64_t r) {
    std::memcpy(y + r * width, x + r * n + begin, static_cast<std::size_t>(width) * sizeof(float));
  });
}

void pad_columns(const Call& call) {
  const std::int64_t begin = call.op<graph::PadColumns>().begin;
  const float* x = call.inputs[0].as<float>();
  float* y = call.outputs[0].as<float>();
  const std::int64_t n = call.inputs[0].shape.back(), width = call.outputs[0].shape.back();
  for_rows(call.pool, graph::rows(call.inputs[0].shape), width, [&](std::int64_t r) {
    float* row = y + r * width;
    std::fill_n(row, begin, 0.0f);
    std::memcpy(row + begin, x + r * n, static_cast<std::size_t>(n) * sizeof(float));
    std::fill_n(row + begin + n, width - begin - n, 0.0f);
  });
}

float gate_of(float g) { return 1 / (1 + std::exp(-g)); }

void value_gate(const Call& call) {
  const float *v = call.inputs[0].as<float>(), *e = call.inputs[1].as<float>(),
              *g = call.inputs[2].as<float>();
  float* y = call.outputs[0].as<float>();
  const std::int64_t heads = call.inputs[2].count(),
                     d = call.inputs[0].count() / std::max<std::int64_t>(heads, 1);
  for_rows(call.pool, heads, d, [&](std::int64_t head) {
    const float gate = 2 * gate_of(g[head]);
    for_lanes(head * d, (head + 1) * d,
              [&](std::int64_t i, auto at) { at.store(y + i, at.load(v + i) + gate * at.load(e + i)); });
  });
}

void value_gate_grad(const Call& call) {
  const float *e = call.inputs[0].as<float>(), *g = call.inputs[1].as<float>(),
              *dy = call.inputs[2].as<float>();
  float *de = call.outputs[0].as<float>(), *dg = call.outputs[1].as<float>();
  const std::int64_t heads = call.inputs[1].count(),
                     d = call.inputs[0].count() / std::max<std::int64_t>(heads, 1);
  for_rows(call.pool, heads, d, [&](std::int64_t head) {
    const float gate = gate_of(g[head]);
    F32 along{};
    for_lanes(head * d, (head + 1) * d, [&](std::int64_t i, auto at) {
      const F32 gradient = at.load(dy + i);
      along += gradient * at.load(e + i);
      at.store(de + i, 2 * gate * gradient);
    });
    dg[head] = 2 * gate * (1 - gate) * sum(along);
  });
}

template <graph::ActivationKind kind>
void add_activation(Kernels& kernels) {
  const std::string name(graph::name_of(kind));
  kernels.add(name, std::make_shared<Elementwise<activation<kind>, 0>>());
  kernels.add(name + "_grad", std::make_shared<Elementwise<activation_grad<kind>, 1>>());
}

}  // namespace

void add_elementwise_kernels(Kernels& kernels) {
  kernels.add("add", std::make_shared<Elementwise<add, 0>>());
  kernels.add("multiply", std::make_shared<Elementwise<multiply, 0>>());
  add_activation<graph::ActivationKind::relu>(kernels);
  add_activation<graph::ActivationKind::relu2>(kernels);
  add_activation<graph::ActivationKind::gelu>(kernels);
  add_activation<graph::ActivationKind::silu>(kernels);
  kernels.add("softcap", std::make_shared<Elementwise<softcap, 0>>());
  kernels.add("softcap_grad", std::make_shared<Elementwise<softcap_grad, 1>>());
  kernels.add("residual_mix", std::make_shared<Elementwise<residual_mix, 0>>());
  kernels.add("residual_mix_grad", std::make_shared<ResidualMixGradKernel>());
  kernels.add("slice_columns", std::make_shared<Elementwise<slice_columns>>());
  kernels.add("pad_columns", std::make_shared<Elementwise<pad_columns>>());
  kernels.add("value_gate", std::make_shared<Elementwise<value_gate, 0>>());
  kernels.add("value_gate_grad", std::make_shared<Elementwise<value_gate_grad, 2>>());
}

}  // namespace headway::host
