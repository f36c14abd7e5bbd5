// headway train: trains a recipe, or its twin, under its budget.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands.h"
#include "cli/run_summary.h"
#include "cli/training_run.h"
#include "train/run_folder.h"

namespace headway::cli {
namespace {

struct Arguments {
  std::string recipe;
  std::string resume;
  bool twin = false;
  bool json = false;
  std::int64_t steps = 0;
  std::int64_t device_batch = 0;
  RunOptions options;
};

// The price a run was started under; a resumed run keeps it.
price::StepPrice recorded_price(const std::filesystem::path& run) {
  const nlohmann::json price = train::read_run(run).environment.at("price");
  return {price.at("step_seconds").get<double>(), price.at("save_seconds").get<double>(),
          price.at("mfu").get<double>(), price.at("basis").get<std::string>()};
}

// A resumed run finds text and tokenizer where it was started, unless told otherwise.
void recorded_sources(const std::filesystem::path& run, bool corpus_given, bool tokenizer_given,
                      RunOptions& options) {
  const nlohmann::json environment = train::read_run(run).environment;
  if (!corpus_given && environment.contains("corpus"))
    options.corpus = environment["corpus"].get<std::string>();
  if (!tokenizer_given && environment.contains("tokenizer"))
    options.tokenizer = environment["tokenizer"].get<std::string>();
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("train", "Train a recipe under its budget and score it");
  command->add_option("recipe", a->recipe, "Recipe file (with --resume: must equal the run's own)");
  command->add_option("--resume", a->resume, "Continue this run from its newest checkpoint");
  command->add_flag("--twin", a->twin,
                    "Train the recipe's twin for as many steps as the recipe itself gets on the chip");
  CLI::Option* corpus =
      command->add_option("--corpus", a->options.corpus, "Corpus folder")->capture_default_str();
  CLI::Option* tokenizer =
      command->add_option("--tokenizer", a->options.tokenizer, "Tokenizer file")->capture_default_str();
  command->add_option("--runs", a->options.runs, "Folder for new runs")->capture_default_str();
  command->add_option("--threads", a->options.threads, "Threads; 0: all processors")->capture_default_str();
  command->add_option("--steps", a->steps, "Replace the budget by this many steps");
  command->add_option("--device-batch", a->device_batch,
                      "Replace the recipe's rows per micro-batch (and the batch, if smaller)");
  command->add_option("--stop-after", a->options.stop_after,
                      "Save and stop after this many steps; --resume continues");
  command->add_option("--replay", a->options.replay, "Host clock: use the step times recorded in this run");
  command->add_option("--eval-tokens", a->options.eval_tokens, "Tokens of the official split to score")
      ->capture_default_str();
  command->add_option("--eval-ranks", a->options.eval_ranks, "Ranks the scorer is emulated with")
      ->capture_default_str();
  command->add_flag("--plan", a->options.plan_only, "Print model, memory and step, then stop");
  command->add_flag("--json", a->json, "End with one line of JSON");
  command->callback([a, corpus, tokenizer] {
    if (a->recipe.empty() == a->resume.empty() && a->resume.empty()) {
      throw InputError("headway train", "needs a recipe, or --resume RUN");
    }
    train::Recipe recipe;
    price::StepPrice price;
    if (!a->resume.empty()) {
      const std::filesystem::path run = train::find_run(a->resume, a->options.runs);
      a->options.run = run;
      if (std::filesystem::exists(run / "result.json")) {
        throw InputError(run.string(), "is finished", "Look at it with: headway report " + run.string());
      }
      recorded_sources(run, corpus->count() > 0, tokenizer->count() > 0, a->options);
      price = recorded_price(run);
      recipe = train::read_recipe(a->recipe.empty() ? run / "recipe.toml" : std::filesystem::path(a->recipe));
      if (!a->recipe.empty() && a->twin) recipe = train::twin_of(recipe);
    } else {
      recipe = train::read_recipe(a->recipe);
      price = price_of(recipe);
      if (a->twin) {
        price.step_seconds /= recipe.twin ? recipe.twin->fraction : 1;
        recipe = train::twin_of(recipe);
      }
      if (a->device_batch > 0) {
        recipe.data.device_batch = a->device_batch;
        const std::int64_t ranks = recipe.launch.processes;
        const std::int64_t micro = recipe.data.device_batch * recipe.model.sequence;
        if (recipe.data.batch_tokens % (micro * ranks) != 0) {
          throw InputError(
              "--device-batch",
              fmt::format("{} rows of {} tokens on {} ranks don't divide the batch of {} tokens",
                          a->device_batch, recipe.model.sequence, ranks, recipe.data.batch_tokens));
        }
      }
      if (a->steps > 0) {
        recipe.budget.kind = train::BudgetSection::Kind::steps;
        recipe.budget.amount = static_cast<double>(a->steps);
      }
    }
    const RunSummary summary = run_training(recipe, price, a->options);
    if (!summary.finished) return;
    print_summary(summary.result, summary.run, std::nullopt);
    if (a->json) {
      nlohmann::json line = summary.result;
      line.erase("times");
      line["run"] = summary.run.string();
      fmt::print("{}\n", line.dump());
    }
    std::fflush(stdout);
  });
}

}  // namespace headway::cli
