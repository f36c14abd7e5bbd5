// Executing what was recorded.
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <tuple>

#include "base/error.h"
#include "base/threads.h"
#include "chip/machine.h"
#include "objects.h"

namespace headway::python {
namespace {

// Thread pools are made once and lent: starting threads would cost more than a small kernel.
class Pools {
 public:
  std::unique_ptr<ThreadPool> take(int threads) {
    {
      const std::lock_guard lock(mutex_);
      for (std::unique_ptr<ThreadPool>& pool : free_)
        if (pool && pool->size() == threads) return std::move(pool);
    }
    return std::make_unique<ThreadPool>(threads, ThreadPool::PinnedWorkers{});
  }
  void give_back(std::unique_ptr<ThreadPool> pool) {
    const std::lock_guard lock(mutex_);
    std::erase(free_, nullptr);
    if (free_.size() < 4) free_.push_back(std::move(pool));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<ThreadPool>> free_;
};
Pools& pools() {
  static auto* all = new Pools;  // threads outlive the interpreter's teardown
  return *all;
}

using Bytes = nb::ndarray<std::uint8_t, nb::c_contig, nb::device::cpu>;
using ConstBytes = nb::ndarray<const std::uint8_t, nb::c_contig, nb::device::cpu>;

// The cores of one logical core, from inputs to outputs. Programs may get longer between runs.
class Launch {
 public:
  Launch(std::vector<std::shared_ptr<Trace>> traces, int threads, std::uint64_t max_instructions,
         const std::vector<std::string>& tolerated)
      : traces_(std::move(traces)),
        pool_(pools().take(worth(traces_, threads > 0 ? threads : ThreadPool::available()))) {
    diagnostics_.tolerate({tolerated.begin(), tolerated.end()});
    std::vector<const chip::Program*> programs;
    for (const std::shared_ptr<Trace>& trace : traces_) programs.push_back(&trace->recorder.program());
    machine_ = std::make_unique<chip::Machine>(*traces_.at(0)->spec, programs,
                                               static_cast<int>(programs.size()), *pool_, diagnostics_);
    machine_->max_instructions = max_instructions;
    machine_->in_step = diagnostics_.tolerates("race");
  }
  ~Launch() {
    machine_.reset();
    pools().give_back(std::move(pool_));
  }

  // The bytes of the inputs, in the order of declaration. They are kept and not changed.
  void bind(std::vector<ConstBytes> inputs) {
    inputs_ = std::move(inputs);
    const chip::Program& program = traces_[0]->recorder.program();
    const std::vector<chip::TensorId> declared = program.with_role(chip::Role::input);
    if (declared.size() != inputs_.size())
      throw InputError(program.kernel, "inputs and arrays differ in number");
    std::vector<chip::ConstArray> arrays;
    for (std::size_t i = 0; i < declared.size(); ++i) {
      const chip::Tensor& tensor = program.tensors[declared[i]];
      if (static_cast<std::int64_t>(inputs_[i].size()) != tensor.row_bytes())
        throw InputError(program.kernel, "input '" + tensor.name + "' has " +
                                             std::to_string(tensor.row_bytes()) + " bytes, the array " +
                                             std::to_string(inputs_[i].size()));
      arrays.push_back({tensor.dtype, tensor.shape, inputs_[i].data()});
    }
    machine_->bind(0, arrays);
  }

  void run(bool keep) {
    const nb::gil_scoped_release release;
    const ThreadPool::Caller caller(*pool_);
    machine_->run(keep ? chip::Machine::Tensors::keep : chip::Machine::Tensors::release);
  }

  // A whole tensor as core `core` sees it.
  void read(int core, chip::TensorId tensor, Bytes out) {
    const chip::Tensor& t = traces_.at(static_cast<std::size_t>(core))->recorder.program().tensors.at(tensor);
    if (static_cast<std::int64_t>(out.size()) != t.row_bytes() * t.partitions())
      throw InputError(t.name, "the array for it has " + std::to_string(out.size()) + " bytes");
    const nb::gil_scoped_release release;
    machine_->read(core, tensor, {t.dtype, t.shape, out.data()});
  }

  // Severity (0: warning), where, text of all that was reported.
  std::vector<std::tuple<int, std::string, std::string>> reports() const {
    std::vector<std::tuple<int, std::string, std::string>> all;
    for (const chip::Diagnostic& d : diagnostics_.all())
      all.emplace_back(static_cast<int>(d.severity), d.where, d.text());
    return all;
  }
  // File and line of the instruction at which each core stands.
  std::vector<std::pair<std::string, std::uint32_t>> positions() const {
    std::vector<std::pair<std::string, std::uint32_t>> all;
    for (std::size_t c = 0; c < traces_.size(); ++c) {
      const chip::Program& program = traces_[c]->recorder.program();
      const std::size_t at = machine_->core(static_cast<int>(c)).position;
      if (at >= program.instructions.size()) {
        all.emplace_back("", 0);
        continue;
      }
      const chip::SourceLine& line = program.sources[program.instructions[at]->source];
      all.emplace_back(program.files.empty() ? "" : program.files[line.file], line.line);
    }
    return all;
  }
  std::int32_t register_value(int core, std::uint32_t reg) const {
    return machine_->core(core).register_value(chip::Register{reg});
  }
  std::uint64_t instructions_run() const { return machine_->instructions_run(); }

 private:
  // Waking threads takes longer than a few instructions.
  static int worth(const std::vector<std::shared_ptr<Trace>>& traces, int threads) {
    std::size_t instructions = 0;
    for (const std::shared_ptr<Trace>& trace : traces)
      instructions += trace->recorder.program().instructions.size();
    return instructions < kFew ? 1 : threads;
  }
  static constexpr std::size_t kFew = 32;

  std::vector<std::shared_ptr<Trace>> traces_;
  std::unique_ptr<ThreadPool> pool_;
  chip::Diagnostics diagnostics_;
  std::vector<ConstBytes> inputs_;
  std::unique_ptr<chip::Machine> machine_;
};

}  // namespace

void bind_launch(nb::module_& m) {
  nb::class_<Launch>(m, "Launch", "The cores of one logical core, from inputs to outputs.")
      .def(nb::init<std::vector<std::shared_ptr<Trace>>, int, std::uint64_t,
                    const std::vector<std::string>&>(),
           nb::arg("traces"), nb::arg("threads") = 0, nb::arg("max_instructions") = std::uint64_t{1} << 62,
           nb::arg("tolerated") = std::vector<std::string>{})
      .def("bind", &Launch::bind, nb::arg("inputs"))
      .def("run", &Launch::run, nb::arg("keep") = false)
      .def("read", &Launch::read, nb::arg("core"), nb::arg("tensor"), nb::arg("out"))
      .def("reports", &Launch::reports)
      .def("positions", &Launch::positions)
      .def("register_value", &Launch::register_value, nb::arg("core"), nb::arg("register"))
      .def_prop_ro("instructions_run", &Launch::instructions_run);
}

}  // namespace headway::python
