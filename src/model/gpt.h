// The GPT family of the contest's baseline: RMS norm, rotary, QK norm, ReLU squared, and its switches.
#pragma once

#include "model/builder.h"

namespace headway::model {

// The architecture "gpt".
graph::Value gpt(Builder& b);

// The attention variant "causal": projections, value embedding, rotary, QK norm, softmax attention.
graph::Value causal_attention(Builder& b, graph::Value n);

// The pieces of it that other variants reuse: rotary and QK norm of q and k, and v with its value embedding.
struct Projections {
  graph::Value q, k, v;
};
Projections project(Builder& b, graph::Value n);

}  // namespace headway::model
