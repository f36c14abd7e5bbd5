// Registers and loops: what the sequencers of the engines do themselves. Each engine has its own registers on
// the hardware; here, as in NKI, registers are virtual: there is one set a core, and which engines hold a
// copy is the lowering's business.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// Every engine has a sequencer with registers and branches.
inline constexpr Engines kSequencers =
    Engine::tensor | Engine::scalar | Engine::gpsimd | Engine::vector | Engine::sync;

// A register for `value`; without one its content is undefined (zero here). Declaring costs no instruction,
// the value a register_move.
Register register_alloc(Recorder& nki, std::optional<std::int32_t> value = std::nullopt,
                        Here here = Here::current());

struct RegisterMove : Instruction {
  Register dst;
  RegisterOr src;
  std::string_view name() const override { return "register_move"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
void register_move(Recorder& nki, Register dst, RegisterOr src, Here here = Here::current());

// One element of HBM or SBUF: an integer by value (sign or zero extended), a 32-bit float by its bits.
struct RegisterLoad : Instruction {
  Register dst;
  View src;
  std::string_view name() const override { return "register_load"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
void register_load(Register dst, const Tile& src, Here here = Here::current());

// The low bits of the register, as many as the element has.
struct RegisterStore : Instruction {
  View dst;
  Register src;
  std::string_view name() const override { return "register_store"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
void register_store(const Tile& dst, Register src, Here here = Here::current());

// --- Loops: a begin and an end around the body, nested like brackets. Tensors declared in the body are new
// in each round. ---

enum class LoopRole : std::uint8_t { none, fori_begin, fori_end, while_begin, while_end };
// What an instruction is to loops: programs are checked for nesting with it.
LoopRole loop_role(const Instruction& instruction);

// for (i = lower; i < upper; i += step). The bounds are read once; writing `i` in the body has no effect on
// the loop.
struct ForiBegin : Instruction {
  Register i;
  RegisterOr lower, upper;
  std::int64_t step = 1;
  std::string_view name() const override { return "fori_begin"; }
  int loop_change() const override { return 1; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
};
struct ForiEnd : Instruction {
  std::string_view name() const override { return "fori_end"; }
  int loop_change() const override { return -1; }
  void visit(Fields&) override {}
  void check(Check&) const override {}
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
};
void fori_begin(Recorder& nki, Register i, RegisterOr lower, RegisterOr upper, std::int64_t step = 1,
                Here here = Here::current());
void fori_end(Recorder& nki, Here here = Here::current());

// while (r != 0) { body; r = next }, `r` the register of the begin and `next` that of the end.
struct WhileBegin : Instruction {
  Register r;
  std::string_view name() const override { return "while_begin"; }
  int loop_change() const override { return 1; }
  void visit(Fields& fields) override;
  void check(Check&) const override {}
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
};
struct WhileEnd : Instruction {
  Register next;
  std::string_view name() const override { return "while_end"; }
  int loop_change() const override { return -1; }
  void visit(Fields& fields) override;
  void check(Check&) const override {}
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
};
void while_begin(Recorder& nki, Register r, Here here = Here::current());
void while_end(Recorder& nki, Register next, Here here = Here::current());

// nl.fori_loop: `body(i)`.
template <class Body>
void fori_loop(Recorder& nki, RegisterOr lower, RegisterOr upper, std::int64_t step, Body&& body,
               Here here = Here::current()) {
  const Register i = nki.new_register();
  fori_begin(nki, i, lower, upper, step, here);
  std::forward<Body>(body)(i);
  fori_end(nki, here);
}

// nl.while_loop: `body(r)` gives the register that decides about the next round. The body's `r` is a copy of
// `start`.
template <class Body>
void while_loop(Recorder& nki, Register start, Body&& body, Here here = Here::current()) {
  const Register r = nki.new_register();
  register_move(nki, r, start, here);
  while_begin(nki, r, here);
  const Register next = std::forward<Body>(body)(r);
  while_end(nki, next, here);
}

std::span<const Kind> sync_engine_instructions();

}  // namespace headway::chip
