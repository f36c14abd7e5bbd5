// Lion's update graph over several steps, against its formula.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "base/threads.h"
#include "host/host_backend.h"
#include "optim/optimizer.h"

namespace headway::examples {
namespace {

TEST(Lion, StepsEqualTheFormula) {
  auto variables = std::make_shared<graph::Variables>();
  const int p = variables->add({"w", {{2, 3}, DType::f32}, graph::Role::parameter, "matrix", -1});
  const int g = variables->add({"w.grad", {{2, 3}, DType::f32}, graph::Role::gradient, "matrix", p});
  TomlTable table = TomlTable::parse(
      "[optimizer.matrix]\nmethod = \"lion\"\nlr = 1\nbeta1 = 0.8\nbeta2 = 0.95\n"
      "[optimizer.embedding]\nlr = 1\n[optimizer.head]\nlr = 1\n[optimizer.scalar]\nlr = 1\n",
      "test.toml");
  const optim::Optimizer optimizer = optim::read_optimizer(table.table("optimizer"));
  const graph::Graph graph = optim::update_graph(optimizer, variables, [&](int) { return g; });
  ThreadPool pool(1, false);
  const auto backend = host::make_backend(variables, pool, host::Precision::reference);
  const auto update = backend->compile(graph);

  Random random(5);
  std::vector<double> w(6), m(6, 0.0);
  for (double& x : w) x = random.normal();
  backend->write(p, w);
  const double lr = 0.01, decay = 0.1;
  update->bind("lr.matrix", lr);
  update->bind("weight_decay.matrix", decay);
  for (int step = 0; step < 4; ++step) {
    std::vector<double> gradient(6);
    for (double& x : gradient) x = random.normal();
    backend->write(g, gradient);
    update->run();
    for (std::size_t i = 0; i < 6; ++i) {
      const double blend = 0.8 * m[i] + 0.2 * gradient[i];
      w[i] -= lr * (std::copysign(1.0, blend) + decay * w[i]);
      m[i] = 0.95 * m[i] + 0.05 * gradient[i];
    }
    const std::vector<double> now = backend->read(p);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(now[i], w[i], 1e-14);
  }
}

}  // namespace
}  // namespace headway::examples
