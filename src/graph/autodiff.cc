#include "graph/autodiff.h"

#include "base/error.h"
#include "graph/operators/elementwise.h"

namespace headway::graph {

std::vector<Value> gradients(Graph& graph, Value loss, Value seed, std::span<const Value> wrt) {
  const int last = static_cast<int>(graph.nodes().size());
  std::vector<bool> depends(static_cast<std::size_t>(graph.values()), false);
  for (Value value : wrt) depends[static_cast<std::size_t>(value.id)] = true;
  for (const Node& node : graph.nodes()) {
    bool any = false;
    for (Value input : node.inputs) any = any || depends[static_cast<std::size_t>(input.id)];
    for (Value output : node.outputs) depends[static_cast<std::size_t>(output.id)] = any;
  }

  // Contributions per value; summed only when the value's own producer is reached, so that each is one
  // addition.
  std::vector<std::vector<Value>> contributions(static_cast<std::size_t>(graph.values()));
  contributions[static_cast<std::size_t>(loss.id)].push_back(seed);
  const auto total = [&](Value value) -> Value {
    auto& parts = contributions[static_cast<std::size_t>(value.id)];
    if (parts.empty()) return {};
    if (parts.size() > 1) parts = {add(graph, parts)};
    return parts.front();
  };

  for (int i = last - 1; i >= 0; --i) {
    const Node node =
        graph.nodes()[static_cast<std::size_t>(i)];  // a copy: building gradients grows the list
    std::vector<Value> output_gradients;
    bool arrives = false;
    const std::string scope = graph.set_scope(node.scope);
    for (Value output : node.outputs) {
      const bool wanted = depends[static_cast<std::size_t>(output.id)];
      output_gradients.push_back(wanted ? total(output) : Value{});
      arrives = arrives || output_gradients.back().valid();
    }
    if (arrives) {
      std::vector<bool> needed;
      for (Value input : node.inputs) needed.push_back(depends[static_cast<std::size_t>(input.id)]);
      const std::vector<Value> input_gradients =
          node.op->gradient({graph, node.inputs, node.outputs, output_gradients, needed});
      HEADWAY_CHECK(input_gradients.size() == node.inputs.size());
      for (std::size_t k = 0; k < needed.size(); ++k) {
        if (needed[k] && input_gradients[k].valid()) {
          contributions[static_cast<std::size_t>(node.inputs[k].id)].push_back(input_gradients[k]);
        }
      }
    }
    graph.set_scope(scope);
  }

  std::vector<Value> result;
  for (Value value : wrt) result.push_back(total(value));
  return result;
}

}  // namespace headway::graph
