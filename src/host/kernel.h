// Kernels of the host: how an operator, or a connected region of operators, is computed on the CPU.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "graph/graph.h"

namespace headway::host {

// A tensor in memory, row-major and contiguous, aligned to 64 bytes. Real numbers are stored as the
// instance's type (float or double), tokens as int32.
struct Tensor {
  void* data = nullptr;
  Shape shape;
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  std::int64_t count() const { return elements(shape); }
};

struct Options {
  // Round the operands of matrix products to bfloat16, as the chip does; sums stay float32.
  bool bf16_products = false;
};

// One execution of a kernel.
struct Call {
  std::span<const graph::Operator* const>
      ops;  // the region's operators in the pattern's order; one for single operators
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  // Per output: add to what is there instead of overwriting. Only ever true where can_accumulate() is.
  const std::vector<bool>& accumulate;
  ThreadPool& pool;
  void* workspace;  // Kernel::workspace() bytes, aligned to 64
  const Options& options;

  template <class Op>
  const Op& op(std::size_t i = 0) const {
    const auto* found = dynamic_cast<const Op*>(ops[i]);
    if (!found) throw Bug("kernel bound to another operator: " + std::string(ops[i]->name()));
    return *found;
  }
};

// Stateless; one instance serves every call.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const Call& call) const = 0;
  // Bytes of scratch one call needs.
  virtual std::int64_t workspace(std::span<const graph::Operator* const> ops,
                                 std::span<const graph::TensorType> inputs,
                                 std::span<const graph::TensorType> outputs, int threads) const;
  // May run() be asked to add to this output instead of overwriting it?
  virtual bool can_accumulate(int output) const;
  // The input whose memory this output may reuse (element i is read before it is written), or -1.
  virtual int may_overwrite(int output) const;
};

// A connected list of operators that one kernel computes. Names stand for values: `inputs` come from outside,
// `outputs` are visible outside, every other name is internal and may have no reader outside the region.
// Example:
//   {{{"linear", {"x", "w"}, {"h"}}, {"relu2", {"h"}, {"y"}}}, {"x", "w"}, {"h", "y"}}
struct Pattern {
  struct Node {
    std::string op;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
  };
  std::vector<Node> nodes;  // in an order in which each node's operands come first
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

// The kernels of one instance.
class Kernels {
 public:
  // A later kernel for the same operator replaces the earlier.
  void add(const std::string& op, std::shared_ptr<const Kernel> kernel);
  void add(Pattern pattern, std::shared_ptr<const Kernel> kernel);

  // Throws Unsupported naming the operator when there is none.
  const Kernel& single(std::string_view op) const;

  struct Region {
    Pattern pattern;
    std::shared_ptr<const Kernel> kernel;
  };
  // Longest first; equal lengths in the order they were added.
  const std::vector<Region>& regions() const { return regions_; }

 private:
  std::map<std::string, std::shared_ptr<const Kernel>, std::less<>> single_;
  std::vector<Region> regions_;
};

// A plain function over raw memory as a kernel: the reference of an operator.
using Function = void (*)(const Call&);

// Registers the reference of an operator in both precisions. Define one at namespace scope beside the
// operator; operators outside src/ need nothing else to run:
//   static const Reference lion{"lion", lion_reference<float>, lion_reference<double>};
struct Reference {
  Reference(const std::string& op, Function f32, Function f64);
};

// Plain loops for every operator, T = float or double: what fast kernels are tested against.
template <class T>
Kernels reference_kernels();
// The operators that have a reference, in alphabetical order.
std::vector<std::string> reference_names();
// Vectorised, threaded float32 kernels and regions; the float reference where an operator has none.
Kernels fast_kernels();

}  // namespace headway::host
