// Checks all parameter gradients of a whole model against finite differences of its loss, in double on the
// plain kernels. The whole use: check_model_gradients(config).
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/threads.h"
#include "host/host_backend.h"
#include "model/model.h"

namespace headway::test {

// Compares `probes` random elements of each parameter. Parameters that start at zero are given random values,
// or most gradients would be zero.
inline void check_model_gradients(const model::Config& config, int probes = 4, std::uint64_t seed = 1) {
  const model::Model model(config);
  ThreadPool pool(1, false);
  const auto backend = host::make_backend(model.variables(), pool, host::Precision::reference);
  const std::int64_t batch = 2, time = config.sequence;
  const auto micro = backend->compile(model.micro(batch, time));
  Random random(seed);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch * time)), targets(tokens.size());
  for (std::int32_t& id : tokens)
    id = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(config.vocab)));
  for (std::int32_t& id : targets)
    id = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(config.vocab)));
  targets[1] = -1;
  micro->bind("tokens", tokens);
  micro->bind("targets", targets);
  micro->bind("loss_scale", 1.0);

  const auto parameters = model.variables()->with(graph::Role::parameter);
  for (int p : parameters) {
    std::vector<double> values = backend->read(p);
    for (double& value : values) value = 0.3 * random.normal();
    backend->write(p, values);
  }
  const auto loss = [&] {
    micro->run();
    return micro->output("loss")[0];
  };
  backend->zero(graph::Role::gradient);
  loss();
  std::vector<std::vector<double>> gradients;
  for (int p : parameters) gradients.push_back(backend->read(model.gradient_of(p)));

  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<double> values = backend->read(parameters[i]);
    double largest = 1e-6;
    for (double g : gradients[i]) largest = std::max(largest, std::abs(g));
    for (int probe = 0; probe < probes; ++probe) {
      const auto at = static_cast<std::size_t>(random.below(values.size()));
      const double kept = values[at], step = 1e-5;
      const auto loss_at = [&](double value) {
        values[at] = value;
        backend->write(parameters[i], values);
        return loss();
      };
      const double difference = (loss_at(kept + step) - loss_at(kept - step)) / (2 * step);
      loss_at(kept);
      EXPECT_NEAR(gradients[i][at], difference, 1e-5 * largest)
          << (*model.variables())[parameters[i]].name << ", element " << at;
    }
  }
}

}  // namespace headway::test
