// What a kernel recorded: tensors, instructions, register loops and source lines.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chip/instruction.h"
#include "chip/tensor.h"
#include "chip/view.h"

namespace headway::chip {

struct SourceLine {
  std::uint32_t file = 0;  // index into Program::files
  std::uint32_t line = 0;
  bool operator==(const SourceLine&) const = default;
};

// An extra order between two instructions that the kernel asked for: `after` starts when `before` is done.
struct Edge {
  std::uint32_t before = 0;
  std::uint32_t after = 0;
  bool operator==(const Edge&) const = default;
};

struct Program {
  std::string kernel;
  std::string chip;  // the chip file's name: "trn2"
  int program_id = 0;
  int num_programs = 1;  // the cores of the logical core
  std::vector<Tensor> tensors;
  std::vector<DynamicOffset> dynamic_offsets;
  // In program order. Loops are pairs of begin and end instructions (chip/sync_engine.h).
  std::vector<std::unique_ptr<Instruction>> instructions;
  std::uint32_t registers = 0;
  std::vector<std::string> files;
  std::vector<SourceLine> sources = {{}};  // 0 is "unknown"
  std::map<TensorId, std::vector<std::byte>> constants;
  std::vector<Edge> edges;
  std::map<std::uint32_t, std::string> labels;  // names of instructions, for those that have one

  // Tensors of that role, in the order of declaration: how arguments and results are matched.
  std::vector<TensorId> with_role(Role role) const;
  // "attention.cc:41", or "" when unknown.
  std::string where(SourceId source) const;
};

// The operands of an instruction, in the order of its fields; index views of dynamic offsets follow the view
// that uses them.
struct OperandView {
  std::string_view name;
  const View* view;
  Access access;
};
std::vector<OperandView> operand_views(const Instruction& instruction, const Program& program);

// One line: "nc_matmul(dst='acc' float32[128, 512], stationary=..., accumulate=none)".
std::string to_string(const Instruction& instruction, const Program& program);

}  // namespace headway::chip
