// Where a training step of a recipe's model goes: seconds by kernel, and the share of what the processor's
// multipliers could do. Data are random tokens.
//
//   host_step RECIPE.toml [THREADS [STEPS [MICRO_BATCHES]]]
//
// The step's time is the median; kernels' times are sums over all steps divided by their number, after one
// step of warming up. bench/host.md has a table.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <map>

#include "base/random.h"
#include "base/toml.h"
#include "host/host_backend.h"
#include "model/model.h"
#include "optim/optimizer.h"

namespace headway {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds of processor time of this process: what a step costs on a machine that is shared.
double processor_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

using ByKernel = std::map<std::string, graph::PartTime>;

void add_times(const graph::Executable& executable, double sign, ByKernel& sums) {
  for (const graph::PartTime& part : executable.times()) {
    graph::PartTime& sum = sums[part.kernel];
    sum.seconds += sign * part.seconds;
    sum.flops += sign * part.flops;
    sum.calls += static_cast<std::int64_t>(sign) * part.calls;
  }
}

int main_of(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "host_step RECIPE.toml [THREADS [STEPS [MICRO_BATCHES]]]\n");
    return 2;
  }
  const int threads = argc > 2 ? std::atoi(argv[2]) : ThreadPool::available();
  const int steps = argc > 3 ? std::atoi(argv[3]) : 10;
  const int micro_batches = argc > 4 ? std::atoi(argv[4]) : 1;

  TomlTable recipe = TomlTable::read(argv[1]);
  const model::Model model(model::read_config(recipe.table("model")));
  const optim::Optimizer optimizer = optim::read_optimizer(recipe.table("optimizer"));
  TomlTable data = recipe.table("data");
  const std::int64_t batch = data.integer("device_batch"), time = model.config().sequence;

  const graph::Graph micro_graph = model.micro(batch, time);
  const graph::Graph update_graph = optim::update_graph(
      optimizer, model.variables(), [&](int parameter) { return model.gradient_of(parameter); });
  ThreadPool pool(threads);
  const auto backend = host::make_backend(model.variables(), pool, host::Precision::fast);
  model.initialize(*backend, 1);
  const auto micro = backend->compile(micro_graph);
  const auto update = backend->compile(update_graph);

  Random random(7);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch * time)), targets = tokens;
  for (auto& token : tokens)
    token = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(model.config().vocab)));
  for (auto& token : targets)
    token = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(model.config().vocab)));
  micro->bind("tokens", tokens);
  micro->bind("targets", targets);
  micro->bind("loss_scale", 1.0 / micro_batches);
  for (graph::Value input : update_graph.inputs()) {
    const std::string& name = update_graph.info(input).name;
    update->bind(name, name.starts_with("lr")         ? 1e-3
                       : name.starts_with("momentum") ? 0.95
                       : name == "step"               ? 1
                                                      : 0);
  }

  std::vector<double> walls, processors;
  ByKernel kernels;
  for (int step = 0; step <= steps; ++step) {
    const double wall = now(), processor = processor_time();
    backend->zero(graph::Role::gradient);
    for (int k = 0; k < micro_batches; ++k) micro->run();
    update->bind("step", step + 1);
    update->run();
    if (step == 0) {
      add_times(*micro, -1, kernels);
      add_times(*update, -1, kernels);
      continue;
    }
    walls.push_back(now() - wall);
    processors.push_back(processor_time() - processor);
  }
  add_times(*micro, 1, kernels);
  add_times(*update, 1, kernels);
  std::sort(walls.begin(), walls.end());
  std::sort(processors.begin(), processors.end());

  const auto tokens_per_step = static_cast<double>(batch * time * micro_batches);
  const double flops = model.flops_per_token() * tokens_per_step;
  const double wall = walls[walls.size() / 2], processor = processors[processors.size() / 2] / threads;
  fmt::print("{} threads, {:.0f} tokens a step, {:.2f} MFLOP a token, loss {:.4f}\n", threads,
             tokens_per_step, model.flops_per_token() / 1e6, micro->output("loss")[0]);
  fmt::print(
      "step: median {:.1f} ms (best {:.1f}), {:.0f} tokens/s, {:.1f} GFLOP/s; processor time per thread "
      "{:.1f} ms, {:.0f} tokens/s, {:.1f} GFLOP/s\n",
      wall * 1e3, walls[0] * 1e3, tokens_per_step / wall, flops / wall / 1e9, processor * 1e3,
      tokens_per_step / processor, flops / processor / 1e9);

  std::vector<std::pair<std::string, graph::PartTime>> rows(kernels.begin(), kernels.end());
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  double sum = 0;
  for (const auto& row : rows) sum += row.second.seconds;
  for (const auto& [name, part] : rows) {
    fmt::print("{:9.3f} ms {:5.1f}% {:7.1f} GFLOP/s {:6d} calls  {}\n", part.seconds / steps * 1e3,
               100 * part.seconds / sum, part.flops / part.seconds / 1e9, part.calls / steps, name);
  }
  return 0;
}

}  // namespace
}  // namespace headway

int main(int argc, char** argv) { return headway::main_of(argc, argv); }
