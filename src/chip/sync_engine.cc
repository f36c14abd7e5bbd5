#include "chip/sync_engine.h"

#include <cstring>
#include <memory>
#include <typeinfo>

#include "base/error.h"
#include "chip/check.h"
#include "chip/core.h"
#include "chip/engine_cost.h"

namespace headway::chip {
namespace {

template <class I, class Fill>
void append(Recorder& nki, Here here, Fill&& fill) {
  auto instruction = std::make_unique<I>();
  fill(*instruction);
  nki.record(std::move(instruction), here);
}

// One element that a register can hold.
void check_element(Check& check, std::string_view operand, const View& view) {
  check.in(operand, view, {Buffer::sbuf, Buffer::private_hbm, Buffer::shared_hbm});
  check.require(view.elements() == 1, "shape", operand, "must be one element, not {}",
                [&] { return to_string(view.shape()); });
  check.dtype(operand, view,
              {DType::i32, DType::u32, DType::f32, DType::tf32, DType::i16, DType::u16, DType::i8, DType::u8,
               DType::boolean});
}

// Where the loop that begins at `begin` ends; the program's size while it is still being recorded.
std::size_t end_of_loop(const Program& program, std::size_t begin) {
  std::size_t at = begin + 1, open = 1;
  for (; at < program.instructions.size(); ++at) {
    open += static_cast<std::size_t>(program.instructions[at]->loop_change());
    if (open == 0) break;
  }
  return at;
}

// The running loop that an end belongs to. Checked programs are nested; what is still being recorded may not
// be.
template <class Begin>
const Begin& begin_of(Core& core, std::string_view end) {
  const auto* begin =
      core.loops.empty()
          ? nullptr
          : dynamic_cast<const Begin*>(core.program().instructions[core.loops.back().begin].get());
  if (!begin)
    core.report(Severity::kernel_error, "loop-nesting", "", std::string(end) + " ends no loop of its kind");
  return *begin;
}

// Back to the first instruction of the innermost loop's body.
void next_round(Core& core) {
  const std::size_t first = core.loops.back().begin + 1;
  core.forget_declared(first, core.position + 1);
  core.next = first;
}

}  // namespace

Register register_alloc(Recorder& nki, std::optional<std::int32_t> value, Here here) {
  const Register reg = nki.new_register();
  if (value) register_move(nki, reg, *value, here);
  return reg;
}

void RegisterMove::visit(Fields& fields) {
  fields.reg("dst", dst, Access::write);
  fields.register_or("src", src);
}
void RegisterMove::check(Check&) const {}
void RegisterMove::apply(Core& core) const {
  core.set_register(dst, static_cast<std::uint32_t>(core.value(src)));
}
Engines RegisterMove::engines(const Check&) const { return kSequencers; }

Cost RegisterMove::cost(const Costing& costing) const { return fixed_cost(costing.timing.word_write); }

void register_move(Recorder& nki, Register dst, RegisterOr src, Here here) {
  append<RegisterMove>(nki, here, [&](RegisterMove& i) {
    i.dst = dst;
    i.src = src;
  });
}

void RegisterLoad::visit(Fields& fields) {
  fields.reg("dst", dst, Access::write);
  fields.view("src", src, Access::read);
}
void RegisterLoad::check(Check& check) const { check_element(check, "src", src); }
void RegisterLoad::apply(Core& core) const {
  const std::byte* p = core.read("src", src).row(0);
  std::uint32_t bits = 0;
  std::memcpy(&bits, p, static_cast<std::size_t>(size_of(src.dtype)));
  if (src.dtype == DType::i8) bits = static_cast<std::uint32_t>(static_cast<std::int8_t>(bits));
  if (src.dtype == DType::i16) bits = static_cast<std::uint32_t>(static_cast<std::int16_t>(bits));
  core.set_register(dst, bits);
}
Engines RegisterLoad::engines(const Check&) const { return kSequencers; }

Cost RegisterLoad::cost(const Costing& costing) const { return fixed_cost(costing.timing.word_load); }

void register_load(Register dst, const Tile& src, Here here) {
  record<RegisterLoad>(src, here, [&](RegisterLoad& i) {
    i.dst = dst;
    i.src = src;
  });
}

void RegisterStore::visit(Fields& fields) {
  fields.view("dst", dst, Access::write);
  fields.reg("src", src, Access::read);
}
void RegisterStore::check(Check& check) const { check_element(check, "dst", dst); }
void RegisterStore::apply(Core& core) const {
  const std::uint32_t bits = core.register_bits(src);
  std::memcpy(core.write("dst", dst).row(0), &bits, static_cast<std::size_t>(size_of(dst.dtype)));
}
Engines RegisterStore::engines(const Check&) const { return kSequencers; }

Cost RegisterStore::cost(const Costing& costing) const { return fixed_cost(costing.timing.word_write); }

void register_store(const Tile& dst, Register src, Here here) {
  record<RegisterStore>(dst, here, [&](RegisterStore& i) {
    i.dst = dst;
    i.src = src;
  });
}

LoopRole loop_role(const Instruction& instruction) {
  const std::type_info& type = typeid(instruction);
  if (type == typeid(ForiBegin)) return LoopRole::fori_begin;
  if (type == typeid(ForiEnd)) return LoopRole::fori_end;
  if (type == typeid(WhileBegin)) return LoopRole::while_begin;
  if (type == typeid(WhileEnd)) return LoopRole::while_end;
  return LoopRole::none;
}

void ForiBegin::visit(Fields& fields) {
  fields.reg("i", i, Access::write);
  fields.register_or("lower", lower);
  fields.register_or("upper", upper);
  fields.integer("step", step);
}
void ForiBegin::check(Check& check) const {
  check.require(step >= 1 && step <= INT32_MAX, "loop-step", "step", "must be 1 to {}, not {}", INT32_MAX,
                step);
}
void ForiBegin::apply(Core& core) const {
  const std::int64_t first = core.value(lower), last = core.value(upper);
  if (first >= last) {
    core.next = end_of_loop(core.program(), core.position) + 1;
    return;
  }
  core.loops.push_back({core.position, first, last});
  core.set_register(i, static_cast<std::uint32_t>(first));
}
Engines ForiBegin::engines(const Check&) const { return kSequencers; }

void ForiEnd::apply(Core& core) const {
  const auto& begin = begin_of<ForiBegin>(core, name());
  Core::Loop& loop = core.loops.back();
  loop.value += begin.step;
  if (loop.value < loop.upper) {
    core.set_register(begin.i, static_cast<std::uint32_t>(loop.value));
    next_round(core);
  } else {
    core.loops.pop_back();
  }
}
Engines ForiEnd::engines(const Check&) const { return kSequencers; }

void fori_begin(Recorder& nki, Register i, RegisterOr lower, RegisterOr upper, std::int64_t step, Here here) {
  append<ForiBegin>(nki, here, [&](ForiBegin& loop) {
    loop.i = i;
    loop.lower = lower;
    loop.upper = upper;
    loop.step = step;
  });
}
void fori_end(Recorder& nki, Here here) {
  append<ForiEnd>(nki, here, [](ForiEnd&) {});
}

void WhileBegin::visit(Fields& fields) { fields.reg("r", r, Access::update); }
void WhileBegin::apply(Core& core) const {
  if (core.register_bits(r) == 0) {
    core.next = end_of_loop(core.program(), core.position) + 1;
  } else {
    core.loops.push_back({core.position, 0, 0});
  }
}
Engines WhileBegin::engines(const Check&) const { return kSequencers; }

void WhileEnd::visit(Fields& fields) { fields.reg("next", next, Access::read); }
void WhileEnd::apply(Core& core) const {
  const auto& begin = begin_of<WhileBegin>(core, name());
  core.set_register(begin.r, core.register_bits(next));
  if (core.register_bits(next) != 0) {
    next_round(core);
  } else {
    core.loops.pop_back();
  }
}
Engines WhileEnd::engines(const Check&) const { return kSequencers; }

void while_begin(Recorder& nki, Register r, Here here) {
  append<WhileBegin>(nki, here, [&](WhileBegin& loop) { loop.r = r; });
}
void while_end(Recorder& nki, Register next, Here here) {
  append<WhileEnd>(nki, here, [&](WhileEnd& loop) { loop.next = next; });
}

std::span<const Kind> sync_engine_instructions() {
  static const Kind kinds[] = {kind<RegisterMove>(), kind<RegisterLoad>(), kind<RegisterStore>(),
                               kind<ForiBegin>(),    kind<ForiEnd>(),      kind<WhileBegin>(),
                               kind<WhileEnd>()};
  return kinds;
}

}  // namespace headway::chip
