// Optimizers as methods that each update the parameters of a group. A method builds the update graph of one
// parameter; its learning rate, weight decay, momentum and step number are scalar inputs that schedules set.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/toml.h"
#include "graph/graph.h"

namespace headway::optim {

// What a method sees of the parameter it updates.
class Update {
 public:
  Update(graph::Graph& graph, graph::Variables& variables, int parameter, graph::Value gradient,
         std::string group)
      : graph(graph),
        gradient(gradient),
        variables_(variables),
        parameter_(parameter),
        group_(std::move(group)) {}

  graph::Graph& graph;
  const graph::Value gradient;

  graph::Value parameter() const { return graph.read(parameter_); }
  const Shape& shape() const { return variables_[parameter_].type.shape; }
  // State of this parameter, zero at the start, declared on first use; same shape as the parameter when
  // `shape` is empty.
  graph::Value state(const std::string& name, Shape shape = {});

  // Scalars of the parameter's group in this step.
  graph::Value lr() { return scalar("lr"); }
  graph::Value weight_decay() { return scalar("weight_decay"); }
  graph::Value momentum() { return scalar("momentum"); }
  graph::Value step() { return scalar("step"); }  // 1 in the first step

  void assign_parameter(graph::Value value) { graph.assign(parameter_, value); }
  void assign_state(const std::string& name, graph::Value value);

 private:
  graph::Value scalar(const std::string& name);
  std::string state_name(const std::string& name) const;

  graph::Variables& variables_;
  int parameter_;
  std::string group_;
};

class Method {
 public:
  virtual ~Method() = default;
  // Builds the nodes that update one parameter.
  virtual void build(Update& update) const = 0;
  // Its own options as TOML lines ("beta1 = 0.9\n").
  virtual std::string options() const = 0;
};

// Reads the method's own options from its group's table; throws InputError for impossible values.
using MakeMethod = std::function<std::unique_ptr<Method>(TomlTable& group)>;

// Registers a method at namespace scope: static const optim::RegisterMethod lion{"lion", make_lion};
struct RegisterMethod {
  RegisterMethod(const std::string& name, MakeMethod make);
};

// Throws InputError at `where` with the nearest known name.
std::unique_ptr<Method> make_method(const std::string& name, TomlTable& group, const std::string& where);

}  // namespace headway::optim
