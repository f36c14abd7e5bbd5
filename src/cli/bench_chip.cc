// headway bench chip: how fast the simulated chip executes, for bench/chip.py, which interleaves it with
// NumPy.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "chip/machine.h"
#include "chip/vector_copy.h"
#include "cli/commands.h"
#include "kernels/kernel.h"

namespace headway::cli {
namespace {

struct Arguments {
  int threads = 0;
  int repetitions = 3;
  std::int64_t size = 4096;
  std::string only;
  bool json = false;
};

std::vector<float> random_floats(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

// Seconds of the fastest of a few executions of a kernel, recording included, all checks on.
double kernel_seconds(const std::string& name, const std::vector<kernels::Parameter>& inputs,
                      ThreadPool& pool, int repetitions) {
  const chip::Spec spec = chip::Spec::load("trn2");
  std::vector<std::vector<float>> memory;
  std::vector<chip::ConstArray> arrays;
  for (const kernels::Parameter& p : inputs) {
    memory.push_back(random_floats(elements(p.shape), memory.size()));
    arrays.push_back({p.dtype, p.shape, memory.back().data()});
  }
  double best = std::numeric_limits<double>::infinity();
  std::vector<float> result;
  const SteadyClock clock;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const double start = clock.seconds();
    chip::Diagnostics diagnostics;
    const auto programs = kernels::record(kernels::find_kernel(name), spec, inputs, {}, &diagnostics);
    chip::Machine machine(spec, {&programs[0]}, 1, pool, diagnostics);
    machine.bind(0, arrays);
    machine.run();
    const chip::TensorId id = programs[0].with_role(chip::Role::output).at(0);
    const chip::Tensor& t = programs[0].tensors[id];
    result.resize(static_cast<std::size_t>(elements(t.shape)));
    machine.outputs(0, std::vector<chip::Array>{{t.dtype, t.shape, result.data()}});
    best = std::min(best, clock.seconds() - start);
  }
  return best;
}

// Microseconds of a tensor_copy of [128, 8] float32, beyond those of copying its 4 KiB; the fastest of a few
// series.
double copy_microseconds(ThreadPool& pool, int repetitions) {
  const chip::Spec spec = chip::Spec::load("trn2");
  chip::Diagnostics diagnostics;
  chip::Recorder nki("copies", spec, &diagnostics);
  const chip::Tile a = nki.sbuf(DType::f32, {128, 8}), b = nki.sbuf(DType::f32, {128, 8});
  constexpr int kCopies = 20000;
  chip::memset(a, 1.0f);
  for (int i = 0; i < kCopies; ++i) chip::tensor_copy(b, a);
  const chip::Program program = nki.finish();
  const SteadyClock clock;
  double copies = std::numeric_limits<double>::infinity(), plain = copies;
  std::vector<char> from(4096, 1), to(4096);
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    chip::Machine machine(spec, {&program}, 1, pool, diagnostics);
    double start = clock.seconds();
    machine.run();
    copies = std::min(copies, clock.seconds() - start);
    start = clock.seconds();
    for (int i = 0; i < kCopies; ++i) {
      std::memcpy(to.data(), from.data(), from.size());
      asm volatile("" : : "r"(to.data()), "r"(from.data()) : "memory");  // each copy takes place
    }
    plain = std::min(plain, clock.seconds() - start);
  }
  return (copies - plain) / kCopies * 1e6;
}

void bench_chip(const Arguments& a) {
  ThreadPool pool(a.threads > 0 ? a.threads : ThreadPool::available());
  const auto square = [&](const char* name) {
    return kernels::Parameter{name, DType::f32, {a.size, a.size}};
  };
  const auto head = [&](const char* name) { return kernels::Parameter{name, DType::f32, {a.size, 128}}; };
  const auto wanted = [&](std::string_view name) { return a.only.empty() || a.only == name; };
  std::string json;
  if (wanted("matmul")) {
    const double seconds = kernel_seconds("matmul", {square("a"), square("b")}, pool, a.repetitions);
    fmt::print("matmul {}^3 in tiles of 128 x 128 x 512: {:.3f} s\n", a.size, seconds);
    json += fmt::format("\"matmul_seconds\": {}, ", seconds);
  }
  if (wanted("attention")) {
    const double seconds =
        kernel_seconds("attention", {head("q"), head("k"), head("v")}, pool, a.repetitions);
    fmt::print("attention {0} x {0}, d 128: {1:.4f} s\n", a.size, seconds);
    json += fmt::format("\"attention_seconds\": {}, ", seconds);
  }
  if (wanted("copy")) {
    const double microseconds = copy_microseconds(pool, 5);
    fmt::print("tensor_copy of 128 x 8 float32: {:.3f} us beyond its memcpy\n", microseconds);
    json += fmt::format("\"copy_microseconds\": {}, ", microseconds);
  }
  if (a.json) fmt::print("{{{}\"threads\": {}}}\n", json, pool.size());
  std::fflush(stdout);
}

}  // namespace

void add_bench_chip(CLI::App& bench) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command = bench.add_subcommand("chip", "Execution on the simulated chip");
  command->add_option("--threads", a->threads, "Threads; 0: all processors")->capture_default_str();
  command->add_option("--size", a->size, "Extent of the matrices and length of the attention")
      ->capture_default_str();
  command->add_option("--repetitions", a->repetitions, "Of which the fastest counts")->capture_default_str();
  command->add_option("--only", a->only, "One case")->check(CLI::IsMember({"matmul", "attention", "copy"}));
  command->add_flag("--json", a->json, "End with one line of JSON");
  command->callback([a] { bench_chip(*a); });
}

}  // namespace headway::cli
