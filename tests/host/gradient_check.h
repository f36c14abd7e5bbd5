// Checks gradient rules against finite differences, in double and with the reference kernels. The whole use:
//   check_gradient([](Graph& g, std::vector<Value> in) { return linear(g, in[0], in[1]); }, {{2, 5}, {3,
//   5}});
// builds y from operands of the given shapes, filled with random numbers, and compares d (w . y) / d operand,
// for random weights w, with differences of w . y, element by element. Failures name the operand and the
// element.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/random.h"
#include "graph/autodiff.h"
#include "graph/graph.h"
#include "host/interpret.h"
#include "host/kernel.h"

namespace headway::test {

// An operand: random real numbers, tokens below `vocab`, or given numbers.
struct Operand {
  Operand(std::initializer_list<std::int64_t> shape) : shape(shape) {}
  Operand(Shape shape) : shape(std::move(shape)) {}
  static Operand tokens(Shape shape, std::int64_t vocab) {
    Operand operand(std::move(shape));
    operand.vocab = vocab;
    return operand;
  }
  // Token ids: no gradient is taken.
  static Operand tokens(Shape shape, Numbers ids) {
    Operand operand(std::move(shape));
    operand.vocab = 1;
    operand.numbers = std::move(ids);
    return operand;
  }

  graph::TensorType type() const { return {shape, vocab > 0 ? DType::i32 : DType::f32}; }

  Shape shape;
  std::int64_t vocab = 0;
  Numbers numbers;
};

struct GradientCheck {
  // Of the largest element of the operand's gradient. The differences are exact to the fourth order, so that
  // what is left is rounding.
  double tolerance = 1e-8;
  double step = 1e-3;
  std::uint64_t seed = 1;
};

using Build = std::function<graph::Value(graph::Graph&, std::vector<graph::Value>)>;

namespace detail {

// A graph of y = build(operands) with the operands' values.
struct Built {
  graph::Graph graph{std::make_shared<graph::Variables>()};
  std::vector<graph::Value> operands;
  graph::Value y;

  Built(const Build& build, const std::vector<Operand>& like) {
    for (std::size_t k = 0; k < like.size(); ++k)
      operands.push_back(graph.input("operand " + std::to_string(k), like[k].type()));
    y = build(graph, operands);
  }
};

inline Numbers random_numbers(Random& random, const Operand& like) {
  Numbers numbers(static_cast<std::size_t>(elements(like.shape)));
  for (double& number : numbers) {
    if (like.vocab > 0) {
      number = static_cast<double>(random.below(static_cast<std::uint64_t>(like.vocab)));
    } else {
      number = random.normal();
      number += std::copysign(0.01, number);  // some functions have a kink at zero
    }
  }
  return numbers;
}

template <class T>
void bind_all(Interpreter<T>& machine, const std::vector<Numbers>& numbers) {
  for (std::size_t k = 0; k < numbers.size(); ++k) machine.bind("operand " + std::to_string(k), numbers[k]);
}

}  // namespace detail

inline void check_gradient(const Build& build, const std::vector<Operand>& operands,
                           GradientCheck check = {}) {
  Random random(check.seed);
  std::vector<Numbers> at;
  std::vector<std::size_t> real;  // the operands that have a gradient
  for (std::size_t k = 0; k < operands.size(); ++k) {
    at.push_back(operands[k].numbers.empty() ? detail::random_numbers(random, operands[k])
                                             : operands[k].numbers);
    if (operands[k].vocab == 0) real.push_back(k);
  }

  detail::Built forward(build, operands);
  Interpreter<double> machine(forward.graph, host::reference_kernels<double>());
  const Numbers weights = detail::random_numbers(random, Operand(forward.graph.type(forward.y).shape));
  const auto weighted = [&](const std::vector<Numbers>& point) {
    detail::bind_all(machine, point);
    machine.run();
    const Numbers y = machine.value(forward.y);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += weights[i] * y[i];
    return sum;
  };
  // Gradients of the chosen operands, asked for together.
  const auto differentiated = [&](const std::vector<std::size_t>& chosen) {
    detail::Built built(build, operands);
    const graph::Value seed = built.graph.input("weights", built.graph.type(built.y));
    std::vector<graph::Value> wrt;
    for (std::size_t k : chosen) wrt.push_back(built.operands[k]);
    const std::vector<graph::Value> found = graph::gradients(built.graph, built.y, seed, wrt);
    Interpreter<double> backward(built.graph, host::reference_kernels<double>());
    detail::bind_all(backward, at);
    backward.bind("weights", weights);
    backward.run();
    std::vector<Numbers> result;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const graph::TensorType& type = built.graph.type(wrt[i]);
      if (found[i].valid()) {
        EXPECT_EQ(built.graph.type(found[i]), type) << "the gradient of operand " << chosen[i];
      }
      result.push_back(found[i].valid() ? backward.value(found[i])
                                        : Numbers(static_cast<std::size_t>(elements(type.shape)), 0.0));
    }
    return result;
  };

  const std::vector<Numbers> together = differentiated(real);
  for (std::size_t r = 0; r < real.size(); ++r) {
    const std::size_t k = real[r];
    // A rule may do less where less is needed, but not something else.
    EXPECT_EQ(differentiated({k})[0], together[r])
        << "operand " << k << " alone and together with the others";
    Numbers differences;
    for (std::size_t i = 0; i < at[k].size(); ++i) {
      const auto beside = [&](double steps) {
        std::vector<Numbers> point = at;
        point[k][i] += steps * check.step;
        return weighted(point);
      };
      differences.push_back((8 * (beside(1) - beside(-1)) - (beside(2) - beside(-2))) / (12 * check.step));
    }
    double largest = 1e-3;  // below it, absolute
    for (double value : differences) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < at[k].size(); ++i) {
      EXPECT_NEAR(together[r][i], differences[i], check.tolerance * largest)
          << "d / d operand " << k << " " << to_string(operands[k].shape) << ", element " << i;
    }
  }
}

}  // namespace headway::test
