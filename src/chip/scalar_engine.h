// Instructions of the Scalar engine: a function of every element, and the sum of its results.
#pragma once

#include <optional>
#include <span>

#include "chip/accumulator.h"
#include "chip/activation_function.h"
#include "chip/alu.h"
#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// dst = op(data * scale + bias), float32 inside. dst and data [P, N], SBUF or PSUM, any computable dtype.
// scale: a number or float32 [P, 1]; bias: a number (not on NeuronCore-v2, where only 0, none, is one) or [P,
// 1] of any dtype but tfloat32.
//
// The engine's registers take in the sum of each row of results, before they are converted to dst's dtype, as
// reduce_cmd says; then reduce_res [P, 1] gets what is in them. (nki.isa.activation)
struct Activation : Instruction {
  View dst, data;
  Function op = Function::copy;
  Scalar bias = 0.0f, scale = 1.0f;
  std::optional<Alu> reduce_op;
  std::optional<View> reduce_res;
  ReduceCmd reduce_cmd = ReduceCmd::idle;

  std::string_view name() const override { return "activation"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::scalar; }
  Cost cost(const Costing& costing) const override;
};

// `activation` with reduce_cmd reset_reduce. (nki.isa.activation_reduce)
struct ActivationReduce : Activation {
  ActivationReduce() {
    reduce_op = Alu::add;
    reduce_cmd = ReduceCmd::reset_reduce;
  }
  std::string_view name() const override { return "activation_reduce"; }
  void visit(Fields& fields) override;
};

struct ActivationOptions {
  Scalar bias = 0.0f;
  Scalar scale = 1.0f;
  std::optional<Alu> reduce_op = {};
  std::optional<View> reduce_res = {};
  ReduceCmd reduce_cmd = ReduceCmd::idle;
};
void activation(const Tile& dst, Function op, const Tile& data, const ActivationOptions& options = {},
                Here here = Here::current());

struct ActivationReduceOptions {
  Scalar bias = 0.0f;
  Scalar scale = 1.0f;
};
void activation_reduce(const Tile& dst, Function op, const Tile& data, Alu reduce_op,
                       const std::optional<View>& reduce_res, const ActivationReduceOptions& options = {},
                       Here here = Here::current());

std::span<const Kind> scalar_engine_instructions();

}  // namespace headway::chip
