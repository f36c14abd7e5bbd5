// Instances of the regions that have a kernel of their own. A region is looked up by its operators' names, in
// the pattern's order: "linear+relu2".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/operator.h"
#include "host/kernel.h"

namespace headway::test {

struct RegionCase {
  std::vector<std::shared_ptr<const graph::Operator>> ops;
  // Per operator, the types of all its operands; those that come from inside the region are there for the
  // reader.
  std::vector<std::vector<graph::TensorType>> operands;
  std::int64_t reduction = 1;  // terms of the longest sum
  std::int64_t vocab = 1;      // tokens and targets are below
};

std::string name_of(const host::Pattern& pattern);
// None where nobody wrote any.
std::vector<RegionCase> region_cases_of(const std::string& name);

}  // namespace headway::test
