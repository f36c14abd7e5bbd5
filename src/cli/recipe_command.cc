// headway recipe show | check: what a recipe is, before anything is trained.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/progress.h"
#include "cli/commands.h"
#include "cli/training_run.h"
#include "model/model.h"
#include "train/recipe.h"
#include "train/trainer.h"

namespace headway::cli {
namespace {

struct Arguments {
  std::string recipe;
  bool twin = false;
  bool json = false;
};

void show(const Arguments& a) {
  train::Recipe recipe = train::read_recipe(a.recipe);
  price::StepPrice price = price_of(recipe);
  if (a.twin) recipe = train::twin_of(recipe);
  const model::Model model(recipe.model);
  nlohmann::json json = {{"name", recipe.name},
                         {"parameters", model.parameter_count()},
                         {"flops_per_token", model.flops_per_token()},
                         {"step_seconds", price.step_seconds},
                         {"parts", nlohmann::json::array()}};
  fmt::print("{}: depth {}, width {}, {} heads of {}, {} of keys and values, vocab {}, sequence {}\n\n",
             recipe.name, recipe.model.depth, recipe.model.width, recipe.model.heads, recipe.model.head_dim,
             recipe.model.kv_heads, grouped(recipe.model.vocab), grouped(recipe.model.sequence));
  fmt::print("{:<24} {:>14} {:>18}\n", "part", "parameters", "MFLOP per token");
  for (const model::Model::Part& part : model.parts()) {
    fmt::print("{:<24} {:>14} {:>18.3f}\n", part.name, grouped(part.parameters), part.flops_per_token / 1e6);
    json["parts"].push_back(
        {{"name", part.name}, {"parameters", part.parameters}, {"flops_per_token", part.flops_per_token}});
  }
  fmt::print("{:<24} {:>14} {:>18.1f}\n\n", "total", grouped(model.parameter_count()),
             model.flops_per_token() / 1e6);
  for (const auto& [name, group] : recipe.optimizer.groups) {
    fmt::print("{:<10} {:<8} lr {:<10.6g} weight decay {}\n", name, group.method_name,
               optim::base_lr(group, recipe.model.width), group.weight_decay);
  }
  fmt::print("\nstep       {} tokens, {:.3f} s charged: {}\n", grouped(recipe.data.batch_tokens),
             price.step_seconds, price.basis);
  const std::int64_t steps = train::planned_steps(recipe, {price.step_seconds, price.save_seconds});
  if (steps > 0) {
    fmt::print("budget     {} steps, {} tokens\n", grouped(steps), grouped(steps * recipe.data.batch_tokens));
    json["steps"] = steps;
  }
  if (a.json) fmt::print("{}\n", json.dump());
}

}  // namespace

void add_recipe_command(CLI::App& app) {
  auto a = std::make_shared<Arguments>();
  CLI::App* recipe = app.add_subcommand("recipe", "Show or check a recipe");
  recipe->require_subcommand(1);
  CLI::App* shown = recipe->add_subcommand("show", "Parameters, FLOPs, learning rates, price and steps");
  CLI::App* checked = recipe->add_subcommand("check", "Read a recipe and print it with all values resolved");
  for (CLI::App* command : {shown, checked}) {
    command->add_option("recipe", a->recipe, "Recipe file")->required();
    command->add_flag("--twin", a->twin, "Its twin");
  }
  shown->add_flag("--json", a->json, "End with one line of JSON");
  shown->callback([a] { show(*a); });
  checked->callback([a] {
    train::Recipe r = train::read_recipe(a->recipe);
    if (a->twin) r = train::twin_of(r);
    const model::Model model(r.model);  // registered parts must exist
    fmt::print("{}", train::to_toml(r));
  });
}

}  // namespace headway::cli
