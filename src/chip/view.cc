#include "chip/view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "base/error.h"

namespace headway::chip {
namespace {

// Views carry steps in 32 bits.
std::int32_t step_of(std::int64_t step) {
  if (step > std::numeric_limits<std::int32_t>::max() || step < std::numeric_limits<std::int32_t>::min())
    throw KernelError(fmt::format("a step of {} elements doesn't fit into 32 bits [view]", step));
  return static_cast<std::int32_t>(step);
}

std::int32_t count_of(std::int64_t count) {
  if (count < 1 || count > std::numeric_limits<std::int32_t>::max())
    throw KernelError(fmt::format("an extent of {} is not in 1 to 2^31-1 [view]", count));
  return static_cast<std::int32_t>(count);
}

template <class... Args>
void require(bool held, fmt::format_string<Args...> format, Args&&... args) {
  if (!held) throw KernelError(fmt::format(format, std::forward<Args>(args)...) + " [view]");
}

Pair& pair(View& view, int dim) { return view.pairs[static_cast<std::size_t>(dim)]; }
const Pair& pair(const View& view, int dim) { return view.pairs[static_cast<std::size_t>(dim)]; }

void check_dim(const View& view, int dim) {
  require(dim >= 0 && dim < view.rank, "a view of {} extents has no extent {}", view.rank, dim);
}

void remove(View& view, int dim) {
  for (int d = dim; d + 1 < view.rank; ++d) pair(view, d) = pair(view, d + 1);
  --view.rank;
  pair(view, view.rank) = {};
}

void insert(View& view, int dim, Pair what) {
  require(view.rank < kMaxPairs, "a view has at most {} extents", kMaxPairs);
  for (int d = view.rank; d > dim; --d) pair(view, d) = pair(view, d - 1);
  pair(view, dim) = what;
  ++view.rank;
}

// The step of an extent: none is taken in an extent of 1, whatever it would be.
std::int32_t step_of(std::int64_t step, std::int64_t count) { return count == 1 ? 1 : step_of(step); }

void check_count(const View& view) {
  std::int64_t n = 1;
  for (int d = 0; d < view.rank; ++d) {
    require(pair(view, d).count <= kMaxElements / n, "a view has at most 2^40 elements");
    n *= pair(view, d).count;
  }
}

// What the rows of a view by index are, the index says, one after another.
void keep_rows(const View& view, bool kept) {
  const bool by_index = view.dynamic >= 0 && pair(view, 0).step == kByIndex;
  require(kept || !by_index, "rows that come from an index stay the first extent, from 0 by 1");
}

}  // namespace

std::string_view name_of(Buffer buffer) {
  switch (buffer) {
    case Buffer::sbuf:
      return "SBUF";
    case Buffer::psum:
      return "PSUM";
    case Buffer::private_hbm:
      return "private HBM";
    case Buffer::shared_hbm:
      return "shared HBM";
  }
  throw Bug("unknown buffer");
}

std::int64_t View::row_elements() const {
  std::int64_t n = 1;
  for (const Pair& p : free_pairs()) n *= p.count;
  return n;
}

Shape View::shape() const {
  Shape shape;
  for (int d = 0; d < rank; ++d) shape.push_back(pairs[static_cast<std::size_t>(d)].count);
  return shape;
}

View whole(const Tensor& tensor, TensorId id) {
  require(tensor.shape.size() <= kMaxPairs, "'{}' has {} extents; a view has at most {}", tensor.name,
          tensor.shape.size(), kMaxPairs);
  View view;
  view.tensor = id;
  view.dtype = tensor.dtype;
  view.rank = static_cast<std::uint8_t>(tensor.shape.size());
  std::int64_t step = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    const std::int64_t extent = tensor.shape[static_cast<std::size_t>(d)];
    pair(view, d) = {step_of(step, extent), count_of(extent)};
    step *= extent;
  }
  if (is_on_chip(tensor.buffer)) pair(view, 0).step = 1;
  return view;
}

View slice(const View& view, int dim, std::int64_t start, std::int64_t stop, std::int64_t step,
           bool on_chip) {
  check_dim(view, dim);
  const std::int64_t extent = pair(view, dim).count;
  require(step >= 1, "a slice goes forward, not by {}", step);
  require(0 <= start && start < stop && stop <= extent, "{}:{} is not a part of extent {}, which is {}",
          start, stop, dim, extent);
  View result = view;
  Pair& p = pair(result, dim);
  p.count = count_of((stop - start - 1) / step + 1);
  if (on_chip && dim == 0) {
    require(step == 1, "partitions are taken one after another, not by {}", step);
    result.partition += static_cast<std::int32_t>(start);
    return result;
  }
  keep_rows(view, dim != 0 || (start == 0 && p.count == (stop - start)));
  if (start != 0) result.offset += start * p.step;
  if (p.count > 1) p.step = step_of(p.step * step);
  return result;
}

View select(const View& view, int dim, std::int64_t index, bool on_chip) {
  check_dim(view, dim);
  require(0 <= index && index < pair(view, dim).count, "index {} is outside extent {}, which is {}", index,
          dim, pair(view, dim).count);
  View result = slice(view, dim, index, index + 1, 1, on_chip);
  const bool stays = on_chip ? dim == 0 || view.rank <= 2 : view.rank == 1;
  keep_rows(view, dim != 0 || stays);
  if (!stays) remove(result, dim);
  return result;
}

View permute(const View& view, std::span<const int> order, bool on_chip) {
  require(order.size() == view.rank, "an order of {} for {} extents", order.size(), view.rank);
  require(!on_chip || order[0] == 0, "on chip the first extent stays first");
  keep_rows(view, order[0] == 0);
  View result = view;
  unsigned seen = 0;
  for (int d = 0; d < view.rank; ++d) {
    const int from = order[static_cast<std::size_t>(d)];
    check_dim(view, from);
    seen |= 1u << from;
    pair(result, d) = pair(view, from);
  }
  require(seen == (1u << view.rank) - 1, "the order [{}] names an extent twice", fmt::join(order, ", "));
  return result;
}

View broadcast(const View& view, int dim, std::int64_t count, bool on_chip) {
  check_dim(view, dim);
  require(pair(view, dim).count == 1, "only an extent of 1 can be repeated, extent {} is {}", dim,
          pair(view, dim).count);
  require(!on_chip || dim != 0, "partitions can't be repeated");
  keep_rows(view, dim != 0);
  View result = view;
  pair(result, dim) = {0, count_of(count)};
  check_count(result);
  return result;
}

View expand(const View& view, int dim, bool on_chip) {
  require(dim >= (on_chip ? 1 : 0) && dim <= view.rank, "no place for a new extent at {}", dim);
  keep_rows(view, dim != 0);
  View result = view;
  insert(result, dim, {1, 1});
  return result;
}

View squeeze(const View& view, int dim, bool on_chip) {
  check_dim(view, dim);
  require(!on_chip || dim != 0, "the partitions can't be squeezed");
  require(pair(view, dim).count == 1, "extent {} is {}, not 1", dim, pair(view, dim).count);
  require(view.rank > (on_chip ? 2 : 1), "nothing would be left");
  keep_rows(view, dim != 0);
  View result = view;
  remove(result, dim);
  return result;
}

View reshape(const View& view, const Shape& shape, bool on_chip) {
  require(!shape.empty() && shape.size() <= kMaxPairs, "a view has 1 to {} extents", kMaxPairs);
  for (std::int64_t extent : shape) count_of(extent);
  require(elements(shape) == view.elements(), "{} has {} elements, the view {}", to_string(shape),
          elements(shape), view.elements());
  keep_rows(view, shape[0] == view.rows());
  int from = 0;
  std::size_t to = 0;
  View result = view;
  result.pairs = {};
  result.rank = static_cast<std::uint8_t>(shape.size());
  if (on_chip) {
    require(shape.size() >= 2, "on chip a view has at least 2 extents");
    require(shape[0] == view.rows(), "on chip the partitions stay {}, not {}", view.rows(), shape[0]);
  }
  if (on_chip || shape[0] == view.rows()) {
    result.pairs[0] = view.pairs[0];
    from = 1;
    to = 1;
  }
  // Groups of old extents and of new ones with as many elements; within a group the old ones must continue
  // each other.
  while (to < shape.size() || from < view.rank) {
    std::int64_t old_count = 1, new_count = 1;
    const int first_old = from;
    const std::size_t first_new = to;
    do {
      if (new_count <= old_count && to < shape.size()) {
        new_count *= shape[to++];
      } else if (from < view.rank) {
        old_count *= pair(view, from++).count;
      } else {
        new_count *= shape[to++];
      }
    } while (new_count != old_count);
    // The step of the group's innermost element, from its last old extent that isn't 1.
    std::int64_t step = 1, inner = 1;
    bool known = false;
    for (int d = from - 1; d >= first_old; --d) {
      const Pair& p = pair(view, d);
      if (p.count == 1) continue;
      if (!known) {
        step = p.step;
        known = true;
      } else {
        require(p.step == step * inner, "extents of the view that are merged don't continue each other");
      }
      inner *= p.count;
    }
    if (!known && first_old < from) step = pair(view, from - 1).step;
    for (std::size_t d = to; d-- > first_new;) {
      result.pairs[d] = {step_of(step, shape[d]), count_of(shape[d])};
      step *= shape[d];
    }
  }
  return result;
}

View reinterpret(const View& view, DType dtype, bool on_chip) {
  const int old_bytes = size_of(view.dtype), new_bytes = size_of(dtype);
  View result = view;
  result.dtype = dtype;
  if (old_bytes == new_bytes) return result;
  require(view.dynamic < 0, "a view with a dynamic offset can't change its element size");
  require(view.rank > (on_chip ? 1 : 0), "there is no extent to rescale");
  const auto rescale = [&](std::int64_t value, const char* what) {
    require(value * old_bytes % new_bytes == 0, "{} {} elements of {} are no whole number of {}", what, value,
            name_of(view.dtype), name_of(dtype));
    return value * old_bytes / new_bytes;
  };
  Pair& last = pair(result, view.rank - 1);
  require(last.step == 1 || last.count == 1, "the last extent must be contiguous, its step is {}", last.step);
  last = {1, count_of(rescale(last.count, "an extent of"))};
  for (int d = on_chip ? 1 : 0; d + 1 < view.rank; ++d)
    if (pair(view, d).count > 1) pair(result, d).step = step_of(rescale(pair(view, d).step, "a step of"));
  result.offset = rescale(view.offset, "an offset of");
  return result;
}

View access_pattern(const Tensor& tensor, TensorId id, std::span<const Pair> pattern, std::int64_t offset,
                    DType dtype) {
  require(!pattern.empty() && pattern.size() <= kMaxPairs, "a pattern has 1 to {} pairs, not {}", kMaxPairs,
          pattern.size());
  View view;
  view.tensor = id;
  view.dtype = dtype;
  view.rank = static_cast<std::uint8_t>(pattern.size());
  for (std::size_t d = 0; d < pattern.size(); ++d)
    view.pairs[d] = {pattern[d].step, count_of(pattern[d].count)};
  view.offset = offset;
  check_count(view);
  if (!is_on_chip(tensor.buffer)) return view;
  const std::int64_t row = tensor.row_bytes() / size_of(dtype);
  require(pattern[0].step == row || pattern[0].count == 1,
          "the first pair of '{}' must step over a partition's {} elements, not {}", tensor.name, row,
          pattern[0].step);
  view.pairs[0].step = 1;
  if (view.rank == 1) insert(view, 1, {1, 1});
  if (offset < 0 || row == 0) return view;  // out of bounds, which is reported where it is used
  view.partition = static_cast<std::int32_t>(std::min<std::int64_t>(offset / row, 1 << 20));
  view.offset = offset % row;
  return view;
}

namespace {

// Of any view and tensor, sound or not: messages about unsound ones print them.
bool is_whole(const View& view, const Tensor& tensor) {
  if (view.rank != tensor.shape.size() || view.partition != 0 || view.offset != 0 || view.dynamic >= 0 ||
      view.dtype != tensor.dtype)
    return false;
  std::uint64_t step = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    const Pair& p = pair(view, d);
    if (p.count != tensor.shape[static_cast<std::size_t>(d)]) return false;
    const bool partitions = d == 0 && is_on_chip(tensor.buffer);
    if (p.count != 1 && static_cast<std::uint64_t>(p.step) != (partitions ? 1 : step)) return false;
    step *= static_cast<std::uint64_t>(p.count);
  }
  return true;
}

}  // namespace

std::string to_string(const View& view, const Tensor& tensor) {
  const std::string head = fmt::format("'{}' {}", tensor.name, name_of(view.dtype));
  if (is_whole(view, tensor)) return head + to_string(view.shape());
  std::vector<std::string> pairs;
  for (int d = is_on_chip(tensor.buffer) ? 1 : 0; d < view.rank; ++d)
    pairs.push_back(pair(view, d).step == kByIndex
                        ? fmt::format("[by index, {}]", pair(view, d).count)
                        : fmt::format("[{}, {}]", pair(view, d).step, pair(view, d).count));
  std::string place;
  if (is_on_chip(tensor.buffer))
    place = fmt::format(" partitions {}..{}", view.partition, view.partition + view.rows() - 1);
  return fmt::format("{}{} +{} [{}]{}", head, place, view.offset, fmt::join(pairs, ", "),
                     view.dynamic >= 0 ? " + dynamic offset" : "");
}

}  // namespace headway::chip
