// Graphs and the table of variables.
#include "graph/graph.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/operators/elementwise.h"
#include "graph/operators/linear.h"
#include "graph/operators/sequence.h"

namespace headway::graph {
namespace {

Variable variable(const std::string& name, Shape shape, Role role, int parameter = -1) {
  return {name, {std::move(shape), DType::f32}, role, "", parameter};
}

TEST(Variables, AreFoundByNameAndByRole) {
  Variables table;
  EXPECT_EQ(table.add(variable("wte", {7, 3}, Role::parameter)), 0);
  EXPECT_EQ(table.add(variable("wte.gradient", {7, 3}, Role::gradient, 0)), 1);
  EXPECT_EQ(table.add(variable("wte.m", {7, 3}, Role::state, 0)), 2);
  EXPECT_EQ(table.add(variable("scale", {}, Role::parameter)), 3);
  EXPECT_EQ(table.size(), 4);
  EXPECT_EQ(table.find("wte.m"), 2);
  EXPECT_EQ(table.find("wpe"), -1);
  EXPECT_EQ(table.with(Role::parameter), (std::vector<int>{0, 3}));
  EXPECT_EQ(table.with(Role::state), std::vector<int>{2});
  EXPECT_EQ(table[1].parameter, 0);
  EXPECT_EQ(table.parameters(), 7 * 3 + 1);
}

TEST(Variables, ANameIsTakenOnce) {
  Variables table;
  table.add(variable("wte", {1}, Role::parameter));
  EXPECT_THROW(table.add(variable("wte", {2}, Role::state)), Bug);
  EXPECT_EQ(table.size(), 1);
}

// A graph over one weight [3, 4] and a gradient for it.
class GraphTest : public ::testing::Test {
 protected:
  GraphTest() {
    auto table = std::make_shared<Variables>();
    weight = table->add(variable("weight", {3, 4}, Role::parameter));
    gradient = table->add(variable("weight.gradient", {3, 4}, Role::gradient, weight));
    graph = std::make_unique<Graph>(table);
  }
  int weight, gradient;
  std::unique_ptr<Graph> graph;
};

TEST_F(GraphTest, KnowsWhereValuesComeFrom) {
  const Value x = graph->input("x", {{2, 4}, DType::f32});
  const Value w = graph->read(weight);
  const Value y = linear(*graph, x, w);
  EXPECT_EQ(graph->info(x).source, Source::input);
  EXPECT_EQ(graph->info(x).name, "x");
  EXPECT_EQ(graph->info(w).source, Source::variable);
  EXPECT_EQ(graph->info(w).index, weight);
  EXPECT_EQ(graph->info(y).source, Source::node);
  EXPECT_EQ(graph->nodes().at(static_cast<std::size_t>(graph->info(y).index)).outputs, std::vector<Value>{y});
  EXPECT_EQ(graph->type(y).shape, (Shape{2, 3}));
  EXPECT_EQ(graph->values(), 3);
  EXPECT_EQ(graph->read(weight), w) << "one handle a variable";
}

TEST_F(GraphTest, RefusesWhatItsBuilderGotWrong) {
  graph->input("x", {{2, 4}, DType::f32});
  EXPECT_THROW(graph->input("x", {{1}, DType::f32}), Bug);
  EXPECT_THROW(graph->apply(std::make_shared<Add>(), {Value{}}), Bug);
  EXPECT_THROW(graph->apply(std::make_shared<Add>(), {Value{17}}), Bug);
}

TEST_F(GraphTest, TokensAreNoRealNumbers) {
  const Value ids = graph->input("ids", {{2, 3}, DType::i32});
  const Value table = graph->input("table", {{5, 3}, DType::f32});
  EXPECT_THROW(linear(*graph, ids, table), InputError);
  EXPECT_THROW(multiply(*graph, ids, ids), InputError);
  EXPECT_THROW(rms_norm(*graph, ids, 1e-6), InputError);
  EXPECT_NO_THROW(embedding(*graph, ids, table));
}

TEST_F(GraphTest, WritesEachVariableOnceAndInItsShape) {
  const Value w = graph->read(weight);
  EXPECT_THROW(graph->assign(weight, graph->input("x", {{4, 3}, DType::f32})), Bug);
  graph->assign(weight, multiply(*graph, w, w));
  graph->accumulate(gradient, w);
  EXPECT_THROW(graph->accumulate(weight, w), Bug);
  ASSERT_EQ(graph->effects().size(), 2u);
  EXPECT_FALSE(graph->effects()[0].accumulate);
  EXPECT_TRUE(graph->effects()[1].accumulate);
  EXPECT_EQ(graph->effects()[1].variable, gradient);
}

TEST_F(GraphTest, NodesRecordTheScopeTheyWereBuiltIn) {
  const Value w = graph->read(weight);
  add(*graph, {w, w});
  {
    const Graph::Scope layer(*graph, "h.3");
    add(*graph, {w, w});
    {
      const Graph::Scope part(*graph, "attn");
      add(*graph, {w, w});
    }
    add(*graph, {w, w});
  }
  add(*graph, {w, w});
  std::vector<std::string> scopes;
  for (const Node& node : graph->nodes()) scopes.push_back(node.scope);
  EXPECT_EQ(scopes, (std::vector<std::string>{"", "h.3", "h.3.attn", "h.3", ""}));
}

TEST_F(GraphTest, CountsTheFlopsOfMatrixProducts) {
  const Value x = graph->input("x", {{2, 5, 4}, DType::f32});
  const Value y = linear(*graph, x, graph->read(weight));
  EXPECT_EQ(graph->flops(), 2.0 * (2 * 5) * 4 * 3);
  add(*graph, {y, y});
  EXPECT_EQ(graph->flops(), 2.0 * (2 * 5) * 4 * 3) << "a sum has no matrix product";
  graph->apply(std::make_shared<LinearGradInput>(), {y, graph->read(weight)});
  graph->apply(std::make_shared<LinearGradWeight>(), {y, x});
  EXPECT_EQ(graph->flops(), 3 * 2.0 * (2 * 5) * 4 * 3) << "backward costs twice the forward";
}

TEST_F(GraphTest, AttentionCountsItsWholeWindow) {
  // Two products a head: scores and their sum over values; causality and the two operands' edges don't count.
  const std::int64_t batch = 2, time = 10, heads = 4, kv_heads = 2, d = 8;
  const Value q = graph->input("q", {{batch, time, heads * d}, DType::f32});
  const Value k = graph->input("k", {{batch, time, kv_heads * d}, DType::f32});
  for (const auto& [window, keys] : {std::pair{3, 3}, std::pair{10, 10}, std::pair{1000, 10}}) {
    const double before = graph->flops();
    const auto o_lse =
        graph->apply(std::make_shared<Attention>(AttentionShape{heads, kv_heads, d, window, 1.0}), {q, k, k});
    const double forward = graph->flops() - before;
    EXPECT_EQ(forward, 2 * 2.0 * batch * time * heads * d * keys) << "window " << window;
    graph->apply(std::make_shared<AttentionGrad>(AttentionShape{heads, kv_heads, d, window, 1.0}),
                 {q, k, k, o_lse[0], o_lse[1], q});
    EXPECT_EQ(graph->flops() - before, 3 * forward) << "window " << window;
  }
}

TEST_F(GraphTest, BytesDependOnTheSizeOfRealNumbersAlone) {
  const Embedding embedding;
  const TensorType tokens{{6}, DType::i32}, table{{10, 4}, DType::f32}, y{{6, 4}, DType::f32};
  const std::vector<TensorType> in{tokens, table}, out{y};
  EXPECT_EQ(embedding.bytes(in, out, 4), 6 * 4 + (40 + 24) * 4);
  EXPECT_EQ(embedding.bytes(in, out, 2), 6 * 4 + (40 + 24) * 2);
}

TEST(Rows, AreAllExtentsButTheLast) {
  EXPECT_EQ(rows({}), 1);
  EXPECT_EQ(rows({5}), 1);
  EXPECT_EQ(rows({2, 3, 5}), 6);
}

}  // namespace
}  // namespace headway::graph
