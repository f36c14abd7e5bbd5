// Views against plain lists of addresses: whatever an operation says, it must show the same elements in the
// same order as the operation of that name on an array of addresses, or refuse for a reason that the list
// shows too.
#include "chip/view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "chip/harness.h"

namespace headway::chip {
namespace {

// A partition is as far from the next as no byte within one is.
constexpr std::int64_t kPartition = std::int64_t{1} << 40;

// The addresses of elements, row-major: bytes from the tensor's start, partitions times kPartition.
struct Addresses {
  Shape shape;
  std::vector<std::int64_t> at;
  int bytes = 4;  // of an element
  bool operator==(const Addresses&) const = default;
};

void PrintTo(const Addresses& a, std::ostream* out) {
  *out << to_string(a.shape) << " of " << a.bytes << ":";
  for (std::size_t i = 0; i < std::min<std::size_t>(a.at.size(), 24); ++i) *out << ' ' << a.at[i];
}

// Calls f(position, indices) for all elements of a shape in order.
template <class F>
void for_all(const Shape& shape, F&& f) {
  Shape index(shape.size(), 0);
  for (std::int64_t n = 0; n < elements(shape); ++n) {
    f(static_cast<std::size_t>(n), index);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

std::size_t position(const Shape& shape, const Shape& index) {
  std::int64_t n = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) n = n * shape[d] + index[d];
  return static_cast<std::size_t>(n);
}

Addresses of(const View& view, bool on_chip) {
  Addresses a{view.shape(), {}, size_of(view.dtype)};
  for_all(a.shape, [&](std::size_t, const Shape& index) {
    std::int64_t at = view.partition * kPartition + view.offset * a.bytes;
    for (std::size_t d = 0; d < index.size(); ++d)
      at += index[d] * (on_chip && d == 0 ? kPartition : std::int64_t{view.pairs[d].step} * a.bytes);
    a.at.push_back(at);
  });
  return a;
}

// The elements whose index `from(index)` gives, for a new shape.
template <class From>
Addresses taken(const Addresses& a, Shape shape, From&& from) {
  Addresses result{std::move(shape), {}, a.bytes};
  for_all(result.shape, [&](std::size_t, const Shape& index) {
    result.at.push_back(a.at[position(a.shape, from(index))]);
  });
  return result;
}

// Whether one step an extent leads to all elements, so that a view can show them. Partitions count as far
// apart.
bool regular(const Addresses& a) {
  Shape steps(a.shape.size(), 0);
  for (std::size_t d = 0; d < a.shape.size(); ++d) {
    if (a.shape[d] == 1) continue;
    Shape index(a.shape.size(), 0);
    index[d] = 1;
    steps[d] = a.at[position(a.shape, index)] - a.at[0];
  }
  bool all = true;
  for_all(a.shape, [&](std::size_t n, const Shape& index) {
    std::int64_t at = a.at[0];
    for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * steps[d];
    all &= at == a.at[n];
  });
  return all;
}

// The bytes of a row of elements in other elements, or nothing where they don't fit.
std::optional<Addresses> in_bytes(const Addresses& a, int bytes) {
  if (bytes == a.bytes) return a;
  const std::int64_t last = a.shape.back();
  Addresses result = a;
  result.bytes = bytes;
  result.at.clear();
  if (last * a.bytes % bytes != 0) return std::nullopt;
  result.shape.back() = last * a.bytes / bytes;
  for (std::size_t row = 0; row < a.at.size(); row += static_cast<std::size_t>(last)) {
    for (std::int64_t i = 0; i < last; ++i)
      if (a.at[row + static_cast<std::size_t>(i)] != a.at[row] + i * a.bytes) return std::nullopt;
    if (a.at[row] % kPartition % bytes != 0) return std::nullopt;
    for (std::int64_t i = 0; i < result.shape.back(); ++i) result.at.push_back(a.at[row] + i * bytes);
  }
  return result;
}

class Chains : public testing::TestWithParam<bool> {
 public:
  bool on_chip = GetParam();
  std::mt19937 random{11};
  int accepted = 0, refused = 0;

  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

  // Applies `operation` to the view: it must give `expected`, or be refused where there is none.
  void expect(View& view, Addresses& now, const std::optional<Addresses>& expected,
              const std::function<View()>& operation) {
    std::string refusal;
    std::optional<View> got;
    try {
      got = operation();
    } catch (const KernelError& error) {
      refusal = error.what();
      EXPECT_NE(refusal.find("[view]"), std::string::npos) << refusal;
    }
    ASSERT_EQ(got.has_value(), expected.has_value()) << refusal;
    if (!got) {
      ++refused;
      return;
    }
    ASSERT_EQ(of(*got, on_chip), *expected);
    for (int d = got->rank; d < kMaxPairs; ++d) ASSERT_EQ(got->pairs[static_cast<std::size_t>(d)], Pair());
    ++accepted;
    view = *got;
    now = *expected;
  }

  void one(View& view, Addresses& now) {
    const int rank = view.rank, first = on_chip ? 1 : 0;
    const int dim = draw(0, rank - 1);
    const auto d = static_cast<std::size_t>(dim);
    const std::int64_t extent = now.shape[d];
    switch (draw(0, 7)) {
      case 0: {
        const std::int64_t start = draw(-1, static_cast<int>(extent)),
                           stop = draw(0, static_cast<int>(extent) + 1);
        const std::int64_t step = draw(0, 3);
        std::optional<Addresses> expected;
        if (start >= 0 && start < stop && stop <= extent && step >= 1 &&
            !(on_chip && dim == 0 && step != 1)) {
          Shape shape = now.shape;
          shape[d] = (stop - start + step - 1) / step;
          expected = taken(now, shape, [&](Shape index) {
            index[d] = start + index[d] * step;
            return index;
          });
        }
        return expect(view, now, expected, [&] { return slice(view, dim, start, stop, step, on_chip); });
      }
      case 1: {
        const std::int64_t which = draw(-1, static_cast<int>(extent));
        std::optional<Addresses> expected;
        if (which >= 0 && which < extent) {
          const bool stays = (on_chip && dim == 0) || rank == first + 1;
          Shape shape = now.shape;
          if (stays) {
            shape[d] = 1;
          } else {
            shape.erase(shape.begin() + dim);
          }
          expected = taken(now, shape, [&](Shape index) {
            if (stays) {
              index[d] = which;
            } else {
              index.insert(index.begin() + dim, which);
            }
            return index;
          });
        }
        return expect(view, now, expected, [&] { return select(view, dim, which, on_chip); });
      }
      case 2: {
        std::vector<int> order(static_cast<std::size_t>(rank));
        for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = i;
        std::shuffle(order.begin() + (draw(0, 3) ? first : 0), order.end(), random);
        if (draw(0, 7) == 0) order.back() = order.front();
        std::vector<int> sorted = order;
        std::sort(sorted.begin(), sorted.end());
        const bool legal =
            std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() && (!on_chip || order[0] == 0);
        std::optional<Addresses> expected;
        if (legal) {
          Shape shape;
          for (int from : order) shape.push_back(now.shape[static_cast<std::size_t>(from)]);
          expected = taken(now, shape, [&](const Shape& index) {
            Shape old(index.size());
            for (std::size_t i = 0; i < index.size(); ++i) old[static_cast<std::size_t>(order[i])] = index[i];
            return old;
          });
        }
        return expect(view, now, expected, [&] { return permute(view, order, on_chip); });
      }
      case 3: {
        const std::int64_t count = draw(0, 3);
        std::optional<Addresses> expected;
        if (extent == 1 && count >= 1 && dim >= first && count * elements(now.shape) < 5000) {
          Shape shape = now.shape;
          shape[d] = count;
          expected = taken(now, shape, [&](Shape index) {
            index[d] = 0;
            return index;
          });
        } else if (extent == 1 && count >= 1 && dim >= first) {
          return;
        }
        return expect(view, now, expected, [&] { return broadcast(view, dim, count, on_chip); });
      }
      case 4: {
        const int where = draw(0, rank + 1);
        std::optional<Addresses> expected;
        if (where >= first && where <= rank && rank < kMaxPairs) {
          expected = now;
          expected->shape.insert(expected->shape.begin() + where, 1);
        }
        return expect(view, now, expected, [&] { return expand(view, where, on_chip); });
      }
      case 5: {
        std::optional<Addresses> expected;
        if (extent == 1 && dim >= first && rank > first + 1) {
          expected = now;
          expected->shape.erase(expected->shape.begin() + dim);
        }
        return expect(view, now, expected, [&] { return squeeze(view, dim, on_chip); });
      }
      case 6: {
        Addresses wanted = now;
        wanted.shape = other_shape(now.shape);
        std::optional<Addresses> expected;
        const bool chip_keeps = !on_chip || (wanted.shape.size() >= 2 && wanted.shape[0] == now.shape[0]);
        if (elements(wanted.shape) == elements(now.shape) && wanted.shape.size() <= kMaxPairs && chip_keeps &&
            regular(wanted))
          expected = wanted;
        return expect(view, now, expected, [&] { return reshape(view, wanted.shape, on_chip); });
      }
      default: {
        static constexpr DType kTypes[] = {DType::u8, DType::bf16, DType::f32, DType::i8, DType::u16};
        const DType dtype = kTypes[draw(0, 4)];
        return expect(view, now, in_bytes(now, size_of(dtype)),
                      [&] { return reinterpret(view, dtype, on_chip); });
      }
    }
  }

  // A shape with as many elements (mostly), its factors in new places.
  Shape other_shape(const Shape& shape) {
    std::vector<std::int64_t> factors;
    for (std::size_t d = on_chip ? 1 : 0; d < shape.size(); ++d)
      for (std::int64_t n = shape[d], f = 2; n > 1; ++f)
        for (; n % f == 0; n /= f) factors.push_back(f);
    Shape result;
    if (on_chip) result.push_back(draw(0, 19) ? shape[0] : shape[0] + 1);
    const int extents = draw(1, 5);
    Shape counts(static_cast<std::size_t>(extents), 1);
    std::size_t at = 0;
    for (std::int64_t f : factors) {
      if (draw(0, 2) == 0 && at + 1 < counts.size()) ++at;
      counts[at] *= f;
    }
    if (draw(0, 19) == 0) counts[0] += 1;
    result.insert(result.end(), counts.begin(), counts.end());
    return result;
  }
};

TEST_P(Chains, ShowTheSameElements) {
  const std::vector<Shape> shapes = {{4, 12},   {6, 2, 3, 4},    {128, 8},  {1, 1},
                                     {3, 5, 7}, {2, 2, 2, 2, 2}, {8, 1, 6}, {5, 24}};
  for (int chain = 0; chain < 3000 && !HasFatalFailure(); ++chain) {
    Tensor tensor;
    tensor.shape = shapes[static_cast<std::size_t>(chain) % shapes.size()];
    tensor.buffer = on_chip ? Buffer::sbuf : Buffer::private_hbm;
    tensor.dtype = chain % 3 ? DType::f32 : DType::bf16;
    View view = whole(tensor, 3);
    EXPECT_EQ(view.tensor, 3u);
    Addresses now = of(view, on_chip);
    for (std::size_t i = 0; i < now.at.size(); ++i) {
      const auto in_row = static_cast<std::int64_t>(now.at.size()) / tensor.partitions();
      const auto n = static_cast<std::int64_t>(i);
      ASSERT_EQ(now.at[i], n / in_row * kPartition + n % in_row * now.bytes);
    }
    for (int step = 0; step < 8 && !HasFatalFailure(); ++step) one(view, now);
  }
  // Both happen often.
  EXPECT_GT(accepted, 5000);
  EXPECT_GT(refused, 3000);
}
INSTANTIATE_TEST_SUITE_P(Views, Chains, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "OnChip" : "InHbm"); });

TEST(AccessPattern, AddressesTheStorage) {
  std::mt19937 random(5);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int trial = 0; trial < 2000; ++trial) {
    const bool chip = trial % 2 == 0;
    Tensor tensor;
    tensor.name = "t";
    tensor.shape = {32, 24};
    tensor.buffer = chip ? Buffer::sbuf : Buffer::shared_hbm;
    const DType dtype = trial % 3 ? DType::f32 : DType::u8;
    const std::int64_t row = tensor.row_bytes() / size_of(dtype);
    std::vector<Pair> pattern;
    std::int64_t offset;
    if (chip) {
      const int first = draw(0, 31);
      pattern.push_back({static_cast<std::int32_t>(row), draw(1, 32 - first)});
      offset = first * row + draw(0, 7);
    } else {
      offset = draw(0, 100);
    }
    while (pattern.size() < static_cast<std::size_t>(draw(chip ? 1 : 1, 5)))
      pattern.push_back({draw(0, 3), draw(1, 3)});
    const View view = access_pattern(tensor, 7, pattern, offset, dtype);
    EXPECT_EQ(view.dtype, dtype);
    Shape shape;
    for (const Pair& p : pattern) shape.push_back(p.count);
    std::vector<std::int64_t> expected;
    for_all(shape, [&](std::size_t, const Shape& index) {
      std::int64_t element = offset;
      for (std::size_t d = 0; d < index.size(); ++d) element += index[d] * pattern[d].step;
      expected.push_back(chip ? element / row * kPartition + element % row * size_of(dtype)
                              : element * size_of(dtype));
    });
    ASSERT_EQ(of(view, chip).at, expected);
    if (chip && pattern.size() == 1) shape.push_back(1);  // on chip a view has a free extent
    ASSERT_EQ(view.shape(), shape);
  }
}

TEST(AccessPattern, Rules) {
  Tensor chip, hbm;
  chip.name = hbm.name = "t";
  chip.shape = hbm.shape = {32, 24};
  hbm.buffer = Buffer::private_hbm;
  const std::vector<Pair> none, six(6, {1, 1}), other = {{12, 2}, {1, 4}}, empty = {{24, 2}, {1, 0}},
                                                one = {{5, 1}, {1, 4}};
  EXPECT_BREAKS("view", "1 to 5 pairs, not 0", access_pattern(hbm, 0, none, 0, DType::f32));
  EXPECT_BREAKS("view", "1 to 5 pairs, not 6", access_pattern(hbm, 0, six, 0, DType::f32));
  EXPECT_BREAKS("view", "24 elements, not 12", access_pattern(chip, 0, other, 0, DType::f32));
  EXPECT_BREAKS("view", "48 elements, not 12", access_pattern(chip, 0, other, 0, DType::bf16));
  EXPECT_BREAKS("view", "extent of 0", access_pattern(chip, 0, empty, 0, DType::f32));
  EXPECT_EQ(access_pattern(chip, 0, one, 0, DType::f32).shape(),
            (Shape{1, 4}));  // one partition: no step is taken
}

TEST(View, Rules) {
  Tensor tensor;
  tensor.name = "t";
  tensor.shape = {128, 6, 1, 8};
  const View v = whole(tensor, 0);
  Tensor many = tensor;
  many.shape = {1, 1, 1, 1, 1, 1};
  EXPECT_BREAKS("view", "'t' has 6 extents; a view has at most 5", whole(many, 0));
  EXPECT_BREAKS("view", "4 extents has no extent 4", slice(v, 4, 0, 1, 1, true));
  EXPECT_BREAKS("view", "has no extent -1", slice(v, -1, 0, 1, 1, true));
  EXPECT_BREAKS("view", "goes forward, not by 0", slice(v, 1, 0, 2, 0, true));
  EXPECT_BREAKS("view", "2:7 is not a part of extent 1, which is 6", slice(v, 1, 2, 7, 1, true));
  EXPECT_BREAKS("view", "3:3 is not a part", slice(v, 1, 3, 3, 1, true));
  EXPECT_BREAKS("view", "partitions are taken one after another, not by 2", slice(v, 0, 0, 8, 2, true));
  EXPECT_BREAKS("view", "index 6 is outside extent 1, which is 6", select(v, 1, 6, true));
  EXPECT_BREAKS("view", "index -1 is outside", select(v, 1, -1, true));
  const std::vector<int> two = {0, 1}, partitions = {1, 0, 2, 3}, twice = {0, 1, 1, 2}, none = {0, 1, 2, 9};
  EXPECT_BREAKS("view", "an order of 2 for 4 extents", permute(v, two, true));
  EXPECT_BREAKS("view", "the first extent stays first", permute(v, partitions, true));
  EXPECT_BREAKS("view", "[0, 1, 1, 2] names an extent twice", permute(v, twice, true));
  EXPECT_BREAKS("view", "has no extent 9", permute(v, none, true));
  EXPECT_BREAKS("view", "only an extent of 1 can be repeated, extent 1 is 6", broadcast(v, 1, 3, true));
  EXPECT_BREAKS("view", "partitions can't be repeated", broadcast(slice(v, 0, 0, 1, 1, true), 0, 3, true));
  EXPECT_BREAKS("view", "extent of 4294967296 is not in 1 to 2^31-1",
                broadcast(v, 2, std::int64_t{1} << 32, true));
  EXPECT_BREAKS("view", "no place for a new extent at 0", expand(v, 0, true));
  EXPECT_BREAKS("view", "no place for a new extent at 5", expand(v, 5, true));
  EXPECT_BREAKS("view", "at most 5 extents", expand(expand(v, 1, true), 1, true));
  EXPECT_BREAKS("view", "partitions can't be squeezed", squeeze(slice(v, 0, 0, 1, 1, true), 0, true));
  EXPECT_BREAKS("view", "extent 3 is 8, not 1", squeeze(v, 3, true));
  EXPECT_BREAKS("view", "nothing would be left",
                squeeze(select(select(select(v, 3, 0, true), 2, 0, true), 1, 0, true), 1, true));
  EXPECT_BREAKS("view", "[128, 7] has 896 elements, the view 6144", reshape(v, {128, 7}, true));
  EXPECT_BREAKS("view", "on chip the partitions stay 128, not 64", reshape(v, {64, 96}, true));
  EXPECT_BREAKS("view", "on chip a view has at least 2 extents", reshape(v, {6144}, true));
  EXPECT_BREAKS("view", "1 to 5 extents", reshape(v, {128, 6, 1, 2, 2, 2}, true));
  EXPECT_BREAKS("view", "1 to 5 extents", reshape(v, {}, true));
  EXPECT_BREAKS("view", "don't continue each other", reshape(slice(v, 3, 0, 4, 1, true), {128, 24}, true));
  EXPECT_BREAKS("view", "last extent must be contiguous, its step is 2",
                reinterpret(slice(v, 3, 0, 8, 2, true), DType::u8, true));
  Tensor bytes = tensor;
  bytes.dtype = DType::u8;
  bytes.shape = {4, 2, 6};
  EXPECT_BREAKS("view", "an extent of 6 elements of uint8 are no whole number of float32",
                reinterpret(whole(bytes, 0), DType::f32, true));
  bytes.shape = {4, 3, 6};
  EXPECT_BREAKS("view", "a step of 6 elements",
                reinterpret(slice(whole(bytes, 0), 2, 0, 4, 1, true), DType::f32, true));
  EXPECT_BREAKS("view", "an offset of 1 elements",
                reinterpret(select(slice(whole(bytes, 0), 2, 1, 5, 1, true), 1, 0, true), DType::f32, true));
}

TEST(View, StepsStayWithin32Bits) {
  Tensor tensor;
  tensor.name = "t";
  tensor.buffer = Buffer::private_hbm;
  tensor.shape = {4, 1 << 20, 1 << 10};
  const View v = whole(tensor, 0);
  EXPECT_BREAKS("view", "a step of 2147483648 elements doesn't fit into 32 bits",
                slice(v, 0, 0, 4, 2, false));
  tensor.shape = {2, 3, std::int64_t{1} << 31};
  EXPECT_BREAKS("view", "extent of 2147483648 is not in 1 to 2^31-1", whole(tensor, 0));
  // A step that isn't taken is no step, and one beyond all extents takes the first element.
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(slice(v, 0, 1, 2, kFar, false).shape(), (Shape{1, 1 << 20, 1 << 10}));
  EXPECT_EQ(slice(v, 1, 5, 100, kFar, false).shape(), (Shape{4, 1, 1 << 10}));
}

TEST(View, RowsThatComeFromAnIndexStayRows) {
  Harness h;
  const Tile x = h.nki.private_hbm(DType::f32, {64, 6, 4}), index = h.nki.sbuf(DType::i32, {8, 1});
  const Tile rows = x(ds(0, 8)).rows_at(index, 24);
  EXPECT_EQ(rows(ds(0, 5), ds(1, 2)).shape(), (Shape{5, 2, 4}));
  EXPECT_EQ(rows.permute({0, 2, 1}).shape(), (Shape{8, 4, 6}));
  EXPECT_EQ(rows.reshape({8, 24}).shape(), (Shape{8, 24}));
  EXPECT_EQ(rows.expand(1).shape(), (Shape{8, 1, 6, 4}));
  EXPECT_BREAKS("view", "rows that come from an index", rows(ds(1, 4)));
  EXPECT_BREAKS("view", "rows that come from an index", rows(range(0, 8, 2)));
  EXPECT_BREAKS("view", "rows that come from an index", rows(at(0)));
  EXPECT_BREAKS("view", "rows that come from an index", rows.permute({1, 0, 2}));
  EXPECT_BREAKS("view", "rows that come from an index", rows.expand(0));
  EXPECT_BREAKS("view", "rows that come from an index", rows.reshape({48, 4}));
  EXPECT_BREAKS("view", "rows that come from an index", rows(ds(0, 1)).squeeze(0));
  EXPECT_BREAKS("view", "rows that come from an index", rows(ds(0, 1)).broadcast(0, 4));
  EXPECT_BREAKS("view", "dynamic offset can't change its element size", rows.reinterpret(DType::u8));
  EXPECT_BREAKS("dynamic-offset", "one dynamic offset at most", rows.moved_by(h.nki.new_register(), 1));
  // What moves as one is sliced like any view.
  const Tile moved = x.moved_by(h.nki.new_register(), 24);
  EXPECT_EQ(moved(ds(4, 8)).view().offset, 96);
  EXPECT_EQ(moved(at(3)).shape(), (Shape{6, 4}));
}

TEST(View, TileMethodsSayWhereTheyFail) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {64, 6}, {.name = "x"});
  EXPECT_BREAKS("view", "'x' float32[64, 6]: 2:9 is not a part of extent 1, which is 6",
                x(ds(0, 64), range(2, 9)));
  EXPECT_BREAKS("view", "3 ranges for a view of 2 extents", x(ds(0, 1), ds(0, 1), ds(0, 1)));
}

TEST(View, Text) {
  Tensor tensor;
  tensor.name = "q";
  tensor.shape = {128, 512};
  const View v = whole(tensor, 0);
  EXPECT_EQ(to_string(v, tensor), "'q' float32[128, 512]");
  EXPECT_EQ(to_string(slice(slice(v, 0, 32, 64, 1, true), 1, 16, 32, 2, true), tensor),
            "'q' float32 partitions 32..63 +16 [[2, 8]]");
  View moved = v;
  moved.dynamic = 0;
  EXPECT_EQ(to_string(moved, tensor), "'q' float32 partitions 0..127 +0 [[1, 512]] + dynamic offset");
  tensor.buffer = Buffer::private_hbm;
  EXPECT_EQ(to_string(slice(whole(tensor, 0), 0, 1, 3, 1, false), tensor),
            "'q' float32 +512 [[512, 2], [1, 512]]");
  EXPECT_EQ(name_of(Buffer::sbuf), "SBUF");
  EXPECT_EQ(name_of(Buffer::psum), "PSUM");
  EXPECT_EQ(name_of(Buffer::private_hbm), "private HBM");
  EXPECT_EQ(name_of(Buffer::shared_hbm), "shared HBM");
}

}  // namespace
}  // namespace headway::chip
