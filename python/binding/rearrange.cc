#include "rearrange.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace headway::python {
namespace {

namespace nb = nanobind;

using Group = std::vector<std::string>;

std::vector<Group> groups(nb::handle pattern) {
  std::vector<Group> result;
  for (nb::handle item : nb::iter(pattern)) {
    Group group;
    if (PyUnicode_Check(item.ptr())) {
      group.push_back(nb::cast<std::string>(item));
    } else {
      for (nb::handle name : nb::iter(item)) group.push_back(nb::cast<std::string>(name));
    }
    result.push_back(std::move(group));
  }
  return result;
}

}  // namespace

Rearrangement rearrangement(nb::handle from, nb::handle to, nb::handle sizes, const Shape& shape) {
  const std::vector<Group> sources = groups(from), targets = groups(to);
  if (sources.size() != shape.size())
    throw KernelError(
        fmt::format("the pattern has {} extents, the view {} [view]", sources.size(), shape.size()));
  Rearrangement r;
  Group names;
  for (std::size_t d = 0; d < sources.size(); ++d) {
    std::int64_t known = 1;
    std::int64_t open = -1;
    for (const std::string& name : sources[d]) {
      if (std::ranges::find(names, name) != names.end())
        throw KernelError("the pattern names '" + name + "' twice [view]");
      names.push_back(name);
      std::int64_t extent = 0;
      if (!sizes.is_none() && nb::cast<bool>(sizes.attr("__contains__")(name)))
        extent = nb::cast<std::int64_t>(sizes[nb::str(name.c_str())]);
      if (extent > 0) {
        known *= extent;
      } else if (open < 0) {
        open = static_cast<std::int64_t>(r.split.size());
      } else {
        throw KernelError("a group of the pattern has two names without a size, '" + name +
                          "' is one [view]");
      }
      r.split.push_back(extent);
    }
    if (shape[d] % known != 0 || (open < 0 && known != shape[d]))
      throw KernelError(
          fmt::format("sizes of {} don't make extent {}, which is {} [view]", known, d, shape[d]));
    if (open >= 0) r.split[static_cast<std::size_t>(open)] = shape[d] / known;
  }
  for (const Group& group : targets) {
    std::int64_t extent = 1;
    for (const std::string& name : group) {
      const auto at = std::ranges::find(names, name);
      if (at == names.end()) throw KernelError("the pattern has no '" + name + "' on its left [view]");
      r.order.push_back(static_cast<int>(at - names.begin()));
      extent *= r.split[static_cast<std::size_t>(at - names.begin())];
    }
    r.merged.push_back(extent);
  }
  if (r.order.size() != names.size())
    throw KernelError("the two sides of the pattern don't have the same names [view]");
  return r;
}

}  // namespace headway::python
