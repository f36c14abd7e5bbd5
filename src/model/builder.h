// Building a model's graph: operators from src/graph, parameters declared where they are used. Architectures
// and attention variants are functions over a Builder, registered by name; those outside src/ work like the
// ones here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "model/config.h"

namespace headway::model {

// How a parameter starts.
struct Init {
  enum class Kind { constant, normal, uniform } kind = Kind::constant;
  double value = 0;  // the constant, the standard deviation, or the bound of [-value, value]

  static Init constant(double value) { return {Kind::constant, value}; }
  static Init normal(double deviation) { return {Kind::normal, deviation}; }
  static Init uniform(double bound) { return {Kind::uniform, bound}; }
};

// The variables of a model and how its parameters start; shared by all graphs of the model.
struct ParameterTable {
  std::shared_ptr<graph::Variables> variables = std::make_shared<graph::Variables>();
  std::vector<Init> inits;  // by variable; meaningful for parameters
};

class Builder {
 public:
  Builder(graph::Graph& graph, const Config& config, ParameterTable& parameters)
      : graph(graph), config(config), parameters_(parameters) {}

  graph::Graph& graph;
  const Config& config;
  graph::Value tokens;     // [batch, time] int32
  std::int64_t layer = 0;  // the block being built

  // The parameter `name`, declared on first use. `group` chooses its optimizer: "matrix", "embedding", "head"
  // or "scalar".
  graph::Value parameter(const std::string& name, Shape shape, const std::string& group, Init init);
  // "h.3." + name: a parameter of the current block.
  graph::Value block_parameter(const std::string& name, Shape shape, const std::string& group, Init init);

 private:
  ParameterTable& parameters_;
};

// n [batch, time, width] (normalised input of the block) -> [batch, time, heads * head_dim], before the
// output projection.
using AttentionVariant = std::function<graph::Value(Builder&, graph::Value n)>;
// tokens -> logits [batch, time, vocab] before the soft cap.
using Architecture = std::function<graph::Value(Builder&)>;

// x [batch, time, hidden] -> the same shape, element by element.
using Activation = std::function<graph::Value(Builder&, graph::Value x)>;

// Registers a variant at namespace scope: static const model::RegisterAttention mine{"mine", build_mine};
struct RegisterAttention {
  RegisterAttention(const std::string& name, AttentionVariant variant);
};
struct RegisterActivation {
  RegisterActivation(const std::string& name, Activation activation);
};
struct RegisterArchitecture {
  RegisterArchitecture(const std::string& name, Architecture architecture);
};

// Throw InputError at `where` with the nearest known name.
const AttentionVariant& attention_variant(const std::string& name, const std::string& where = "[model]");
const Activation& activation(const std::string& name, const std::string& where = "[model]");
const Architecture& architecture(const std::string& name, const std::string& where = "[model]");

}  // namespace headway::model
