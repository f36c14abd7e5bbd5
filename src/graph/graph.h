// Graphs of operators over a table of variables.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/operator.h"

namespace headway::graph {

// What a variable is for.
enum class Role { parameter, gradient, state };

// A tensor that outlives a run: a parameter, its gradient, or optimizer state.
struct Variable {
  std::string name;
  TensorType type;
  Role role = Role::parameter;
  std::string group;   // parameters: the optimizer group, e.g. "matrix", "embedding"
  int parameter = -1;  // gradients and state: the parameter they belong to
};

// The one table that forward, micro and update share.
class Variables {
 public:
  // Throws Bug on a name that is taken.
  int add(Variable variable);
  int size() const { return static_cast<int>(table_.size()); }
  const Variable& operator[](int index) const { return table_[static_cast<std::size_t>(index)]; }
  // -1 when there is none.
  int find(const std::string& name) const;
  // Indices with that role, in order of creation.
  std::vector<int> with(Role role) const;
  // Elements of all parameters.
  std::int64_t parameters() const;

 private:
  std::vector<Variable> table_;
  std::map<std::string, int> index_;
};

// One application of an operator.
struct Node {
  std::shared_ptr<const Operator> op;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  std::string scope;  // where it belongs: "h.3.attn"
};

// Where a value comes from.
enum class Source { input, variable, node };

struct ValueInfo {
  TensorType type;
  Source source = Source::node;
  int index = -1;    // input: position in inputs(); variable: its index; node: the producing node
  std::string name;  // inputs only
};

// A write to a variable at the end of a run: replaced by the value, or the value added to it.
struct Effect {
  int variable = -1;
  Value value;
  bool accumulate = false;
};

class Graph {
 public:
  explicit Graph(std::shared_ptr<const Variables> variables) : variables_(std::move(variables)) {}

  // A tensor bound at every run. Scalars have an empty shape.
  Value input(const std::string& name, TensorType type);
  // The value a variable has when the run begins (the same handle every time).
  Value read(int variable);
  // Applies an operator; validates by its shape rule.
  std::vector<Value> apply(std::shared_ptr<const Operator> op, std::vector<Value> inputs);
  Value apply1(std::shared_ptr<const Operator> op, std::vector<Value> inputs) {
    return apply(std::move(op), std::move(inputs)).at(0);
  }
  // Gives a value a name that a caller can ask for after a run.
  void output(const std::string& name, Value value);
  // Effects take place after all nodes; at most one a variable.
  void assign(int variable, Value value);
  void accumulate(int variable, Value value);

  // Names the part of the model that is being built; nodes record it. Nested names are joined by dots.
  class Scope {
   public:
    Scope(Graph& graph, const std::string& name);
    ~Scope() { graph_.scope_ = previous_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Graph& graph_;
    std::string previous_;
  };
  // Sets the whole scope (gradient nodes take their forward node's); returns the former one.
  std::string set_scope(std::string scope) { return std::exchange(scope_, std::move(scope)); }

  const Variables& variables() const { return *variables_; }
  const std::shared_ptr<const Variables>& shared_variables() const { return variables_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const ValueInfo& info(Value value) const { return values_.at(static_cast<std::size_t>(value.id)); }
  const TensorType& type(Value value) const { return info(value).type; }
  int values() const { return static_cast<int>(values_.size()); }
  const std::vector<Value>& inputs() const { return inputs_; }
  const std::vector<std::pair<std::string, Value>>& outputs() const { return outputs_; }
  const std::vector<Effect>& effects() const { return effects_; }

  // Matrix-product FLOPs of one run, in all and by the scopes' first `depth` components.
  double flops() const;

 private:
  void effect(int variable, Value value, bool accumulate);

  std::shared_ptr<const Variables> variables_;
  std::vector<ValueInfo> values_;
  std::vector<Node> nodes_;
  std::vector<Value> inputs_;
  std::map<int, Value> reads_;
  std::vector<std::pair<std::string, Value>> outputs_;
  std::vector<Effect> effects_;
  std::string scope_;
};

// Types of several values.
std::vector<TensorType> types_of(const Graph& graph, std::span<const Value> values);
// Matrix-product FLOPs of one node.
double flops_of(const Graph& graph, const Node& node);

}  // namespace headway::graph
