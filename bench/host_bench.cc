// The fast host kernels at the shapes of the models that the project trains: GFLOP/s (of processor time, per
// core) of what multiplies, GB/s of what moves. Also "peak", what the multipliers can do: products are
// measured against it.
//
//   host_bench [--benchmark_filter=linear]
//
// One thread, processor time: on a machine that others use too, that is the figure that repeats.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/random.h"
#include "graph/operators/elementwise.h"
#include "graph/operators/linear.h"
#include "graph/operators/loss.h"
#include "graph/operators/sequence.h"
#include "graph/operators/update.h"
#include "host/kernel.h"
#include "host/peak.h"

namespace headway {
namespace {

using Ops = std::vector<std::shared_ptr<const graph::Operator>>;
using Types = std::vector<graph::TensorType>;

graph::TensorType real(Shape shape) { return {std::move(shape), DType::f32}; }

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Bytes = std::unique_ptr<void, Free>;

Bytes allocate(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>((bytes + 63) / 64 * 64 + 64);
  Bytes memory(std::aligned_alloc(64, size));
  std::memset(memory.get(), 0, size);
  return memory;
}

// Tokens below 8192, reals in [-1, 1).
Bytes random_tensor(const graph::TensorType& type, std::uint64_t seed) {
  Random random(seed);
  const std::int64_t count = elements(type.shape);
  Bytes memory = allocate(count * 4);
  for (std::int64_t i = 0; i < count; ++i) {
    if (type.dtype == DType::i32) {
      static_cast<std::int32_t*>(memory.get())[i] = static_cast<std::int32_t>(random.below(8192));
    } else {
      static_cast<float*>(memory.get())[i] = static_cast<float>(random.uniform(-1, 1));
    }
  }
  return memory;
}

void run_kernel(benchmark::State& state, const host::Kernel& kernel, const Ops& ops, const Types& inputs,
                const Types& outputs, double flops) {
  ThreadPool pool(1);
  std::vector<Bytes> memory;
  std::vector<host::Tensor> in, out;
  double bytes = 0;
  for (std::size_t k = 0; k < inputs.size() + outputs.size(); ++k) {
    const bool input = k < inputs.size();
    const graph::TensorType& type = input ? inputs[k] : outputs[k - inputs.size()];
    memory.push_back(input ? random_tensor(type, k) : allocate(elements(type.shape) * 4));
    (input ? in : out).push_back({memory.back().get(), type.shape});
    bytes += 4.0 * static_cast<double>(elements(type.shape));
  }
  std::vector<const graph::Operator*> plain;
  for (const auto& op : ops) plain.push_back(op.get());
  const Bytes workspace = allocate(kernel.workspace(plain, inputs, outputs, pool.size()));
  const std::vector<bool> accumulate(outputs.size(), false);
  const host::Options options;
  for (auto _ : state) kernel.run({plain, in, out, accumulate, pool, workspace.get(), options});
  const auto runs = static_cast<double>(state.iterations());
  if (flops > 0) {
    state.counters["GFLOP/s"] = benchmark::Counter(flops * runs / 1e9, benchmark::Counter::kIsRate);
  } else {
    state.counters["GB/s"] = benchmark::Counter(bytes * runs / 1e9, benchmark::Counter::kIsRate);
  }
}

const host::Kernels& kernels() {
  static const host::Kernels made = host::fast_kernels();
  return made;
}

void single(const std::string& label, std::shared_ptr<const graph::Operator> op, Types inputs) {
  benchmark::RegisterBenchmark(
      (std::string(op->name()) + "/" + label).c_str(), [op, inputs](benchmark::State& state) {
        const Types outputs = op->infer(inputs);
        run_kernel(state, kernels().single(op->name()), {op}, inputs, outputs, op->flops(inputs, outputs));
      });
}

void peak(benchmark::State& state) {
  ThreadPool pool(1);
  double flops = 0;
  for (auto _ : state) flops = std::max(flops, host::measure_peak_flops(pool));
  state.counters["GFLOP/s"] = flops / 1e9;
}

// The region of head and loss: x [rows, n], weight [vocab, n].
void head(benchmark::State& state, std::int64_t rows, std::int64_t n, std::int64_t vocab) {
  const Ops ops = {std::make_shared<graph::Linear>(), std::make_shared<graph::SoftcapCrossEntropy>(15),
                   std::make_shared<graph::SoftcapCrossEntropyGrad>(15),
                   std::make_shared<graph::LinearGradInput>(), std::make_shared<graph::LinearGradWeight>()};
  const Types inputs = {real({rows, n}), real({vocab, n}), {{rows}, DType::i32}, real({})};
  for (const auto& region : kernels().regions()) {
    if (region.pattern.nodes.size() != ops.size()) continue;
    run_kernel(state, *region.kernel, ops, inputs, {real({}), inputs[0], inputs[1]},
               6.0 * static_cast<double>(rows * n * vocab));
  }
}

void register_products(std::int64_t rows, std::int64_t out, std::int64_t in) {
  const std::string label = std::to_string(rows) + "x" + std::to_string(out) + "x" + std::to_string(in);
  const graph::TensorType x = real({rows, in}), dy = real({rows, out}), weight = real({out, in});
  single(label, std::make_shared<graph::Linear>(), {x, weight});
  single(label, std::make_shared<graph::LinearGradInput>(), {dy, weight});
  single(label, std::make_shared<graph::LinearGradWeight>(), {dy, x});
}

void register_attention(std::int64_t batch, std::int64_t time, std::int64_t heads, std::int64_t kv_heads,
                        std::int64_t head_dim, std::int64_t window) {
  const graph::AttentionShape shape{heads, kv_heads, head_dim, window, 0.1};
  const std::string label = std::to_string(batch) + "x" + std::to_string(time) +
                            "/heads:" + std::to_string(heads) + "of" + std::to_string(head_dim) +
                            "/window:" + std::to_string(window);
  const graph::TensorType q = real({batch, time, heads * head_dim}),
                          kv = real({batch, time, kv_heads * head_dim});
  single(label, std::make_shared<graph::Attention>(shape), {q, kv, kv});
  single(label, std::make_shared<graph::AttentionGrad>(shape), {q, kv, kv, q, real({batch, heads, time}), q});
}

void register_all() {
  benchmark::RegisterBenchmark("peak", peak);
  for (std::int64_t width : {256, 640}) {
    register_products(4096, width, width);
    register_products(4096, 4 * width, width);
    register_products(4096, width, 4 * width);
    register_products(4096, 8192, width);
  }
  register_products(2048, 128, 128);
  register_products(2048, 512, 128);
  benchmark::RegisterBenchmark("head/4096x256x8192", head, 4096, 256, 8192);
  benchmark::RegisterBenchmark("head/4096x640x8192", head, 4096, 640, 8192);
  register_attention(8, 512, 2, 2, 128, 512);
  register_attention(4, 1024, 5, 5, 128, 1024);
  register_attention(4, 1024, 5, 5, 128, 256);
  register_attention(8, 512, 2, 1, 64, 512);

  const graph::TensorType x = real({8, 512, 256}), hidden = real({8, 512, 1024}),
                          tokens{{8, 512}, DType::i32};
  single("4096x256", std::make_shared<graph::Embedding>(), {tokens, real({8192, 256})});
  single("4096x256", std::make_shared<graph::EmbeddingGrad>(8192), {tokens, x});
  single("4096x256", std::make_shared<graph::Add>(), {x, x});
  single("4096x256", std::make_shared<graph::RmsNorm>(256, 1e-6), {x});
  single("4096x256", std::make_shared<graph::RmsNormGrad>(256, 1e-6), {x, x});
  single("4096x256", std::make_shared<graph::Rotary>(128, 1e5), {x});
  single("4096x256", std::make_shared<graph::ResidualMix>(0), {x, x, real({4}), real({4})});
  single("4096x256", std::make_shared<graph::ResidualMixGrad>(0), {x, x, real({4}), real({4}), x});
  for (graph::ActivationKind kind :
       {graph::ActivationKind::relu2, graph::ActivationKind::gelu, graph::ActivationKind::silu}) {
    single("4096x1024", std::make_shared<graph::Activation>(kind), {hidden});
    single("4096x1024", std::make_shared<graph::ActivationGrad>(kind), {hidden, hidden});
  }
  single("4096x8192", std::make_shared<graph::Softcap>(15), {real({4096, 8192})});
  single("4096x8192", std::make_shared<graph::SoftcapCrossEntropy>(15),
         {real({4096, 8192}), {{4096}, DType::i32}});
  single("4096x256", std::make_shared<graph::CausalConvolution>(), {x, real({256, 2})});
  single("4096x256", std::make_shared<graph::CausalConvolutionGrad>(), {x, real({256, 2}), x});

  const graph::TensorType weight = real({1024, 256}), scalar = real({});
  single("1024x256", std::make_shared<graph::AdamW>(0.9, 0.95, 1e-8),
         {weight, weight, weight, weight, scalar, scalar, scalar});
  single("1024x256", std::make_shared<graph::NesterovMomentum>(), {weight, weight, scalar});
  for (const Shape& shape : {Shape{256, 256}, Shape{1024, 256}, Shape{640, 640}, Shape{640, 2560}})
    single(to_string(shape), std::make_shared<graph::PolarExpress>(5), {real(shape)});
  single("1024x256", std::make_shared<graph::NorMuon>(0.95), {weight, real({1024})});
  single("1024x256", std::make_shared<graph::CautiousUpdate>(1), {weight, weight, scalar, scalar});
}

}  // namespace
}  // namespace headway

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  headway::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
