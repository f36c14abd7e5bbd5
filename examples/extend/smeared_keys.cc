// An attention variant outside src/: each key also holds a learned part of the key before it, channel by
// channel (a 2-tap causal convolution, zero at the start, so training begins at plain attention). Recipes
// call it by attention = "smeared_keys".
#include <cmath>

#include "graph/operators/elementwise.h"
#include "graph/operators/sequence.h"
#include "model/builder.h"
#include "model/gpt.h"

namespace headway::examples {
namespace {

graph::Value smeared_keys(model::Builder& b, graph::Value n) {
  const model::Config& c = b.config;
  const model::Projections p =
      model::project(b, n);  // q, k after rotary and QK norm; v with its value embedding
  const graph::Value smear =
      b.block_parameter("attn.smear", {c.kv_heads * c.head_dim, 2}, "matrix", model::Init::constant(0));
  const graph::Value k = graph::add(b.graph, {p.k, graph::causal_convolution(b.graph, p.k, smear)});
  return graph::attention(b.graph, p.q, k, p.v,
                          {c.heads, c.kv_heads, c.head_dim, c.window(b.layer),
                           c.qk_gain / std::sqrt(static_cast<double>(c.head_dim))});
}

const model::RegisterAttention by_name{"smeared_keys", smeared_keys};

}  // namespace
}  // namespace headway::examples
