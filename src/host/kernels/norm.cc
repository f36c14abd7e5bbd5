// RMS norm and rotary positions, alone and in the pairs in which queries and keys pass through them.
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "graph/operators/sequence.h"
#include "host/kernels/families.h"
#include "host/kernels/vectors.h"
#include "simd/lanes.h"

namespace headway::host {
namespace {

float norm_scale(const float* x, std::int64_t size, double eps) {
  return 1 / std::sqrt(dot(x, x, size) / static_cast<float>(size) + static_cast<float>(eps));
}

class RmsNormKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const auto& op = call.op<graph::RmsNorm>();
    const float* x = call.inputs[0].as<float>();
    float* y = call.outputs[0].as<float>();
    for_rows(call.pool, call.inputs[0].count() / op.size, op.size, [&](std::int64_t run) {
      const std::int64_t begin = run * op.size;
      const float scale = norm_scale(x + begin, op.size, op.eps);
      for_lanes(begin, begin + op.size,
                [&](std::int64_t i, auto at) { at.store(y + i, scale * at.load(x + i)); });
    });
  }
  int may_overwrite(int) const override { return 0; }
};

// dx = scale dy - along x: the two factors.
struct NormGradient {
  float scale, along;
  NormGradient(const float* x, const float* dy, std::int64_t size, double eps)
      : scale(norm_scale(x, size, eps)) {
    along = scale * scale * scale * dot(x, dy, size) / static_cast<float>(size);
  }
};

// Inputs x, dy and, in the region with add, what dx is added to.
class RmsNormGradKernel : public Kernel {
 public:
  explicit RmsNormGradKernel(bool adds) : adds_(adds) {}
  void run(const Call& call) const override {
    const auto& op = call.op<graph::RmsNormGrad>();
    const float *x = call.inputs[0].as<float>(), *dy = call.inputs[1].as<float>();
    const float* other = adds_ ? call.inputs[2].as<float>() : nullptr;
    float* dx = call.outputs[0].as<float>();
    for_rows(call.pool, call.inputs[0].count() / op.size, op.size, [&](std::int64_t run) {
      const std::int64_t begin = run * op.size;
      const NormGradient g(x + begin, dy + begin, op.size, op.eps);
      if (other) {
        for_lanes(begin, begin + op.size, [&](std::int64_t i, auto at) {
          at.store(dx + i, at.load(other + i) + (g.scale * at.load(dy + i) - g.along * at.load(x + i)));
        });
      } else {
        for_lanes(begin, begin + op.size, [&](std::int64_t i, auto at) {
          at.store(dx + i, g.scale * at.load(dy + i) - g.along * at.load(x + i));
        });
      }
    });
  }
  int may_overwrite(int) const override { return adds_ ? 2 : 1; }

 private:
  bool adds_;
};

// Cosines, then sines of all positions: [time][2][head_dim / 2].
using Turns = std::vector<float>;

// Made on first use and kept: a program trains with one or two sequence lengths.
std::shared_ptr<const Turns> turns(std::int64_t time, std::int64_t head_dim, double base) {
  static std::mutex mutex;
  static std::map<std::tuple<std::int64_t, std::int64_t, double>, std::shared_ptr<const Turns>> made;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Turns>& found = made[{time, head_dim, base}];
  if (found) return found;
  const std::int64_t half = head_dim / 2;
  Turns table(static_cast<std::size_t>(time * head_dim));
  for (std::int64_t i = 0; i < half; ++i) {
    const double frequency = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    for (std::int64_t t = 0; t < time; ++t) {
      const double angle = static_cast<double>(t) * frequency;
      table[static_cast<std::size_t>(t * head_dim + i)] = static_cast<float>(std::cos(angle));
      table[static_cast<std::size_t>(t * head_dim + half + i)] = static_cast<float>(std::sin(angle));
    }
  }
  found = std::make_shared<const Turns>(std::move(table));
  return found;
}

// Turns the heads of one position.
class Turner {
 public:
  Turner(const graph::Rotary& op, const Shape& shape)
      : table_(turns(shape[1], op.head_dim, op.base)),
        time_(shape[1]),
        head_dim_(op.head_dim),
        width_(shape[2]),
        direction_(op.inverse ? -1.0f : 1.0f) {}

  // Row r of x [batch * time, width] to the same row of y, which may be x.
  void row(std::int64_t r, const float* x, float* y) const {
    const float* table = table_->data() + r % time_ * head_dim_;
    const std::int64_t half = head_dim_ / 2;
    for (std::int64_t head = r * width_; head < (r + 1) * width_; head += head_dim_) {
      for_lanes(0, half, [&](std::int64_t i, auto at) {
        const F32 a = at.load(x + head + i), b = at.load(x + head + half + i);
        const F32 c = at.load(table + i), s = at.load(table + half + i) * direction_;
        at.store(y + head + i, a * c + b * s);
        at.store(y + head + half + i, b * c - a * s);
      });
    }
  }

 private:
  std::shared_ptr<const Turns> table_;
  std::int64_t time_, head_dim_, width_;
  float direction_;
};

class RotaryKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const Shape& shape = call.inputs[0].shape;
    const Turner turner(call.op<graph::Rotary>(), shape);
    for_rows(call.pool, shape[0] * shape[1], shape[2],
             [&](std::int64_t r) { turner.row(r, call.inputs[0].as<float>(), call.outputs[0].as<float>()); });
  }
  int may_overwrite(int) const override { return 0; }
};

// rotary, then rms_norm over runs that heads consist of. Both results are wanted: the gradient needs the
// first.
class RotaryNormKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const auto& norm = call.op<graph::RmsNorm>(1);
    const float* x = call.inputs[0].as<float>();
    float *turned = call.outputs[0].as<float>(), *y = call.outputs[1].as<float>();
    // Runs may be shorter or longer than heads: rows hold whole numbers of both.
    const Shape& shape = call.inputs[0].shape;
    const Turner turner(call.op<graph::Rotary>(0), shape);
    for_rows(call.pool, shape[0] * shape[1], shape[2], [&](std::int64_t r) {
      const std::int64_t row = r * shape[2];
      turner.row(r, x, turned);
      for (std::int64_t run = row; run < row + shape[2]; run += norm.size) {
        const float scale = norm_scale(turned + run, norm.size, norm.eps);
        for_lanes(run, run + norm.size,
                  [&](std::int64_t i, auto at) { at.store(y + i, scale * at.load(turned + i)); });
      }
    });
  }
  int may_overwrite(int output) const override { return output == 0 ? 0 : -1; }
};

// rms_norm_grad, then rotary (the other way round: the gradient of the pair above). Inputs x of the norm, dy.
class NormGradRotaryKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const auto& norm = call.op<graph::RmsNormGrad>(0);
    const float *x = call.inputs[0].as<float>(), *dy = call.inputs[1].as<float>();
    float* dx = call.outputs[0].as<float>();
    const Shape& shape = call.inputs[0].shape;
    const Turner turner(call.op<graph::Rotary>(1), shape);
    for_rows(call.pool, shape[0] * shape[1], shape[2], [&](std::int64_t r) {
      const std::int64_t row = r * shape[2];
      for (std::int64_t run = row; run < row + shape[2]; run += norm.size) {
        const NormGradient g(x + run, dy + run, norm.size, norm.eps);
        for_lanes(run, run + norm.size, [&](std::int64_t i, auto at) {
          at.store(dx + i, g.scale * at.load(dy + i) - g.along * at.load(x + i));
        });
      }
      turner.row(r, dx, dx);
    });
  }
  int may_overwrite(int) const override { return 1; }
};

}  // namespace

void add_norm_kernels(Kernels& kernels) {
  kernels.add("rms_norm", std::make_shared<RmsNormKernel>());
  kernels.add("rms_norm_grad", std::make_shared<RmsNormGradKernel>(false));
  kernels.add("rotary", std::make_shared<RotaryKernel>());
  kernels.add(
      Pattern{{{"rotary", {"x"}, {"turned"}}, {"rms_norm", {"turned"}, {"y"}}}, {"x"}, {"turned", "y"}},
      std::make_shared<RotaryNormKernel>());
  kernels.add(Pattern{{{"rms_norm_grad", {"x", "dy"}, {"dturned"}}, {"rotary", {"dturned"}, {"dx"}}},
                      {"x", "dy"},
                      {"dx"}},
              std::make_shared<NormGradRotaryKernel>());
  kernels.add(Pattern{{{"rms_norm_grad", {"x", "dy"}, {"through"}}, {"add", {"other", "through"}, {"dx"}}},
                      {"x", "dy", "other"},
                      {"dx"}},
              std::make_shared<RmsNormGradKernel>(true));
}

}  // namespace headway::host
