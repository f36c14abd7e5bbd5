#include "host/kernel.h"

#include <algorithm>

#include "host/reference/references.h"

namespace headway::host {
namespace {

class FunctionKernel : public Kernel {
 public:
  explicit FunctionKernel(Function function) : function_(function) {}
  void run(const Call& call) const override { function_(call); }

 private:
  Function function_;
};

struct Registered {
  Function f32;
  Function f64;
};

// Filled during static initialisation, hence behind a function.
std::map<std::string, Registered>& registered() {
  static std::map<std::string, Registered> table;
  return table;
}

}  // namespace

std::int64_t Kernel::workspace(std::span<const graph::Operator* const>, std::span<const graph::TensorType>,
                               std::span<const graph::TensorType>, int) const {
  return 0;
}
bool Kernel::can_accumulate(int) const { return false; }
int Kernel::may_overwrite(int) const { return -1; }

void Kernels::add(const std::string& op, std::shared_ptr<const Kernel> kernel) {
  single_[op] = std::move(kernel);
}

void Kernels::add(Pattern pattern, std::shared_ptr<const Kernel> kernel) {
  const auto place = std::find_if(regions_.begin(), regions_.end(), [&](const Region& region) {
    return region.pattern.nodes.size() < pattern.nodes.size();
  });
  regions_.insert(place, {std::move(pattern), std::move(kernel)});
}

const Kernel& Kernels::single(std::string_view op) const {
  const auto found = single_.find(op);
  if (found == single_.end())
    throw Unsupported("the host has no kernel for operator '" + std::string(op) + "'");
  return *found->second;
}

Reference::Reference(const std::string& op, Function f32, Function f64) { registered()[op] = {f32, f64}; }

template <class T>
Kernels reference_kernels() {
  register_references();
  Kernels kernels;
  for (const auto& [op, functions] : registered()) {
    kernels.add(op,
                std::make_shared<FunctionKernel>(sizeof(T) == sizeof(float) ? functions.f32 : functions.f64));
  }
  return kernels;
}

std::vector<std::string> reference_names() {
  register_references();
  std::vector<std::string> names;
  for (const auto& [op, functions] : registered()) names.push_back(op);
  return names;
}

template Kernels reference_kernels<float>();
template Kernels reference_kernels<double>();

}  // namespace headway::host
