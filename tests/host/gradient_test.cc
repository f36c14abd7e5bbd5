// The gradient rule of every differentiable operator against finite differences.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/operators/elementwise.h"
#include "graph/operators/linear.h"
#include "graph/operators/loss.h"
#include "graph/operators/sequence.h"
#include "host/gradient_check.h"

namespace headway::test {
namespace {

using graph::Graph;
using graph::Value;
using In = std::vector<Value>;

TEST(Gradient, Linear) {
  for (const Shape& x : std::vector<Shape>{{1, 1}, {4}, {2, 3, 4}, {7, 5}}) {
    check_gradient([](Graph& g, In in) { return graph::linear(g, in[0], in[1]); }, {x, {3, x.back()}});
  }
}

TEST(Gradient, LinearOfItself) {
  check_gradient([](Graph& g, In in) { return graph::linear(g, in[0], in[0]); }, {{3, 4}});
}

TEST(Gradient, Add) {
  check_gradient([](Graph& g, In in) { return graph::add(g, {in[0], in[1]}); }, {{2, 3}, {2, 3}});
  check_gradient(
      [](Graph& g, In in) {
        return graph::add(g, {in[0], in[1], in[2], in[0]});
      },
      {{5}, {5}, {5}});
}

TEST(Gradient, Multiply) {
  check_gradient([](Graph& g, In in) { return graph::multiply(g, in[0], in[1]); }, {{2, 3}, {2, 3}});
  check_gradient([](Graph& g, In in) { return graph::multiply(g, in[0], in[0]); }, {{4}});
}

TEST(Gradient, Activations) {
  using graph::ActivationKind;
  for (ActivationKind kind :
       {ActivationKind::relu, ActivationKind::relu2, ActivationKind::gelu, ActivationKind::silu}) {
    SCOPED_TRACE(graph::name_of(kind));
    check_gradient([kind](Graph& g, In in) { return graph::activation(g, kind, in[0]); }, {{3, 7}});
  }
}

TEST(Gradient, Softcap) {
  for (double cap : {0.0, 1.0, 15.0})
    check_gradient([cap](Graph& g, In in) { return graph::softcap(g, in[0], cap); }, {{2, 9}});
}

TEST(Gradient, ResidualMix) {
  for (std::int64_t layer : {0, 2}) {
    check_gradient(
        [layer](Graph& g, In in) { return graph::residual_mix(g, in[0], in[1], in[2], in[3], layer); },
        {{2, 1, 5}, {2, 1, 5}, {3}, {3}});
  }
}

TEST(Gradient, SliceAndPadColumns) {
  check_gradient([](Graph& g, In in) { return graph::slice_columns(g, in[0], 2, 5); }, {{2, 3, 7}});
  check_gradient([](Graph& g, In in) { return graph::slice_columns(g, in[0], 0, 1); }, {{1}});
  check_gradient([](Graph& g, In in) { return g.apply1(std::make_shared<graph::PadColumns>(2, 9), {in[0]}); },
                 {{2, 3, 7}});
}

TEST(Gradient, ValueGate) {
  check_gradient([](Graph& g, In in) { return graph::value_gate(g, in[0], in[1], in[2]); },
                 {{2, 3, 8}, {2, 3, 8}, {2, 3, 2}});
  check_gradient([](Graph& g, In in) { return graph::value_gate(g, in[0], in[1], in[2]); },
                 {{1, 1, 5}, {1, 1, 5}, {1, 1, 1}});
}

TEST(Gradient, Embedding) {
  check_gradient([](Graph& g, In in) { return graph::embedding(g, in[0], in[1]); },
                 {Operand::tokens({2, 5}, 4), {4, 3}});
  check_gradient([](Graph& g, In in) { return graph::embedding(g, in[0], in[1]); },
                 {Operand::tokens({1}, 7), {7, 1}});
}

TEST(Gradient, RmsNorm) {
  check_gradient([](Graph& g, In in) { return graph::rms_norm(g, in[0], 1e-2); }, {{2, 3, 5}});
  check_gradient([](Graph& g, In in) { return graph::rms_norm(g, in[0], 1e-6, 4); }, {{2, 12}});
  check_gradient([](Graph& g, In in) { return graph::rms_norm(g, in[0], 1.0); }, {{3, 1}});
}

TEST(Gradient, Rotary) {
  for (std::int64_t time : {1, 5})
    check_gradient([](Graph& g, In in) { return graph::rotary(g, in[0], 4, 100); }, {{2, time, 8}});
}

TEST(Gradient, Attention) {
  struct Size {
    std::int64_t batch, time, heads, kv_heads, d, window;
  };
  for (const Size& s :
       {Size{1, 1, 1, 1, 3, 0}, Size{2, 1, 2, 1, 2, 4}, Size{1, 5, 1, 1, 3, 0}, Size{2, 5, 2, 2, 3, 2},
        Size{1, 6, 4, 2, 2, 3}, Size{1, 6, 3, 1, 2, 5}, Size{1, 6, 2, 1, 2, 6}, Size{1, 5, 2, 2, 2, 100}}) {
    const graph::AttentionShape shape{s.heads, s.kv_heads, s.d, s.window, 0.8};
    SCOPED_TRACE(shape.json().dump());
    check_gradient([&](Graph& g, In in) { return graph::attention(g, in[0], in[1], in[2], shape); },
                   {{s.batch, s.time, s.heads * s.d},
                    {s.batch, s.time, s.kv_heads * s.d},
                    {s.batch, s.time, s.kv_heads * s.d}});
  }
}

TEST(Gradient, AttentionOfOneTensor) {
  const graph::AttentionShape shape{2, 2, 2, 3, 1.0};
  check_gradient([&](Graph& g, In in) { return graph::attention(g, in[0], in[0], in[0], shape); },
                 {{1, 4, 4}});
}

TEST(Gradient, CausalConvolution) {
  for (std::int64_t time : {1, 2, 6}) {
    for (std::int64_t taps : {1, 4}) {
      check_gradient([](Graph& g, In in) { return graph::causal_convolution(g, in[0], in[1]); },
                     {{2, time, 3}, {3, taps}});
    }
  }
}

TEST(Gradient, SoftcapCrossEntropy) {
  for (double cap : {0.0, 1.5, 15.0}) {
    const auto loss = [cap](Graph& g, In in) { return graph::softcap_cross_entropy(g, in[0], in[1], cap); };
    check_gradient(loss, {{2, 3, 5}, Operand::tokens({2, 3}, 5)});
    check_gradient(loss, {{4, 17}, Operand::tokens({4}, {16, -1, 0, -1})});
    check_gradient(loss, {{1, 1}, Operand::tokens({1}, 1)});
    check_gradient(loss, {{2, 7}, Operand::tokens({2}, {-1, -1})});
  }
}

// A block of a language model: rules that are right one by one must also meet right.
TEST(Gradient, ATransformerBlock) {
  const graph::AttentionShape shape{2, 1, 4, 2, 0.5};
  check_gradient(
      [&](Graph& g, In in) {
        const Value x = graph::embedding(g, in[0], in[1]);
        const Value h = graph::rms_norm(g, x, 1e-5);
        const Value q = graph::rotary(g, graph::linear(g, h, in[2]), 4, 100);
        const Value kv = graph::linear(g, h, in[3]);
        const Value k =
            graph::rotary(g, graph::rms_norm(g, graph::slice_columns(g, kv, 0, 4), 1e-5, 4), 4, 100);
        const Value a = graph::attention(g, q, k, graph::slice_columns(g, kv, 4, 8), shape);
        const Value y = graph::add(g, {x, graph::activation(g, graph::ActivationKind::relu2, a)});
        return graph::softcap_cross_entropy(g, graph::linear(g, y, in[1]), in[4], 15);
      },
      {Operand::tokens({1, 4}, 6), {6, 8}, {8, 8}, {8, 8}, Operand::tokens({1, 4}, {1, 5, -1, 2})});
}

}  // namespace
}  // namespace headway::test
