#include "fuzz/random_program.h"

#include <algorithm>

#include "chip/check.h"
#include "chip/sync_engine.h"
#include "fuzz/random_fields.h"

namespace headway::fuzz {

using namespace headway::chip;

namespace {

constexpr std::int64_t kConstantBytes = 1 << 16;

class Maker {
 public:
  Maker(Draw& draw, const Spec& spec, Manner manner) : draw_(draw), spec_(spec), manner_(manner) {}

  Program make(int num_programs) {
    program_.kernel = "fuzz";
    program_.chip = spec_.name;
    program_.num_programs = num_programs;
    program_.files = {"fuzz.cc"};
    program_.registers = static_cast<std::uint32_t>(draw_.below(5));
    // Few different extents, so that operands often fit each other.
    for (int i = 0; i < 2; ++i)
      rows_.push_back(draw_.percent(80) ? draw_.pick<std::int64_t>({1, 16, 32, 64, 128})
                                        : draw_.between(1, 128));
    for (int i = 0; i < 3; ++i)
      columns_.push_back(draw_.percent(80) ? draw_.pick<std::int64_t>({1, 2, 6, 8, 16, 24, 32, 64, 128, 512})
                                           : draw_.between(1, 100));
    // Enough work for several threads.
    if (draw_.percent(15)) {
      rows_ = {128};
      columns_.push_back(draw_.pick<std::int64_t>({128, 200, 384}));
    }
    declare();
    dynamic_offsets();
    const std::int64_t count = draw_.between(1, 16);
    for (std::int64_t i = 0; i < count; ++i) add();
    close_loops();
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      program_.sources.push_back({0, static_cast<std::uint32_t>(i + 1)});
      program_.instructions[i]->source = static_cast<SourceId>(program_.sources.size() - 1);
    }
    decorate();
    return std::move(program_);
  }

 private:
  bool wild(int chance) { return manner_ == Manner::wild && draw_.percent(chance); }

  DType any_dtype() {
    if (draw_.percent(45)) return DType::f32;
    if (draw_.percent(30)) return DType::bf16;
    return static_cast<DType>(draw_.between(1, kDTypes - 1));
  }

  Tensor any_tensor() {
    Tensor t;
    t.dtype = any_dtype();
    t.buffer = draw_.percent(55) ? Buffer::sbuf : static_cast<Buffer>(draw_.below(4));
    t.shape = {draw_.percent(75) ? draw_.pick(rows_) : 128};
    t.shape.push_back(draw_.pick(columns_));
    if (draw_.percent(25)) t.shape.push_back(draw_.pick<std::int64_t>({1, 2, 4}));
    if (draw_.percent(30)) t.shape.back() *= 2;
    if (is_hbm(t.buffer) && draw_.percent(50))
      t.role = draw_.pick({Role::input, Role::output, Role::constant});
    if (is_on_chip(t.buffer) && draw_.percent(10))
      t.address = Address{static_cast<std::int32_t>(32 * draw_.between(0, 3)),
                          t.buffer == Buffer::psum ? 2048 * draw_.between(0, 7) : 8 * draw_.between(0, 100)};
    if (wild(10))
      t.shape[static_cast<std::size_t>(draw_.below(static_cast<std::int64_t>(t.shape.size())))] =
          draw_.between(-1, 100000);
    if (wild(5)) t.shape.insert(t.shape.begin() + 1, static_cast<std::size_t>(draw_.below(8)), 1);
    if (wild(5)) t.shape.pop_back();
    if (wild(5))
      t.address = Address{static_cast<std::int32_t>(draw_.between(-1, 200)), draw_.between(-1, 300000)};
    return t;
  }

  void declare() {
    const std::int64_t count = draw_.between(3, 8);
    while (static_cast<std::int64_t>(program_.tensors.size()) < count) {
      Tensor t = any_tensor();
      t.name = "t" + std::to_string(program_.tensors.size());
      Diagnostics diagnostics(Diagnostics::Mode::collect);
      Check check(spec_, program_, diagnostics);
      const bool sound = check.tensor(t);
      if (!sound && !wild(30)) continue;
      if (t.role == Role::constant && sound && t.row_bytes() > kConstantBytes) t.role = Role::internal;
      if (t.role == Role::constant && sound) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(t.row_bytes()));
        for (std::byte& b : bytes) b = static_cast<std::byte>(draw_.bits());
        program_.constants[static_cast<TensorId>(program_.tensors.size())] = std::move(bytes);
      }
      declared_soundly_ &= sound;
      program_.tensors.push_back(std::move(t));
    }
  }

  Plan any_plan() {
    Plan plan;
    plan.rows = draw_.pick(rows_);
    plan.columns = draw_.pick(columns_);
    plan.other_rows = draw_.pick(rows_);
    plan.other_columns = draw_.pick(columns_);
    plan.dtype = any_dtype();
    plan.group = draw_.pick({1, 2, 2, 4});
    plan.hbm = draw_.pick({0, 0, 0, 0, 50, 100});
    plan.psum = draw_.pick({0, 0, 20, 50});
    plan.wild = manner_ == Manner::wild;
    return plan;
  }

  void dynamic_offsets() {
    if (!declared_soundly_) return;
    for (std::int64_t n = draw_.below(4); n > 0; --n) {
      DynamicOffset offset;
      offset.kind = static_cast<DynamicOffset::Kind>(draw_.below(3));
      offset.source.id = static_cast<std::uint32_t>(draw_.below(program_.registers + 1));
      Plan plan = any_plan();
      plan.hbm = 0;
      if (offset.kind == DynamicOffset::Kind::from_scalar) plan.rows = 1;
      plan.columns = 1;
      plan.psum = 0;
      plan.dtype = draw_.pick({DType::i32, DType::u32});
      RandomFields(draw_, program_, plan, "").view("index", offset.index, Access::read);
      offset.stride = draw_.percent(90) ? draw_.pick<std::int64_t>({1, 1, 2, plan.other_columns, -1})
                                        : static_cast<std::int64_t>(draw_.bits());
      program_.dynamic_offsets.push_back(offset);
    }
  }

  // An instruction of the kind that passes its check, if one is found in a few tries.
  std::unique_ptr<Instruction> legal(const Kind& kind) {
    constexpr int kTries = 60;
    const std::size_t tensors = program_.tensors.size();
    for (int i = 0; i < kTries; ++i) {
      std::unique_ptr<Instruction> instruction = fill(kind);
      Diagnostics diagnostics(Diagnostics::Mode::collect);
      if (Check(spec_, program_, diagnostics).instruction(*instruction)) return instruction;
      program_.tensors.resize(tensors);  // those declared for it
    }
    return nullptr;
  }

  std::unique_ptr<Instruction> fill(const Kind& kind) {
    std::unique_ptr<Instruction> instruction = kind.make();
    RandomFields fields(draw_, program_, any_plan(), kind.name);
    instruction->visit(fields);
    if (draw_.percent(10)) instruction->engine = static_cast<Engine>(draw_.below(7));
    return instruction;
  }

  void add() {
    if (program_.registers > 0 && draw_.percent(8)) return open_loop();
    if (!open_.empty() && draw_.percent(20)) return close_loop();
    const auto kinds = instruction_set();
    const Kind& kind = kinds[static_cast<std::size_t>(draw_.below(static_cast<std::int64_t>(kinds.size())))];
    std::unique_ptr<Instruction> instruction;
    if (wild(40) || !declared_soundly_) {
      instruction = fill(kind);
    } else {
      instruction = legal(kind);
      if (!instruction) return;
      // Loops are opened and closed in pairs.
      if (instruction->loop_change() != 0 && manner_ != Manner::wild) return;
      if (manner_ != Manner::legal && draw_.percent(20)) mutate(draw_, program_, *instruction);
    }
    program_.instructions.push_back(std::move(instruction));
  }

  Register any_register() { return {static_cast<std::uint32_t>(draw_.below(program_.registers))}; }

  void open_loop() {
    if (draw_.percent(70)) {
      auto begin = std::make_unique<ForiBegin>();
      begin->i = any_register();
      begin->lower = static_cast<std::int32_t>(draw_.between(-1, 2));
      if (draw_.percent(70)) {
        begin->upper = static_cast<std::int32_t>(draw_.between(0, 4));
      } else {
        begin->upper = any_register();
      }
      begin->step = draw_.between(1, 2);
      program_.instructions.push_back(std::move(begin));
      open_.push_back(true);
    } else {
      auto begin = std::make_unique<WhileBegin>();
      begin->r = any_register();
      program_.instructions.push_back(std::move(begin));
      open_.push_back(false);
    }
  }

  void close_loop() {
    if (open_.back()) {
      program_.instructions.push_back(std::make_unique<ForiEnd>());
    } else {
      auto end = std::make_unique<WhileEnd>();
      end->next = any_register();
      program_.instructions.push_back(std::move(end));
    }
    open_.pop_back();
  }

  void close_loops() {
    while (!open_.empty() && !wild(10)) close_loop();
  }

  // What doesn't change the meaning.
  void decorate() {
    const auto count = static_cast<std::int64_t>(program_.instructions.size());
    if (count == 0) return;
    for (std::int64_t n = draw_.below(3); n > 0; --n)
      program_.edges.push_back(
          {static_cast<std::uint32_t>(draw_.below(count)), static_cast<std::uint32_t>(draw_.below(count))});
    if (draw_.percent(30)) program_.labels[static_cast<std::uint32_t>(draw_.below(count))] = "label";
    // Later declarations belong to the loops around them.
    if (draw_.percent(30)) {
      std::int64_t at = 0;
      for (Tensor& t : program_.tensors)
        t.declared_at = static_cast<std::uint32_t>(at = std::min(count, at + draw_.below(2)));
    }
  }

  Draw& draw_;
  const Spec& spec_;
  Manner manner_;
  Program program_;
  std::vector<std::int64_t> rows_, columns_;
  std::vector<bool> open_;  // loops; true: a fori
  bool declared_soundly_ = true;
};

}  // namespace

Program copy_of(const Program& program) {
  Program result;
  result.kernel = program.kernel;
  result.chip = program.chip;
  result.program_id = program.program_id;
  result.num_programs = program.num_programs;
  result.tensors = program.tensors;
  result.dynamic_offsets = program.dynamic_offsets;
  for (const auto& instruction : program.instructions) result.instructions.push_back(copy(*instruction));
  result.registers = program.registers;
  result.files = program.files;
  result.sources = program.sources;
  result.constants = program.constants;
  result.edges = program.edges;
  result.labels = program.labels;
  return result;
}

Launch random_launch(Draw& draw, const Spec& spec, Manner manner) {
  Launch launch;
  launch.spec = &spec;
  launch.lnc = draw.percent(70) ? 1 : 2;
  const int ranks = draw.percent(70) ? 1 : draw.pick({2, 4});
  launch.programs.push_back(Maker(draw, spec, manner).make(launch.lnc));
  for (int c = 1; c < launch.lnc * ranks; ++c) {
    Program next = copy_of(launch.programs[0]);
    next.program_id = c % launch.lnc;
    // Cores that don't agree: deadlocks and worse.
    if (manner != Manner::legal && !next.instructions.empty() && draw.percent(20)) {
      const auto i =
          static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(next.instructions.size())));
      if (draw.percent(50)) {
        mutate(draw, next, *next.instructions[i]);
      } else {
        next.instructions.erase(next.instructions.begin() + static_cast<std::ptrdiff_t>(i));
        next.edges.clear();
        next.labels.clear();
        for (Tensor& t : next.tensors) t.declared_at = 0;
      }
    }
    launch.programs.push_back(std::move(next));
  }
  return launch;
}

}  // namespace headway::fuzz
