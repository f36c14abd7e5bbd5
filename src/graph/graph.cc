#include "graph/graph.h"

#include <fmt/format.h>

#include "base/error.h"

namespace headway::graph {

std::vector<Value> Operator::gradient(const GradientRequest&) const {
  throw Unsupported(fmt::format("[{}] has no gradient rule", name()));
}

double Operator::flops(std::span<const TensorType>, std::span<const TensorType>) const { return 0; }

double Operator::bytes(std::span<const TensorType> inputs, std::span<const TensorType> outputs,
                       int real_bytes) const {
  double sum = 0;
  for (const auto& types : {inputs, outputs}) {
    for (const TensorType& type : types) {
      sum += static_cast<double>(elements(type.shape)) *
             (type.dtype == DType::f32 ? real_bytes : size_of(type.dtype));
    }
  }
  return sum;
}

void require(bool condition, const Operator& op, const std::string& rule,
             std::span<const TensorType> inputs) {
  if (condition) return;
  std::string shapes;
  for (const TensorType& type : inputs) {
    shapes += fmt::format("{}{} {}", shapes.empty() ? "" : ", ", name_of(type.dtype), to_string(type.shape));
  }
  throw InputError(fmt::format("[{}]", op.name()), fmt::format("{}; operands are {}", rule, shapes));
}

int Variables::add(Variable variable) {
  const int index = size();
  if (!index_.emplace(variable.name, index).second) throw Bug("variable " + variable.name + " exists twice");
  table_.push_back(std::move(variable));
  return index;
}

int Variables::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? -1 : found->second;
}

std::vector<int> Variables::with(Role role) const {
  std::vector<int> found;
  for (int i = 0; i < size(); ++i)
    if ((*this)[i].role == role) found.push_back(i);
  return found;
}

std::int64_t Variables::parameters() const {
  std::int64_t n = 0;
  for (const Variable& variable : table_)
    if (variable.role == Role::parameter) n += elements(variable.type.shape);
  return n;
}

Graph::Scope::Scope(Graph& graph, const std::string& name) : graph_(graph), previous_(graph.scope_) {
  graph.scope_ = previous_.empty() ? name : previous_ + "." + name;
}

Value Graph::input(const std::string& name, TensorType type) {
  for (Value value : inputs_)
    if (info(value).name == name) throw Bug("graph input " + name + " exists twice");
  const Value value{values()};
  values_.push_back({std::move(type), Source::input, static_cast<int>(inputs_.size()), name});
  inputs_.push_back(value);
  return value;
}

Value Graph::read(int variable) {
  const auto found = reads_.find(variable);
  if (found != reads_.end()) return found->second;
  const Value value{values()};
  values_.push_back({variables()[variable].type, Source::variable, variable, ""});
  reads_[variable] = value;
  return value;
}

std::vector<Value> Graph::apply(std::shared_ptr<const Operator> op, std::vector<Value> inputs) {
  for (Value value : inputs) HEADWAY_CHECK(value.valid() && value.id < values());
  const std::vector<TensorType> input_types = types_of(*this, inputs);
  for (std::size_t i = 0; i < input_types.size(); ++i) {
    require(input_types[i].dtype == DType::f32 || op->takes_tokens(i), *op,
            fmt::format("takes real numbers as operand {}", i), input_types);
  }
  Node node{op, std::move(inputs), {}, scope_};
  for (TensorType& type : op->infer(input_types)) {
    node.outputs.push_back({values()});
    values_.push_back({std::move(type), Source::node, static_cast<int>(nodes_.size()), ""});
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

void Graph::output(const std::string& name, Value value) { outputs_.emplace_back(name, value); }

void Graph::effect(int variable, Value value, bool accumulate) {
  if (type(value) != variables()[variable].type) {
    throw Bug(fmt::format("{} has shape {} but is written with {}", variables()[variable].name,
                          to_string(variables()[variable].type.shape), to_string(type(value).shape)));
  }
  for (const Effect& effect : effects_) HEADWAY_CHECK(effect.variable != variable);
  effects_.push_back({variable, value, accumulate});
}

void Graph::assign(int variable, Value value) { effect(variable, value, false); }
void Graph::accumulate(int variable, Value value) { effect(variable, value, true); }

double Graph::flops() const {
  double sum = 0;
  for (const Node& node : nodes_) sum += flops_of(*this, node);
  return sum;
}

std::vector<TensorType> types_of(const Graph& graph, std::span<const Value> values) {
  std::vector<TensorType> types;
  for (Value value : values) types.push_back(graph.type(value));
  return types;
}

double flops_of(const Graph& graph, const Node& node) {
  return node.op->flops(types_of(graph, node.inputs), types_of(graph, node.outputs));
}

}  // namespace headway::graph
