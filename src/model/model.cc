#include "model/model.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "graph/autodiff.h"
#include "graph/operators/elementwise.h"
#include "graph/operators/loss.h"

namespace headway::model {

using graph::Graph;
using graph::Value;

Model::Model(Config config) : config_(std::move(config)) {
  Graph scratch(parameters_.variables);
  build(scratch, scratch.input("tokens", {{1, std::min<std::int64_t>(config_.sequence, 2)}, DType::i32}));
  for (int parameter : parameters_.variables->with(graph::Role::parameter)) {
    const graph::Variable& v = (*parameters_.variables)[parameter];
    parameters_.variables->add({v.name + ".grad", v.type, graph::Role::gradient, v.group, parameter});
  }
}

Value Model::build(Graph& graph, Value tokens) const {
  Builder builder(graph, config_, parameters_);
  builder.tokens = tokens;
  return architecture(config_.architecture)(builder);
}

Graph Model::forward(std::int64_t batch, std::int64_t time) const {
  Graph g(parameters_.variables);
  const Value logits = build(g, g.input("tokens", {{batch, time}, DType::i32}));
  g.set_scope("head");
  g.output("logits", graph::softcap(g, logits, config_.softcap));
  return g;
}

Graph Model::micro(std::int64_t batch, std::int64_t time) const {
  Graph g(parameters_.variables);
  const Value tokens = g.input("tokens", {{batch, time}, DType::i32});
  const Value targets = g.input("targets", {{batch, time}, DType::i32});
  const Value scale = g.input("loss_scale", {{}, DType::f32});
  const Value logits = build(g, tokens);
  g.set_scope("head");
  const Value loss = graph::softcap_cross_entropy(g, logits, targets, config_.softcap);
  g.output("loss", loss);
  std::vector<int> parameters = parameters_.variables->with(graph::Role::parameter);
  std::vector<Value> reads;
  for (int parameter : parameters) reads.push_back(g.read(parameter));
  const std::vector<Value> gradients = graph::gradients(g, loss, scale, reads);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (gradients[i].valid()) g.accumulate(gradient_of(parameters[i]), gradients[i]);
  }
  return g;
}

int Model::gradient_of(int parameter) const {
  return parameters_.variables->find((*parameters_.variables)[parameter].name + ".grad");
}

void Model::initialize(graph::Backend& backend, std::uint64_t seed) const {
  for (int parameter : parameters_.variables->with(graph::Role::parameter)) {
    const graph::Variable& variable = (*parameters_.variables)[parameter];
    const Init init = parameters_.inits[static_cast<std::size_t>(parameter)];
    std::vector<double> values(static_cast<std::size_t>(elements(variable.type.shape)), init.value);
    Random random(hash64(variable.name, seed));
    if (init.kind == Init::Kind::normal) {
      for (double& value : values) value = init.value * random.normal();
    } else if (init.kind == Init::Kind::uniform) {
      for (double& value : values) value = random.uniform(-init.value, init.value);
    }
    backend.write(parameter, values);
  }
}

double Model::flops_per_token() const {
  return 3 * forward(1, config_.sequence).flops() / static_cast<double>(config_.sequence);
}

namespace {

std::string part_of(const std::string& parameter) {
  if (parameter == "wte") return "token embedding";
  if (parameter == "head") return "head";
  if (parameter.find("value_embedding") != std::string::npos) return "value embeddings";
  if (parameter.find(".attn.") != std::string::npos) return "attention projections";
  if (parameter.find(".mlp.") != std::string::npos) return "mlp";
  return "other";
}

}  // namespace

std::vector<Model::Part> Model::parts() const {
  std::vector<Part> parts;
  const auto part = [&](const std::string& name) -> Part& {
    for (Part& existing : parts)
      if (existing.name == name) return existing;
    parts.push_back({name, 0, 0});
    return parts.back();
  };
  for (int parameter : parameters_.variables->with(graph::Role::parameter)) {
    const graph::Variable& variable = (*parameters_.variables)[parameter];
    part(variable.group == "scalar" ? "scalars" : part_of(variable.name)).parameters +=
        elements(variable.type.shape);
  }
  const Graph g = forward(1, config_.sequence);
  for (const graph::Node& node : g.nodes()) {
    const double flops = 3 * graph::flops_of(g, node) / static_cast<double>(config_.sequence);
    if (flops == 0) continue;
    std::string name = "attention scores";
    for (Value input : node.inputs) {
      const graph::ValueInfo& info = g.info(input);
      if (info.source == graph::Source::variable) name = part_of((*parameters_.variables)[info.index].name);
    }
    part(name).flops_per_token += flops;
  }
  return parts;
}

}  // namespace headway::model
