#include "graph/operators/sequence.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "host/kernels/families.h"
#include "host/kernels/vectors.h"
#include "simd/lanes.h"

namespace headway::host {
namespace {

void check_tokens(const Tensor& tokens, std::int64_t vocab, const char* op) {
  for (std::int64_t r = 0; r < tokens.count(); ++r) {
    const std::int32_t token = tokens.as<std::int32_t>()[r];
    if (token < 0 || token >= vocab) {
      throw InputError(
          op, "token " + std::to_string(token) + " is outside the vocabulary of " + std::to_string(vocab));
    }
  }
}

class EmbeddingKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const auto* tokens = call.inputs[0].as<std::int32_t>();
    const float* table = call.inputs[1].as<float>();
    float* y = call.outputs[0].as<float>();
    const std::int64_t n = call.inputs[1].shape[1];
    check_tokens(call.inputs[0], call.inputs[1].shape[0], "[embedding]");
    for_rows(call.pool, call.inputs[0].count(), n, [&](std::int64_t r) {
      std::memcpy(y + r * n, table + tokens[r] * n, static_cast<std::size_t>(n) * sizeof(float));
    });
  }
};

// Divided by columns, so that every row of the table is added up in the order of the tokens.
class EmbeddingGradKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const auto* tokens = call.inputs[0].as<std::int32_t>();
    const float* dy = call.inputs[1].as<float>();
    float* dtable = call.outputs[0].as<float>();
    const std::int64_t vocab = call.outputs[0].shape[0], n = call.outputs[0].shape[1];
    check_tokens(call.inputs[0], vocab, "[embedding_grad]");
    const bool accumulate = call.accumulate[0];
    call.pool.for_range(
        n,
        [&](std::int64_t begin, std::int64_t end, int) {
          if (!accumulate)
            for (std::int64_t v = 0; v < vocab; ++v)
              std::fill(dtable + v * n + begin, dtable + v * n + end, 0.0f);
          for (std::int64_t r = 0; r < call.inputs[0].count(); ++r) {
            float* to = dtable + tokens[r] * n;
            const float* from = dy + r * n;
            for_lanes(begin, end, [&](std::int64_t i, auto at) {
              at.store(to + i, at.load(to + i) + at.load(from + i));
            });
          }
        },
        kLanes);
  }
  bool can_accumulate(int) const override { return true; }
};

// Weights [n, taps] as [taps, n] in the workspace.
void transpose_taps(const Tensor& weight, float* to) {
  const std::int64_t n = weight.shape[0], taps = weight.shape[1];
  for (std::int64_t c = 0; c < n; ++c)
    for (std::int64_t k = 0; k < taps; ++k) to[k * n + c] = weight.as<float>()[c * taps + k];
}

class CausalConvolutionKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const float* x = call.inputs[0].as<float>();
    float* y = call.outputs[0].as<float>();
    const Shape& shape = call.inputs[0].shape;
    const std::int64_t time = shape[1], n = shape[2], taps = call.inputs[1].shape[1];
    auto* weight = static_cast<float*>(call.workspace);
    transpose_taps(call.inputs[1], weight);
    for_rows(call.pool, shape[0] * time, n, [&](std::int64_t r) {
      const std::int64_t t = r % time;
      for_lanes(0, n, [&](std::int64_t c, auto at) {
        F32 total{};
        for (std::int64_t k = std::max<std::int64_t>(0, taps - 1 - t); k < taps; ++k)
          total += at.load(weight + k * n + c) * at.load(x + (r - (taps - 1) + k) * n + c);
        at.store(y + r * n + c, total);
      });
    });
  }
  std::int64_t workspace(std::span<const graph::Operator* const>, std::span<const graph::TensorType> inputs,
                         std::span<const graph::TensorType>, int) const override {
    return elements(inputs[1].shape) * static_cast<std::int64_t>(sizeof(float));
  }
};

// Divided by channels. Workspace: the weight and its gradient, both [taps, n].
class CausalConvolutionGradKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const float *x = call.inputs[0].as<float>(), *dy = call.inputs[2].as<float>();
    float *dx = call.outputs[0].as<float>(), *dweight = call.outputs[1].as<float>();
    const Shape& shape = call.inputs[0].shape;
    const std::int64_t time = shape[1], n = shape[2], taps = call.inputs[1].shape[1], rows = shape[0] * time;
    auto* weight = static_cast<float*>(call.workspace);
    float* total = weight + n * taps;
    transpose_taps(call.inputs[1], weight);
    std::fill_n(total, n * taps, 0.0f);
    call.pool.for_range(
        n,
        [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t r = 0; r < rows; ++r) {
            const std::int64_t t = r % time;
            for_lanes(begin, end, [&](std::int64_t c, auto at) {
              F32 back{};
              const F32 d = at.load(dy + r * n + c);
              for (std::int64_t k = 0; k < taps; ++k) {
                const std::int64_t lag = taps - 1 - k;
                if (t + lag < time) back += at.load(weight + k * n + c) * at.load(dy + (r + lag) * n + c);
                if (t >= lag) {
                  float* sum_of = total + k * n + c;
                  at.store(sum_of, at.load(sum_of) + d * at.load(x + (r - lag) * n + c));
                }
              }
              at.store(dx + r * n + c, back);
            });
          }
        },
        kLanes);
    for (std::int64_t c = 0; c < n; ++c) {
      for (std::int64_t k = 0; k < taps; ++k) {
        float& to = dweight[c * taps + k];
        to = (call.accumulate[1] ? to : 0) + total[k * n + c];
      }
    }
  }
  std::int64_t workspace(std::span<const graph::Operator* const>, std::span<const graph::TensorType> inputs,
                         std::span<const graph::TensorType>, int) const override {
    return 2 * elements(inputs[1].shape) * static_cast<std::int64_t>(sizeof(float));
  }
  bool can_accumulate(int output) const override { return output == 1; }
};

}  // namespace

void add_sequence_kernels(Kernels& kernels) {
  kernels.add("embedding", std::make_shared<EmbeddingKernel>());
  kernels.add("embedding_grad", std::make_shared<EmbeddingGradKernel>());
  kernels.add("causal_convolution", std::make_shared<CausalConvolutionKernel>());
  kernels.add("causal_convolution_grad", std::make_shared<CausalConvolutionGradKernel>());
}

}  // namespace headway::host
