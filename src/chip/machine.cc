#include "chip/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "chip/rows.h"
#include "chip/schedule.h"

namespace headway::chip {

struct Machine::Shared {
  // By logical core, then by the position of the tensor among those of its kind.
  struct Rank {
    std::vector<std::unique_ptr<Storage>> inputs, constants, shared;
  };
  std::vector<Rank> ranks;
  // Of each program: the position of a tensor among the inputs, constants or shared tensors.
  std::vector<std::vector<std::size_t>> positions;
  // Of each program: the tensors whose last use is instruction i, found when a run starts.
  struct LastUse {
    std::size_t instruction;
    TensorId tensor;
  };
  std::vector<std::vector<LastUse>> releases;
  std::vector<std::size_t> next_release;
  Machine::Tensors tensors = Machine::Tensors::release;
};

namespace {

bool is_shared(const Tensor& t) {
  return t.role == Role::input || t.role == Role::constant || t.buffer == Buffer::shared_hbm;
}

}  // namespace

Machine::Machine(const Spec& spec, std::vector<const Program*> programs, int lnc, ThreadPool& pool,
                 Diagnostics& diagnostics)
    : spec_(spec), pool_(pool), diagnostics_(diagnostics), lnc_(lnc), shared_(std::make_unique<Shared>()) {
  if (lnc < 1 || programs.empty() || programs.size() % static_cast<std::size_t>(lnc) != 0)
    throw InputError("launch",
                     fmt::format("{} programs can't be cores of logical cores of {}", programs.size(), lnc));
  if (static_cast<std::int64_t>(programs.size()) > spec.cores)
    throw InputError("launch",
                     fmt::format("{} cores, a {} chip has {}", programs.size(), spec.name, spec.cores));
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const Program& p = *programs[i];
    if (p.num_programs != lnc || p.program_id != static_cast<int>(i) % lnc)
      throw InputError("launch",
                       fmt::format("'{}' was recorded as core {} of {}, but would run as core {} of {}",
                                   p.kernel, p.program_id, p.num_programs, static_cast<int>(i) % lnc, lnc));
  }
  shared_->ranks.resize(programs.size() / static_cast<std::size_t>(lnc));
  shared_->positions.resize(programs.size());
  shared_->releases.resize(programs.size());
  shared_->next_release.resize(programs.size());
  for (std::size_t i = 0; i < programs.size(); ++i)
    cores_.push_back(std::make_unique<Core>(*this, static_cast<int>(i), *programs[i]));
  if (lnc > 1) races_ = std::make_unique<Races>(cores(), lnc);
}

Machine::~Machine() = default;

Storage& Machine::shared_tensor(const Core& core, TensorId tensor) {
  const auto number = static_cast<std::size_t>(core.number());
  const Program& program = core.program();
  std::vector<std::size_t>& positions = shared_->positions[number];
  if (positions.size() < program.tensors.size()) {
    positions.assign(program.tensors.size(), 0);
    std::size_t inputs = 0, constants = 0, others = 0;
    for (std::size_t i = 0; i < program.tensors.size(); ++i) {
      const Tensor& t = program.tensors[i];
      if (!is_shared(t)) continue;
      positions[i] = t.role == Role::input ? inputs++ : t.role == Role::constant ? constants++ : others++;
    }
  }
  Shared::Rank& rank = shared_->ranks[number / static_cast<std::size_t>(lnc_)];
  const Tensor& t = program.tensors[tensor];
  auto& list = t.role == Role::input ? rank.inputs : t.role == Role::constant ? rank.constants : rank.shared;
  const std::size_t position = positions[tensor];
  if (list.size() <= position) list.resize(position + 1);
  std::unique_ptr<Storage>& storage = list[position];
  if (!storage) {
    if (t.role == Role::constant) {
      const std::vector<std::byte>& bytes = program.constants.at(tensor);
      storage = std::make_unique<Storage>(bytes.data(), static_cast<std::int64_t>(bytes.size()));
    } else {
      storage = std::make_unique<Storage>(1, t.row_bytes());
    }
  }
  if (storage->bytes() != t.row_bytes())
    throw InputError(
        "launch",
        fmt::format("'{}' has {} bytes in the program of core {}, but {} in another of its "
                    "logical core",
                    t.name, t.row_bytes(), number, storage->bytes()),
        "The programs of a logical core declare the same inputs and shared tensors in the same order");
  return *storage;
}

void Machine::bind(int rank, std::span<const ConstArray> inputs) {
  const Program& program = core(rank * lnc_).program();
  const std::vector<TensorId> declared = program.with_role(Role::input);
  if (declared.size() != inputs.size())
    throw InputError(program.kernel, fmt::format("takes {} inputs, not {}", declared.size(), inputs.size()));
  Shared::Rank& shared = shared_->ranks[static_cast<std::size_t>(rank)];
  shared.inputs.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = program.tensors[declared[i]];
    if (t.dtype != inputs[i].dtype || t.shape != inputs[i].shape)
      throw InputError(program.kernel,
                       fmt::format("input '{}' is {}{}, not {}{}", t.name, headway::name_of(t.dtype),
                                   headway::to_string(t.shape), headway::name_of(inputs[i].dtype),
                                   headway::to_string(inputs[i].shape)));
    shared.inputs[i] =
        std::make_unique<Storage>(static_cast<const std::byte*>(inputs[i].data), t.row_bytes());
  }
  // Cores that have seen the inputs of an earlier call look again.
  for (int c = rank * lnc_; c < (rank + 1) * lnc_; ++c) {
    core(c).grow();
    for (TensorId input : core(c).program().with_role(Role::input)) core(c).release(input);
  }
}

namespace {

// Tensors and the instruction of their last use, in the order of that. What a register loop uses lives to the
// end of the outermost loop around it.
std::vector<std::pair<std::size_t, TensorId>> last_uses(const Program& program) {
  std::vector<std::size_t> last(program.tensors.size(), 0);
  std::vector<bool> used(program.tensors.size(), false);
  std::vector<TensorId> in_loop;
  int depth = 0;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = *program.instructions[i];
    const int change = instruction.loop_change();
    depth += change;
    for (const OperandView& operand : operand_views(instruction, program)) {
      if (operand.view->tensor >= last.size()) continue;
      last[operand.view->tensor] = i;
      used[operand.view->tensor] = true;
      if (depth > 0) in_loop.push_back(operand.view->tensor);
    }
    if (change < 0 && depth == 0) {
      for (TensorId tensor : in_loop) last[tensor] = i;
      in_loop.clear();
    }
  }
  std::vector<std::pair<std::size_t, TensorId>> result;
  for (std::size_t t = 0; t < last.size(); ++t)
    if (used[t] && program.tensors[t].role == Role::internal &&
        program.tensors[t].buffer != Buffer::shared_hbm)
      result.emplace_back(last[t], static_cast<TensorId>(t));
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

void Machine::step(Core& core) {
  const Program& program = core.program();
  core.position = core.next;
  core.next = core.position + 1;
  ++instructions_run_;
  const Instruction& instruction = *program.instructions[core.position];
  if (instruction.broken) {
    core.poison(instruction);
  } else {
    Core* const one[] = {&core};
    attempt(one, [&] { instruction.apply(core); });
  }
  moved_on(core);
}

void Machine::meet(std::span<Core* const> cores) {
  std::vector<const Meeting*> meetings;
  for (Core* core : cores) {
    core->position = core->next;
    core->next = core->position + 1;
    meetings.push_back(core->program().instructions[core->position]->meeting());
  }
  instructions_run_ += cores.size();
  if (races_) races_->meet(cores);
  attempt(cores, [&] { meetings[0]->meet(cores, meetings); });
  if (races_) races_->meet(cores);
  for (Core* core : cores) moved_on(*core);
}

template <class Work>
void Machine::attempt(std::span<Core* const> cores, Work&& work) {
  if (!diagnostics_.collecting()) {
    work();
    if (races_) races_->settle(false);
    return;
  }
  const auto poison = [&] {
    if (races_) races_->settle(true);
    for (Core* core : cores) core->poison(*core->program().instructions[core->position]);
  };
  try {
    work();
    if (races_) races_->settle(false);
  } catch (const KernelError&) {
    poison();
  } catch (const Unsupported&) {
    poison();
  }
}

void Machine::moved_on(Core& core) {
  if (shared_->tensors == Tensors::keep) return;
  const auto number = static_cast<std::size_t>(core.number());
  const auto& releases = shared_->releases[number];
  for (std::size_t& r = shared_->next_release[number];
       r < releases.size() && releases[r].instruction < core.next; ++r)
    if (releases[r].instruction <= core.position) {
      core.release(releases[r].tensor);
    } else {
      break;
    }
}

void Machine::synchronise() {
  for (std::unique_ptr<Core>& core : cores_) {
    core->grow();
    core->position = core->program().instructions.size();  // nobody's instruction
  }
}

void Machine::run(Tensors tensors) {
  shared_->tensors = tensors;
  synchronise();
  for (std::unique_ptr<Core>& core : cores_) {
    const auto number = static_cast<std::size_t>(core->number());
    if (tensors == Tensors::release) {
      shared_->releases[number].clear();
      for (const auto& [instruction, tensor] : last_uses(core->program()))
        shared_->releases[number].push_back({instruction, tensor});
      shared_->next_release[number] = 0;
    }
  }
  run_cores(*this);
}

void Machine::read(int number, TensorId tensor, Array out) {
  Core& core = this->core(number);
  core.position = core.program().instructions.size();  // nobody's instruction
  const Tensor& t = core.program().tensors[tensor];
  if (t.dtype != out.dtype || headway::elements(t.shape) != headway::elements(out.shape))
    throw InputError(
        core.program().kernel,
        fmt::format("'{}' is {}{}, not {}{}", t.name, headway::name_of(t.dtype), headway::to_string(t.shape),
                    headway::name_of(out.dtype), headway::to_string(out.shape)));
  // Its bytes, row by row, whatever its extents.
  View all;
  all.tensor = tensor;
  all.dtype = t.dtype;
  const std::int64_t count = t.row_bytes() / size_of(t.dtype);
  const bool chip = is_on_chip(t.buffer);
  // Extents are 32 bits: long tensors are read in pieces.
  constexpr std::int64_t kPiece = 1 << 30;
  auto* to = static_cast<std::byte*>(out.data);
  for (std::int64_t begin = 0; begin < count; begin += kPiece) {
    const auto n = static_cast<std::int32_t>(std::min(kPiece, count - begin));
    all.rank = 2;
    all.offset = begin;
    all.pairs = {};
    all.pairs[0] = {1, chip ? static_cast<std::int32_t>(t.shape[0]) : 1};
    all.pairs[1] = {1, n};
    const Block block = core.read("'" + t.name + "'", all);
    const std::size_t bytes = static_cast<std::size_t>(n) * static_cast<std::size_t>(size_of(t.dtype));
    for (std::int64_t r = 0; r < block.rows; ++r, to += bytes) std::memcpy(to, block.row(r), bytes);
  }
}

void Machine::outputs(int rank, std::span<const Array> outputs) {
  const Program& program = core(rank * lnc_).program();
  const std::vector<TensorId> declared = program.with_role(Role::output);
  if (declared.size() != outputs.size())
    throw InputError(program.kernel,
                     fmt::format("gives {} outputs, not {}", declared.size(), outputs.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& t = program.tensors[declared[i]];
    if (t.shape != outputs[i].shape)
      throw InputError(program.kernel,
                       fmt::format("output '{}' is {}, not {}", t.name, headway::to_string(t.shape),
                                   headway::to_string(outputs[i].shape)));
    read(rank * lnc_, declared[i], outputs[i]);
  }
}

std::uint64_t Machine::writer(const Core& core) const {
  return (static_cast<std::uint64_t>(core.number()) << 48) | (core.position + 1);
}

std::string Machine::writer_text(std::uint64_t writer) const {
  const Core& core = this->core(static_cast<int>(writer >> 48));
  const std::size_t position = (writer & ((std::uint64_t{1} << 48) - 1)) - 1;
  if (position >= core.program().instructions.size()) return "the caller";
  const Instruction& instruction = *core.program().instructions[position];
  const std::string where = core.program().where(instruction.source);
  return fmt::format("{}{}{}", instruction.name(), where.empty() ? "" : " at " + where,
                     cores() > 1 ? fmt::format(" on core {}", core.number()) : "");
}

void Machine::accessed(Core& core, std::string_view operand, const View& view, const Block& block,
                       bool is_write) {
  if (!races_ || !is_shared(core.program().tensors[view.tensor])) return;
  if (core.position >= core.program().instructions.size()) return;  // the caller, not an instruction
  races_->access(core, operand, view, block, core.storage(view.tensor), is_write);
}

void execute(const Spec& spec, const Program& program, std::span<const ConstArray> inputs,
             std::span<const Array> outputs, ThreadPool& pool, Diagnostics& diagnostics) {
  Machine machine(spec, {&program}, 1, pool, diagnostics);
  machine.bind(0, inputs);
  machine.run();
  machine.outputs(0, outputs);
}

}  // namespace headway::chip
