// headway kernel: kernels of C++ and of Python files, run on the simulated chip.
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
#include "cli/kernel_recording.h"
#include "cli/python_kernel.h"
#include "cli/python_process.h"
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
  std::vector<int> grid;
  bool all = false;
  bool json = false;
  // Of `check` on a Python file; they are Python's to read.
  std::string reference;
  std::vector<std::string> tolerance, range;
  int samples = 0;
  bool strict = false, torch = false;
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
  const chip::Spec spec = chip::Spec::load(a.chip);
  chip::Diagnostics diagnostics(a.all ? chip::Diagnostics::Mode::collect : chip::Diagnostics::Mode::stop);

  const SteadyClock clock;
  const double start = clock.seconds();
  const KernelRecording kernel = record_kernel({a.name, a.chip, a.args, a.grid}, spec, diagnostics);
  const double recorded = clock.seconds();
  const std::vector<chip::Program>& programs = kernel.programs;
  std::size_t instructions = 0;
  for (const chip::Program& program : programs) instructions += program.instructions.size();
  if (!a.save.empty()) {
    chip::write_program(FileSystem::real(), a.save, programs[0]);
    fmt::print("{}: the program of core 0\n", a.save);
  }

  Random random(a.seed);
  std::vector<Input> memory;
  std::vector<chip::ConstArray> arrays;
  for (const Parameter& p : kernel.inputs) {
    memory.push_back(random_input(p, random, check));
    arrays.push_back({p.dtype, p.shape, memory.back().bytes.data()});
  }
  ThreadPool pool(a.threads > 0 ? a.threads : ThreadPool::available());
  chip::Machine machine(spec, kernel.pointers(), kernel.cores(), pool, diagnostics);
  machine.bind(0, arrays);
  const double bound = clock.seconds();
  machine.run();
  const double finished = clock.seconds();

  nlohmann::json outputs = nlohmann::json::array();
  fmt::print(
      "{} on {}: {} instructions on {} core{}, recorded in {:.1f} ms, executed in {:.1f} ms on {} thread{}\n",
      kernel.name, spec.name, instructions, kernel.cores(), kernel.cores() == 1 ? "" : "s",
      (recorded - start) * 1e3, (finished - bound) * 1e3, pool.size(), pool.size() == 1 ? "" : "s");
  std::vector<std::vector<double>> expected;
  if (check) {
    std::vector<std::vector<double>> values;
    for (Input& input : memory) values.push_back(std::move(input.numbers));
    expected = kernel.kernel->reference(kernel.inputs, values, kernel.attributes);
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
  for (const std::string& warning : kernel.warnings) fmt::print(stderr, "warning: {}\n", warning);
  nlohmann::json found = nlohmann::json::array();
  for (const chip::Diagnostic& d : diagnostics.all()) {
    fmt::print(stderr, "{}{}\n", d.severity == chip::Severity::warning ? "warning: " : "", d.text());
    found.push_back(
        {{"rule", d.rule}, {"text", d.text()}, {"warning", d.severity == chip::Severity::warning}});
  }
  if (a.json)
    fmt::print("{}\n", nlohmann::json{{"kernel", kernel.name},
                                      {"chip", spec.name},
                                      {"chip_hash", spec.file().hash()},
                                      {"instructions", instructions},
                                      {"host_seconds", finished - bound},
                                      {"outputs", outputs},
                                      {"diagnostics", found}}
                           .dump());
  std::fflush(stdout);
  if (diagnostics.errors() > 0)
    throw KernelError(fmt::format("{}: {} errors", kernel.name, diagnostics.errors()));
}

// Kernels in Python are checked in Python, against a reference in Python.
[[noreturn]] void check_in_python(const Arguments& a) {
  std::vector<std::string> words = {
      "-m", "headway", "kernel", "check", a.name, "--chip", a.chip, "--seed", std::to_string(a.seed)};
  const auto add = [&](const char* option, const std::string& value) {
    if (value.empty()) return;
    words.emplace_back(option);
    words.push_back(value);
  };
  for (const std::string& arg : a.args) add("--arg", arg);
  for (const std::string& tolerance : a.tolerance) add("--tolerance", tolerance);
  for (const std::string& range : a.range) add("--range", range);
  add("--reference", a.reference);
  if (!a.grid.empty()) add("--lnc", fmt::format("{}", fmt::join(a.grid, ",")));
  if (a.samples != 0) add("--samples", std::to_string(a.samples));
  if (a.threads != 0) add("--threads", std::to_string(a.threads));
  if (a.strict) words.emplace_back("--strict");
  if (a.torch) words.emplace_back("--torch");
  if (a.json) words.emplace_back("--json");
  become_python(words);
}

void check(const Arguments& a) {
  if (is_python_kernel(a.name)) check_in_python(a);
  if (!a.reference.empty() || a.strict || a.torch || a.samples != 0 || !a.tolerance.empty() ||
      !a.range.empty())
    throw InputError(
        a.name, "is a kernel of C++, which brings its reference along",
        "--reference, --strict, --torch, --samples, --range and --tolerance go with FILE.py:kernel");
  if (!kernels::find_kernel(a.name).reference)
    throw InputError(a.name, "has no reference to check against", "Use `kernel run`");
  run(a, true);
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
    command->add_option("name", a->name, "Kernel, see `kernel list`, or FILE.py:KERNEL")->required();
    command->add_option("--arg", a->args,
                        check ? "NAME=DTYPE[EXTENT,...] of an input or NAME=VALUE, an attribute; for FILE.py "
                                "alternatives are separated by |"
                              : "NAME=DTYPE[EXTENT,...] of an input or NAME=VALUE, an attribute");
    add_grid(*command, a->grid);
    command->add_option("--chip", a->chip, "Chip name or file")->capture_default_str();
    command->add_option("--seed", a->seed, "Of the random inputs")->capture_default_str();
    command->add_option("--threads", a->threads, "Threads; 0: all processors")->capture_default_str();
    command->add_flag("--all", a->all, "Report everything that is wrong instead of stopping at the first");
    command->add_flag("--json", a->json, "End with one line of JSON");
    if (!check) {
      command->add_option("--save", a->save, "Write the recorded program to a file");
      command->callback([a] { run(*a, false); });
      continue;
    }
    command->add_option("--reference", a->reference,
                        "FILE.py:FUNCTION that a kernel in Python is compared with");
    command->add_option("--tolerance", a->tolerance,
                        "[OUTPUT=]RELATIVE: largest error, instead of the dtype's");
    command->add_option("--samples", a->samples, "Random inputs of each combination of alternatives");
    command->add_option("--range", a->range, "NAME=LOW:HIGH: values of an input (default: normal numbers)");
    command->add_flag("--torch", a->torch, "The reference takes PyTorch tensors");
    command->add_flag("--strict", a->strict, "Also report what the real compiler refuses in the source");
    command->callback([a] { headway::cli::check(*a); });
  }
  add_kernel_time(*kernel);
}

}  // namespace headway::cli
