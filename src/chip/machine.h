// Executes programs: what they compute, and what only shows when they run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/threads.h"
#include "chip/core.h"
#include "chip/diagnostics.h"
#include "chip/program.h"
#include "chip/races.h"
#include "chip/spec.h"

namespace headway::chip {

// The caller's memory, row-major.
struct ConstArray {
  DType dtype = DType::f32;
  Shape shape;
  const void* data = nullptr;
};
struct Array {
  DType dtype = DType::f32;
  Shape shape;
  void* data = nullptr;
};

// Cores that run together: `lnc` consecutive programs are the cores of one logical core and share its
// shared_hbm tensors (inputs and outputs too), matched by their order of declaration. Logical cores are the
// ranks of collectives.
class Machine {
 public:
  // `programs` must have passed Check::whole and outlive the machine; they may get longer between runs.
  // Throws InputError where programs of a logical core disagree.
  Machine(const Spec& spec, std::vector<const Program*> programs, int lnc, ThreadPool& pool,
          Diagnostics& diagnostics);
  ~Machine();

  // Inputs of logical core `rank`, in the order of declaration; they must stay in place until the machine is
  // gone and aren't changed. Throws InputError where number, dtype or shape differ from the program's.
  void bind(int rank, std::span<const ConstArray> inputs);

  // Runs everything that isn't done yet. Lowest core first, switching only where cores meet. Throws
  // KernelError at the first error unless the diagnostics collect. With `keep`, tensors stay after their last
  // use: the programs may get longer, or are looked into.
  enum class Tensors { release, keep };
  void run(Tensors tensors = Tensors::release);

  // After a program got longer, for looking into memory before the next run.
  void synchronise();

  // Copies a tensor out, row-major. Reports bytes that were never written.
  void read(int core, TensorId tensor, Array out);
  // All outputs of a rank, in the order of declaration. Throws InputError where number, dtype or shape
  // differ.
  void outputs(int rank, std::span<const Array> outputs);

  const Spec& spec() const { return spec_; }
  ThreadPool& pool() const { return pool_; }
  Diagnostics& diagnostics() const { return diagnostics_; }
  int lnc() const { return lnc_; }
  int cores() const { return static_cast<int>(cores_.size()); }
  Core& core(int number) const { return *cores_[static_cast<std::size_t>(number)]; }
  int ranks() const { return cores() / lnc_; }

  // The most instructions that the cores may run, in all (rule "endless").
  std::uint64_t max_instructions = std::uint64_t{1} << 62;

  // Cores take turns, an instruction each, instead of running one after the other to where they meet: what a race
  // comes to is then nearer to what cores that run at once would make of it. Without races no result depends on it.
  bool in_step = false;

  // --- For the schedule ---
  std::uint64_t instructions_run() const { return instructions_run_; }
  // Runs the instruction at core.next and moves on; errors are reported (and poison, when collecting).
  void step(Core& core);
  // The same for a meeting at which these cores are, in the order of its participants.
  void meet(std::span<Core* const> cores);

 private:
  friend class Core;
  struct Shared;

  // The storage of a tensor that all cores of the logical core see: shared_hbm, inputs and constants.
  Storage& shared_tensor(const Core& core, TensorId tensor);
  // Who writes: a number for Storage's books, and what it says.
  std::uint64_t writer(const Core& core) const;
  std::string writer_text(std::uint64_t writer) const;
  // Called for every access of an instruction, before it.
  void accessed(Core& core, std::string_view operand, const View& view, const Block& block, bool is_write);
  // Runs `work`, an instruction of `cores`; collecting, errors poison what they would have written.
  template <class Work>
  void attempt(std::span<Core* const> cores, Work&& work);
  void moved_on(Core& core);  // the instruction at core.position is done

  const Spec& spec_;
  ThreadPool& pool_;
  Diagnostics& diagnostics_;
  int lnc_;
  std::vector<std::unique_ptr<Core>> cores_;
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<Races> races_;  // none where no core shares memory
  std::uint64_t instructions_run_ = 0;
};

// One program on one core, from inputs to outputs.
void execute(const Spec& spec, const Program& program, std::span<const ConstArray> inputs,
             std::span<const Array> outputs, ThreadPool& pool, Diagnostics& diagnostics);

}  // namespace headway::chip
