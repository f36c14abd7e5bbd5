// Instructions that exist from NeuronCore-v4 on only. Recording one is refused: where the chip has an older
// core as an error of the kernel ("generation"), on Trainium3 as unsupported, for they are not modelled. What
// is kept of them is which memory they would write and read, so that a program which collects its errors can
// go on.
#pragma once

#include <span>
#include <vector>

#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

struct AbsentInstruction : Instruction {
  std::vector<View> outputs;
  std::vector<View> inputs;

  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;  // throws Bug: none passes its check
};

// Products of MX blocks: packed fp8 or fp4 elements with a shared power of two for each 32.
struct NcMatmulMx : AbsentInstruction {
  std::string_view name() const override { return "nc_matmul_mx"; }
  Engines engines(const Check&) const override { return Engine::tensor; }
};
// To MX blocks.
struct QuantizeMx : AbsentInstruction {
  std::string_view name() const override { return "quantize_mx"; }
  Engines engines(const Check&) const override { return Engine::vector; }
};
// An activation after two scalar operations of choice.
struct Activate2 : AbsentInstruction {
  std::string_view name() const override { return "activate2"; }
  Engines engines(const Check&) const override { return Engine::scalar; }
};
// exp(src - max_value) with a running sum.
struct Exponential : AbsentInstruction {
  std::string_view name() const override { return "exponential"; }
  Engines engines(const Check&) const override { return Engine::vector; }
};
// Uniform random numbers.
struct Rand2 : AbsentInstruction {
  std::string_view name() const override { return "rand2"; }
  Engines engines(const Check&) const override { return Engine::vector; }
};
// Not an instruction of its own: an operand whose free elements an index picks, whatever engine reads or
// writes it.
struct TensorIndirection : AbsentInstruction {
  std::string_view name() const override { return "tensor_indirection"; }
  Engines engines(const Check&) const override {
    return Engine::tensor | Engine::vector | Engine::scalar | Engine::gpsimd;
  }
};

// Refuse, in NKI's order of tensors; other parameters don't matter.
void nc_matmul_mx(const Tile& dst, const Tile& stationary, const Tile& moving, const Tile& stationary_scale,
                  const Tile& moving_scale, Here here = Here::current());
void quantize_mx(const Tile& dst, const Tile& src, const Tile& dst_scale, Here here = Here::current());
void activate2(const Tile& dst, const Tile& data, Here here = Here::current());
void exponential(const Tile& dst, const Tile& src, Here here = Here::current());
void rand2(const Tile& dst, Here here = Here::current());
void tensor_indirection(const Tile& data, const Tile& index, Here here = Here::current());

std::span<const Kind> absent_instructions();

}  // namespace headway::chip
