// Patterns of `rearrange`: names of extents, groups of them in tuples.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "base/dtype.h"

namespace headway::python {

// Split into `split`, permute by `order`, merge into `merged`.
struct Rearrangement {
  Shape split;
  std::vector<int> order;
  Shape merged;
};

// Of an extent list like ("p", ("a", "b")) to another with the same names; `sizes` (a dict or None) gives
// extents of names, one in a group may be left out. Throws KernelError naming what doesn't fit.
Rearrangement rearrangement(nanobind::handle from, nanobind::handle to, nanobind::handle sizes,
                            const Shape& shape);

}  // namespace headway::python
