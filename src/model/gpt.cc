#include "model/gpt.h"

#include <cmath>

#include "graph/operators/elementwise.h"
#include "graph/operators/linear.h"
#include "graph/operators/sequence.h"

namespace headway::model {

using graph::Graph;
using graph::Value;

namespace {

// Uniform with the variance of 1 / width.
double bound(const Config& c) { return std::sqrt(3.0 / static_cast<double>(c.width)); }

Value normed(Builder& b, Value x) { return graph::rms_norm(b.graph, x, b.config.norm_eps); }

Value mlp(Builder& b, Value m) {
  const Config& c = b.config;
  const Graph::Scope scope(b.graph, "mlp");
  const Shape in = {c.mlp_width(), c.width};
  Value h = graph::linear(b.graph, m,
                          b.block_parameter("mlp.fc", in, "matrix", Init::uniform(c.fc_init * bound(c))));
  if (c.gated_mlp) {
    const Value gate = graph::linear(
        b.graph, m, b.block_parameter("mlp.gate", in, "matrix", Init::uniform(c.fc_init * bound(c))));
    h = graph::multiply(b.graph, activation(c.activation)(b, gate), h);
  } else {
    h = activation(c.activation)(b, h);
  }
  return graph::linear(b.graph, h,
                       b.block_parameter("mlp.proj", {c.width, c.mlp_width()}, "matrix", Init::constant(0)));
}

}  // namespace

Projections project(Builder& b, Value n) {
  const Config& c = b.config;
  Graph& g = b.graph;
  const std::int64_t q_width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  const auto projection = [&](const std::string& name, std::int64_t out) {
    return graph::linear(
        g, n, b.block_parameter("attn." + name, {out, c.width}, "matrix", Init::uniform(bound(c))));
  };
  Value q = projection("q", q_width), k = projection("k", kv_width), v = projection("v", kv_width);
  if (c.value_embedding(b.layer)) {
    const Value gate = graph::linear(
        g, graph::slice_columns(g, n, 0, c.value_gate_channels),
        b.block_parameter("attn.gate", {c.kv_heads, c.value_gate_channels}, "matrix", Init::constant(0)));
    const Value table =
        b.block_parameter("value_embedding", {c.vocab, kv_width}, "embedding", Init::uniform(bound(c)));
    v = graph::value_gate(g, v, graph::embedding(g, b.tokens, table), gate);
  }
  q = graph::rms_norm(g, graph::rotary(g, q, c.head_dim, c.rotary_base), c.norm_eps, c.head_dim);
  k = graph::rms_norm(g, graph::rotary(g, k, c.head_dim, c.rotary_base), c.norm_eps, c.head_dim);
  return {q, k, v};
}

Value causal_attention(Builder& b, Value n) {
  const Config& c = b.config;
  const Projections p = project(b, n);
  return graph::attention(b.graph, p.q, p.k, p.v,
                          {c.heads, c.kv_heads, c.head_dim, c.window(b.layer),
                           c.qk_gain / std::sqrt(static_cast<double>(c.head_dim))});
}

Value gpt(Builder& b) {
  const Config& c = b.config;
  Graph& g = b.graph;
  Value x;
  {
    const Graph::Scope scope(g, "embedding");
    x = graph::embedding(g, b.tokens,
                         b.parameter("wte", {c.vocab, c.width}, "embedding", Init::normal(c.embedding_std)));
    x = normed(b, x);
  }
  const Value x0 = x;
  for (b.layer = 0; b.layer < c.depth; ++b.layer) {
    const Graph::Scope block(g, "h." + std::to_string(b.layer));
    if (c.residual_lambdas) {
      const Value a = b.parameter("resid_lambdas", {c.depth}, "scalar", Init::constant(c.residual_init));
      const Value a0 = b.parameter("x0_lambdas", {c.depth}, "scalar", Init::constant(c.x0_init));
      x = graph::residual_mix(g, x, x0, a, a0, b.layer);
    }
    {
      const Graph::Scope scope(g, "attn");
      const Value n = normed(b, x);
      const Value heads = attention_variant(c.attention)(b, n);
      const Value out = graph::linear(
          g, heads,
          b.block_parameter("attn.proj", {c.width, c.heads * c.head_dim}, "matrix", Init::constant(0)));
      std::vector<Value> terms = {x, out};
      if (c.convolution) {
        terms.push_back(graph::causal_convolution(
            g, n, b.block_parameter("conv", {c.width, 2}, "matrix", Init::constant(0))));
      }
      x = graph::add(g, terms);
    }
    const Value m = normed(b, x);
    x = graph::add(g, {x, mlp(b, m)});
  }
  const Graph::Scope scope(g, "head");
  return graph::linear(g, normed(b, x),
                       b.parameter("head", {c.vocab, c.width}, "head", Init::normal(c.head_std)));
}

}  // namespace headway::model
