// From a graph to an ordered list of kernel calls: regions matched and contracted, the rest one operator a
// call.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "host/kernel.h"

namespace headway::host {

// One kernel call. `inputs` and `outputs` are in the kernel's order.
struct Step {
  const Kernel* kernel = nullptr;
  std::vector<const graph::Operator*> ops;
  std::vector<graph::Value> inputs;
  std::vector<graph::Value> outputs;
  std::string scope;
  std::string name;  // operator names joined by '+'
  double flops = 0;
};

// All nodes of the graph exactly once, in an order in which operands come first.
std::vector<Step> schedule(const graph::Graph& graph, const Kernels& kernels);

}  // namespace headway::host
