// Instances of every operator with operands of many shapes: what kernels are tried on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "graph/operator.h"
#include "host/numbers.h"

namespace headway::test {

struct Case {
  std::shared_ptr<const graph::Operator> op;
  std::vector<graph::TensorType> types;  // of the operands
  std::int64_t reduction = 1;  // terms of the longest sum in it: rounding errors grow with its square root
  // Makes operands that can't be any numbers (tokens, variances, what another operator computed) out of
  // standard normal ones. May be empty.
  std::function<void(std::vector<Numbers>& operands, Random& random)> make = {};

  // Operands for a seed; all of them are representable in float.
  std::vector<Numbers> operands(std::uint64_t seed) const;
  // "linear float32 [2, 3], float32 [4, 3] {}"
  std::string label() const;
};

// The cases of the operator with that name; none where nobody wrote any.
std::vector<Case> cases_of(const std::string& op);

// All operands standard normal, then `make`, then rounded to float.
std::vector<Numbers> random_operands(const std::vector<graph::TensorType>& types,
                                     const std::function<void(std::vector<Numbers>&, Random&)>& make,
                                     std::uint64_t seed);

// Makers of single operands.
Numbers random_tokens(std::size_t count, std::int64_t vocab, Random& random);
// Tokens, about a quarter of them -1; all of them with `none`.
Numbers random_targets(std::size_t count, std::int64_t vocab, Random& random, bool none = false);

}  // namespace headway::test
