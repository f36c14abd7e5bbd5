// headway kernel: the C++ kernels, run on the simulated chip.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/number_format.h"
#include "base/random.h"
#include "chip/machine.h"
#include "chip/program_file.h"
#include "cli/commands.h"
#include "cli/kernel_arguments.h"
#include "kernels/kernel.h"
#include "show/text_table.h"
#include "simd/convert.h"

namespace headway::cli {
namespace {

using kernels::Parameter;

struct Arguments {
  std::string name;
  std::string chip = "trn2";
  std::vector<std::string> args;
  std::string save;
  std::uint64_t seed = 0;
  int threads = 0;
  bool all = false;
  bool json = false;
};

void list(bool json) {
  show::TextTable table({"kernel", "inputs", "what"},
                        {show::TextTable::left, show::TextTable::left, show::TextTable::left});
  nlohmann::json all = nlohmann::json::array();
  for (const kernels::Kernel& kernel : kernels::all_kernels()) {
    std::vector<std::string> inputs;
    for (const Parameter& p : kernel.inputs) inputs.push_back(to_text(p));
    table.add(
        {std::string(kernel.name), fmt::format("{}", fmt::join(inputs, "  ")), std::string(kernel.summary)});
    all.push_back(
        {{"name", kernel.name}, {"summary", kernel.summary}, {"inputs", inputs}, {"cores", kernel.cores}});
  }
  fmt::print("{}", table.text());
  if (json) fmt::print("{}\n", nlohmann::json{{"kernels", all}}.dump());
}

struct Input {
  std::vector<std::byte> bytes;
  std::vector<double> numbers;
};

// Normal numbers (whole ones from 0 to 100 for integers), as stored.
Input random_input(const Parameter& p, Random& random, bool keep_numbers) {
  Input input;
  const auto count = static_cast<std::size_t>(elements(p.shape)),
             size = static_cast<std::size_t>(size_of(p.dtype));
  input.bytes.resize(count * size);
  std::vector<float> values(count);
  for (float& value : values)
    value = static_cast<float>(is_float(p.dtype) ? random.normal() : std::floor(random.uniform(0, 100)));
  simd::from_float(p.dtype, values.data(), input.bytes.data(), static_cast<std::int64_t>(count));
  if (keep_numbers) {
    input.numbers.resize(count);
    for (std::size_t i = 0; i < count; ++i)
      input.numbers[i] = static_cast<double>(decode(p.dtype, input.bytes.data() + i * size));
  }
  return input;
}

void run(const Arguments& a, bool check) {
  const kernels::Kernel& kernel = kernels::find_kernel(a.name);
  if (check && !kernel.reference)
    throw InputError(a.name, "has no reference to check against", "Use `kernel run`");
  const chip::Spec spec = chip::Spec::load(a.chip);
  const auto [inputs, attributes] = kernel_call(kernel, a.args);
  chip::Diagnostics diagnostics(a.all ? chip::Diagnostics::Mode::collect : chip::Diagnostics::Mode::stop);

  const SteadyClock clock;
  const double start = clock.seconds();
  const std::vector<chip::Program> programs = kernels::record(kernel, spec, inputs, attributes, &diagnostics);
  const double recorded = clock.seconds();
  std::size_t instructions = 0;
  std::vector<const chip::Program*> pointers;
  for (const chip::Program& program : programs) {
    pointers.push_back(&program);
    instructions += program.instructions.size();
  }
  if (!a.save.empty()) {
    chip::write_program(FileSystem::real(), a.save, programs[0]);
    fmt::print("{}: the program of core 0\n", a.save);
  }

  Random random(a.seed);
  std::vector<Input> memory;
  std::vector<chip::ConstArray> arrays;
  for (const Parameter& p : inputs) {
    memory.push_back(random_input(p, random, check));
    arrays.push_back({p.dtype, p.shape, memory.back().bytes.data()});
  }
  ThreadPool pool(a.threads > 0 ? a.threads : ThreadPool::available());
  chip::Machine machine(spec, pointers, kernel.cores, pool, diagnostics);
  machine.bind(0, arrays);
  const double bound = clock.seconds();
  machine.run();
  const double finished = clock.seconds();

  nlohmann::json outputs = nlohmann::json::array();
  fmt::print(
      "{} on {}: {} instructions on {} core{}, recorded in {:.1f} ms, executed in {:.1f} ms on {} thread{}\n",
      kernel.name, spec.name, instructions, kernel.cores, kernel.cores == 1 ? "" : "s",
      (recorded - start) * 1e3, (finished - bound) * 1e3, pool.size(), pool.size() == 1 ? "" : "s");
  std::vector<std::vector<double>> expected;
  if (check) {
    std::vector<std::vector<double>> values;
    for (Input& input : memory) values.push_back(std::move(input.numbers));
    expected = kernel.reference(inputs, values, attributes);
  }
  show::TextTable table({"output", "shape", "smallest", "largest", check ? "largest error" : "mean"},
                        {show::TextTable::left, show::TextTable::left, show::TextTable::right,
                         show::TextTable::right, show::TextTable::right});
  const std::vector<chip::TensorId> ids = programs[0].with_role(chip::Role::output);
  for (std::size_t o = 0; o < ids.size(); ++o) {
    const chip::Tensor& t = programs[0].tensors[ids[o]];
    std::vector<std::byte> bytes(static_cast<std::size_t>(t.row_bytes()));
    machine.read(0, ids[o], {t.dtype, t.shape, bytes.data()});
    double low = std::numeric_limits<double>::infinity(), high = -low, sum = 0, error = 0;
    const auto size = static_cast<std::size_t>(size_of(t.dtype));
    for (std::size_t i = 0; i < bytes.size() / size; ++i) {
      const auto value = static_cast<double>(decode(t.dtype, bytes.data() + i * size));
      low = std::min(low, value);
      high = std::max(high, value);
      sum += value;
      if (check) error = std::max(error, std::isnan(value) ? value : std::abs(value - expected[o][i]));
    }
    const double last = check ? error : sum / static_cast<double>(bytes.size() / size);
    table.add({t.name, std::string(name_of(t.dtype)) + to_string(t.shape), fmt::format("{:.6g}", low),
               fmt::format("{:.6g}", high), fmt::format("{:.3g}", last)});
    outputs.push_back({{"name", t.name},
                       {"dtype", name_of(t.dtype)},
                       {"shape", t.shape},
                       {"smallest", low},
                       {"largest", high},
                       {check ? "error" : "mean", last}});
  }
  if (!ids.empty()) fmt::print("{}", table.text());
  nlohmann::json found = nlohmann::json::array();
  for (const chip::Diagnostic& d : diagnostics.all()) {
    fmt::print(stderr, "{}{}\n", d.severity == chip::Severity::warning ? "warning: " : "", d.text());
    found.push_back(
        {{"rule", d.rule}, {"text", d.text()}, {"warning", d.severity == chip::Severity::warning}});
  }
  if (a.json)
    fmt::print("{}\n", nlohmann::json{{"kernel", kernel.name},
                                      {"chip", spec.name},
                                      {"instructions", instructions},
                                      {"host_seconds", finished - bound},
                                      {"outputs", outputs},
                                      {"diagnostics", found}}
                           .dump());
  std::fflush(stdout);
  if (diagnostics.errors() > 0)
    throw KernelError(fmt::format("{}: {} errors", kernel.name, diagnostics.errors()));
}

}  // namespace

void add_kernel_command(CLI::App& app) {
  CLI::App* kernel = app.add_subcommand("kernel", "Run kernels on the simulated chip");
  kernel->require_subcommand(1);
  auto a = std::make_shared<Arguments>();
  CLI::App* all = kernel->add_subcommand("list", "The kernels there are");
  all->add_flag("--json", a->json, "End with one line of JSON");
  all->callback([a] { list(a->json); });
  for (const bool check : {false, true}) {
    CLI::App* command =
        check ? kernel->add_subcommand("check", "Run a kernel and compare it with its float64 reference")
              : kernel->add_subcommand("run", "Run a kernel on random inputs, all rules of the hardware on");
    command->add_option("name", a->name, "Kernel, see `kernel list`")->required();
    command->add_option("--arg", a->args, "NAME=DTYPE[EXTENT,...] of an input or NAME=NUMBER, an attribute");
    command->add_option("--chip", a->chip, "Chip name or file")->capture_default_str();
    command->add_option("--seed", a->seed, "Of the random inputs")->capture_default_str();
    command->add_option("--threads", a->threads, "Threads; 0: all processors")->capture_default_str();
    command->add_option("--save", a->save, "Write the recorded program to a file");
    command->add_flag("--all", a->all, "Report everything that is wrong instead of stopping at the first");
    command->add_flag("--json", a->json, "End with one line of JSON");
    command->callback([a, check] { run(*a, check); });
  }
  add_kernel_time(*kernel);
}

}  // namespace headway::cli
