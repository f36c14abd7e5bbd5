#include "cli/training_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/home.h"
#include "base/progress.h"
#include "chip/spec.h"
#include "data/corpus.h"
#include "data/rows.h"
#include "data/tokenizer.h"
#include "data/tokens.h"
#include "eval/bpb.h"
#include "host/host_backend.h"
#include "host/peak.h"
#include "referee/probes.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace headway::cli {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> interrupted{false};

// SIGINT and SIGTERM end a run after its current step, saved; a second one ends it at once.
class SignalGuard {
 public:
  SignalGuard() {
    interrupted = false;
    for (int signal : {SIGINT, SIGTERM})
      std::signal(signal, [](int s) {
        if (interrupted.exchange(true)) {
          std::signal(s, SIG_DFL);
          std::raise(s);
        }
      });
  }
  ~SignalGuard() {
    for (int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  }
};

// The most memory this process has taken since forget_peak_memory().
std::int64_t peak_memory_bytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  }
  return 0;
}

// What was done before a run (text, tokenizer) is not the run's memory. Where the system refuses, it is
// counted too.
void forget_peak_memory() {
  ::malloc_trim(0);  // or the allocator would keep it for us
  std::ofstream out("/proc/self/clear_refs");
  out << "5";
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

// runs/NAME-001, -002, ...: the first that is free.
fs::path new_run(const fs::path& runs, const std::string& name) {
  fs::create_directories(runs);
  for (int i = 1;; ++i) {
    const fs::path run = runs / fmt::format("{}-{:03}", name, i);
    if (fs::create_directory(run)) return run;
  }
}

std::string gigabytes(std::int64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

// What a process needs beside tensors: program, libraries, allocator, stacks. Measured on an idle `headway
// train`.
constexpr std::int64_t kProcessBytes = 40'000'000;

class Run {
 public:
  Run(const train::Recipe& recipe, const price::StepPrice& price, const RunOptions& options)
      : recipe_(recipe),
        price_(price),
        options_(options),
        figures_(figures_of(recipe)),
        pool_(options.threads > 0 ? options.threads : ThreadPool::available()),
        corpus_(options.corpus),
        tokenizer_(data::Tokenizer::load(options.tokenizer)) {
    if (tokenizer_.vocab_size() != recipe.model.vocab) {
      throw InputError(
          options.tokenizer.string(),
          fmt::format("has {} tokens, but the recipe's model has a vocab of {}",
                      grouped(tokenizer_.vocab_size()), grouped(recipe.model.vocab)),
          "Train a tokenizer of that size (headway tokenizer train --vocab) or change model.vocab");
    }
    eval_batch_ = options.eval_batch > 0 ? options.eval_batch : recipe.data.device_batch;
  }

  RunSummary go() {
    forget_peak_memory();
    train::Session session(recipe_, [this](std::shared_ptr<const graph::Variables> variables) {
      return host::make_backend(std::move(variables), pool_, host::Precision::fast, {recipe_.bf16_products});
    });
    print_plan(session);
    if (options_.plan_only) return {};
    peak_flops_ = host::measure_peak_flops(pool_);

    const data::Tokens train_tokens = data::Tokens::prepare(corpus_, data::Split::train, tokenizer_, pool_);
    const data::Tokens public_val =
        data::Tokens::prepare(corpus_, data::Split::public_val, tokenizer_, pool_);
    const data::Tokens official = data::Tokens::prepare(corpus_, data::Split::official, tokenizer_, pool_);

    open_folder();
    session.model().initialize(session.backend(), recipe_.seed);
    const train::TrainResult trained = train_on(session, train_tokens, public_val);
    RunSummary summary{run_, trained.finished, {}};
    if (!trained.finished) {
      fmt::print("\nstopped after step {}, saved. Continue with: headway train --resume {}\n",
                 grouped(trained.steps), run_.string());
      return summary;
    }
    summary.result = score(session, trained, official);
    write("result.json", summary.result);
    return summary;
  }

 private:
  void write(const std::string& name, const nlohmann::json& json) {
    FileSystem::real().write_atomically(run_ / name, json.dump(1) + "\n");
  }

  void print_plan(train::Session& session) {
    plan_ = session.plan(eval_batch_);
    planned_bytes_ = plan_.total() + kProcessBytes;
    fmt::print("recipe     {}: {} parameters, {:.1f} MFLOP a token\n", recipe_.name,
               grouped(figures_.parameters), figures_.flops_per_token / 1e6);
    fmt::print("step       {} tokens in {} micro-batches of {} x {}\n", grouped(recipe_.data.batch_tokens),
               recipe_.micro_batches(), recipe_.data.device_batch, recipe_.model.sequence);
    fmt::print("machine    {}\n", session.backend().description());
    fmt::print("memory     {} at the peak: variables {}, activations {}, scratch {}, program {}\n",
               gigabytes(planned_bytes_), gigabytes(plan_.variables), gigabytes(plan_.intermediates),
               gigabytes(plan_.workspace), gigabytes(kProcessBytes));
    std::fflush(stdout);
  }

  void open_folder() {
    if (!options_.run.empty()) {
      run_ = options_.run;
      return;
    }
    run_ = new_run(options_.runs, recipe_.name);
    FileSystem::real().write_atomically(run_ / "recipe.toml", train::to_toml(recipe_));
    write("environment.json", {{"headway", HEADWAY_VERSION},
                               {"processor", processor_name()},
                               {"threads", pool_.size()},
                               {"parameters", figures_.parameters},
                               {"peak_flops", peak_flops_},
                               {"compiler", __VERSION__},
                               {"corpus", fs::absolute(options_.corpus).string()},
                               {"corpus_hash", corpus_.hash()},
                               {"tokenizer", fs::absolute(options_.tokenizer).string()},
                               {"tokenizer_hash", tokenizer_.hash()},
                               {"price",
                                {{"step_seconds", price_.step_seconds},
                                 {"save_seconds", price_.save_seconds},
                                 {"mfu", price_.mfu},
                                 {"basis", price_.basis}}},
                               {"started", now_utc()}});
    fmt::print("run        {}\n", run_.string());
  }

  train::TrainResult train_on(train::Session& session, const data::Tokens& tokens,
                              const data::Tokens& public_val) {
    std::vector<std::unique_ptr<data::RowSource>> rows;
    const int sequence = static_cast<int>(recipe_.model.sequence);
    for (int rank = 0; rank < recipe_.launch.processes; ++rank) {
      const data::Rank which{rank, recipe_.launch.processes};
      rows.push_back(recipe_.data.packed ? data::packed_rows(tokens, sequence, tokenizer_.bos(), which,
                                                             static_cast<int>(recipe_.data.buffer))
                                         : data::stream_rows(tokens, sequence, tokenizer_.bos(), which));
    }
    train::TrainerOptions options;
    options.run = run_;
    options.clock = &clock_;
    options.charge = {price_.step_seconds, price_.save_seconds};
    options.identity = {{"tokenizer", tokenizer_.hash()}, {"corpus", corpus_.hash()}};
    options.stop_after = options_.stop_after;
    options.interrupted = &interrupted;
    options.flops_per_token = figures_.flops_per_token;
    options.peak_flops = peak_flops_;
    if (!options_.replay.empty()) {
      for (const train::StepRecord& step : train::read_run(options_.replay).steps) {
        options.replayed_seconds.push_back(step.step_seconds);
      }
    }
    const data::EvalRows rows_val =
        data::eval_rows(public_val, sequence, tokenizer_.bos(), options_.eval_ranks, kQuickTokens);
    options.evaluate = [&] { return evaluate(session, rows_val, false).val_bpb; };
    Progress progress("training step", train::planned_steps(recipe_, options.charge), options_.progress);
    double smooth = 0;
    options.on_step = [&](const train::StepReport& s) {
      smooth = s.step <= 1 || smooth == 0 ? s.loss : 0.95 * smooth + 0.05 * s.loss;
      double left = -1;
      if (s.total_steps == 0) left = std::max(0.0, recipe_.budget.amount - s.charged_seconds);
      progress.update(s.step,
                      fmt::format("loss {:.3f}, {} tokens/s, {:.0f} s charged", smooth,
                                  grouped(static_cast<std::int64_t>(s.tokens_per_second)), s.charged_seconds),
                      left);
    };
    const SignalGuard guard;
    const train::TrainResult result = train::train(session, rows, tokenizer_.bos(), options);
    progress.finish(fmt::format("loss {:.3f}", smooth));
    return result;
  }

  eval::BpbResult evaluate(train::Session& session, const data::EvalRows& rows, bool progress) {
    eval::BpbOptions options;
    options.batch = eval_batch_;
    options.progress = progress;
    return eval::evaluate_bpb(session.forward(eval_batch_), rows, recipe_.model.sequence, recipe_.model.vocab,
                              tokenizer_.byte_counts(), pool_, clock_, options);
  }

  nlohmann::json score(train::Session& session, const train::TrainResult& trained,
                       const data::Tokens& official) {
    const data::EvalRows rows = data::eval_rows(official, static_cast<int>(recipe_.model.sequence),
                                                tokenizer_.bos(), options_.eval_ranks, options_.eval_tokens);
    const eval::BpbResult bpb = evaluate(session, rows, options_.progress);
    nlohmann::json probes = nlohmann::json::array();
    std::string void_reason = trained.void_reason;
    graph::Executable& forward = session.forward(eval_batch_);
    const auto logits = [&](std::span<const std::int32_t> tokens) {
      forward.bind("tokens", tokens);
      forward.run();
      return std::span<const float>(
          forward.output_f32("logits"),
          static_cast<std::size_t>(eval_batch_ * recipe_.model.sequence * recipe_.model.vocab));
    };
    for (const referee::ProbeResult& probe :
         referee::probe(logits, eval_batch_, recipe_.model.sequence, recipe_.model.vocab, recipe_.seed)) {
      probes.push_back({{"name", probe.name},
                        {"passed", probe.passed},
                        {"max_abs_difference", probe.max_abs_difference},
                        {"finding", probe.finding}});
      if (!probe.passed && void_reason.empty()) void_reason = "probe " + probe.name + ": " + probe.finding;
    }
    nlohmann::json times = nlohmann::json::array();
    double train_seconds = 0;
    for (graph::Executable* executable : {&session.micro(), &session.update()}) {
      for (const graph::PartTime& part : executable->times()) {
        train_seconds += part.seconds;
        times.push_back({{"scope", part.scope},
                         {"kernel", part.kernel},
                         {"seconds", part.seconds},
                         {"flops", part.flops},
                         {"calls", part.calls}});
      }
    }
    const double tokens_per_second = static_cast<double>(trained.tokens) / trained.host_seconds;
    nlohmann::json result = {
        {"name", run_.filename().string()},
        {"finished", true},
        {"score_void_reason", void_reason.empty() ? nlohmann::json() : nlohmann::json(void_reason)},
        {"val_bpb", bpb.val_bpb},
        {"nats", bpb.score.nats},
        {"bytes", bpb.score.bytes},
        {"eval_tokens", bpb.score.targets},
        {"eval_ranks", options_.eval_ranks},
        {"eval_exhausted", bpb.exhausted},
        {"eval_timed_out", bpb.timed_out},
        {"corpus_hash", corpus_.hash()},
        {"tokenizer_hash", tokenizer_.hash()},
        {"steps", trained.steps},
        {"tokens", trained.tokens},
        {"tokens_per_second", tokens_per_second},
        {"mfu", tokens_per_second * figures_.flops_per_token / peak_flops_},
        {"peak_flops", peak_flops_},
        {"charged_seconds", trained.charged_seconds},
        {"host_seconds", trained.host_seconds},
        {"parameters", figures_.parameters},
        {"flops_per_token", figures_.flops_per_token},
        {"price",
         {{"step_seconds", price_.step_seconds},
          {"save_seconds", price_.save_seconds},
          {"basis", price_.basis}}},
        {"probes", probes},
        {"checkpoint_hash", trained.checkpoint_hash},
        {"times", times},
        {"phases",
         {{{"name", "train"}, {"seconds", train_seconds}},
          {{"name", "data"}, {"seconds", trained.seconds_in_data}},
          {{"name", "save"}, {"seconds", trained.seconds_in_save}},
          {{"name", "evaluate"}, {"seconds", trained.seconds_in_evaluate + bpb.seconds}}}},
        {"memory", {{"planned_bytes", planned_bytes_}, {"peak_bytes", peak_memory_bytes()}}},
        {"ended", now_utc()}};
    return result;
  }

  static constexpr std::int64_t kQuickTokens = 131072;  // of public_val, during training

  const train::Recipe& recipe_;
  const price::StepPrice& price_;
  const RunOptions& options_;
  ModelFigures figures_;
  ThreadPool pool_;
  SteadyClock clock_;
  data::Corpus corpus_;
  data::Tokenizer tokenizer_;
  std::int64_t eval_batch_ = 1;
  graph::MemoryPlan plan_;
  std::int64_t planned_bytes_ = 0;
  double peak_flops_ = 0;
  fs::path run_;
};

}  // namespace

ModelFigures figures_of(const train::Recipe& recipe) {
  const model::Model model(recipe.model);
  return {model.parameter_count(), model.flops_per_token()};
}

price::StepPrice price_of(const train::Recipe& recipe) {
  const chip::Spec chip = chip::Spec::load(recipe.launch.chip);
  const ModelFigures figures = figures_of(recipe);
  return price::price_by_flops(figures.flops_per_token * static_cast<double>(recipe.data.batch_tokens),
                               figures.parameters, {recipe.launch.processes, recipe.launch.lnc}, chip);
}

RunSummary run_training(const train::Recipe& recipe, const price::StepPrice& price,
                        const RunOptions& options) {
  train::planned_steps(
      recipe, {price.step_seconds, price.save_seconds});  // refuses impossible budgets before any work
  return Run(recipe, price, options).go();
}

}  // namespace headway::cli
