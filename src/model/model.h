// A model: its parameters and the graphs that run it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/executable.h"
#include "graph/graph.h"
#include "model/builder.h"
#include "model/config.h"

namespace headway::model {

class Model {
 public:
  // Declares all parameters and their gradients. Throws InputError for what the registered parts refuse.
  explicit Model(Config config);

  const Config& config() const { return config_; }
  const std::shared_ptr<graph::Variables>& variables() const { return parameters_.variables; }

  // tokens [batch, time] -> output "logits" [batch, time, vocab], soft-capped.
  graph::Graph forward(std::int64_t batch, std::int64_t time) const;
  // tokens, targets [batch, time], scalar loss_scale -> output "loss"; adds loss_scale * d loss into the
  // gradients.
  graph::Graph micro(std::int64_t batch, std::int64_t time) const;

  // The index of a parameter's gradient.
  int gradient_of(int parameter) const;

  // Writes every parameter's start, drawn from a stream that depends on seed and the parameter's name only.
  void initialize(graph::Backend& backend, std::uint64_t seed) const;

  std::int64_t parameter_count() const { return parameters_.variables->parameters(); }
  // Training FLOPs per token by the contest's formula: 3 times the forward's matrix products, attention over
  // the whole window (6 x matrix parameters + 12 x depth x width x window).
  double flops_per_token() const;
  // The same by part of the model ("attention projections", "mlp", ...): name, parameters, FLOPs per token.
  struct Part {
    std::string name;
    std::int64_t parameters = 0;
    double flops_per_token = 0;
  };
  std::vector<Part> parts() const;

 private:
  // logits before the soft cap
  graph::Value build(graph::Graph& graph, graph::Value tokens) const;

  Config config_;
  mutable ParameterTable parameters_;  // complete after construction; graphs only look parameters up
};

}  // namespace headway::model
