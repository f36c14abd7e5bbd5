// Schedules and the [optimizer] section. The mathematics of the methods is tested with the operators and
// against PyTorch.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace headway::optim {
namespace {

Schedule schedule(const std::string& text) {
  TomlTable root = TomlTable::parse("[schedule]\n" + text, "s.toml");
  return read_schedule(root.table("schedule"));
}

TEST(Schedule, WarmsUpHoldsAndWarmsDown) {
  const Schedule s = schedule("warmup_steps = 4\nwarmdown_fraction = 0.5\nfinal_lr_fraction = 0.2\n");
  EXPECT_DOUBLE_EQ(s.at(0, 0).lr, 0.25);
  EXPECT_DOUBLE_EQ(s.at(3, 0.03).lr, 1);
  EXPECT_DOUBLE_EQ(s.at(40, 0.4).lr, 1);
  EXPECT_DOUBLE_EQ(s.at(75, 0.75).lr, 0.6);
  EXPECT_DOUBLE_EQ(s.at(100, 1).lr, 0.2);
  EXPECT_DOUBLE_EQ(s.at(100, 7).lr, 0.2);
}

TEST(Schedule, WarmupByFractionNeverStartsAtZero) {
  const Schedule s = schedule("warmup_fraction = 0.1\n");
  EXPECT_GT(s.at(0, 0).lr, 0);
  EXPECT_DOUBLE_EQ(s.at(5, 0.05).lr, 0.5);
  EXPECT_DOUBLE_EQ(s.at(10, 0.1).lr, 1);
}

TEST(Schedule, MomentumRampsAndDecayFalls) {
  const Schedule s =
      schedule("momentum_start = 0.8\nmomentum_end = 0.9\nmomentum_steps = 10\ndecay_to_zero = true\n");
  EXPECT_DOUBLE_EQ(s.at(0, 0).momentum, 0.8);
  EXPECT_DOUBLE_EQ(s.at(5, 0.2).momentum, 0.85);
  EXPECT_DOUBLE_EQ(s.at(50, 0.5).momentum, 0.9);
  EXPECT_DOUBLE_EQ(s.at(50, 0.25).weight_decay, 0.75);
}

TEST(Schedule, RefusesWhatCannotBe) {
  for (const char* text :
       {"warmup_fraction = 1.5", "warmup_steps = 3\nwarmup_fraction = 0.1", "clock = \"wall\"",
        "warmup_fraction = 0.6\nwarmdown_fraction = 0.6", "momentum_end = 2", "warmup = 3"}) {
    EXPECT_THROW(schedule(text), InputError) << text;
  }
}

TEST(Optimizer, LearningRatesScaleWithWidthWhereAsked) {
  Group group;
  group.lr = 0.3;
  EXPECT_DOUBLE_EQ(base_lr(group, 640), 0.3);
  group.width_scaled = true;
  EXPECT_NEAR(base_lr(group, 640), 0.3 / std::sqrt(640.0 / 768.0), 1e-15);
}

TEST(Optimizer, StateIsDeclaredOnceAndGroupsAreNeeded) {
  TomlTable root = TomlTable::parse(
      "[optimizer.matrix]\nlr = 1\n[optimizer.embedding]\nlr = 1\n[optimizer.head]\nlr = "
      "1\n[optimizer.scalar]\nlr = 1\n",
      "o.toml");
  const Optimizer optimizer = read_optimizer(root.table("optimizer"));
  auto variables = std::make_shared<graph::Variables>();
  const auto parameter = [&](const std::string& name, Shape shape, const std::string& group) {
    graph::Variable v;
    v.name = name;
    v.type.shape = std::move(shape);
    v.group = group;
    const int p = variables->add(v);
    v.name += ".grad";
    v.role = graph::Role::gradient;
    variables->add(v);
    return p;
  };
  parameter("w", {4, 6}, "matrix");
  parameter("e", {8, 2}, "embedding");
  const auto gradient_of = [&](int p) { return variables->find((*variables)[p].name + ".grad"); };
  update_graph(optimizer, variables, gradient_of);
  const auto names = [&] {
    std::vector<std::string> found;
    for (int i : variables->with(graph::Role::state)) found.push_back((*variables)[i].name);
    return found;
  };
  EXPECT_EQ(names(), (std::vector<std::string>{"w.momentum", "w.second", "e.m", "e.v"}));
  EXPECT_EQ((*variables)[variables->find("w.second")].type.shape, Shape{6});
  update_graph(optimizer, variables, gradient_of);
  EXPECT_EQ(names().size(), 4u);

  parameter("x", {3}, "matrix");
  EXPECT_THROW(update_graph(optimizer, variables, gradient_of), InputError);  // muon needs a matrix
}

}  // namespace
}  // namespace headway::optim
