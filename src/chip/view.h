// Views: how an instruction sees memory.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "chip/tensor.h"

namespace headway::chip {

using headway::to_string;

// Elements from one to the next, and how many. A step of zero repeats.
struct Pair {
  std::int32_t step = 0;
  std::int32_t count = 0;
  bool operator==(const Pair&) const = default;
};

inline constexpr int kMaxPairs = 5;
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;  // of a view, repeated ones too
// The step of a first pair whose rows come from an index (DynamicOffset::Kind::from_vector).
inline constexpr std::int32_t kByIndex = std::numeric_limits<std::int32_t>::min();

// Element (i0, i1, ...) of a view is at `offset + i0 step0 + i1 step1 + ...`, in elements of the view's
// dtype, counted from the tensor's start. On chip the first pair runs over partitions (its step is 1, in
// partitions) and `offset` counts within a partition. Outermost first; the shape of a view is its counts.
struct View {
  TensorId tensor = 0;
  std::int32_t partition = 0;  // on chip: the first one, counted from the tensor's first
  std::int64_t offset = 0;
  std::array<Pair, kMaxPairs> pairs{};
  DType dtype = DType::f32;
  std::uint8_t rank = 0;
  std::int32_t dynamic = -1;  // index into Program::dynamic_offsets, or none

  std::int64_t rows() const { return pairs[0].count; }
  // Elements of one row: the product of all counts but the first.
  std::int64_t row_elements() const;
  std::int64_t elements() const { return rows() * row_elements(); }
  Shape shape() const;
  std::span<const Pair> free_pairs() const { return {pairs.data() + 1, static_cast<std::size_t>(rank) - 1}; }

  bool operator==(const View&) const = default;
};

// A register of an engine's sequencer: 32 bits.
struct Register {
  std::uint32_t id = 0;
  bool operator==(const Register&) const = default;
};

// What is added to a view's offset when the instruction runs.
struct DynamicOffset {
  enum class Kind : std::uint8_t {
    from_register,  // the value of `source`
    from_scalar,    // the one element of `index`, an SBUF view of int32 or uint32
    // Row r of the view starts at offset + index[r % I, r / I] * stride, with `index` of I partitions (the
    // step of the view's first pair is unused).
    from_vector
  };
  Kind kind = Kind::from_register;
  Register source;
  View index;
  std::int64_t stride = 1;  // elements of the view's dtype that one unit moves
  bool operator==(const DynamicOffset&) const = default;
};

// The whole tensor. Throws KernelError where it has more than five extents.
View whole(const Tensor& tensor, TensorId id);

// View algebra. `on_chip` says that the first extent is the partitions and stays first. All throw KernelError
// naming the rule; none looks at a tensor, except `reshape` and `reinterpret`, which need contiguous elements
// where they split or merge them.
View slice(const View& view, int dim, std::int64_t start, std::int64_t stop, std::int64_t step, bool on_chip);
// Element `index` of `dim`. On chip, dim 0 stays with extent 1; so does the last extent of a view.
View select(const View& view, int dim, std::int64_t index, bool on_chip);
View permute(const View& view, std::span<const int> order, bool on_chip);
// Repeats an extent of 1.
View broadcast(const View& view, int dim, std::int64_t count, bool on_chip);
// A new extent of 1 before `dim`.
View expand(const View& view, int dim, bool on_chip);
View squeeze(const View& view, int dim, bool on_chip);
View reshape(const View& view, const Shape& shape, bool on_chip);
// Other elements of the same bytes: the last extent is rescaled and must be contiguous.
View reinterpret(const View& view, DType dtype, bool on_chip);
// A pattern over the tensor's storage. On chip pairs[0] must be {elements of a partition, P}, as NKI writes
// it; it is kept as {1, P} and whole partitions in `offset` become the view's first partition.
View access_pattern(const Tensor& tensor, TensorId id, std::span<const Pair> pattern, std::int64_t offset,
                    DType dtype);

// "'q' float32[128, 512]" or with the pattern where it isn't the whole tensor: "'q'[p 32.., +16] float32 [[1,
// 32], [2, 8]]"
std::string to_string(const View& view, const Tensor& tensor);

}  // namespace headway::chip
