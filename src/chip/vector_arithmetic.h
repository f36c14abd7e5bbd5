// Arithmetic element by element: tensor_tensor, tensor_scalar, scalar_tensor_tensor, reciprocal.
//
// All compute in float32 and convert on store, except operators on bits (integers of one width, as they are)
// and, on GpSimd, 32-bit integers (exact, modulo 2^32).
#pragma once

#include <optional>
#include <span>

#include "chip/alu.h"
#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// dst = data1 op data2. Not both data in PSUM. With int32 and uint32 only and no operand in PSUM it runs on
// GpSimd, exactly, unless the Vector engine is asked for. `power` runs on GpSimd.
struct TensorTensor : Instruction {
  View dst, data1, data2;
  Alu op = Alu::add;

  std::string_view name() const override { return "tensor_tensor"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;

 private:
  bool exact(const Program& program) const;
};
struct TensorTensorOptions {
  Engine engine = Engine::unknown;  // vector or gpsimd
};
void tensor_tensor(const Tile& dst, const Tile& data1, const Tile& data2, Alu op,
                   const TensorTensorOptions& options = {}, Here here = Here::current());

// dst = (data op0 operand0) op1 operand1, or without op1; reversed: operand op data. Operands are immediates
// or float32 [P, 1]. Both operators work on bits (Vector engine; integer operands) or both are arithmetic. Of
// 32-bit integers with 32-bit integer operands, one of them at least a tile, GpSimd computes addresses: add,
// subtract and multiply, exactly.
struct TensorScalar : Instruction {
  View dst, data;
  Alu op0 = Alu::add;
  Scalar operand0;
  bool reverse0 = false;
  std::optional<Alu> op1 = {};
  std::optional<Scalar> operand1 = {};
  bool reverse1 = false;

  std::string_view name() const override { return "tensor_scalar"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;

 private:
  bool has(Alu op) const { return op0 == op || op1 == op; }
  bool on_bits() const { return is_bitwise(op0); }
  bool addresses() const;
  bool scalar_engine_can(int generation) const;
};
struct TensorScalarOptions {
  bool reverse0 = false;
  std::optional<Alu> op1 = {};
  std::optional<Scalar> operand1 = {};
  bool reverse1 = false;
  Engine engine = Engine::unknown;  // vector, scalar (a few operators) or gpsimd (rsqrt, power, addresses)
};
void tensor_scalar(const Tile& dst, const Tile& data, Alu op0, const Scalar& operand0 = {},
                   const TensorScalarOptions& options = {}, Here here = Here::current());

// dst = (data op0 operand0) op1 operand1; reversed: operand0 op0 data, operand1 op1 (...). operand0 is an
// immediate or [P, 1] of any dtype, operand1 a tile of data's size; data and operand1 not both in PSUM.
// Arithmetic only.
struct ScalarTensorTensor : Instruction {
  View dst, data;
  Alu op0 = Alu::multiply;
  Scalar operand0;
  Alu op1 = Alu::add;
  View operand1;
  bool reverse0 = false, reverse1 = false;

  std::string_view name() const override { return "scalar_tensor_tensor"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
struct ScalarTensorTensorOptions {
  bool reverse0 = false, reverse1 = false;
};
void scalar_tensor_tensor(const Tile& dst, const Tile& data, Alu op0, const Scalar& operand0, Alu op1,
                          const Tile& operand1, const ScalarTensorTensorOptions& options = {},
                          Here here = Here::current());

// dst = 1 / data, correctly rounded in float32.
struct Reciprocal : Instruction {
  View dst, data;

  std::string_view name() const override { return "reciprocal"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};
void reciprocal(const Tile& dst, const Tile& data, Here here = Here::current());

std::span<const Kind> vector_arithmetic_instructions();

}  // namespace headway::chip
