// Runs a graph as its definition says: node by node, each value in memory of its own, effects at the end. No
// planning, no fusion, no reuse: what backends are tested against.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/threads.h"
#include "graph/graph.h"
#include "host/kernel.h"
#include "host/numbers.h"

namespace headway::test {

// One execution of a kernel on memory of its own; `outputs` are overwritten, or added to where `accumulate`
// says so.
inline void call_kernel(const host::Kernel& kernel, std::span<const graph::Operator* const> ops,
                        std::span<const graph::TensorType> input_types, std::span<const Buffer> inputs,
                        std::span<const graph::TensorType> output_types, std::span<const Buffer> outputs,
                        const std::vector<bool>& accumulate, ThreadPool& pool, const host::Options& options) {
  std::vector<host::Tensor> in, out;
  for (const Buffer& buffer : inputs) in.push_back(buffer.tensor());
  for (const Buffer& buffer : outputs) out.push_back(buffer.tensor());
  const auto workspace = Buffer::memory(kernel.workspace(ops, input_types, output_types, pool.size()));
  kernel.run({ops, in, out, accumulate, pool, workspace.get(), options});
}

// T: the type that the kernels compute in. Holds the variables from run to run.
template <class T>
class Interpreter {
 public:
  Interpreter(const graph::Graph& graph, host::Kernels kernels, host::Options options = {}, int threads = 1)
      : graph_(graph), kernels_(std::move(kernels)), options_(options), pool_(threads, false) {}

  void bind(const std::string& input, Numbers numbers) { inputs_[input] = std::move(numbers); }
  // Zeros until something else is written.
  Numbers& variable(int index) {
    Numbers& numbers = variables_[index];
    if (numbers.empty())
      numbers.resize(static_cast<std::size_t>(elements(graph_.variables()[index].type.shape)));
    return numbers;
  }

  void run() {
    values_.clear();
    for (int id = 0; id < graph_.values(); ++id) {
      const graph::ValueInfo& info = graph_.info({id});
      values_.push_back(Buffer::of<T>(info.type));
      if (info.source == graph::Source::input) values_.back().set(inputs_.at(info.name));
      if (info.source == graph::Source::variable) values_.back().set(variable(info.index));
    }
    for (const graph::Node& node : graph_.nodes()) {
      const graph::Operator* op = node.op.get();
      call_kernel(kernels_.single(op->name()), {&op, 1}, graph::types_of(graph_, node.inputs),
                  buffers(node.inputs), graph::types_of(graph_, node.outputs), buffers(node.outputs),
                  std::vector<bool>(node.outputs.size(), false), pool_, options_);
    }
    for (const graph::Effect& effect : graph_.effects()) {
      const Numbers result = value(effect.value);
      Numbers& target = variable(effect.variable);
      for (std::size_t i = 0; i < target.size(); ++i) {
        // In T, as a machine that stores variables as T would add.
        target[i] = effect.accumulate ? static_cast<T>(target[i]) + static_cast<T>(result[i]) : result[i];
      }
    }
  }

  // Any value of the last run.
  Numbers value(graph::Value value) const { return values_.at(static_cast<std::size_t>(value.id)).numbers(); }
  // A named output of the last run.
  Numbers output(const std::string& name) const {
    for (const auto& [known, output] : graph_.outputs())
      if (known == name) return value(output);
    throw Bug("the graph has no output " + name);
  }

 private:
  std::vector<Buffer> buffers(const std::vector<graph::Value>& values) const {
    std::vector<Buffer> found;
    for (graph::Value value : values) found.push_back(values_[static_cast<std::size_t>(value.id)]);
    return found;
  }

  const graph::Graph& graph_;
  host::Kernels kernels_;
  host::Options options_;
  ThreadPool pool_;
  std::map<std::string, Numbers> inputs_;
  std::map<int, Numbers> variables_;
  std::vector<Buffer> values_;  // by value id
};

}  // namespace headway::test
