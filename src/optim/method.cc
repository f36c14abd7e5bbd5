#include "optim/method.h"

#include <map>

#include "base/error.h"
#include "optim/methods.h"

namespace headway::optim {
namespace {

// Behind a function: registration happens during static initialisation.
std::map<std::string, MakeMethod>& methods() {
  static std::map<std::string, MakeMethod> table = {{"adamw", make_adamw}, {"muon", make_muon}};
  return table;
}

}  // namespace

std::string Update::state_name(const std::string& name) const {
  return variables_[parameter_].name + "." + name;
}

graph::Value Update::state(const std::string& name, Shape shape) {
  int index = variables_.find(state_name(name));
  if (index < 0) {
    graph::Variable variable;
    variable.name = state_name(name);
    variable.type = variables_[parameter_].type;
    if (!shape.empty()) variable.type.shape = std::move(shape);
    variable.role = graph::Role::state;
    variable.group = group_;
    variable.parameter = parameter_;
    index = variables_.add(std::move(variable));
  }
  return graph.read(index);
}

void Update::assign_state(const std::string& name, graph::Value value) {
  const int index = variables_.find(state_name(name));
  HEADWAY_CHECK(index >= 0);
  graph.assign(index, value);
}

graph::Value Update::scalar(const std::string& name) {
  const std::string full = name == "step" ? name : name + "." + group_;
  for (graph::Value input : graph.inputs())
    if (graph.info(input).name == full) return input;
  return graph.input(full, {{}, DType::f32});
}

RegisterMethod::RegisterMethod(const std::string& name, MakeMethod make) {
  if (!methods().emplace(name, std::move(make)).second)
    throw Bug("optimizer " + name + " is registered twice");
}

std::unique_ptr<Method> make_method(const std::string& name, TomlTable& group, const std::string& where) {
  const auto found = methods().find(name);
  if (found != methods().end()) return found->second(group);
  std::vector<std::string> known;
  for (const auto& [key, make] : methods()) known.push_back(key);
  refuse_name(where, "optimizer", name, known);
}

}  // namespace headway::optim
