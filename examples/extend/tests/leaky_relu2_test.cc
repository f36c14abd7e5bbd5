// The operator's values and gradient, against its formula and finite differences.
#include "../leaky_relu2.h"

#include "host/gradient_check.h"

namespace headway::examples {
namespace {

using graph::Graph;
using graph::Value;

Value leaky(Graph& g, Value x) { return g.apply1(std::make_shared<LeakyRelu2>(0.2), {x}); }

TEST(LeakyRelu2, GradientEqualsFiniteDifferences) {
  test::check_gradient([](Graph& g, std::vector<Value> in) { return leaky(g, in[0]); }, {{3, 7}});
}

TEST(LeakyRelu2, LetsALittleOfTheNegativeSideThrough) {
  Graph g(std::make_shared<graph::Variables>());
  const Value y = leaky(g, g.input("x", {{3}, DType::f32}));
  test::Interpreter<double> machine(g, host::reference_kernels<double>());
  machine.bind("x", {2, -1, 0});
  machine.run();
  EXPECT_EQ(machine.value(y), (test::Numbers{4, -0.2, 0}));
}

}  // namespace
}  // namespace headway::examples
