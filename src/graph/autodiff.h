// Reverse-mode differentiation of graphs: gradients are built from operators, in the same graph.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace headway::graph {

// d (seed * loss) / d value for each of `wrt`, where `loss` and `seed` are scalars. Values that the loss doesn't depend
// on get a Value that is not valid().
std::vector<Value> gradients(Graph& graph, Value loss, Value seed, std::span<const Value> wrt);

}  // namespace headway::graph
