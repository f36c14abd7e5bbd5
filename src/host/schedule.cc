#include "host/schedule.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>

#include "base/error.h"

namespace headway::host {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

// Who reads each value.
struct Readers {
  std::vector<std::vector<int>> nodes;  // by value
  std::vector<bool> kept;               // read by an output or an effect

  explicit Readers(const Graph& graph)
      : nodes(static_cast<std::size_t>(graph.values())),
        kept(static_cast<std::size_t>(graph.values()), false) {
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      for (Value input : graph.nodes()[i].inputs) of(input).push_back(static_cast<int>(i));
    }
    for (const auto& [name, value] : graph.outputs()) kept[static_cast<std::size_t>(value.id)] = true;
    for (const graph::Effect& effect : graph.effects())
      kept[static_cast<std::size_t>(effect.value.id)] = true;
  }
  std::vector<int>& of(Value value) { return nodes[static_cast<std::size_t>(value.id)]; }
  const std::vector<int>& of(Value value) const { return nodes[static_cast<std::size_t>(value.id)]; }
  bool is_kept(Value value) const { return kept[static_cast<std::size_t>(value.id)]; }
};

// One found instance of a region: graph nodes in the pattern's order and what its names stand for.
struct Match {
  const Kernels::Region* region;
  std::vector<int> nodes;
  std::map<std::string, Value> names;
};

class Matcher {
 public:
  Matcher(const Graph& graph, const Readers& readers) : graph_(graph), readers_(readers) {}

  // Finds the region with `first` as its first node among nodes that aren't `taken`.
  bool find(const Kernels::Region& region, int first, const std::vector<bool>& taken, Match& match) const {
    match = {&region, {}, {}};
    return extend(first, taken, match) && internal_values_stay_inside(match) && convex(match);
  }

 private:
  const Node& node(int index) const { return graph_.nodes()[static_cast<std::size_t>(index)]; }

  static bool bind(const std::vector<std::string>& names, const std::vector<Value>& values, Match& match) {
    if (names.size() != values.size()) return false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto [found, added] = match.names.emplace(names[i], values[i]);
      if (!added && !(found->second == values[i])) return false;
    }
    return true;
  }

  bool extend(int candidate, const std::vector<bool>& taken, Match& match) const {
    const auto& pattern = match.region->pattern.nodes;
    const auto position = match.nodes.size();
    if (taken[static_cast<std::size_t>(candidate)] || node(candidate).op->name() != pattern[position].op)
      return false;
    if (std::find(match.nodes.begin(), match.nodes.end(), candidate) != match.nodes.end()) return false;
    Match attempt = match;
    if (!bind(pattern[position].inputs, node(candidate).inputs, attempt)) return false;
    if (!bind(pattern[position].outputs, node(candidate).outputs, attempt)) return false;
    attempt.nodes.push_back(candidate);
    if (attempt.nodes.size() == pattern.size()) {
      match = attempt;
      return true;
    }
    // The next node must read something already bound (patterns are connected).
    for (const std::string& name : pattern[position + 1].inputs) {
      const auto bound = attempt.names.find(name);
      if (bound == attempt.names.end()) continue;
      for (int reader : readers_.of(bound->second)) {
        if (extend(reader, taken, attempt)) {
          match = attempt;
          return true;
        }
      }
      return false;
    }
    return false;
  }

  bool internal_values_stay_inside(const Match& match) const {
    const auto& pattern = match.region->pattern;
    for (const auto& [name, value] : match.names) {
      const auto named = [&](const std::vector<std::string>& names) {
        return std::find(names.begin(), names.end(), name) != names.end();
      };
      if (named(pattern.inputs) || named(pattern.outputs)) continue;
      if (readers_.is_kept(value)) return false;
      for (int reader : readers_.of(value)) {
        if (std::find(match.nodes.begin(), match.nodes.end(), reader) == match.nodes.end()) return false;
      }
    }
    return true;
  }

  // No path leaves the region and comes back: otherwise it can't be one call.
  bool convex(const Match& match) const {
    const std::set<int> inside(match.nodes.begin(), match.nodes.end());
    const int last = *inside.rbegin();
    std::set<int> seen;
    std::vector<int> open;
    for (int member : match.nodes) {
      for (Value output : node(member).outputs)
        for (int reader : readers_.of(output))
          if (!inside.contains(reader) && reader < last && seen.insert(reader).second) open.push_back(reader);
    }
    while (!open.empty()) {
      const int outside = open.back();
      open.pop_back();
      for (Value output : node(outside).outputs) {
        for (int reader : readers_.of(output)) {
          if (inside.contains(reader)) return false;
          if (reader < last && seen.insert(reader).second) open.push_back(reader);
        }
      }
    }
    return true;
  }

  const Graph& graph_;
  const Readers& readers_;
};

Step single_step(const Graph& graph, const Node& node, const Kernels& kernels) {
  return {&kernels.single(node.op->name()),
          {node.op.get()},
          node.inputs,
          node.outputs,
          node.scope,
          std::string(node.op->name()),
          graph::flops_of(graph, node)};
}

Step region_step(const Graph& graph, const Match& match) {
  Step step;
  step.kernel = match.region->kernel.get();
  for (int index : match.nodes) {
    const Node& node = graph.nodes()[static_cast<std::size_t>(index)];
    step.ops.push_back(node.op.get());
    step.flops += graph::flops_of(graph, node);
    step.name += (step.name.empty() ? "" : "+") + std::string(node.op->name());
  }
  for (const std::string& name : match.region->pattern.inputs) step.inputs.push_back(match.names.at(name));
  for (const std::string& name : match.region->pattern.outputs) step.outputs.push_back(match.names.at(name));
  step.scope = graph.nodes()[static_cast<std::size_t>(match.nodes.front())].scope;
  return step;
}

// Kahn's algorithm over groups of nodes, always the group with the earliest node first. Empty when groups
// wait for each other in a circle.
std::vector<int> order_of(const Graph& graph, const std::vector<std::vector<int>>& groups) {
  std::vector<int> group_of(graph.nodes().size(), -1);
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (int node : groups[g]) group_of[static_cast<std::size_t>(node)] = static_cast<int>(g);
  std::vector<std::set<int>> followers(groups.size());
  std::vector<int> waiting(groups.size(), 0);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    for (Value input : graph.nodes()[i].inputs) {
      const graph::ValueInfo& info = graph.info(input);
      if (info.source != graph::Source::node) continue;
      const int from = group_of[static_cast<std::size_t>(info.index)];
      const int to = group_of[i];
      if (from != to && followers[static_cast<std::size_t>(from)].insert(to).second)
        ++waiting[static_cast<std::size_t>(to)];
    }
  }
  const auto first = [&](int g) {
    return *std::min_element(groups[static_cast<std::size_t>(g)].begin(),
                             groups[static_cast<std::size_t>(g)].end());
  };
  using Entry = std::pair<int, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (waiting[g] == 0) ready.emplace(first(static_cast<int>(g)), static_cast<int>(g));
  std::vector<int> order;
  while (!ready.empty()) {
    const int g = ready.top().second;
    ready.pop();
    order.push_back(g);
    for (int follower : followers[static_cast<std::size_t>(g)])
      if (--waiting[static_cast<std::size_t>(follower)] == 0) ready.emplace(first(follower), follower);
  }
  return order.size() == groups.size() ? order : std::vector<int>{};
}

}  // namespace

std::vector<Step> schedule(const Graph& graph, const Kernels& kernels) {
  const Readers readers(graph);
  const Matcher matcher(graph, readers);
  const int count = static_cast<int>(graph.nodes().size());
  std::vector<bool> taken(static_cast<std::size_t>(count), false);
  std::vector<Match> matches;
  for (const Kernels::Region& region : kernels.regions()) {
    for (int first = 0; first < count; ++first) {
      Match match;
      if (!matcher.find(region, first, taken, match)) continue;
      for (int node : match.nodes) taken[static_cast<std::size_t>(node)] = true;
      matches.push_back(std::move(match));
    }
  }

  // Regions that are each convex may still wait for each other; then the last found is dissolved.
  while (true) {
    std::fill(taken.begin(), taken.end(), false);
    std::vector<std::vector<int>> groups;
    for (const Match& match : matches) {
      groups.push_back(match.nodes);
      for (int node : match.nodes) taken[static_cast<std::size_t>(node)] = true;
    }
    for (int node = 0; node < count; ++node)
      if (!taken[static_cast<std::size_t>(node)]) groups.push_back({node});
    const std::vector<int> order = order_of(graph, groups);
    if (order.empty() && count > 0) {
      HEADWAY_CHECK(!matches.empty());
      matches.pop_back();
      continue;
    }
    std::vector<Step> steps;
    for (int g : order) {
      const auto index = static_cast<std::size_t>(g);
      steps.push_back(
          index < matches.size()
              ? region_step(graph, matches[index])
              : single_step(graph, graph.nodes()[static_cast<std::size_t>(groups[index][0])], kernels));
    }
    return steps;
  }
}

}  // namespace headway::host
