// The model, its gradients and the optimizers against PyTorch's automatic differentiation in float64
// (tests/fixtures/make_fixture.py): two small models that between them use every switch of the GPT family but
// the gated MLP.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "base/safetensors.h"
#include "host/host_backend.h"
#include "model/model.h"
#include "optim/optimizer.h"

namespace headway {
namespace {

using Numbers = std::vector<double>;

// |found - expected| / |expected|, of all elements.
double relative_error(const Numbers& found, const Numbers& expected) {
  EXPECT_EQ(found.size(), expected.size());
  if (found.size() != expected.size()) return INFINITY;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

Numbers minus(Numbers a, const Numbers& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

class Fixture {
 public:
  explicit Fixture(const std::string& name)
      : file_(std::string(HEADWAY_ROOT) + "/tests/fixtures/" + name + ".safetensors"),
        model_(nlohmann::json::parse(file_.metadata().at("model"))),
        optimizers_(nlohmann::json::parse(file_.metadata().at("optimizers"))) {}

  model::Config config() const {
    model::Config c;
    c.depth = model_.at("depth");
    c.width = model_.at("width");
    c.heads = model_.at("heads");
    c.kv_heads = model_.at("kv_heads");
    c.head_dim = c.width / c.heads;
    c.vocab = model_.at("vocab");
    c.sequence = model_.at("seq");
    c.mlp_ratio = model_.at("mlp_ratio");
    c.rotary_base = model_.at("rotary_base");
    c.norm_eps = model_.at("eps");
    c.qk_gain = model_.at("qk_gain");
    c.softcap = model_.at("softcap");
    c.windows = model_.at("windows");
    c.value_embeddings = model_.at("value_embeddings").get<bool>() ? "alternating" : "none";
    c.value_gate_channels = model_.at("gate_channels");
    c.convolution = model_.at("convolution");
    return c;
  }
  std::int64_t batch() const { return model_.at("batch"); }
  std::int64_t sequence() const { return model_.at("seq"); }

  const nlohmann::json& optimizer(const std::string& name) const { return optimizers_.at(name); }
  int steps() const { return static_cast<int>(file_.tensors().at("tokens").shape.at(0)); }

  // Names of the parameters, in no particular order.
  std::vector<std::string> parameters() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : file_.tensors())
      if (name.starts_with("initial/")) names.push_back(name.substr(8));
    return names;
  }

  Numbers numbers(const std::string& name, const Shape& shape) const {
    Numbers values(static_cast<std::size_t>(elements(shape)));
    file_.copy(name, DType::f64, shape, values.data());
    return values;
  }

  // One step's tokens or targets, [batch, sequence].
  std::vector<std::int32_t> integers(const std::string& name, int step) const {
    const std::size_t count = static_cast<std::size_t>(batch() * sequence());
    std::vector<std::int32_t> all(count * static_cast<std::size_t>(steps()));
    file_.copy(name, DType::i32, {steps(), batch(), sequence()}, all.data());
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(count) * step;
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  Safetensors file_;
  nlohmann::json model_, optimizers_;
};

// The [optimizer] section that says what the fixture's metadata says.
optim::Optimizer optimizer_of(const nlohmann::json& description) {
  std::string text = fmt::format("clip = {}\n", description.at("max_norm").get<double>());
  for (const auto& [name, group] : description.at("groups").items()) {
    text += fmt::format("[{}]\nmethod = \"{}\"\nlr = 1\n", name, group.at("kind").get<std::string>());
    if (group.at("kind") == "adamw") {
      text += fmt::format("beta1 = {}\nbeta2 = {}\neps = {}\n", group.at("betas").at(0).get<double>(),
                          group.at("betas").at(1).get<double>(), group.at("eps").get<double>());
    } else {
      const double beta2 = group.at("normuon_beta2");
      text += fmt::format("iterations = {}\nnormuon = {}\n", group.at("iterations").get<int>(), beta2 > 0);
      if (beta2 > 0) text += fmt::format("beta2 = {}\n", beta2);
    }
  }
  return optim::read_optimizer(TomlTable::parse(text, "fixture"));
}

// A model on a backend, with the fixture's start.
struct Instance {
  Instance(const Fixture& fixture, host::Precision precision) : fixture(fixture), model(fixture.config()) {
    for (int p : parameters()) initial[p] = fixture.numbers("initial/" + name(p), shape(p));
    start = [this, precision] {
      backend = host::make_backend(model.variables(), pool, precision);
      for (int p : parameters()) backend->write(p, initial.at(p));
      backend->zero(graph::Role::gradient);
    };
  }

  std::vector<int> parameters() const { return model.variables()->with(graph::Role::parameter); }
  const std::string& name(int p) const { return (*model.variables())[p].name; }
  const std::string& group(int p) const { return (*model.variables())[p].group; }
  const Shape& shape(int p) const { return (*model.variables())[p].type.shape; }

  const Fixture& fixture;
  model::Model model;
  ThreadPool pool{2, false};
  std::map<int, Numbers> initial;
  // Makes `backend` from the variables that have been declared so far.
  std::function<void()> start;
  std::unique_ptr<graph::Backend> backend;
};

// Collects errors by kind of tensor, expects each below its bound, prints the worst.
class Errors {
 public:
  void expect(const std::string& kind, const std::string& tensor, double error, double bound) {
    EXPECT_LE(error, bound) << kind << " of " << tensor;
    auto& [worst, name] = worst_[kind];
    if (name.empty() || !(error <= worst)) {
      worst = error;
      name = tensor;
    }
  }
  ~Errors() {
    for (const auto& [kind, worst] : worst_)
      fmt::print("  {:<32} worst {:.1e} ({})\n", kind, worst.first, worst.second);
  }

 private:
  std::map<std::string, std::pair<double, std::string>> worst_;
};

// What each precision must reach. Optimizers are held to how far they moved a parameter, which is stricter
// than where it ended: float32 rounds at 6e-8, and Polar Express raises the noise of small singular values.
struct Bounds {
  double forward_and_gradient, change;
};
constexpr Bounds kReference = {1e-9, 1e-9};
constexpr Bounds kFast = {1e-4, 1e-2};

struct Case {
  const char* model;
  host::Precision precision;
};

std::string label(const Case& c) {
  return fmt::format("{}_{}", c.model, c.precision == host::Precision::reference ? "float64" : "float32");
}
void PrintTo(const Case& c, std::ostream* out) { *out << label(c); }

class FixtureTest : public testing::TestWithParam<Case> {
 protected:
  const Fixture fixture{GetParam().model};
  const Bounds bounds = GetParam().precision == host::Precision::reference ? kReference : kFast;
  Instance instance{fixture, GetParam().precision};
  Errors errors;
};

TEST_P(FixtureTest, DeclaresTheSameParameters) {
  std::vector<std::string> names;
  for (int p : instance.parameters()) names.push_back(instance.name(p));
  std::sort(names.begin(), names.end());
  std::vector<std::string> expected = fixture.parameters();
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(names, expected);
}

TEST_P(FixtureTest, LogitsLossAndGradients) {
  instance.start();
  const std::int64_t batch = fixture.batch(), sequence = fixture.sequence();
  const auto forward = instance.backend->compile(instance.model.forward(batch, sequence));
  forward->bind("tokens", fixture.integers("tokens", 0));
  forward->run();
  errors.expect("logits", "logits",
                relative_error(forward->output("logits"),
                               fixture.numbers("logits", {batch, sequence, instance.model.config().vocab})),
                bounds.forward_and_gradient);

  const auto micro = instance.backend->compile(instance.model.micro(batch, sequence));
  micro->bind("tokens", fixture.integers("tokens", 0));
  micro->bind("targets", fixture.integers("targets", 0));
  micro->bind("loss_scale", 1.0);
  micro->run();
  errors.expect("loss", "loss", relative_error(micro->output("loss"), fixture.numbers("loss", {})),
                bounds.forward_and_gradient);
  for (int p : instance.parameters()) {
    const std::string& name = instance.name(p);
    errors.expect("gradient, " + instance.group(p), name,
                  relative_error(instance.backend->read(instance.model.gradient_of(p)),
                                 fixture.numbers("grad/" + name, instance.shape(p))),
                  bounds.forward_and_gradient);
  }
}

// Gradients add up over micro-steps, each weighed by loss_scale: two halves of weight 1/4 and 3/4 make one
// whole.
TEST_P(FixtureTest, MicroStepsAccumulate) {
  instance.start();
  const auto micro = instance.backend->compile(instance.model.micro(fixture.batch(), fixture.sequence()));
  micro->bind("tokens", fixture.integers("tokens", 0));
  micro->bind("targets", fixture.integers("targets", 0));
  for (double share : {0.25, 0.75}) {
    micro->bind("loss_scale", share);
    micro->run();
  }
  for (int p : instance.parameters()) {
    const std::string& name = instance.name(p);
    errors.expect("gradient, " + instance.group(p), name,
                  relative_error(instance.backend->read(instance.model.gradient_of(p)),
                                 fixture.numbers("grad/" + name, instance.shape(p))),
                  bounds.forward_and_gradient);
  }
}

class OptimizerFixtureTest : public FixtureTest {
 protected:
  void expect_three_steps(const std::string& name) {
    const nlohmann::json& description = fixture.optimizer(name);
    const optim::Optimizer optimizer = optimizer_of(description);
    const graph::Graph update_graph = optim::update_graph(
        optimizer, instance.model.variables(), [this](int p) { return instance.model.gradient_of(p); });
    instance.start();
    const auto micro = instance.backend->compile(instance.model.micro(fixture.batch(), fixture.sequence()));
    const auto update = instance.backend->compile(update_graph);
    const auto bind = [&](const std::string& input, double value) {
      if (update->has_input(input)) update->bind(input, value);
    };
    Numbers losses;
    for (int step = 0; step < fixture.steps(); ++step) {
      instance.backend->zero(graph::Role::gradient);
      micro->bind("tokens", fixture.integers("tokens", step));
      micro->bind("targets", fixture.integers("targets", step));
      micro->bind("loss_scale", 1.0);
      micro->run();
      losses.push_back(micro->output("loss").at(0));
      bind("step", step + 1);
      for (const auto& [group, numbers] : description.at("groups").items()) {
        bind("lr." + group, numbers.at("lr").at(static_cast<std::size_t>(step)));
        bind("weight_decay." + group, numbers.at("weight_decay"));
        bind("momentum." + group, description.at("momentum").at(static_cast<std::size_t>(step)));
      }
      update->run();
    }
    errors.expect("losses with " + name, "3 steps",
                  relative_error(losses, fixture.numbers(name + "/losses", {fixture.steps()})),
                  bounds.forward_and_gradient);
    for (int p : instance.parameters()) {
      const Numbers found = instance.backend->read(p);
      const Numbers expected = fixture.numbers(name + "/" + instance.name(p), instance.shape(p));
      const Numbers& initial = instance.initial.at(p);
      errors.expect("change by " + name + ", " + instance.group(p), instance.name(p),
                    relative_error(minus(found, initial), minus(expected, initial)), bounds.change);
    }
  }
};

TEST_P(OptimizerFixtureTest, Muon) { expect_three_steps("muon"); }
TEST_P(OptimizerFixtureTest, MuonWithoutNorMuon) { expect_three_steps("muon_plain"); }
TEST_P(OptimizerFixtureTest, MuonWithClipping) { expect_three_steps("muon_clip"); }
TEST_P(OptimizerFixtureTest, AdamW) { expect_three_steps("adamw"); }

constexpr Case kCases[] = {{"baseline", host::Precision::reference},
                           {"full", host::Precision::reference},
                           {"baseline", host::Precision::fast},
                           {"full", host::Precision::fast}};
INSTANTIATE_TEST_SUITE_P(Models, FixtureTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return label(info.param); });
INSTANTIATE_TEST_SUITE_P(Models, OptimizerFixtureTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return label(info.param); });

}  // namespace
}  // namespace headway
