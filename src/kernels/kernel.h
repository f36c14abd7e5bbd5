// Kernels in C++: recorded on a chip's instructions, found by name. The contract is every kernel's: tensors
// in HBM, row-major, in the order of their arguments; attributes by name; outputs declared by the kernel.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chip/program.h"
#include "chip/recorder.h"

namespace headway::kernels {

// Numbers by name: scale, causal (0 or 1).
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::map<std::string, double> values) : values_(std::move(values)) {}
  // The attribute, or `fallback`. What is asked for is what is known: see finish().
  double number(const std::string& name, double fallback) const;
  bool flag(const std::string& name, bool fallback) const { return number(name, fallback ? 1 : 0) != 0; }
  // Throws InputError for an attribute nobody asked for.
  void finish(const std::string& kernel) const;

 private:
  std::map<std::string, double> values_;
  mutable std::map<std::string, bool> asked_;
};

struct Parameter {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

using Tiles = std::vector<chip::Tile>;

struct Kernel {
  std::string_view name;
  std::string_view summary;  // one line
  // What it takes when the caller doesn't say: the names of its inputs with dtypes and shapes that make
  // sense.
  std::vector<Parameter> inputs;
  void (*record)(chip::Recorder& nki, const Tiles& inputs, const Attributes& attributes);
  // The same in float64 on row-major inputs: its outputs. None for kernels that are wrong on purpose.
  std::vector<std::vector<double>> (*reference)(const std::vector<Parameter>& inputs,
                                                const std::vector<std::vector<double>>& values,
                                                const Attributes& attributes) = nullptr;
  int cores = 1;  // of the logical core it is written for
};

std::span<const Kernel> all_kernels();
// Throws InputError with the nearest name.
const Kernel& find_kernel(const std::string& name);

// The programs of `kernel.cores` cores. Inputs take the dtypes and shapes given, which must be as many as it
// has.
std::vector<chip::Program> record(const Kernel& kernel, const chip::Spec& spec,
                                  const std::vector<Parameter>& inputs, const Attributes& attributes,
                                  chip::Diagnostics* diagnostics = nullptr);

}  // namespace headway::kernels
