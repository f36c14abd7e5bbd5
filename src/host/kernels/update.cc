#include "graph/operators/update.h"

#include <cmath>
#include <memory>

#include "host/kernels/families.h"
#include "host/kernels/pieces.h"
#include "host/kernels/vectors.h"
#include "simd/lanes.h"

namespace headway::host {
namespace {

float scalar(const Call& call, std::size_t input) { return *call.inputs[input].as<float>(); }

// One pass; every output may take its input's place.
class AdamWKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const auto& op = call.op<graph::AdamW>();
    const float *p = call.inputs[0].as<float>(), *g = call.inputs[1].as<float>();
    const float *m = call.inputs[2].as<float>(), *v = call.inputs[3].as<float>();
    float *new_p = call.outputs[0].as<float>(), *new_m = call.outputs[1].as<float>(),
          *new_v = call.outputs[2].as<float>();
    const double lr = scalar(call, 4), weight_decay = scalar(call, 5), step = scalar(call, 6);
    const auto beta1 = static_cast<float>(op.beta1), beta2 = static_cast<float>(op.beta2);
    const auto rest1 = static_cast<float>(1 - op.beta1), rest2 = static_cast<float>(1 - op.beta2);
    const auto eps = static_cast<float>(op.eps);
    const auto keep = static_cast<float>(1 - lr * weight_decay);
    const auto rate = static_cast<float>(lr / (1 - std::pow(op.beta1, step)));
    const auto root = static_cast<float>(1 / (1 - std::pow(op.beta2, step)));
    for_lanes(call.pool, call.inputs[0].count(), [&](std::int64_t i, auto at) {
      const F32 gradient = at.load(g + i);
      const F32 first = beta1 * at.load(m + i) + rest1 * gradient;
      const F32 second = beta2 * at.load(v + i) + rest2 * gradient * gradient;
      const F32 parameter = keep * at.load(p + i) - rate * first / (square_root(second * root) + eps);
      at.store(new_m + i, first);
      at.store(new_v + i, second);
      at.store(new_p + i, parameter);
    });
  }
  int may_overwrite(int output) const override { return output == 0 ? 0 : output + 1; }
};

class NesterovKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const float *g = call.inputs[0].as<float>(), *buffer = call.inputs[1].as<float>();
    const float momentum = scalar(call, 2);
    float *update = call.outputs[0].as<float>(), *new_buffer = call.outputs[1].as<float>();
    for_lanes(call.pool, call.inputs[0].count(), [&](std::int64_t i, auto at) {
      const F32 gradient = at.load(g + i), old = at.load(buffer + i);
      const F32 moved = old + (1 - momentum) * (gradient - old);
      at.store(update + i, gradient + momentum * (moved - gradient));
      at.store(new_buffer + i, moved);
    });
  }
  int may_overwrite(int output) const override { return output; }
};

class CautiousUpdateKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const float *p = call.inputs[0].as<float>(), *u = call.inputs[1].as<float>();
    float* new_p = call.outputs[0].as<float>();
    const float rate = static_cast<float>(call.op<graph::CautiousUpdate>().lr_scale) * scalar(call, 2);
    const float decay = rate * scalar(call, 3);
    for_lanes(call.pool, call.inputs[0].count(), [&](std::int64_t i, auto at) {
      const F32 parameter = at.load(p + i), update = at.load(u + i);
      const F32 decayed = update * parameter >= 0.0f ? decay * parameter : splat(0);
      at.store(new_p + i, parameter - rate * update - decayed);
    });
  }
  int may_overwrite(int) const override { return 0; }
};

class GlobalNormKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    auto* sums = static_cast<float*>(call.workspace);
    double squares = 0;
    for (const Tensor& g : call.inputs) {
      const float* x = g.as<float>();
      sum_pieces(call.pool, g.count(), sums, [&](std::int64_t begin, std::int64_t end) {
        return dot(x + begin, x + begin, end - begin);
      });
      squares += total(sums, piece_count(g.count()));
    }
    *call.outputs[0].as<float>() = static_cast<float>(std::sqrt(squares));
  }
  std::int64_t workspace(std::span<const graph::Operator* const>, std::span<const graph::TensorType> inputs,
                         std::span<const graph::TensorType>, int) const override {
    std::int64_t most = 0;
    for (const graph::TensorType& type : inputs) most = std::max(most, piece_count(elements(type.shape)));
    return most * static_cast<std::int64_t>(sizeof(float));
  }
};

class ClipByNormKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const auto max_norm = static_cast<float>(call.op<graph::ClipByNorm>().max_norm);
    const float norm = scalar(call, 1), scale = norm > max_norm ? max_norm / norm : 1.0f;
    const float* g = call.inputs[0].as<float>();
    float* clipped = call.outputs[0].as<float>();
    for_lanes(call.pool, call.inputs[0].count(),
              [&](std::int64_t i, auto at) { at.store(clipped + i, at.load(g + i) * scale); });
  }
  int may_overwrite(int) const override { return 0; }
};

}  // namespace

void add_update_kernels(Kernels& kernels) {
  kernels.add("adamw", std::make_shared<AdamWKernel>());
  kernels.add("nesterov_momentum", std::make_shared<NesterovKernel>());
  kernels.add("cautious_update", std::make_shared<CautiousUpdateKernel>());
  kernels.add("global_norm", std::make_shared<GlobalNormKernel>());
  kernels.add("clip_by_norm", std::make_shared<ClipByNormKernel>());
}

}  // namespace headway::host
