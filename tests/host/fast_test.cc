// The fast float32 kernels, operators and regions, against the references in double.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "host/interpret.h"
#include "host/operator_cases.h"
#include "host/region_cases.h"

namespace headway::test {
namespace {

using Tensors = std::vector<Numbers>;

const host::Kernels& fast() {
  static const host::Kernels kernels = host::fast_kernels();
  return kernels;
}

ThreadPool& pool(int threads) {
  static std::map<int, std::unique_ptr<ThreadPool>> pools;
  auto& found = pools[threads];
  if (!found) found = std::make_unique<ThreadPool>(threads, false);
  return *found;
}

// A kernel, what it is given, and how to compute the same in double.
struct Trial {
  const host::Kernel* kernel;
  std::vector<const graph::Operator*> ops;
  std::vector<graph::TensorType> input_types, output_types;
  Tensors operands;
  std::int64_t reduction;
  std::function<Tensors(const Tensors& operands, const host::Options&)> reference;
};

Tensors run(const Trial& trial, int threads, const host::Options& options, const Tensors& initial = {},
            bool in_place = false) {
  std::vector<Buffer> in, out;
  std::vector<bool> accumulate;
  for (std::size_t k = 0; k < trial.operands.size(); ++k)
    in.push_back(Buffer::of<float>(trial.input_types[k], trial.operands[k]));
  for (std::size_t o = 0; o < trial.output_types.size(); ++o) {
    const int reused = in_place ? trial.kernel->may_overwrite(static_cast<int>(o)) : -1;
    out.push_back(reused >= 0 ? in[static_cast<std::size_t>(reused)]
                              : Buffer::of<float>(trial.output_types[o]));
    accumulate.push_back(!initial.empty() && trial.kernel->can_accumulate(static_cast<int>(o)));
    if (accumulate.back()) out.back().set(initial[o]);
  }
  call_kernel(*trial.kernel, trial.ops, trial.input_types, in, trial.output_types, out, accumulate,
              pool(threads), options);
  Tensors results;
  for (const Buffer& buffer : out) results.push_back(buffer.numbers());
  return results;
}

Tensors minus(const Tensors& a, const Tensors& b) {
  Tensors result = a;
  for (std::size_t o = 0; o < a.size(); ++o)
    for (std::size_t i = 0; i < a[o].size(); ++i) result[o][i] -= b[o][i];
  return result;
}

// What float32 may be off by, per output. Rounding in sums of n terms acts like rounding the terms about
// sqrt(n) times: that costs about sqrt(n) roundings of the result and, where the result is a small rest of
// large terms, no less than sqrt(n) times what rounding the operands once does (the worst of several ways to
// round them). Both in exact products: at a boundary of bfloat16 a nudge would become 2^-8.
Numbers allowed_errors(const Trial& trial, const Tensors& expected) {
  Random random(17);
  const Tensors exact = trial.reference(trial.operands, {});
  Numbers conditioning(expected.size(), 0.0);
  for (int draw = 0; draw < 4; ++draw) {
    Tensors nudged = trial.operands;
    for (std::size_t k = 0; k < nudged.size(); ++k) {
      if (trial.input_types[k].dtype == DType::i32) continue;
      for (double& value : nudged[k]) value *= 1 + (random.below(2) == 0 ? 0x1p-24 : -0x1p-24);
    }
    const Tensors moved = minus(trial.reference(nudged, {}), exact);
    for (std::size_t o = 0; o < moved.size(); ++o)
      conditioning[o] = std::max(conditioning[o], norm(moved[o]));
  }
  Numbers allowed;
  for (std::size_t o = 0; o < expected.size(); ++o) {
    const double roundings = std::sqrt(static_cast<double>(trial.reduction));
    allowed.push_back(roundings * (2e-6 * norm(expected[o]) + 8 * conditioning[o]));
  }
  return allowed;
}

void try_out(const Trial& trial, const host::Options& options = {}) {
  const Tensors expected = trial.reference(trial.operands, options);
  const Numbers allowed = allowed_errors(trial, expected);
  Random random(3);
  Tensors initial;
  bool accumulates = false, overwrites = false;
  for (std::size_t o = 0; o < expected.size(); ++o) {
    initial.emplace_back(expected[o].size());
    for (double& value : initial.back()) value = static_cast<float>(random.normal());
    accumulates = accumulates || trial.kernel->can_accumulate(static_cast<int>(o));
    const int reused = trial.kernel->may_overwrite(static_cast<int>(o));
    overwrites = overwrites || reused >= 0;
    if (reused >= 0) {
      ASSERT_LT(static_cast<std::size_t>(reused), trial.input_types.size());
      ASSERT_EQ(trial.input_types[static_cast<std::size_t>(reused)], trial.output_types[o])
          << "can't share memory";
    }
  }
  for (int threads : {1, 2, 3}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    const Tensors found = run(trial, threads, options);
    const Tensors error = minus(found, expected);
    for (std::size_t o = 0; o < expected.size(); ++o) EXPECT_LE(norm(error[o]), allowed[o]) << "output " << o;
    EXPECT_TRUE(run(trial, threads, options) == found) << "not the same to the bit when run again";
    if (overwrites) {
      EXPECT_TRUE(run(trial, threads, options, {}, true) == found) << "differs in place";
    }
    if (!accumulates) continue;
    const Tensors added = run(trial, threads, options, initial);
    for (std::size_t o = 0; o < expected.size(); ++o) {
      const bool adds = trial.kernel->can_accumulate(static_cast<int>(o));
      Numbers rest = added[o];
      for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= expected[o][i] + (adds ? initial[o][i] : 0);
      EXPECT_LE(norm(rest), allowed[o] + (adds ? 2e-7 * norm(initial[o]) : 0)) << "accumulated output " << o;
    }
  }
}

Trial trial_of(const Case& instance, std::uint64_t seed) {
  const graph::Operator* op = instance.op.get();
  const auto types = op->infer(instance.types);
  const auto reference = [=, &instance](const Tensors& operands, const host::Options& options) {
    std::vector<Buffer> in, out;
    for (std::size_t k = 0; k < operands.size(); ++k)
      in.push_back(Buffer::of<double>(instance.types[k], operands[k]));
    for (const auto& type : types) out.push_back(Buffer::of<double>(type));
    static const host::Kernels kernels = host::reference_kernels<double>();
    call_kernel(kernels.single(op->name()), {&op, 1}, instance.types, in, types, out,
                std::vector<bool>(out.size(), false), pool(1), options);
    Tensors results;
    for (const Buffer& buffer : out) results.push_back(buffer.numbers());
    return results;
  };
  return {&fast().single(op->name()), {op},     instance.types, types, instance.operands(seed),
          instance.reduction,         reference};
}

class FastOperator : public ::testing::TestWithParam<std::string> {};

TEST_P(FastOperator, AgreesWithTheReference) {
  ASSERT_FALSE(cases_of(GetParam()).empty()) << "no case in operator_cases.cc";
  for (const Case& instance : cases_of(GetParam())) {
    SCOPED_TRACE(instance.label());
    try_out(trial_of(instance, 21));
  }
}

INSTANTIATE_TEST_SUITE_P(All, FastOperator, ::testing::ValuesIn(host::reference_names()),
                         [](const auto& parameter) { return parameter.param; });

TEST(FastKernels, ProductsRoundTheirOperandsToBfloat16WhenAsked) {
  host::Options options;
  options.bf16_products = true;
  for (const std::string op : {"linear", "linear_grad_input", "linear_grad_weight"}) {
    for (const Case& instance : cases_of(op)) {
      SCOPED_TRACE(instance.label());
      try_out(trial_of(instance, 22), options);
    }
  }
}

TEST(FastKernels, TokensOutsideTheVocabularyAreRefusedAsByTheReference) {
  for (const std::string& op : host::reference_names()) {
    for (const Case& instance : cases_of(op)) {
      Trial trial = trial_of(instance, 23);
      bool takes_tokens = false;
      for (std::size_t k = 0; k < trial.operands.size(); ++k) {
        if (trial.input_types[k].dtype != DType::i32) continue;
        trial.operands[k].back() = 123456;
        takes_tokens = true;
      }
      if (!takes_tokens) continue;
      SCOPED_TRACE(instance.label());
      for (int threads : {1, 3}) EXPECT_THROW(run(trial, threads, {}), InputError);
    }
  }
}

// Every region that has a kernel, as a graph of its own.
TEST(FastKernels, RegionsAgreeWithTheirOperatorsOneByOne) {
  for (const auto& region : fast().regions()) {
    const std::string name = name_of(region.pattern);
    EXPECT_FALSE(region_cases_of(name).empty()) << "region " << name << " has no case in region_cases.cc";
    for (const RegionCase& instance : region_cases_of(name)) {
      ASSERT_EQ(instance.ops.size(), region.pattern.nodes.size()) << name;
      std::map<std::string, graph::TensorType> types;  // of what comes from outside
      std::set<std::string> targets;
      std::string label = name;
      for (std::size_t i = 0; i < instance.ops.size(); ++i) {
        const auto& node = region.pattern.nodes[i];
        ASSERT_EQ(instance.ops[i]->name(), node.op) << name;
        ASSERT_EQ(instance.operands[i].size(), node.inputs.size()) << name << ", operator " << i;
        label += " " + instance.ops[i]->attributes().dump();
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
          types.emplace(node.inputs[k], instance.operands[i][k]);
          label += " " + to_string(instance.operands[i][k].shape);
          if (node.op.starts_with("softcap_cross_entropy")) targets.insert(node.inputs[k]);
        }
      }
      SCOPED_TRACE(label);

      auto graph = std::make_shared<graph::Graph>(std::make_shared<graph::Variables>());
      std::map<std::string, graph::Value> values;
      Trial trial{region.kernel.get(), {}, {}, {}, {}, instance.reduction, {}};
      for (const std::string& input : region.pattern.inputs) {
        values[input] = graph->input(input, types.at(input));
        trial.input_types.push_back(types.at(input));
      }
      for (std::size_t i = 0; i < instance.ops.size(); ++i) {
        const auto& node = region.pattern.nodes[i];
        trial.ops.push_back(instance.ops[i].get());
        std::vector<graph::Value> operands;
        for (const std::string& input : node.inputs) operands.push_back(values.at(input));
        const auto outputs = graph->apply(instance.ops[i], operands);
        for (std::size_t o = 0; o < node.outputs.size(); ++o) values[node.outputs[o]] = outputs[o];
      }
      for (const std::string& output : region.pattern.outputs)
        trial.output_types.push_back(graph->type(values.at(output)));
      trial.operands = random_operands(
          trial.input_types,
          [&](Tensors& operands, Random& random) {
            for (std::size_t k = 0; k < operands.size(); ++k) {
              if (trial.input_types[k].dtype != DType::i32) continue;
              operands[k] = targets.contains(region.pattern.inputs[k])
                                ? random_targets(operands[k].size(), instance.vocab, random)
                                : random_tokens(operands[k].size(), instance.vocab, random);
            }
          },
          24);
      trial.reference = [&, graph](const Tensors& operands, const host::Options& options) {
        Interpreter<double> machine(*graph, host::reference_kernels<double>(), options);
        for (std::size_t k = 0; k < operands.size(); ++k) machine.bind(region.pattern.inputs[k], operands[k]);
        machine.run();
        Tensors results;
        for (const std::string& output : region.pattern.outputs)
          results.push_back(machine.value(values.at(output)));
        return results;
      };
      try_out(trial);
    }
  }
}

}  // namespace
}  // namespace headway::test
