#include "model/builder.h"

#include <map>

#include "base/error.h"
#include "graph/operators/elementwise.h"
#include "model/gpt.h"

namespace headway::model {
namespace {

template <class T>
class Named {
 public:
  void add(const std::string& name, T value) {
    if (!table_.emplace(name, std::move(value)).second) throw Bug(name + " is registered twice");
  }
  const T& get(const std::string& kind, const std::string& name, const std::string& where) const {
    const auto found = table_.find(name);
    if (found != table_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [key, value] : table_) known.push_back(key);
    refuse_name(where, kind, name, known);
  }

 private:
  std::map<std::string, T> table_;
};

// Behind functions: registration happens during static initialisation.
Named<AttentionVariant>& attentions() {
  static Named<AttentionVariant> table = [] {
    Named<AttentionVariant> own;
    own.add("causal", causal_attention);
    return own;
  }();
  return table;
}
Named<Activation>& activations() {
  static Named<Activation> table = [] {
    Named<Activation> own;
    for (graph::ActivationKind kind : {graph::ActivationKind::relu, graph::ActivationKind::relu2,
                                       graph::ActivationKind::gelu, graph::ActivationKind::silu}) {
      own.add(std::string(graph::name_of(kind)),
              [kind](Builder& b, graph::Value x) { return graph::activation(b.graph, kind, x); });
    }
    return own;
  }();
  return table;
}
Named<Architecture>& architectures() {
  static Named<Architecture> table = [] {
    Named<Architecture> own;
    own.add("gpt", gpt);
    return own;
  }();
  return table;
}

}  // namespace

graph::Value Builder::parameter(const std::string& name, Shape shape, const std::string& group, Init init) {
  int index = parameters_.variables->find(name);
  if (index < 0) {
    graph::Variable variable;
    variable.name = name;
    variable.type.shape = std::move(shape);
    variable.group = group;
    index = parameters_.variables->add(std::move(variable));
    parameters_.inits.resize(static_cast<std::size_t>(index) + 1);
    parameters_.inits[static_cast<std::size_t>(index)] = init;
  } else if ((*parameters_.variables)[index].type.shape != shape) {
    throw InputError("[model]", "parameter " + name + " is used with shapes " + to_string(shape) + " and " +
                                    to_string((*parameters_.variables)[index].type.shape));
  }
  return graph.read(index);
}

graph::Value Builder::block_parameter(const std::string& name, Shape shape, const std::string& group,
                                      Init init) {
  return parameter("h." + std::to_string(layer) + "." + name, std::move(shape), group, init);
}

RegisterAttention::RegisterAttention(const std::string& name, AttentionVariant variant) {
  attentions().add(name, std::move(variant));
}
RegisterActivation::RegisterActivation(const std::string& name, Activation activation) {
  activations().add(name, std::move(activation));
}
RegisterArchitecture::RegisterArchitecture(const std::string& name, Architecture architecture) {
  architectures().add(name, std::move(architecture));
}
const AttentionVariant& attention_variant(const std::string& name, const std::string& where) {
  return attentions().get("attention variant", name, where);
}
const Activation& activation(const std::string& name, const std::string& where) {
  return activations().get("activation", name, where);
}
const Architecture& architecture(const std::string& name, const std::string& where) {
  return architectures().get("architecture", name, where);
}

}  // namespace headway::model
