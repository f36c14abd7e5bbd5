// headway eval bpb: scores a run's checkpoint.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "data/corpus.h"
#include "data/rows.h"
#include "data/tokenizer.h"
#include "data/tokens.h"
#include "eval/bpb.h"
#include "host/host_backend.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"
#include "train/session.h"

namespace headway::cli {
namespace {

struct Arguments {
  std::string run, corpus, tokenizer;
  std::string split = "official";
  std::string runs = "runs";
  std::int64_t tokens = 2'097'152;
  int ranks = 8;
  std::int64_t batch = 8;
  double deadline = 1200;
  int threads = 0;
  bool json = false;
};

void bpb(const Arguments& a) {
  const std::filesystem::path run = train::find_run(a.run, a.runs);
  const nlohmann::json environment = train::read_run(run).environment;
  const auto source = [&](const std::string& given, const char* key) {
    if (!given.empty()) return given;
    if (!environment.contains(key))
      throw InputError(run.string(), fmt::format("doesn't record its {}", key),
                       fmt::format("Give --{}", key));
    return environment[key].get<std::string>();
  };
  const train::Recipe recipe = train::read_recipe(run / "recipe.toml");
  const data::Corpus corpus(source(a.corpus, "corpus"));
  const data::Tokenizer tokenizer = data::Tokenizer::load(source(a.tokenizer, "tokenizer"));
  const auto checkpoint = train::latest_checkpoint(run);
  if (!checkpoint) throw InputError(run.string(), "has no checkpoint yet");

  ThreadPool pool(a.threads > 0 ? a.threads : ThreadPool::available());
  const SteadyClock clock;
  const model::Model model(recipe.model);
  const auto backend =
      host::make_backend(model.variables(), pool, host::Precision::fast, {recipe.bf16_products});
  // Another corpus may be scored, another tokenizer's ids would mean something else.
  train::load_checkpoint(*checkpoint, *model.variables(), *backend, false, {{"tokenizer", tokenizer.hash()}});
  data::Split split = data::Split::official;
  for (data::Split candidate : data::kSplits)
    if (a.split == data::name_of(candidate)) split = candidate;
  const data::Tokens tokens = data::Tokens::prepare(corpus, split, tokenizer, pool);
  const data::EvalRows rows =
      data::eval_rows(tokens, static_cast<int>(recipe.model.sequence), tokenizer.bos(), a.ranks, a.tokens);
  const auto forward = backend->compile(model.forward(a.batch, recipe.model.sequence));
  const eval::BpbResult result =
      eval::evaluate_bpb(*forward, rows, recipe.model.sequence, recipe.model.vocab, tokenizer.byte_counts(),
                         pool, clock, {a.batch, a.deadline, true});
  fmt::print(
      "val_bpb {:.9f}\n  {:.1f} nats over {} bytes, {} tokens of {} ({}){}{}\n  corpus {}\n  checkpoint {}\n",
      result.val_bpb, result.score.nats, grouped(result.score.bytes), grouped(result.score.targets), a.split,
      duration_text(result.seconds), result.exhausted ? ": all it has, once" : "",
      result.timed_out ? ", cut off by the deadline" : "", corpus.hash(), checkpoint->string());
  if (a.json) {
    const nlohmann::json line = {{"val_bpb", result.val_bpb},
                                 {"nats", result.score.nats},
                                 {"bytes", result.score.bytes},
                                 {"tokens", result.score.targets},
                                 {"split", a.split},
                                 {"ranks", a.ranks},
                                 {"exhausted", result.exhausted},
                                 {"timed_out", result.timed_out},
                                 {"seconds", result.seconds},
                                 {"corpus_hash", corpus.hash()}};
    fmt::print("{}\n", line.dump());
  }
  std::fflush(stdout);
}

}  // namespace

void add_eval_command(CLI::App& app) {
  CLI::App* eval = app.add_subcommand("eval", "Score a trained run");
  eval->require_subcommand(1);
  auto a = std::make_shared<Arguments>();
  CLI::App* command =
      eval->add_subcommand("bpb", "Bits per byte of a split, as the contest's scorer counts them");
  command->add_option("run", a->run, "Run folder, or its name")->required();
  command->add_option("--corpus", a->corpus, "Corpus folder (default: the run's)");
  command->add_option("--tokenizer", a->tokenizer, "Tokenizer file (default: the run's)");
  command->add_option("--split", a->split, "Which split")
      ->check(CLI::IsMember({"train", "public_val", "official"}))
      ->capture_default_str();
  command->add_option("--tokens", a->tokens, "Tokens to score; the contest uses 2097152 and 20971520")
      ->capture_default_str();
  command->add_option("--ranks", a->ranks, "Ranks the scorer is emulated with")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--batch", a->batch, "Rows at a time; doesn't change the score")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--deadline", a->deadline, "Seconds after which the score of what is done stands")
      ->capture_default_str();
  command->add_option("--runs", a->runs, "Where runs are looked for by name")->capture_default_str();
  command->add_option("--threads", a->threads, "Threads; 0: all processors")->capture_default_str();
  command->add_flag("--json", a->json, "End with one line of JSON");
  command->callback([a] { bpb(*a); });
}

}  // namespace headway::cli
