// headway phase1: the whole contest in one command, at the size of a laptop.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/home.h"
#include "base/progress.h"
#include "base/threads.h"
#include "cli/commands.h"
#include "cli/report_page.h"
#include "cli/run_summary.h"
#include "cli/training_run.h"
#include "data/bpe_train.h"
#include "data/corpus.h"
#include "data/prepare.h"
#include "data/sources.h"
#include "data/tokenizer.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace headway::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string recipe;
  fs::path data = "data";
  RunOptions options;
  bool json = false;
};

void heading(const std::string& text) {
  fmt::print("\n{}\n", text);
  std::fflush(stdout);
}

void prepare_text(const fs::path& folder) {
  if (!fs::exists(folder)) {
    heading("Preparing the default text (documentation of Debian packages)");
    data::prepare_corpus(data::debian_sources(), folder, FileSystem::real(), true);
  }
  const data::Corpus corpus(folder);
  for (const data::Split split : data::kSplits) {
    const data::SplitSize size = corpus.size(split);
    fmt::print("{:<11}{} documents, {} bytes\n", data::name_of(split), grouped(size.documents),
               grouped(size.bytes));
  }
  fmt::print("corpus     {}, hash {}\n", folder.string(), corpus.hash());
}

void prepare_tokenizer(const fs::path& path, const fs::path& corpus_folder, std::int64_t vocab, int threads) {
  if (!fs::exists(path)) {
    heading(fmt::format("Training the tokenizer ({} tokens)", grouped(vocab)));
    const data::Corpus corpus(corpus_folder);
    ThreadPool pool(threads > 0 ? threads : ThreadPool::available());
    data::BpeOptions options;
    options.vocab_size = static_cast<int>(vocab);
    options.progress = true;
    const data::Tokenizer tokenizer = data::train_bpe(
        corpus.size(data::Split::train).groups,
        [&](std::int64_t group) { return corpus.group(data::Split::train, group); }, options, pool);
    tokenizer.save(path);
  }
  fmt::print("tokenizer  {}\n", path.string());
}

void phase1(Arguments& a) {
  const train::Recipe full =
      train::read_recipe(a.recipe.empty() ? home() / "recipes" / "phase1.toml" : fs::path(a.recipe));
  a.options.corpus = a.data / "corpus";
  a.options.tokenizer = a.data / "tokenizer.tiktoken";
  prepare_text(a.options.corpus);
  prepare_tokenizer(a.options.tokenizer, a.options.corpus, full.model.vocab, a.options.threads);

  price::StepPrice price = price_of(full);
  const ModelFigures figures = figures_of(full);
  const std::int64_t steps = train::planned_steps(full, {price.step_seconds, price.save_seconds});
  heading(fmt::format("{}: {} parameters get {} steps of {:.3f} s in {} charged seconds", full.name,
                      grouped(figures.parameters), grouped(steps), price.step_seconds, full.budget.amount));
  fmt::print("           {}\n", price.basis);
  heading("Its twin is trained for as many");
  price.step_seconds /= full.twin ? full.twin->fraction : 1;
  const RunSummary summary = run_training(train::twin_of(full), price, a.options);
  if (!summary.finished) return;

  const fs::path page = summary.run / "report.html";
  FileSystem::real().write_atomically(page, report_page({train::read_run(summary.run)}));
  print_summary(summary.result, summary.run, FullSize{full.name, figures.parameters});
  fmt::print("  {:<18} {}\n", "report", page.string());
  if (a.json) {
    nlohmann::json line = summary.result;
    line.erase("times");
    line["run"] = summary.run.string();
    line["recipe_parameters"] = figures.parameters;
    fmt::print("{}\n", line.dump());
  }
  std::fflush(stdout);
}

}  // namespace

void add_phase1_command(CLI::App& app) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "phase1",
      "Prepare text and tokenizer, price the baseline, train its twin for as many steps, score it, report");
  command->add_option("recipe", a->recipe, "Recipe with a twin (default: the contest's baseline)");
  command->add_option("--data", a->data, "Folder for text and tokenizer")->capture_default_str();
  command->add_option("--runs", a->options.runs, "Folder for runs")->capture_default_str();
  command->add_option("--threads", a->options.threads, "Threads; 0: all processors")->capture_default_str();
  command->add_flag("--json", a->json, "End with one line of JSON");
  command->callback([a] { phase1(*a); });
}

}  // namespace headway::cli
