#include "kernels/kernel.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/toml.h"
#include "kernels/library.h"
#include "kernels/measured/measured.h"

namespace headway::kernels {

double Attributes::number(const std::string& name, double fallback) const {
  asked_[name] = true;
  const auto found = values_.find(name);
  return found == values_.end() ? fallback : found->second;
}

void Attributes::finish(const std::string& kernel) const {
  std::vector<std::string> known;
  for (const auto& [name, asked] : asked_) known.push_back(name);
  for (const auto& [name, value] : values_)
    if (!asked_.count(name)) refuse_name(kernel, "attribute", name, known);
}

std::span<const Kernel> all_kernels() {
  static const std::vector<Kernel> kernels = [] {
    std::vector<Kernel> all = {matmul_kernel(), softmax_kernel(),        attention_kernel(),
                               race_mistake(),  out_of_bounds_mistake(), unwritten_mistake()};
    for (Kernel& kernel : measured_kernels()) all.push_back(std::move(kernel));
    return all;
  }();
  return kernels;
}

const Kernel& find_kernel(const std::string& name) {
  std::vector<std::string> names;
  for (const Kernel& kernel : all_kernels()) {
    if (kernel.name == name) return kernel;
    names.emplace_back(kernel.name);
  }
  refuse_name("kernel", "kernel", name, names);
}

std::vector<chip::Program> record(const Kernel& kernel, const chip::Spec& spec,
                                  const std::vector<Parameter>& inputs, const Attributes& attributes,
                                  chip::Diagnostics* diagnostics) {
  if (inputs.size() != kernel.inputs.size())
    throw InputError(std::string(kernel.name),
                     fmt::format("takes {} inputs, not {}", kernel.inputs.size(), inputs.size()));
  std::vector<chip::Program> programs;
  for (int core = 0; core < kernel.cores; ++core) {
    chip::Recorder nki(std::string(kernel.name), spec, diagnostics, core, kernel.cores);
    Tiles tiles;
    for (const Parameter& input : inputs) tiles.push_back(nki.input(input.name, input.dtype, input.shape));
    kernel.record(nki, tiles, attributes);
    programs.push_back(nki.finish());
  }
  attributes.finish(std::string(kernel.name));
  return programs;
}

}  // namespace headway::kernels
