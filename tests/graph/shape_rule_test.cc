// Shape rules: what each operator makes of its operands, and what it refuses.
#include <gtest/gtest.h>

#include <memory>

#include "base/error.h"
#include "graph/operators/elementwise.h"
#include "graph/operators/linear.h"
#include "graph/operators/loss.h"
#include "graph/operators/sequence.h"
#include "graph/operators/update.h"

namespace headway::graph {
namespace {

using Types = std::vector<TensorType>;
using OperatorPtr = std::shared_ptr<const Operator>;

TensorType real(Shape shape) { return {std::move(shape), DType::f32}; }
TensorType whole(Shape shape) { return {std::move(shape), DType::i32}; }

std::string refusal(const Operator& op, const Types& operands) {
  try {
    op.infer(operands);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(ShapeRules, GiveTheOutputs) {
  EXPECT_EQ(Linear().infer(Types{real({2, 3, 5}), real({7, 5})}), Types{real({2, 3, 7})});
  EXPECT_EQ(LinearGradInput().infer(Types{real({2, 3, 7}), real({7, 5})}), Types{real({2, 3, 5})});
  EXPECT_EQ(LinearGradWeight().infer(Types{real({2, 3, 7}), real({6, 5})}), Types{real({7, 5})});
  EXPECT_EQ(SliceColumns(2, 5).infer(Types{real({4, 8})}), Types{real({4, 3})});
  EXPECT_EQ(PadColumns(2, 8).infer(Types{real({4, 3})}), Types{real({4, 8})});
  EXPECT_EQ(Embedding().infer(Types{whole({2, 3}), real({9, 5})}), Types{real({2, 3, 5})});
  EXPECT_EQ(EmbeddingGrad(9).infer(Types{whole({2, 3}), real({2, 3, 5})}), Types{real({9, 5})});
  EXPECT_EQ(Attention({4, 2, 3, 1, 1.0}).infer(Types{real({2, 5, 12}), real({2, 5, 6}), real({2, 5, 6})}),
            (Types{real({2, 5, 12}), real({2, 4, 5})}));
  EXPECT_EQ(SoftcapCrossEntropy(15).infer(Types{real({2, 3, 9}), whole({2, 3})}), Types{real({})});
  EXPECT_EQ(GlobalNorm().infer(Types{real({2, 3}), real({4})}), Types{real({})});
  EXPECT_EQ(NorMuon(0.9).infer(Types{real({2, 3}), real({3})}), (Types{real({2, 3}), real({3})}));
}

TEST(ShapeRules, SayWhatTheyWereGiven) {
  EXPECT_EQ(
      refusal(Linear(), {real({2, 3, 5}), real({7, 6})}),
      "[linear]: takes x [..., in] and weight [out, in]; operands are float32 [2, 3, 5], float32 [7, 6]");
  EXPECT_EQ(
      refusal(Embedding(), {real({2, 3}), real({9, 5})}),
      "[embedding]: takes int32 tokens and table [vocab, n]; operands are float32 [2, 3], float32 [9, 5]");
}

struct Refused {
  OperatorPtr op;
  Types operands;
};

class RefusedTest : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedTest, NamesTheOperatorAndTheShapes) {
  const auto& [op, operands] = GetParam();
  const std::string message = refusal(*op, operands);
  EXPECT_EQ(message.find("[" + std::string(op->name()) + "]: takes "), 0u) << message;
  for (const TensorType& type : operands) {
    const std::string shown = std::string(name_of(type.dtype)) + " " + to_string(type.shape);
    EXPECT_NE(message.find(shown), std::string::npos) << message << "\nlacks " << shown;
  }
}

template <class Op, class... Arguments>
OperatorPtr op(Arguments... arguments) {
  return std::make_shared<Op>(arguments...);
}

const TensorType x = real({2, 3, 4}), scalar = real({}), tokens = whole({2, 3});
const AttentionShape heads{2, 1, 2, 4, 1.0};

INSTANTIATE_TEST_SUITE_P(
    ShapeRules, RefusedTest,
    ::testing::Values(
        Refused{op<Linear>(), {x}}, Refused{op<Linear>(), {scalar, real({5, 4})}},
        Refused{op<Linear>(), {x, real({4})}}, Refused{op<LinearGradInput>(), {x, real({5, 4})}},
        Refused{op<LinearGradWeight>(), {x, real({2, 2, 5})}}, Refused{op<Add>(), {x, real({2, 3, 5})}},
        Refused{op<Add>(), {}}, Refused{op<Multiply>(), {x}}, Refused{op<Multiply>(), {x, x, x}},
        Refused{op<Activation>(ActivationKind::gelu), {x, x}},
        Refused{op<ActivationGrad>(ActivationKind::relu2), {x, real({6, 4})}},
        Refused{op<Softcap>(1.0), {x, x}}, Refused{op<SoftcapGrad>(1.0), {x}},
        Refused{op<ResidualMix>(3), {x, x, real({3}), real({3})}},
        Refused{op<ResidualMix>(-1), {x, x, real({3}), real({3})}},
        Refused{op<ResidualMix>(0), {x, x, real({3}), real({2})}},
        Refused{op<ResidualMixGrad>(0), {x, x, real({3}), real({3}), scalar}},
        Refused{op<SliceColumns>(3, 5), {x}}, Refused{op<SliceColumns>(2, 2), {x}},
        Refused{op<SliceColumns>(-1, 2), {x}}, Refused{op<PadColumns>(2, 5), {x}},
        Refused{op<ValueGate>(), {x, x, real({2, 3, 3})}}, Refused{op<ValueGate>(), {x, x, real({2, 2})}},
        Refused{op<ValueGateGrad>(), {x, real({2, 3, 2}), scalar}},
        Refused{op<Embedding>(), {tokens, real({9})}}, Refused{op<EmbeddingGrad>(9), {tokens, real({5, 4})}},
        Refused{op<RmsNorm>(3, 1e-6), {x}}, Refused{op<RmsNorm>(0, 1e-6), {x}},
        Refused{op<RmsNormGrad>(4, 1e-6), {x, scalar}}, Refused{op<Rotary>(3, 1e4), {real({2, 3, 6})}},
        Refused{op<Rotary>(4, 1e4), {real({3, 4})}}, Refused{op<Rotary>(8, 1e4), {x}},
        Refused{op<Rotary>(0, 1e4), {x}}, Refused{op<Attention>(heads), {x, x, x}},
        Refused{op<Attention>(heads), {x, real({2, 4, 2}), real({2, 4, 2})}},
        Refused{op<Attention>(AttentionShape{3, 2, 2, 4, 1.0}),
                {real({1, 2, 6}), real({1, 2, 4}), real({1, 2, 4})}},
        Refused{op<Attention>(AttentionShape{1, 1, 4, -1, 1.0}), {x, x, x}},
        Refused{op<AttentionGrad>(heads), {x, x, x}}, Refused{op<CausalConvolution>(), {x, real({3, 4})}},
        Refused{op<CausalConvolutionGrad>(), {x, real({4, 3}), scalar}},
        Refused{op<SoftcapCrossEntropy>(15.0), {x, real({2, 3})}},
        Refused{op<SoftcapCrossEntropy>(15.0), {x, whole({2, 4})}},
        Refused{op<SoftcapCrossEntropyGrad>(15.0), {x, tokens, real({1})}},
        Refused{op<AdamW>(0.9, 0.95, 1e-8), {x, x, x, scalar, scalar, scalar, scalar}},
        Refused{op<AdamW>(0.9, 0.95, 1e-8), {x, x, x, x, scalar, scalar, real({1})}},
        Refused{op<NesterovMomentum>(), {x, x, x}}, Refused{op<PolarExpress>(5), {x}},
        Refused{op<PolarExpress>(6), {real({4, 4})}}, Refused{op<PolarExpress>(0), {real({4, 4})}},
        Refused{op<NorMuon>(0.9), {real({2, 3}), real({2})}},
        Refused{op<CautiousUpdate>(1.0), {x, scalar, scalar, scalar}}, Refused{op<GlobalNorm>(), {}},
        Refused{op<ClipByNorm>(1.0), {x, x}}),
    [](const auto& parameter) {
      return std::string(parameter.param.op->name()) + "_" + std::to_string(parameter.index);
    });

}  // namespace
}  // namespace headway::graph
