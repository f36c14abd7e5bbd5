#include "optim/optimizer.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "graph/operators/update.h"

namespace headway::optim {

Optimizer read_optimizer(TomlTable table) {
  Optimizer optimizer;
  optimizer.clip = table.number("clip", 0);
  if (!(optimizer.clip >= 0)) table.refuse("clip", "must be 0 (off) or positive");
  for (const std::string name : {"matrix", "embedding", "head", "scalar"}) {
    TomlTable t = table.table(name);
    Group group;
    group.method_name = t.text("method", name == "matrix" ? "muon" : "adamw");
    group.lr = t.number("lr");
    if (!(group.lr >= 0) || !std::isfinite(group.lr)) t.refuse("lr", "must be a number from 0 up");
    group.weight_decay = t.number("weight_decay", 0);
    if (!(group.weight_decay >= 0)) t.refuse("weight_decay", "must be a number from 0 up");
    group.width_scaled = t.boolean("width_scaled", false);
    group.method = make_method(group.method_name, t, t.where("method"));
    t.finish();
    optimizer.groups[name] = group;
  }
  table.finish();
  return optimizer;
}

std::string to_toml(const Optimizer& optimizer) {
  std::string text = fmt::format("[optimizer]\nclip = {}\n", optimizer.clip);
  for (const auto& [name, group] : optimizer.groups) {
    text += fmt::format("[optimizer.{}]\nmethod = \"{}\"\nlr = {}\nweight_decay = {}\nwidth_scaled = {}\n{}",
                        name, group.method_name, group.lr, group.weight_decay, group.width_scaled,
                        group.method->options());
  }
  return text;
}

graph::Graph update_graph(const Optimizer& optimizer, const std::shared_ptr<graph::Variables>& variables,
                          const std::function<int(int)>& gradient_of) {
  graph::Graph g(variables);
  const std::vector<int> parameters = variables->with(graph::Role::parameter);
  std::map<int, graph::Value> gradients;
  for (int p : parameters) gradients[p] = g.read(gradient_of(p));
  if (optimizer.clip > 0) {
    const graph::Graph::Scope scope(g, "clip");
    std::vector<graph::Value> all;
    for (int p : parameters) all.push_back(gradients[p]);
    const graph::Value norm = g.apply1(std::make_shared<graph::GlobalNorm>(), all);
    g.output("gradient_norm", norm);
    for (int p : parameters) {
      gradients[p] = g.apply1(std::make_shared<graph::ClipByNorm>(optimizer.clip), {gradients[p], norm});
    }
  }
  for (int p : parameters) {
    const std::string group = (*variables)[p].group;
    const auto found = optimizer.groups.find(group);
    if (found == optimizer.groups.end()) {
      throw InputError("[optimizer]", "has no group '" + group + "' for parameter " + (*variables)[p].name);
    }
    const graph::Graph::Scope scope(g, "update." + group);
    Update update(g, *variables, p, gradients[p], group);
    found->second.method->build(update);
  }
  return g;
}

double base_lr(const Group& group, std::int64_t width) {
  return group.width_scaled ? group.lr * std::pow(static_cast<double>(width) / 768.0, -0.5) : group.lr;
}

}  // namespace headway::optim
