// Running kernels on random inputs and comparing them with their references.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/number_format.h"
#include "base/random.h"
#include "chip/machine.h"
#include "kernels/kernel.h"

namespace headway::kernels {

inline const chip::Spec& trn2() {
  static const chip::Spec spec = chip::Spec::load(std::string(HEADWAY_ROOT) + "/chips/trn2.toml");
  return spec;
}

struct Run {
  std::vector<std::vector<std::byte>> outputs;
  std::vector<DType> dtypes;
  std::vector<std::vector<double>> values;  // of the inputs, as stored

  std::vector<double> numbers(std::size_t output) const {
    std::vector<double> all;
    const int size = size_of(dtypes[output]);
    for (std::size_t i = 0; i < outputs[output].size(); i += static_cast<std::size_t>(size))
      all.push_back(static_cast<double>(decode(dtypes[output], outputs[output].data() + i)));
    return all;
  }
};

// Records, runs with random inputs, and gives the first core's outputs.
inline Run run(const std::string& name, const std::vector<Parameter>& inputs, const Attributes& attributes,
               int threads, double range = 1) {
  const Kernel& kernel = find_kernel(name);
  std::vector<chip::Program> programs = record(kernel, trn2(), inputs, attributes);
  std::vector<const chip::Program*> pointers;
  for (const chip::Program& program : programs) pointers.push_back(&program);
  ThreadPool pool(threads, false);
  chip::Diagnostics diagnostics;
  chip::Machine machine(trn2(), pointers, kernel.cores, pool, diagnostics);
  Run result;
  Random random(7);
  std::vector<std::vector<std::byte>> memory;
  std::vector<chip::ConstArray> arrays;
  for (const Parameter& input : inputs) {
    const auto count = static_cast<std::size_t>(elements(input.shape)),
               size = static_cast<std::size_t>(size_of(input.dtype));
    memory.emplace_back(count * size);
    result.values.emplace_back();
    for (std::size_t i = 0; i < count; ++i) {
      encode(input.dtype, static_cast<float>(random.uniform(-range, range)), memory.back().data() + i * size);
      result.values.back().push_back(
          static_cast<double>(decode(input.dtype, memory.back().data() + i * size)));
    }
    arrays.push_back({input.dtype, input.shape, nullptr});
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i].data = memory[i].data();
  machine.bind(0, arrays);
  machine.run();
  std::vector<chip::Array> outputs;
  for (chip::TensorId id : programs[0].with_role(chip::Role::output)) {
    const chip::Tensor& t = programs[0].tensors[id];
    result.outputs.emplace_back(static_cast<std::size_t>(t.row_bytes()));
    result.dtypes.push_back(t.dtype);
    outputs.push_back({t.dtype, t.shape, result.outputs.back().data()});
  }
  machine.outputs(0, outputs);
  return result;
}

inline void expect_reference(const std::string& name, const std::vector<Parameter>& inputs,
                             const Attributes& attributes, double absolute, double range = 1) {
  const Run one = run(name, inputs, attributes, 1, range);
  const auto expected = find_kernel(name).reference(inputs, one.values, attributes);
  ASSERT_EQ(expected.size(), one.outputs.size());
  for (std::size_t o = 0; o < expected.size(); ++o) {
    const std::vector<double> got = one.numbers(o);
    ASSERT_EQ(got.size(), expected[o].size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[o][i], absolute) << name << " at " << i;
  }
  // To the bit: again, and on two threads.
  EXPECT_EQ(run(name, inputs, attributes, 1, range).outputs, one.outputs);
  EXPECT_EQ(run(name, inputs, attributes, 2, range).outputs, one.outputs);
}

inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace headway::kernels
