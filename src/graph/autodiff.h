// Reverse-mode differentiation of graphs: gradients are built from operators, in the same graph.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace headway::graph {

// d (seed . loss) / d value for each of `wrt`, where `seed` has the type of `loss`: two scalars in training,
// any two tensors when a gradient rule is tested. Values that the loss doesn't depend on get a Value that is
// not valid().
std::vector<Value> gradients(Graph& graph, Value loss, Value seed, std::span<const Value> wrt);

}  // namespace headway::graph
