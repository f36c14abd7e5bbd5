#include "model/builder.h"

#include <map>

#include "base/error.h"
#include "model/gpt.h"

namespace headway::model {
namespace {

template <class T>
class Named {
 public:
  void add(const std::string& name, T value) {
    if (!table_.emplace(name, std::move(value)).second) throw Bug(name + " is registered twice");
  }
  const T& get(const std::string& kind, const std::string& name) const {
    const auto found = table_.find(name);
    if (found != table_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [key, value] : table_) known.push_back(key);
    refuse_name("[model]", kind, name, known);
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

graph::Value Builder::block_parameter(const std::string& name, Shape shape, const std::string& group, Init init) {
  return parameter("h." + std::to_string(layer) + "." + name, std::move(shape), group, init);
}

RegisterAttention::RegisterAttention(const std::string& name, AttentionVariant variant) {
  attentions().add(name, std::move(variant));
}
RegisterArchitecture::RegisterArchitecture(const std::string& name, Architecture architecture) {
  architectures().add(name, std::move(architecture));
}
const AttentionVariant& attention_variant(const std::string& name) { return attentions().get("attention variant", name); }
const Architecture& architecture(const std::string& name) { return architectures().get("architecture", name); }

}  // namespace headway::model
