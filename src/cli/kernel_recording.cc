#include "cli/kernel_recording.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "cli/kernel_arguments.h"
#include "cli/python_kernel.h"

namespace headway::cli {

std::vector<const chip::Program*> KernelRecording::pointers() const {
  std::vector<const chip::Program*> all;
  for (const chip::Program& program : programs) all.push_back(&program);
  return all;
}

void add_grid(CLI::App& command, std::vector<int>& grid) {
  command
      .add_option("--lnc,--grid", grid,
                  "Cores of the logical core that a Python kernel runs on (default: 1), or the extents of an "
                  "older kernel's grid: 2,4")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
}

KernelRecording record_kernel(const KernelQuestion& question, const chip::Spec& spec,
                              chip::Diagnostics& diagnostics) {
  KernelRecording r;
  if (is_python_kernel(question.name)) {
    // Memory that was read before it was written is NaN, as in a call from Python; `kernel check` refuses it.
    diagnostics.tolerate({"unwritten"});
    PythonRecording python =
        record_python({question.name, question.args, question.chip, question.grid}, spec, diagnostics);
    r.programs = std::move(python.programs);
    r.warnings = std::move(python.warnings);
    r.name = r.programs.at(0).kernel;
    for (const chip::TensorId id : r.programs[0].with_role(chip::Role::input)) {
      const chip::Tensor& t = r.programs[0].tensors[id];
      r.inputs.push_back({t.name, t.dtype, t.shape});
    }
  } else {
    r.kernel = &kernels::find_kernel(question.name);
    if (!question.grid.empty() && question.grid != std::vector<int>{r.kernel->cores})
      throw InputError(fmt::format("--lnc {}", fmt::join(question.grid, ",")),
                       fmt::format("{} is written for {} core{}", r.kernel->name, r.kernel->cores,
                                   r.kernel->cores == 1 ? "" : "s"),
                       "Kernels in Python files run on as many as they are asked to");
    KernelCall call = kernel_call(*r.kernel, question.args);
    r.name = r.kernel->name;
    r.programs = kernels::record(*r.kernel, spec, call.inputs, call.attributes, &diagnostics);
    r.inputs = std::move(call.inputs);
    r.attributes = std::move(call.attributes);
  }
  for (const kernels::Parameter& p : r.inputs) r.arguments.push_back(to_text(p));
  for (const std::string& arg : question.args)
    if (!std::holds_alternative<kernels::Parameter>(parse_argument(arg).value)) r.arguments.push_back(arg);
  return r;
}

}  // namespace headway::cli
