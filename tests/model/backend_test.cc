// The host's planner (regions, direct effects, reused memory) against the interpreter, which has none of
// that: whole models, several steps.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "graph/operators/elementwise.h"
#include "graph/operators/linear.h"
#include "host/host_backend.h"
#include "host/interpret.h"
#include "host/schedule.h"
#include "model/model.h"
#include "optim/optimizer.h"

namespace headway {
namespace {

using graph::Graph;
using graph::Role;
using graph::Value;

model::Config config(const std::string& switches) {
  TomlTable root = TomlTable::parse(
      "[model]\ndepth = 2\nwidth = 32\nheads = 4\nkv_heads = 2\nvocab = 48\nsequence = 12\n" + switches,
      "m.toml");
  return model::read_config(root.table("model"));
}

optim::Optimizer optimizer(const std::string& method) {
  TomlTable root = TomlTable::parse(
      "[optimizer]\nclip = 0.5\n[optimizer.matrix]\nmethod = \"" + method +
          "\"\nlr = 1\n[optimizer.embedding]\nlr = 1\n[optimizer.head]\nlr = 1\n[optimizer.scalar]\nlr = 1\n",
      "o.toml");
  return optim::read_optimizer(root.table("optimizer"));
}

// Two micro-batches and an update, three times, on both; returns the worst relative difference over all
// variables.
template <class T>
double worst_difference(const std::string& switches, const std::string& method, bool fast) {
  const model::Model m(config(switches));
  const auto gradient_of = [&](int p) { return m.gradient_of(p); };
  const Graph update_graph = optim::update_graph(optimizer(method), m.variables(), gradient_of);
  const Graph micro_graph = m.micro(3, 12);
  ThreadPool pool(2, false);
  const auto backend = host::make_backend(m.variables(), pool, sizeof(T) == 8,
                                          fast ? host::fast_kernels() : host::reference_kernels<T>());
  const auto micro = backend->compile(micro_graph);
  const auto update = backend->compile(update_graph);
  test::Interpreter<T> plain_micro(micro_graph, host::reference_kernels<T>());
  test::Interpreter<T> plain_update(update_graph, host::reference_kernels<T>());

  Random random(4);
  for (int i : m.variables()->with(Role::parameter)) {
    std::vector<double> values(static_cast<std::size_t>(elements((*m.variables())[i].type.shape)));
    for (double& value : values) value = static_cast<T>(0.2 * random.normal());
    backend->write(i, values);
    plain_micro.variable(i) = values;
  }
  const auto bind = [&](const std::string& name, double value) {
    if (update->has_input(name)) {
      update->bind(name, value);
      plain_update.bind(name, {value});
    }
  };
  for (int step = 1; step <= 3; ++step) {
    backend->zero(Role::gradient);
    for (int i : m.variables()->with(Role::gradient)) {
      std::fill(plain_micro.variable(i).begin(), plain_micro.variable(i).end(), 0.0);
    }
    for (int batch = 0; batch < 2; ++batch) {
      std::vector<std::int32_t> tokens(36), targets(36);
      for (auto* ids : {&tokens, &targets})
        for (std::int32_t& id : *ids) id = static_cast<std::int32_t>(random.below(48));
      micro->bind("tokens", tokens);
      micro->bind("targets", targets);
      micro->bind("loss_scale", 0.5);
      micro->run();
      plain_micro.bind("tokens", {tokens.begin(), tokens.end()});
      plain_micro.bind("targets", {targets.begin(), targets.end()});
      plain_micro.bind("loss_scale", {0.5});
      plain_micro.run();
      EXPECT_NEAR(micro->output("loss")[0], plain_micro.output("loss")[0], 1e-5);
    }
    bind("step", step);
    for (const char* group : {"matrix", "embedding", "head", "scalar"}) {
      bind(std::string("lr.") + group, 0.01);
      bind(std::string("weight_decay.") + group, 0.1);
      bind(std::string("momentum.") + group, 0.9);
    }
    for (int i = 0; i < m.variables()->size(); ++i) plain_update.variable(i) = plain_micro.variable(i);
    update->run();
    plain_update.run();
    for (int i = 0; i < m.variables()->size(); ++i) plain_micro.variable(i) = plain_update.variable(i);
  }
  double worst = 0;
  for (int i = 0; i < m.variables()->size(); ++i) {
    if ((*m.variables())[i].role != Role::gradient) {
      worst = std::max(worst, test::relative_difference(backend->read(i), plain_micro.variable(i)));
    }
  }
  return worst;
}

class Planner : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Planner, EqualsTheInterpreterToTheBitWithTheSameKernels) {
  const auto& [switches, method] = GetParam();
  EXPECT_EQ(worst_difference<double>(switches, method, false), 0);
}

TEST_P(Planner, FastKernelsAndRegionsStayWithinRounding) {
  const auto& [switches, method] = GetParam();
  EXPECT_LT(worst_difference<float>(switches, method, true), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Planner,
    testing::Combine(
        testing::Values(
            "", "value_embeddings = \"all\"\nvalue_gate_channels = 8\nconvolution = true\nwindows = \"S\"",
            "activation = \"silu\"\ngated_mlp = true\nresidual_lambdas = false\nsoftcap = 0"),
        testing::Values("muon", "adamw")));

TEST(Schedule, EveryNodeOnceOperandsFirst) {
  const model::Model m(config("value_embeddings = \"all\"\nvalue_gate_channels = 8"));
  const Graph g = m.micro(2, 12);
  const host::Kernels kernels = host::fast_kernels();
  const std::vector<host::Step> steps = host::schedule(g, kernels);
  std::vector<int> ready(static_cast<std::size_t>(g.values()), 0);
  for (int id = 0; id < g.values(); ++id)
    ready[static_cast<std::size_t>(id)] = g.info({id}).source != graph::Source::node;
  std::size_t nodes = 0, regions = 0;
  for (const host::Step& step : steps) {
    nodes += step.ops.size();
    regions += step.ops.size() > 1;
    for (Value input : step.inputs) EXPECT_TRUE(ready[static_cast<std::size_t>(input.id)]) << step.name;
    for (Value output : step.outputs) ready[static_cast<std::size_t>(output.id)] = 1;
  }
  EXPECT_EQ(nodes, g.nodes().size());
  EXPECT_GE(regions, 3u);
}

TEST(Schedule, ValuesThatAreWantedOutsideAreNotFusedAway) {
  host::Kernels kernels = host::reference_kernels<float>();
  class Never : public host::Kernel {
    void run(const host::Call&) const override { throw Bug("not meant to run"); }
  };
  kernels.add({{{"linear", {"x", "w"}, {"h"}}, {"relu2", {"h"}, {"y"}}}, {"x", "w"}, {"y"}},
              std::make_shared<Never>());
  const auto steps_of = [&](bool wanted) {
    Graph g(std::make_shared<graph::Variables>());
    const Value h = graph::linear(g, g.input("x", {{2, 3}, DType::f32}), g.input("w", {{4, 3}, DType::f32}));
    g.output("y", graph::activation(g, graph::ActivationKind::relu2, h));
    if (wanted) g.output("h", h);
    return host::schedule(g, kernels).size();
  };
  EXPECT_EQ(steps_of(false), 1u);
  EXPECT_EQ(steps_of(true), 2u);
}

}  // namespace
}  // namespace headway
