// How gradients are put together. Their values are tested with the kernels, in tests/host.
#include "graph/autodiff.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "graph/operators/elementwise.h"
#include "graph/operators/linear.h"
#include "graph/operators/sequence.h"
#include "graph/operators/update.h"

namespace headway::graph {
namespace {

class AutodiffTest : public ::testing::Test {
 protected:
  std::int64_t count(std::string_view op) const {
    return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                         [&](const Node& node) { return node.op->name() == op; });
  }
  const Node& producer(Value value) const {
    return graph.nodes().at(static_cast<std::size_t>(graph.info(value).index));
  }
  Graph graph{std::make_shared<Variables>()};
  const TensorType matrix{{3, 3}, DType::f32};
  const Value x = graph.input("x", matrix), w = graph.input("w", matrix), seed = graph.input("seed", matrix);
};

TEST_F(AutodiffTest, SumsSeveralUsesInOneAddition) {
  const Value y =
      add(graph, {linear(graph, x, w), multiply(graph, x, w), activation(graph, ActivationKind::silu, x)});
  const Value wrt[] = {x};
  const Value dx = gradients(graph, y, seed, wrt)[0];
  EXPECT_EQ(producer(dx).op->name(), "add");
  EXPECT_EQ(producer(dx).inputs.size(), 3u);
  EXPECT_EQ(count("add"), 2) << "the forward one and one for the gradient";
}

TEST_F(AutodiffTest, OneUseNeedsNoAddition) {
  const Value y = linear(graph, x, w);
  const Value wrt[] = {x, w};
  const auto found = gradients(graph, y, seed, wrt);
  EXPECT_EQ(producer(found[0]).op->name(), "linear_grad_input");
  EXPECT_EQ(producer(found[1]).op->name(), "linear_grad_weight");
  EXPECT_EQ(graph.nodes().size(), 3u);
}

TEST_F(AutodiffTest, BuildsOnlyWhatSomebodyWants) {
  const Value y = linear(graph, linear(graph, x, w), w);
  const Value wrt[] = {x};
  gradients(graph, y, seed, wrt);
  EXPECT_EQ(count("linear_grad_input"), 2);
  EXPECT_EQ(count("linear_grad_weight"), 0);
}

TEST_F(AutodiffTest, WhatTheLossDoesNotDependOnHasNoGradient) {
  const Value other = multiply(graph, w, w);  // computed, but no part of the loss
  const Value y = activation(graph, ActivationKind::silu, x);
  const Value wrt[] = {x, w, other};
  const auto found = gradients(graph, y, seed, wrt);
  EXPECT_TRUE(found[0].valid());
  EXPECT_FALSE(found[1].valid());
  EXPECT_FALSE(found[2].valid());
}

TEST_F(AutodiffTest, TheLossItselfHasTheSeedAsGradient) {
  const Value y = multiply(graph, x, w);
  const Value wrt[] = {y};
  EXPECT_EQ(gradients(graph, y, seed, wrt)[0], seed);
}

TEST_F(AutodiffTest, GradientNodesBelongToTheScopeOfTheirForwardNode) {
  Value y = x;
  for (const char* layer : {"h.0", "h.1"}) {
    const Graph::Scope scope(graph, layer);
    y = linear(graph, y, w);
  }
  const std::size_t forward = graph.nodes().size();
  const Graph::Scope scope(graph, "elsewhere");
  const Value wrt[] = {x};
  gradients(graph, y, seed, wrt);
  ASSERT_EQ(graph.nodes().size(), forward + 2);
  EXPECT_EQ(graph.nodes()[forward].scope, "h.1");
  EXPECT_EQ(graph.nodes()[forward + 1].scope, "h.0");
  add(graph, {x, x});
  EXPECT_EQ(graph.nodes().back().scope, "elsewhere") << "the builder's own scope is back";
}

TEST_F(AutodiffTest, AnOperatorWithoutARuleSaysSo) {
  const Value norm = graph.apply1(std::make_shared<GlobalNorm>(), {x});
  const Value one = graph.input("one", {{}, DType::f32});
  const Value wrt[] = {x};
  try {
    gradients(graph, norm, one, wrt);
    FAIL() << "a gradient appeared";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what()).find("[global_norm]"), std::string::npos) << error.what();
  }
}

TEST_F(AutodiffTest, AttentionRefusesAGradientThroughItsLogSums) {
  const Value q = graph.input("q", {{1, 2, 4}, DType::f32}),
              lse_seed = graph.input("d lse", {{1, 1, 2}, DType::f32});
  const auto o_lse = graph.apply(std::make_shared<Attention>(AttentionShape{1, 1, 4, 2, 1.0}), {q, q, q});
  const Value wrt[] = {q};
  EXPECT_THROW(gradients(graph, o_lse[1], lse_seed, wrt), Unsupported);
}

}  // namespace
}  // namespace headway::graph
