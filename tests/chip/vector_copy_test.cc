#include "chip/vector_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "chip/vector_arithmetic.h"
#include "chip/vector_reference.h"

namespace headway::chip {
namespace {

using reference::Choices;
using reference::kLies;
using reference::kWritable;
using reference::Lie;

// Numbers that dtypes which nothing computes with can hold too.
void fill_any(Harness& h, const Tile& tile, Choices& choose) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < tile.view().elements(); ++i)
    numbers.push_back(static_cast<double>(choose.below(200)));
  h.set(tile, numbers);
}

Engines engines_of_last(Harness& h) {
  return h.nki.program().instructions.back()->engines(Check(h.nki.spec(), h.nki.program(), h.diagnostics()));
}

}  // namespace

// --- tensor_copy ---

TEST(TensorCopy, BitsOfTheSameDtype) {
  Choices choose(1);
  std::vector<DType> dtypes = computable_dtypes();
  for (DType dtype : {DType::f8e8m0fnu, DType::f8e4m3fn_x4, DType::f4e2m1fn_x4}) dtypes.push_back(dtype);
  for (int i = 0; i < 400; ++i) {
    Harness h(trn2(), 1 + i % 2);
    const DType dtype = choose.of(dtypes);
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const Tile src = reference::tile(h, choose.buffer(), dtype, rows, n, choose.of(kLies));
    const Tile dst = reference::tile(h, choose.buffer(), dtype, rows, n, kLies[choose.below(kWritable)]);
    fill_any(h, src, choose);
    tensor_copy(dst, src);
    h.run();
    ASSERT_EQ(h.bits(dst), h.bits(src)) << i;
  }
}

// NaN payloads and integers that float32 can't hold.
TEST(TensorCopy, KeepsEveryBit) {
  for (Engine engine : {Engine::vector, Engine::scalar, Engine::gpsimd}) {
    Harness h;
    const Tile a = h.nki.sbuf(DType::u32, {2, 3}), b = h.nki.sbuf(DType::f32, {2, 3}),
               c = h.nki.sbuf(DType::i32, {2, 3});
    h.set(a, {2139095041, 4294967295.0, 16777217, 2147483648.0, 0, 4290772993.0});
    tensor_copy(b, a.reinterpret(DType::f32), {.engine = engine});
    tensor_copy(c.reinterpret(DType::f32), b, {.engine = engine});
    h.run();
    EXPECT_EQ(h.bits(c), h.bits(a));
  }
}

TEST(TensorCopy, ConvertsThroughFloat32) {
  Choices choose(2);
  for (int i = 0; i < 400; ++i) {
    Harness h(trn2(), 1 + i % 2);
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const Tile src =
        reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, n, choose.of(kLies));
    const Tile dst = reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, n,
                                     kLies[choose.below(kWritable)]);
    const std::vector<double> x = reference::fill(h, src);
    tensor_copy(dst, src);
    h.run();
    std::vector<double> expected;
    for (double number : x) expected.push_back(reference::kept(dst.dtype(), number));
    ASSERT_EQ(h.numbers(dst), expected) << i;
  }
}

TEST(TensorCopy, RoundsAndSaturates) {
  Harness h;
  const Tile src = h.nki.sbuf(DType::f32, {1, 8});
  h.set(src, {0.5, 1.5, 2.5, -0.5, 300, -300, 127.5, std::nan("")});
  const Tile signed_bytes = h.nki.sbuf(DType::i8, {1, 8}), bytes = h.nki.sbuf(DType::u8, {1, 8});
  const Tile wide = h.nki.sbuf(DType::i32, {1, 2}), narrow = h.nki.sbuf(DType::f32, {1, 2});
  tensor_copy(signed_bytes, src);
  tensor_copy(bytes, src);
  h.set(wide, {16777217, -16777219});
  tensor_copy(narrow, wide);
  h.run();
  EXPECT_EQ(h.numbers(signed_bytes), (std::vector<double>{0, 2, 2, 0, 127, -128, 127, 0}));
  EXPECT_EQ(h.numbers(bytes), (std::vector<double>{0, 2, 2, 0, 255, 0, 128, 0}));
  EXPECT_EQ(h.numbers(narrow), (std::vector<double>{16777216, -16777220}));
}

TEST(TensorCopy, ResultsMayLieOnTheSource) {
  for (DType dtype : {DType::f32, DType::bf16, DType::u8})
    for (const auto& [to, from] : {std::pair{0, 9}, std::pair{9, 0}, std::pair{4, 4}}) {
      Harness h;
      const Tile t = h.nki.sbuf(dtype, {128, 1020});
      const std::vector<double> x = reference::fill(h, t);
      tensor_copy(t(ds(0, 128), ds(to, 1000)), t(ds(0, 128), ds(from, 1000)));
      h.run();
      const std::vector<double> got = h.numbers(t(ds(0, 128), ds(to, 1000)));
      for (std::size_t k = 0; k < got.size(); ++k)
        ASSERT_EQ(got[k], x[k / 1000 * 1020 + k % 1000 + static_cast<std::size_t>(from)]);
    }
}

// Elements swap places: nothing is lost where a row is permuted onto itself, or becomes another dtype of the
// same size.
TEST(TensorCopy, OntoItself) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::f32, {32, 6, 7}), same = h.nki.sbuf(DType::f32, {32, 5});
  const std::vector<double> x = h.fill(t), y = h.fill(same, -1000, 1000);
  tensor_copy(t.reshape({32, 7, 6}), t.permute({0, 2, 1}));
  tensor_copy(same.reinterpret(DType::i32), same);
  h.run();
  std::vector<double> expected, whole;
  for (std::size_t r = 0; r < 32; ++r)
    for (std::size_t j = 0; j < 7; ++j)
      for (std::size_t i = 0; i < 6; ++i) expected.push_back(x[r * 42 + i * 7 + j]);
  for (double number : y) whole.push_back(std::nearbyint(number));
  EXPECT_EQ(h.numbers(t), expected);
  EXPECT_EQ(h.numbers(same.reinterpret(DType::i32)), whole);
}

// Neighbours that become each other.
TEST(TensorCopy, StridedOntoItsNeighbours) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::f32, {64, 102});
  const std::vector<double> x = h.fill(t);
  tensor_copy(t(ds(0, 64), range(2, 102, 2)), t(ds(0, 64), range(0, 100, 2)));
  h.run();
  std::vector<double> expected = x;
  for (std::size_t k = 0; k < x.size(); ++k)
    if (k % 102 >= 2 && k % 2 == 0) expected[k] = x[k - 2];
  EXPECT_EQ(h.numbers(t), expected);
}

// Of elements of dst that lie on each other the last one stays, on any number of threads and wherever they
// come from.
TEST(TensorCopy, RepeatedDestination) {
  Harness h(trn2(), 2);
  const Tile src = h.nki.sbuf(DType::f32, {1, 64, 300}), dst = h.nki.sbuf(DType::f32, {1, 300});
  const Tile square = h.nki.sbuf(DType::f32, {1, 64, 64}), sums = h.nki.sbuf(DType::f32, {1, 127});
  const std::vector<double> x = h.fill(src), y = h.fill(square);
  tensor_copy(dst.pattern({{300, 1}, {0, 64}, {1, 300}}), src);
  tensor_copy(sums.pattern({{127, 1}, {1, 64}, {1, 64}}), square.permute({0, 2, 1}));
  h.run();
  EXPECT_EQ(h.numbers(dst), (std::vector<double>(x.end() - 300, x.end())));
  std::vector<double> expected;
  for (std::size_t p = 0; p < 127; ++p) {
    const std::size_t row = std::min<std::size_t>(p, 63);
    expected.push_back(y[(p - row) * 64 + row]);
  }
  EXPECT_EQ(h.numbers(sums), expected);
}

TEST(TensorCopy, AcrossPartitionsAndDynamic) {
  Harness h;
  const Tile table = h.nki.sbuf(DType::f32, {128, 40}), index = h.nki.sbuf(DType::i32, {1, 1});
  const Tile dst = h.nki.sbuf(DType::f32, {128, 40}), half = h.nki.sbuf(DType::f32, {32, 8});
  const std::vector<double> x = h.fill(table);
  h.set(index, {3});
  tensor_copy(half, table(ds(96, 32), ds(0, 8)).moved_by(index, 8));
  tensor_copy(dst(ds(64, 32), ds(0, 8)).moved_by(index, 8), half);
  h.run();
  std::vector<double> expected;
  for (std::size_t r = 96; r < 128; ++r)
    for (std::size_t k = 24; k < 32; ++k) expected.push_back(x[r * 40 + k]);
  EXPECT_EQ(h.numbers(dst(ds(64, 32), ds(24, 8))), expected);
  EXPECT_FALSE(h.written(dst));
  h.set(index, {5});
  tensor_copy(half, table(ds(96, 32), ds(0, 8)).moved_by(index, 8));
  EXPECT_BREAKS("out-of-bounds", "src", h.run());
}

TEST(TensorCopy, NeedsWrittenMemory) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 8}), b = h.nki.sbuf(DType::f32, {128, 8});
  tensor_copy(b, a);
  EXPECT_BREAKS("unwritten", "src", h.run());
}

TEST(TensorCopy, Engines) {
  const Engines vector = Engine::vector;
  for (const Spec* spec : {&trn1(), &trn2()}) {
    Harness h(*spec);
    const Tile a = h.nki.sbuf(DType::f32, {128, 8}), p = h.nki.psum(DType::f32, {128, 8});
    const Engines scalar = spec->generation >= 3 ? Engines(Engine::scalar) : Engines();
    tensor_copy(a, a);
    EXPECT_EQ(engines_of_last(h), vector | scalar | Engine::gpsimd);
    tensor_copy(p, a);
    EXPECT_EQ(engines_of_last(h), vector | scalar);
    tensor_copy(p, p);
    EXPECT_EQ(engines_of_last(h), vector | scalar);
  }
}

TEST(TensorCopy, Rules) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 8}), p = h.nki.psum(DType::f32, {128, 8});
  const Tile hbm = h.nki.input("x", DType::f32, {128, 8}), packed = h.nki.sbuf(DType::f8e5m2_x4, {128, 8});
  EXPECT_BREAKS("buffer", "dst", tensor_copy(hbm, a));
  EXPECT_BREAKS("buffer", "src", tensor_copy(a, hbm));
  const Tile longer = h.nki.sbuf(DType::f32, {128, 2, 1}).broadcast(2, 32769);
  EXPECT_BREAKS("free-size", "dst", tensor_copy(longer, a));
  EXPECT_BREAKS("free-size", "src", tensor_copy(a, longer));
  EXPECT_BREAKS("partitions", "src has 32", tensor_copy(a, a(ds(0, 32))));
  EXPECT_BREAKS("shape", "src has 3", tensor_copy(a, a(ds(0, 128), ds(0, 3))));
  EXPECT_BREAKS("dtype", "dst", tensor_copy(packed, a));
  EXPECT_BREAKS("dtype", "src", tensor_copy(a, packed));
  EXPECT_BREAKS("gpsimd-psum", "src", tensor_copy(a, p, {.engine = Engine::gpsimd}));
  EXPECT_BREAKS("gpsimd-psum", "dst", tensor_copy(p, a, {.engine = Engine::gpsimd}));
  EXPECT_BREAKS("engine", "tensor engine can't", tensor_copy(a, a, {.engine = Engine::tensor}));
  Harness old(trn1());
  const Tile b = old.nki.sbuf(DType::f32, {128, 8});
  EXPECT_BREAKS("generation", "Scalar engine", tensor_copy(b, b, {.engine = Engine::scalar}));
}

// --- tensor_copy_predicated ---

TEST(TensorCopyPredicated, ChoosesElementByElement) {
  Choices choose(11);
  const DType masks[] = {DType::u8, DType::u16, DType::u32};
  for (int i = 0; i < 300; ++i) {
    Harness h(trn2(), 1 + i % 2);
    const DType dtype = choose.of(computable_dtypes());
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const Buffer buffer = choose.buffer();
    const Tile src = reference::tile(h, buffer, dtype, rows, n, choose.of(kLies));
    const Tile mask = reference::tile(h, buffer == Buffer::psum ? Buffer::sbuf : choose.buffer(),
                                      choose.of(masks), rows, n, choose.of(kLies));
    const Tile dst = reference::tile(h, choose.buffer(), dtype, rows, n, kLies[choose.below(kWritable)]);
    const std::vector<double> x = reference::fill(h, src), old = reference::fill(h, dst);
    const std::vector<double> m = h.fill(mask, 0, 3);
    const bool number = choose.flip(), reversed = choose.flip();
    tensor_copy_predicated(dst, number ? Scalar(3) : Scalar(src), mask, {.reverse_pred = reversed});
    h.run();
    std::vector<double> expected;
    for (std::size_t k = 0; k < m.size(); ++k)
      expected.push_back((m[k] != 0) != reversed ? (number ? stored(dtype, 3) : x[k]) : old[k]);
    ASSERT_EQ(h.numbers(dst), expected) << i;
  }
}

// NaNs and wide integers are copied as they are; elements not chosen stay unwritten.
TEST(TensorCopyPredicated, BitsAndUnwrittenElements) {
  Harness h;
  const Tile src = h.nki.sbuf(DType::i32, {1, 4}), mask = h.nki.sbuf(DType::u8, {1, 4}),
             dst = h.nki.sbuf(DType::i32, {1, 4});
  h.set(src, {2139095041, 16777217, -5, 7});
  h.set(mask, {1, 2, 0, 255});
  tensor_copy_predicated(dst, src, mask);
  h.run();
  EXPECT_EQ(h.numbers(dst(ds(0, 1), ds(0, 2))), (std::vector<double>{2139095041, 16777217}));
  EXPECT_EQ(h.numbers(dst(ds(0, 1), ds(3, 1))), (std::vector<double>{7}));
  EXPECT_FALSE(h.written(dst(ds(0, 1), ds(2, 1))));
}

TEST(TensorCopyPredicated, ResultsMayLieOnOperands) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::f32, {128, 30}), mask = h.nki.sbuf(DType::u32, {128, 20});
  const std::vector<double> x = h.fill(t), m = h.fill(mask, 0, 2), flags = h.fill(mask, 0, 2);
  tensor_copy_predicated(t(ds(0, 128), ds(3, 20)), t(ds(0, 128), ds(0, 20)), mask);
  tensor_copy_predicated(mask, 9, mask);
  h.run();
  std::vector<double> expected, nines;
  for (std::size_t r = 0; r < 128; ++r)
    for (std::size_t k = 0; k < 20; ++k) {
      const bool chosen = flags[r * 20 + k] != 0;
      expected.push_back(x[r * 30 + k + (chosen ? 0 : 3)]);
      nines.push_back(chosen ? 9 : 0);
    }
  EXPECT_EQ(h.numbers(t(ds(0, 128), ds(3, 20))), expected);
  EXPECT_EQ(h.numbers(mask), nines);
}

TEST(TensorCopyPredicated, DifferentRanks) {
  Harness h;
  const Tile src = h.nki.sbuf(DType::f32, {32, 12}), mask = h.nki.sbuf(DType::u8, {32, 3, 4}),
             dst = h.nki.sbuf(DType::f32, {32, 3, 2, 2});
  const std::vector<double> x = h.fill(src);
  h.fill(dst);
  h.set(mask, std::vector<double>(32 * 12, 1));
  tensor_copy_predicated(dst, src, mask);
  h.run();
  EXPECT_EQ(h.numbers(dst), x);
}

TEST(TensorCopyPredicated, Rules) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 8}), p = h.nki.psum(DType::f32, {128, 8}),
             half = h.nki.sbuf(DType::bf16, {128, 8});
  const Tile mask = h.nki.sbuf(DType::u8, {128, 8}), far = h.nki.psum(DType::u8, {128, 8});
  const Tile hbm = h.nki.input("x", DType::f32, {128, 8}), packed = h.nki.sbuf(DType::f8e5m2_x4, {128, 8});
  const Tile far_mask = h.nki.input("m", DType::u8, {128, 8}), narrow = mask(ds(0, 128), ds(0, 3));
  EXPECT_BREAKS("buffer", "dst", tensor_copy_predicated(hbm, a, mask));
  EXPECT_BREAKS("buffer", "src", tensor_copy_predicated(a, hbm, mask));
  EXPECT_BREAKS("buffer", "predicate", tensor_copy_predicated(a, a, far_mask));
  const Tile longer = h.nki.sbuf(DType::f32, {128, 2, 1}).broadcast(2, 32769);
  const Tile long_mask = h.nki.sbuf(DType::u8, {128, 2, 1}).broadcast(2, 32769);
  EXPECT_BREAKS("free-size", "dst", tensor_copy_predicated(longer, a, mask));
  EXPECT_BREAKS("free-size", "src", tensor_copy_predicated(a, longer, mask));
  EXPECT_BREAKS("free-size", "predicate", tensor_copy_predicated(a, a, long_mask));
  EXPECT_BREAKS("dtype", "uint8 or uint16 or uint32", tensor_copy_predicated(a, a, a));
  EXPECT_BREAKS("dtype", "is bfloat16, but dst is float32", tensor_copy_predicated(a, half, mask));
  EXPECT_BREAKS("dtype", "float8_e5m2_x4", tensor_copy_predicated(packed, 0, mask));
  EXPECT_BREAKS("partitions", "predicate has 32", tensor_copy_predicated(a, a, mask(ds(0, 32))));
  EXPECT_BREAKS("shape", "predicate has 3", tensor_copy_predicated(a, a, narrow));
  EXPECT_BREAKS("partitions", "src has 32", tensor_copy_predicated(a, a(ds(0, 32)), mask));
  EXPECT_BREAKS("shape", "src has 3", tensor_copy_predicated(a, a(ds(0, 128), ds(0, 3)), mask));
  EXPECT_BREAKS("both-psum", "predicate", tensor_copy_predicated(a, p, far));
}

// --- memset ---

TEST(Memset, EveryDtypeBufferAndLayout) {
  Choices choose(21);
  for (int i = 0; i < 200; ++i) {
    Harness h(trn2(), 1 + i % 2);
    const DType dtype = choose.of(computable_dtypes());
    const Tile dst = reference::tile(h, choose.buffer(), dtype, choose.rows(), choose.elements(),
                                     kLies[choose.below(kWritable)]);
    const bool is_float = headway::is_float(dtype);
    memset(dst, is_float ? Scalar(-1.3) : Scalar(1));
    h.run();
    const std::vector<double> expected(static_cast<std::size_t>(dst.view().elements()),
                                       is_float ? stored(dtype, -1.3) : 1);
    ASSERT_EQ(h.numbers(dst), expected) << i;
  }
}

TEST(Memset, OnlyTheViewAndAllOfIt) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::u8, {128, 12});
  memset(t, 7);
  memset(t(ds(32, 32), range(1, 12, 3)), 255);
  h.run();
  std::vector<double> expected;
  for (int r = 0; r < 128; ++r)
    for (int k = 0; k < 12; ++k) expected.push_back(r >= 32 && r < 64 && k % 3 == 1 ? 255 : 7);
  EXPECT_EQ(h.numbers(t), expected);
}

TEST(Memset, ValuesAtTheLimits) {
  Harness h;
  const Tile i32 = h.nki.sbuf(DType::i32, {1, 1}), u32 = h.nki.sbuf(DType::u32, {1, 1}),
             i8 = h.nki.sbuf(DType::i8, {1, 1});
  const Tile f32 = h.nki.sbuf(DType::f32, {1, 1}), packed = h.nki.sbuf(DType::f8e4m3fn_x4, {1, 3}),
             flag = h.nki.sbuf(DType::boolean, {1, 1});
  memset(i32, -2147483647 - 1);
  memset(u32, -1);  // all bits
  memset(i8, -128);
  memset(f32, 16777217);
  memset(packed, 0);
  memset(flag, 5);
  h.run();
  EXPECT_EQ(h.numbers(i32)[0], -2147483648.0);
  EXPECT_EQ(h.numbers(u32)[0], 4294967295.0);
  EXPECT_EQ(h.numbers(i8)[0], -128);
  EXPECT_EQ(h.numbers(f32)[0], 16777216);
  EXPECT_EQ(h.bits(packed), (std::vector<std::uint64_t>{0, 0, 0}));
  EXPECT_EQ(h.bits(flag)[0], 1u);
}

TEST(Memset, Rules) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 8}), p = h.nki.psum(DType::f32, {128, 8}),
             ints = h.nki.sbuf(DType::i32, {128, 8});
  const Tile bytes = h.nki.sbuf(DType::u8, {128, 8}), shorts = h.nki.sbuf(DType::i16, {128, 8});
  const Tile hbm = h.nki.output("x", DType::f32, {128, 8}), packed = h.nki.sbuf(DType::f8e5m2_x4, {128, 8});
  EXPECT_BREAKS("buffer", "dst", memset(hbm, 0));
  EXPECT_BREAKS("free-size", "dst", memset(h.nki.sbuf(DType::f32, {128, 2, 1}).broadcast(2, 32769), 0));
  EXPECT_BREAKS("memset-value", "constant", memset(a, a(ds(0, 128), ds(0, 1))));
  EXPECT_BREAKS("memset-value", "2 is a float", memset(ints, 2.0));
  EXPECT_BREAKS("memset-value", "only be set to 0", memset(packed, 1));
  EXPECT_BREAKS("memset-value", "256 is not within 0 to 255", memset(bytes, 256));
  EXPECT_BREAKS("memset-value", "-1 is not within", memset(bytes, -1));
  EXPECT_BREAKS("memset-value", "-32768 to 32767", memset(shorts, 32768));
  EXPECT_BREAKS("gpsimd-psum", "dst", memset(p, 0, {.engine = Engine::gpsimd}));
  EXPECT_BREAKS("engine", "gpsimd, vector can", memset(a, 0, {.engine = Engine::scalar}));
  memset(p, 0);
  EXPECT_EQ(engines_of_last(h), Engines(Engine::vector));
}

}  // namespace headway::chip
