// The [optimizer] section: a method and its numbers for each group of parameters, and the update graph they
// make.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "graph/graph.h"
#include "optim/method.h"

namespace headway::optim {

struct Group {
  std::string method_name;
  std::shared_ptr<const Method> method;
  double lr = 0;
  double weight_decay = 0;
  bool width_scaled = false;  // lr is multiplied by (width / 768)^-0.5
};

struct Optimizer {
  std::map<std::string, Group> groups;  // by group name: matrix, embedding, head, scalar
  double clip = 0;                      // gradients' global norm at most; 0: off
};

// Reads [optimizer] and its groups' tables.
Optimizer read_optimizer(TomlTable table);
std::string to_toml(const Optimizer& optimizer);

// The graph that updates all parameters from their gradients, declaring optimizer state in `variables`.
// Scalar inputs: "step" and, by use, "lr.GROUP", "weight_decay.GROUP", "momentum.GROUP". With clipping it has
// an output "gradient_norm". `gradient_of` gives a parameter's gradient variable. Throws InputError for a
// group without a table.
graph::Graph update_graph(const Optimizer& optimizer, const std::shared_ptr<graph::Variables>& variables,
                          const std::function<int(int)>& gradient_of);

// A group's learning rate before schedules, for a model of that width.
double base_lr(const Group& group, std::int64_t width);

}  // namespace headway::optim
