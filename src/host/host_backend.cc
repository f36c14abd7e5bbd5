#include "host/host_backend.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>

#include "base/error.h"
#include "host/memory_plan.h"
#include "host/schedule.h"

namespace headway::host {
namespace {

using graph::Graph;
using graph::TensorType;
using graph::Value;

// Zeroed memory straight from the system: pages count only once touched, and large arenas get huge pages.
class Memory {
 public:
  Memory() = default;
  explicit Memory(std::int64_t bytes) { grow(bytes); }
  ~Memory() { release(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Contents are lost.
  void grow(std::int64_t bytes) {
    if (bytes <= size_) return;
    release();
    void* p = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
      throw SystemError("host memory",
                        fmt::format("{:.2f} GB could not be had", static_cast<double>(bytes) / 1e9),
                        "Use a smaller device batch");
    }
    data_ = static_cast<char*>(p);
    size_ = bytes;
    ::madvise(p, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  }
  char* data() const { return data_; }

 private:
  void release() {
    if (data_) ::munmap(data_, static_cast<std::size_t>(size_));
    data_ = nullptr;
    size_ = 0;
  }
  char* data_ = nullptr;
  std::int64_t size_ = 0;
};

struct Instance {
  std::shared_ptr<const graph::Variables> variables;
  ThreadPool& pool;
  bool doubles;
  Kernels kernels;
  Options options;
  Memory variable_memory;
  std::vector<std::int64_t> variable_offsets;
  std::int64_t variable_bytes = 0;
  Memory arena;  // shared by all executables: they never run at the same time

  DType stored(DType logical) const { return logical == DType::f32 && doubles ? DType::f64 : logical; }
  std::int64_t bytes(const TensorType& type) const {
    return elements(type.shape) * size_of(stored(type.dtype));
  }
  void* variable(int index) const {
    return variable_memory.data() + variable_offsets[static_cast<std::size_t>(index)];
  }
};

template <class T>
bool all_finite(const T* data, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    if (!std::isfinite(data[i])) return false;
  return true;
}

class HostExecutable : public graph::Executable {
 public:
  HostExecutable(const Graph& graph, std::shared_ptr<Instance> instance)
      : graph_(graph), instance_(std::move(instance)), steps_(schedule(graph_, instance_->kernels)) {
    readers_.resize(static_cast<std::size_t>(graph_.values()));
    for (std::size_t s = 0; s < steps_.size(); ++s)
      for (Value input : steps_[s].inputs)
        readers_[static_cast<std::size_t>(input.id)].push_back(static_cast<int>(s));
    decide_effects();
    plan_memory();
    times_.resize(steps_.size());
  }

  graph::MemoryPlan plan() const override {
    return {instance_->variable_bytes, arena_bytes_, workspace_bytes_};
  }

  bool has_input(const std::string& name) const override {
    return std::any_of(graph_.inputs().begin(), graph_.inputs().end(),
                       [&](Value value) { return graph_.info(value).name == name; });
  }

  void bind(const std::string& input, std::span<const std::int32_t> values) override {
    const Value value = find_input(input);
    HEADWAY_CHECK(static_cast<std::int64_t>(values.size()) == elements(graph_.type(value).shape));
    HEADWAY_CHECK(graph_.type(value).dtype == DType::i32);
    std::memcpy(input_data(value), values.data(), values.size_bytes());
    bound_[static_cast<std::size_t>(graph_.info(value).index)] = true;
  }

  void bind(const std::string& input, double scalar) override {
    const Value value = find_input(input);
    HEADWAY_CHECK(graph_.type(value).shape.empty());
    if (instance_->doubles) {
      *static_cast<double*>(input_data(value)) = scalar;
    } else {
      *static_cast<float*>(input_data(value)) = static_cast<float>(scalar);
    }
    bound_[static_cast<std::size_t>(graph_.info(value).index)] = true;
  }

  void run() override {
    prepare();
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const auto start = std::chrono::steady_clock::now();
      call(s);
      times_[s] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    finish_effects();
    ++runs_;
  }

  std::string first_nonfinite() override {
    prepare();
    for (int i = 0; i < instance_->variables->size(); ++i) {
      const graph::Variable& variable = (*instance_->variables)[i];
      if (variable.role != graph::Role::gradient && !finite(variable.type, instance_->variable(i))) {
        return variable.name;
      }
    }
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      call(s);
      for (Value output : steps_[s].outputs) {
        if (!finite(graph_.type(output), address(output))) return steps_[s].scope + " " + steps_[s].name;
      }
    }
    return "";
  }

  std::vector<double> output(const std::string& name) const override {
    const Value value = find_output(name);
    const std::int64_t count = elements(graph_.type(value).shape);
    std::vector<double> result(static_cast<std::size_t>(count));
    if (instance_->doubles) {
      std::memcpy(result.data(), address(value), result.size() * sizeof(double));
    } else {
      const auto* from = static_cast<const float*>(address(value));
      std::copy(from, from + count, result.begin());
    }
    return result;
  }

  const float* output_f32(const std::string& name) const override {
    return instance_->doubles ? nullptr : static_cast<const float*>(address(find_output(name)));
  }

  std::vector<graph::PartTime> times() const override {
    std::map<std::pair<std::string, std::string>, graph::PartTime> parts;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      graph::PartTime& part = parts[{steps_[s].scope, steps_[s].name}];
      part.scope = steps_[s].scope;
      part.kernel = steps_[s].name;
      part.seconds += times_[s];
      part.flops += steps_[s].flops * static_cast<double>(runs_);
      part.calls += runs_;
    }
    std::vector<graph::PartTime> result;
    for (auto& [key, part] : parts) result.push_back(std::move(part));
    return result;
  }

 private:
  Value find_input(const std::string& name) const {
    for (Value value : graph_.inputs())
      if (graph_.info(value).name == name) return value;
    throw Bug("graph has no input " + name);
  }
  Value find_output(const std::string& name) const {
    for (const auto& [key, value] : graph_.outputs())
      if (key == name) return value;
    throw Bug("graph has no output " + name);
  }
  void* input_data(Value value) {
    if (!inputs_.data()) inputs_.grow(std::max<std::int64_t>(inputs_bytes_, 64));
    return inputs_.data() + input_offsets_[static_cast<std::size_t>(graph_.info(value).index)];
  }

  // Which effects a kernel can carry out itself by writing where the variable lives.
  void decide_effects() {
    home_.assign(static_cast<std::size_t>(graph_.values()), -1);
    adds_.assign(static_cast<std::size_t>(graph_.values()), false);
    for (std::size_t e = 0; e < graph_.effects().size(); ++e) {
      const graph::Effect& effect = graph_.effects()[e];
      if (direct(effect)) {
        home_[static_cast<std::size_t>(effect.value.id)] = effect.variable;
        adds_[static_cast<std::size_t>(effect.value.id)] = effect.accumulate;
      } else {
        late_.push_back(effect);
      }
    }
  }

  bool direct(const graph::Effect& effect) const {
    if (graph_.info(effect.value).source != graph::Source::node) return false;
    if (home_[static_cast<std::size_t>(effect.value.id)] >= 0) return false;
    for (const auto& [name, value] : graph_.outputs())
      if (value == effect.value) return false;
    const auto [s, k] = producer(effect.value);
    const Step& step = steps_[static_cast<std::size_t>(s)];
    const bool read_again = !readers_[static_cast<std::size_t>(effect.value.id)].empty();
    if (effect.accumulate)
      return step.kernel->can_accumulate(k) && !read_again && !variable_is_read(effect.variable);
    // Overwriting early is safe when everyone who reads the old value has done so.
    for (Value old : variable_reads(effect.variable)) {
      for (const auto& [name, value] : graph_.outputs())
        if (value == old) return false;
      for (int reader : readers_[static_cast<std::size_t>(old.id)]) {
        if (reader > s) return false;
        if (reader == s) {
          const int shared = step.kernel->may_overwrite(k);
          if (shared < 0 || !(step.inputs[static_cast<std::size_t>(shared)] == old)) return false;
        }
      }
    }
    // Another late effect could still want the old value.
    for (const graph::Effect& other : graph_.effects())
      if (graph_.info(other.value).source == graph::Source::variable &&
          graph_.info(other.value).index == effect.variable)
        return false;
    return true;
  }

  std::vector<Value> variable_reads(int variable) const {
    std::vector<Value> reads;
    for (int id = 0; id < graph_.values(); ++id) {
      const graph::ValueInfo& info = graph_.info({id});
      if (info.source == graph::Source::variable && info.index == variable) reads.push_back({id});
    }
    return reads;
  }
  bool variable_is_read(int variable) const {
    for (Value value : variable_reads(variable))
      if (!readers_[static_cast<std::size_t>(value.id)].empty()) return true;
    return false;
  }

  std::pair<int, int> producer(Value value) const {
    for (std::size_t s = 0; s < steps_.size(); ++s)
      for (std::size_t k = 0; k < steps_[s].outputs.size(); ++k)
        if (steps_[s].outputs[k] == value) return {static_cast<int>(s), static_cast<int>(k)};
    throw Bug("value without a producer");
  }

  void plan_memory() {
    const int end = static_cast<int>(steps_.size());
    std::vector<int> last(static_cast<std::size_t>(graph_.values()), -1);
    for (int id = 0; id < graph_.values(); ++id)
      for (int reader : readers_[static_cast<std::size_t>(id)])
        last[static_cast<std::size_t>(id)] = std::max(last[static_cast<std::size_t>(id)], reader);
    for (const auto& [name, value] : graph_.outputs()) last[static_cast<std::size_t>(value.id)] = end;
    for (const graph::Effect& effect : late_) last[static_cast<std::size_t>(effect.value.id)] = end;

    block_.assign(static_cast<std::size_t>(graph_.values()), -1);
    std::vector<Block> blocks;
    for (int s = 0; s < end; ++s) {
      const Step& step = steps_[static_cast<std::size_t>(s)];
      for (std::size_t k = 0; k < step.outputs.size(); ++k) {
        const Value output = step.outputs[k];
        const auto id = static_cast<std::size_t>(output.id);
        if (home_[id] >= 0) continue;
        const int shared = step.kernel->may_overwrite(static_cast<int>(k));
        if (shared >= 0 && !taken_over(step, k, static_cast<std::size_t>(shared))) {
          const Value input = step.inputs[static_cast<std::size_t>(shared)];
          const auto input_id = static_cast<std::size_t>(input.id);
          if (block_[input_id] >= 0 && last[input_id] == s &&
              instance_->bytes(graph_.type(input)) == instance_->bytes(graph_.type(output)) &&
              std::count(step.inputs.begin(), step.inputs.end(), input) == 1) {
            block_[id] = block_[input_id];
            Block& block = blocks[static_cast<std::size_t>(block_[id])];
            block.last = std::max(block.last, last[id]);
            continue;
          }
        }
        block_[id] = static_cast<int>(blocks.size());
        blocks.push_back({instance_->bytes(graph_.type(output)), s, std::max(s, last[id]), 0});
      }
    }
    arena_bytes_ = place(blocks);
    for (const Block& block : blocks) offsets_.push_back(block.offset);

    for (const Step& step : steps_) {
      workspace_bytes_ =
          std::max(workspace_bytes_,
                   step.kernel->workspace(step.ops, graph::types_of(graph_, step.inputs),
                                          graph::types_of(graph_, step.outputs), instance_->pool.size()));
    }
    for (Value input : graph_.inputs()) {
      input_offsets_.push_back(inputs_bytes_);
      inputs_bytes_ += (instance_->bytes(graph_.type(input)) + 63) / 64 * 64;
    }
    bound_.assign(graph_.inputs().size(), false);
  }

  // Has an earlier output of this step already moved into that input's memory?
  bool taken_over(const Step& step, std::size_t output, std::size_t input) const {
    for (std::size_t k = 0; k < output; ++k)
      if (step.kernel->may_overwrite(static_cast<int>(k)) == static_cast<int>(input)) return true;
    return false;
  }

  void* address(Value value) const {
    const graph::ValueInfo& info = graph_.info(value);
    if (info.source == graph::Source::variable) return instance_->variable(info.index);
    if (info.source == graph::Source::input) {
      return inputs_.data() + input_offsets_[static_cast<std::size_t>(info.index)];
    }
    const auto id = static_cast<std::size_t>(value.id);
    if (home_[id] >= 0) return instance_->variable(home_[id]);
    return instance_->arena.data() + offsets_[static_cast<std::size_t>(block_[id])];
  }

  void prepare() {
    for (std::size_t i = 0; i < bound_.size(); ++i) {
      if (!bound_[i]) throw Bug("graph input " + graph_.info(graph_.inputs()[i]).name + " is not bound");
    }
    if (arena_bytes_ + workspace_bytes_ > arena_reserved_) {
      arena_reserved_ = arena_bytes_ + workspace_bytes_;
      instance_->arena.grow(arena_reserved_);
    }
  }

  void call(std::size_t s) {
    const Step& step = steps_[s];
    std::vector<Tensor> inputs, outputs;
    std::vector<bool> accumulate;
    for (Value value : step.inputs) inputs.push_back({address(value), graph_.type(value).shape});
    for (Value value : step.outputs) {
      outputs.push_back({address(value), graph_.type(value).shape});
      accumulate.push_back(adds_[static_cast<std::size_t>(value.id)]);
    }
    step.kernel->run({step.ops, inputs, outputs, accumulate, instance_->pool,
                      instance_->arena.data() + arena_bytes_, instance_->options});
  }

  template <class T>
  void write_late(const graph::Effect& effect) {
    T* to = static_cast<T*>(instance_->variable(effect.variable));
    const T* from = static_cast<const T*>(address(effect.value));
    const std::int64_t count = elements(graph_.type(effect.value).shape);
    if (effect.accumulate) {
      for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
    } else {
      std::memmove(to, from, static_cast<std::size_t>(count) * sizeof(T));
    }
  }

  void finish_effects() {
    for (const graph::Effect& effect : late_) {
      if (instance_->doubles) {
        write_late<double>(effect);
      } else {
        write_late<float>(effect);
      }
    }
  }

  bool finite(const TensorType& type, const void* data) const {
    if (type.dtype == DType::i32) return true;
    const std::int64_t count = elements(type.shape);
    return instance_->doubles ? all_finite(static_cast<const double*>(data), count)
                              : all_finite(static_cast<const float*>(data), count);
  }

  Graph graph_;
  std::shared_ptr<Instance> instance_;
  std::vector<Step> steps_;
  std::vector<std::vector<int>> readers_;  // steps that read a value
  std::vector<int> home_;                  // by value: the variable it is written into directly, or -1
  std::vector<bool> adds_;                 // by value: written by adding
  std::vector<graph::Effect> late_;        // effects carried out after all steps
  std::vector<int> block_;                 // by value: its block in the arena, or -1
  std::vector<std::int64_t> offsets_;      // by block
  std::vector<std::int64_t> input_offsets_;
  std::int64_t inputs_bytes_ = 0;
  Memory inputs_;
  std::vector<bool> bound_;
  std::int64_t arena_bytes_ = 0;
  std::int64_t workspace_bytes_ = 0;
  std::int64_t arena_reserved_ = 0;
  std::vector<double> times_;
  std::int64_t runs_ = 0;
};

class HostBackend : public graph::Backend {
 public:
  HostBackend(std::shared_ptr<const graph::Variables> variables, ThreadPool& pool, bool doubles,
              Kernels kernels, Options options)
      : instance_(
            new Instance{std::move(variables), pool, doubles, std::move(kernels), options, {}, {}, 0, {}}) {
    Instance& instance = *instance_;
    for (int i = 0; i < instance.variables->size(); ++i) {
      instance.variable_offsets.push_back(instance.variable_bytes);
      instance.variable_bytes += (instance.bytes((*instance.variables)[i].type) + 63) / 64 * 64;
    }
    instance.variable_memory.grow(std::max<std::int64_t>(instance.variable_bytes, 64));
  }

  std::string description() const override {
    return fmt::format("host {}{}, {} threads", instance_->doubles ? "float64" : "float32",
                       instance_->options.bf16_products ? " with bfloat16 products" : "",
                       instance_->pool.size());
  }

  std::unique_ptr<graph::Executable> compile(const Graph& graph) override {
    HEADWAY_CHECK(graph.shared_variables() == instance_->variables);
    return std::make_unique<HostExecutable>(graph, instance_);
  }

  std::vector<double> read(int variable) const override {
    const std::int64_t count = elements((*instance_->variables)[variable].type.shape);
    std::vector<double> values(static_cast<std::size_t>(count));
    if (instance_->doubles) {
      std::memcpy(values.data(), instance_->variable(variable), values.size() * sizeof(double));
    } else {
      const auto* from = static_cast<const float*>(instance_->variable(variable));
      std::copy(from, from + count, values.begin());
    }
    return values;
  }

  void write(int variable, std::span<const double> values) override {
    HEADWAY_CHECK(static_cast<std::int64_t>(values.size()) ==
                  elements((*instance_->variables)[variable].type.shape));
    if (instance_->doubles) {
      std::memcpy(instance_->variable(variable), values.data(), values.size_bytes());
    } else {
      auto* to = static_cast<float*>(instance_->variable(variable));
      for (std::size_t i = 0; i < values.size(); ++i) to[i] = static_cast<float>(values[i]);
    }
  }

  DType stored_as(int variable) const override {
    return instance_->stored((*instance_->variables)[variable].type.dtype);
  }
  void* storage(int variable) override { return instance_->variable(variable); }

  void zero(graph::Role role) override {
    for (int i : instance_->variables->with(role)) {
      std::memset(instance_->variable(i), 0,
                  static_cast<std::size_t>(instance_->bytes((*instance_->variables)[i].type)));
    }
  }

 private:
  std::shared_ptr<Instance> instance_;
};

}  // namespace

std::unique_ptr<graph::Backend> make_backend(std::shared_ptr<const graph::Variables> variables,
                                             ThreadPool& pool, bool doubles, Kernels kernels,
                                             Options options) {
  return std::make_unique<HostBackend>(std::move(variables), pool, doubles, std::move(kernels), options);
}

std::unique_ptr<graph::Backend> make_backend(std::shared_ptr<const graph::Variables> variables,
                                             ThreadPool& pool, Precision precision, Options options) {
  const bool doubles = precision == Precision::reference;
  return make_backend(std::move(variables), pool, doubles,
                      doubles ? reference_kernels<double>() : fast_kernels(), options);
}

}  // namespace headway::host
