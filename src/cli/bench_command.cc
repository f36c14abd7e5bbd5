// headway bench train: own speed on random tokens, for bench/train.py, which interleaves it with peers.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/home.h"
#include "base/progress.h"
#include "base/random.h"
#include "cli/commands.h"
#include "cli/training_run.h"
#include "host/host_backend.h"
#include "host/peak.h"
#include "train/session.h"

namespace headway::cli {
namespace {

struct Arguments {
  std::string recipe;
  int threads = 0;
  double seconds = 6;
  bool parts = false;
  bool json = false;
};

// Whole optimizer steps (micro-batches, update, clearing of gradients); rows come from memory.
void bench_train(const Arguments& a) {
  const train::Recipe recipe = train::read_recipe(a.recipe.empty() ? home() / "bench" / "train.toml"
                                                                   : std::filesystem::path(a.recipe));
  ThreadPool pool(a.threads > 0 ? a.threads : ThreadPool::available());
  train::Session session(recipe, [&](std::shared_ptr<const graph::Variables> variables) {
    return host::make_backend(std::move(variables), pool, host::Precision::fast, {recipe.bf16_products});
  });
  session.model().initialize(session.backend(), recipe.seed);
  const double peak = host::measure_peak_flops(pool);

  Random random(recipe.seed);
  std::vector<std::int32_t> tokens(
      static_cast<std::size_t>(recipe.data.device_batch * recipe.model.sequence));
  std::vector<std::int32_t> targets(tokens.size());
  for (auto* ids : {&tokens, &targets})
    for (std::int32_t& id : *ids)
      id = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(recipe.model.vocab)));
  session.micro().bind("tokens", tokens);
  session.micro().bind("targets", targets);
  session.micro().bind("loss_scale", 1.0 / static_cast<double>(recipe.micro_batches()));
  for (const auto& [name, group] : recipe.optimizer.groups) {
    const auto bind = [&](const std::string& input, double value) {
      if (session.update().has_input(input)) session.update().bind(input, value);
    };
    bind("lr." + name, group.lr);
    bind("weight_decay." + name, group.weight_decay);
    bind("momentum." + name, 0.95);
  }

  const SteadyClock clock;
  std::vector<double> seconds;
  double total = 0;
  for (int step = 1; total < a.seconds || seconds.size() < 3; ++step) {
    const double start = clock.seconds();
    for (std::int64_t m = 0; m < recipe.micro_batches(); ++m) session.micro().run();
    session.update().bind("step", step);
    session.update().run();
    session.backend().zero(graph::Role::gradient);
    if (step == 1) continue;  // touches fresh memory
    seconds.push_back(clock.seconds() - start);
    total += seconds.back();
  }
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  const double flops = session.model().flops_per_token();
  const double rate = static_cast<double>(recipe.data.batch_tokens) / median;
  fmt::print("{} steps, {:.1f} ms median, {} tokens/s, {:.1f} GFLOP/s, {:.1f}% of {:.0f} GFLOP/s\n",
             seconds.size(), 1e3 * median, grouped(static_cast<std::int64_t>(rate)), rate * flops / 1e9,
             100 * rate * flops / peak, peak / 1e9);
  nlohmann::json parts = nlohmann::json::array();
  if (a.parts) {
    std::vector<graph::PartTime> all;
    for (graph::Executable* executable : {&session.micro(), &session.update()}) {
      for (const graph::PartTime& part : executable->times()) {
        auto same = std::find_if(all.begin(), all.end(),
                                 [&](const graph::PartTime& p) { return p.kernel == part.kernel; });
        if (same == all.end()) {
          all.push_back(part);
        } else {
          same->seconds += part.seconds;
          same->flops += part.flops;
        }
      }
    }
    std::sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.seconds > y.seconds; });
    const double steps = static_cast<double>(seconds.size() + 1);
    for (const graph::PartTime& part : all) {
      fmt::print("{:>8.2f} ms {:>5.1f}%  {:>6.1f} GFLOP/s  {}\n", 1e3 * part.seconds / steps,
                 100 * part.seconds / steps / median, part.flops / part.seconds / 1e9, part.kernel);
      parts.push_back({{"kernel", part.kernel}, {"seconds", part.seconds / steps}});
    }
  }
  if (a.json) {
    const nlohmann::json line = {{"tokens_per_second", rate},  {"step_seconds", median},
                                 {"mfu", rate * flops / peak}, {"gflops", rate * flops / 1e9},
                                 {"peak_gflops", peak / 1e9},  {"threads", pool.size()},
                                 {"flops_per_token", flops},   {"parts", parts}};
    fmt::print("{}\n", line.dump());
  }
  std::fflush(stdout);
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* bench =
      app.add_subcommand("bench", "Measure own speed (./run bench NAME compares it with peers)");
  bench->require_subcommand(1);
  auto a = std::make_shared<Arguments>();
  CLI::App* command = bench->add_subcommand("train", "Training steps on random tokens");
  command->add_option("recipe", a->recipe, "Recipe (default: bench/train.toml)");
  command->add_option("--threads", a->threads, "Threads; 0: all processors")->capture_default_str();
  command->add_option("--seconds", a->seconds, "How long to measure")->capture_default_str();
  command->add_flag("--parts", a->parts, "Time by kernel");
  command->add_flag("--json", a->json, "End with one line of JSON");
  command->callback([a] { bench_train(*a); });
  add_bench_chip(*bench);
  add_bench_timeline(*bench);
}

}  // namespace headway::cli
