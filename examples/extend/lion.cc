// An optimizer outside src/: Lion (Chen et al. 2023), "Symbolic Discovery of Optimization Algorithms":
//   u = sign(beta1 m + (1 - beta1) g),  p' = p - lr (u + weight_decay p),  m' = beta2 m + (1 - beta2) g.
// Recipes call it by method = "lion" in a group of [optimizer].
#include <fmt/format.h>

#include "graph/graph.h"
#include "host/kernel.h"
#include "optim/method.h"

namespace headway::examples {
namespace {

// (p, g, m, lr [], weight_decay []) -> (p', m').
struct Lion : graph::Operator {
  Lion(double beta1, double beta2) : beta1(beta1), beta2(beta2) {}
  const double beta1, beta2;
  std::string_view name() const override { return "lion"; }
  nlohmann::json attributes() const override { return {{"beta1", beta1}, {"beta2", beta2}}; }
  std::vector<graph::TensorType> infer(std::span<const graph::TensorType> in) const override {
    graph::require(
        in.size() == 5 && in[1] == in[0] && in[2] == in[0] && in[3].shape.empty() && in[4].shape.empty(),
        *this, "takes p, g, m of one shape and scalars lr and weight decay", in);
    return {in[0], in[0]};
  }
};

template <class T>
void lion(const host::Call& call) {
  const auto& op = call.op<Lion>();
  const T beta1 = static_cast<T>(op.beta1), beta2 = static_cast<T>(op.beta2);
  const T *p = call.inputs[0].as<T>(), *g = call.inputs[1].as<T>(), *m = call.inputs[2].as<T>();
  const T lr = *call.inputs[3].as<T>(), decay = *call.inputs[4].as<T>();
  for (std::int64_t i = 0; i < call.inputs[0].count(); ++i) {
    const T blend = beta1 * m[i] + (1 - beta1) * g[i];
    const T sign = blend > 0 ? T(1) : blend < 0 ? T(-1) : T(0);
    call.outputs[0].as<T>()[i] = p[i] - lr * (sign + decay * p[i]);
    call.outputs[1].as<T>()[i] = beta2 * m[i] + (1 - beta2) * g[i];
  }
}

class LionMethod : public optim::Method {
 public:
  LionMethod(double beta1, double beta2) : beta1_(beta1), beta2_(beta2) {}
  void build(optim::Update& u) const override {
    const std::vector<graph::Value> next =
        u.graph.apply(std::make_shared<Lion>(beta1_, beta2_),
                      {u.parameter(), u.gradient, u.state("m"), u.lr(), u.weight_decay()});
    u.assign_parameter(next[0]);
    u.assign_state("m", next[1]);
  }
  std::string options() const override { return fmt::format("beta1 = {}\nbeta2 = {}\n", beta1_, beta2_); }

 private:
  double beta1_, beta2_;
};

const host::Reference reference{"lion", lion<float>, lion<double>};
const optim::RegisterMethod by_name{"lion", [](TomlTable& group) -> std::unique_ptr<optim::Method> {
                                      return std::make_unique<LionMethod>(group.number("beta1", 0.9),
                                                                          group.number("beta2", 0.99));
                                    }};

}  // namespace
}  // namespace headway::examples
