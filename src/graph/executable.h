// What a machine that can run graphs offers: the host CPU, the simulated chip.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace headway::graph {

// Memory that compiling a graph decided on, in bytes, before anything is allocated.
struct MemoryPlan {
  std::int64_t variables = 0;      // all variables of the table (shared by the executables of one backend)
  std::int64_t intermediates = 0;  // the arena that values without overlapping lifetimes share
  std::int64_t workspace = 0;      // kernels' scratch
  std::int64_t total() const { return variables + intermediates + workspace; }
};

// Time spent in one part of a graph since the executable was made.
struct PartTime {
  std::string scope;   // "h.3.attn"
  std::string kernel;  // "linear"
  double seconds = 0;
  double flops = 0;
  std::int64_t calls = 0;
};

// A compiled graph. Not thread-safe.
class Executable {
 public:
  virtual ~Executable() = default;

  virtual MemoryPlan plan() const = 0;

  // Does the graph have that input? Update graphs have scalars only for what their methods use.
  virtual bool has_input(const std::string& name) const = 0;
  // Binds an input for the next run. Tokens: as many elements as the input's shape has, copied.
  virtual void bind(const std::string& input, std::span<const std::int32_t> values) = 0;
  virtual void bind(const std::string& input, double scalar) = 0;
  // Runs all nodes, then the effects. Every input must have been bound at least once.
  virtual void run() = 0;
  // Runs again and names the first tensor that isn't finite ("h.3.attn linear"; variables by name), or "".
  // For finding out what broke: variables are left in an undefined state.
  virtual std::string first_nonfinite() = 0;
  // A named output of the last run, converted to double; row-major. Valid until the next run of any
  // executable of the backend, since they share one arena.
  virtual std::vector<double> output(const std::string& name) const = 0;
  // The same without conversion where the machine keeps float32 (nullptr where it doesn't).
  virtual const float* output_f32(const std::string& name) const = 0;

  virtual std::vector<PartTime> times() const = 0;
};

// A machine with one set of variables.
class Backend {
 public:
  virtual ~Backend() = default;

  // "host float32, 2 threads"
  virtual std::string description() const = 0;
  // Plans only; memory is taken when the executable first runs.
  virtual std::unique_ptr<Executable> compile(const Graph& graph) = 0;

  // Copies a variable out of or into the machine.
  virtual std::vector<double> read(int variable) const = 0;
  virtual void write(int variable, std::span<const double> values) = 0;
  // The variable as the machine stores it, for checkpoints: element type and raw bytes.
  virtual DType stored_as(int variable) const = 0;
  virtual void* storage(int variable) = 0;
  // Sets all variables of a role to zero.
  virtual void zero(Role role) = 0;
};

}  // namespace headway::graph
