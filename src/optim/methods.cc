#include "optim/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "graph/operators/update.h"

namespace headway::optim {
namespace {

using graph::Value;

double fraction(TomlTable& group, const std::string& key, double fallback) {
  const double value = group.number(key, fallback);
  if (!(value >= 0 && value < 1)) group.refuse(key, fmt::format("is {}; it must be in [0, 1)", value));
  return value;
}

class AdamWMethod : public Method {
 public:
  AdamWMethod(double beta1, double beta2, double eps) : beta1_(beta1), beta2_(beta2), eps_(eps) {}

  void build(Update& u) const override {
    const std::vector<Value> next = u.graph.apply(
        std::make_shared<graph::AdamW>(beta1_, beta2_, eps_),
        {u.parameter(), u.gradient, u.state("m"), u.state("v"), u.lr(), u.weight_decay(), u.step()});
    u.assign_parameter(next[0]);
    u.assign_state("m", next[1]);
    u.assign_state("v", next[2]);
  }
  std::string options() const override {
    return fmt::format("beta1 = {}\nbeta2 = {}\neps = {}\n", beta1_, beta2_, eps_);
  }

 private:
  double beta1_, beta2_, eps_;
};

class MuonMethod : public Method {
 public:
  MuonMethod(int iterations, bool normuon, double beta2)
      : iterations_(iterations), normuon_(normuon), beta2_(beta2) {}

  void build(Update& u) const override {
    if (u.shape().size() != 2) {
      throw InputError("[optimizer.matrix]",
                       "muon updates matrices, not a parameter of shape " + to_string(u.shape()));
    }
    const std::int64_t rows = u.shape()[0], columns = u.shape()[1];
    const std::vector<Value> momentum = u.graph.apply(std::make_shared<graph::NesterovMomentum>(),
                                                      {u.gradient, u.state("momentum"), u.momentum()});
    u.assign_state("momentum", momentum[1]);
    Value update = u.graph.apply1(std::make_shared<graph::PolarExpress>(iterations_), {momentum[0]});
    if (normuon_) {
      const std::vector<Value> normed = u.graph.apply(std::make_shared<graph::NorMuon>(beta2_),
                                                      {update, u.state("second", {std::max(rows, columns)})});
      u.assign_state("second", normed[1]);
      update = normed[0];
    }
    // Tall matrices take longer steps (Jordan et al. 2024).
    const double scale = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
    u.assign_parameter(u.graph.apply1(std::make_shared<graph::CautiousUpdate>(scale),
                                      {u.parameter(), update, u.lr(), u.weight_decay()}));
  }
  std::string options() const override {
    return fmt::format("iterations = {}\nnormuon = {}\nbeta2 = {}\n", iterations_, normuon_, beta2_);
  }

 private:
  int iterations_;
  bool normuon_;
  double beta2_;
};

}  // namespace

std::unique_ptr<Method> make_adamw(TomlTable& group) {
  const double beta1 = fraction(group, "beta1", 0.9), beta2 = fraction(group, "beta2", 0.95);
  const double eps = group.number("eps", 1e-10);
  if (!(eps > 0)) group.refuse("eps", "must be positive");
  return std::make_unique<AdamWMethod>(beta1, beta2, eps);
}

std::unique_ptr<Method> make_muon(TomlTable& group) {
  const std::int64_t iterations = group.integer("iterations", 5);
  if (iterations < 1 || iterations > 5) group.refuse("iterations", fmt::format("is {}; 1 to 5", iterations));
  const bool normuon = group.boolean("normuon", true);
  return std::make_unique<MuonMethod>(static_cast<int>(iterations), normuon, fraction(group, "beta2", 0.9));
}

}  // namespace headway::optim
