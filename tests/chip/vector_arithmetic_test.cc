#include "chip/vector_arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "chip/vector_copy.h"
#include "chip/vector_reference.h"

namespace headway::chip {
namespace {

using reference::Choices;
using reference::fill_bits;
using reference::kAll;
using reference::kLies;
using reference::kWritable;
using reference::Lie;

// A writable lie of dst, any of an operand.
Lie writable(Choices& choose) { return kLies[choose.below(kWritable)]; }

std::vector<double> repeat(const std::vector<double>& values, std::int64_t times) {
  std::vector<double> all;
  for (double value : values) all.insert(all.end(), static_cast<std::size_t>(times), value);
  return all;
}

// Runs the same case on one thread and on two; `work` records and returns dst.
void expect_same_on_two_threads(const std::function<Tile(Harness&)>& work) {
  std::vector<std::vector<std::uint64_t>> bits;
  for (int threads : {1, 2}) {
    Harness h(trn2(), threads);
    const Tile dst = work(h);
    h.run();
    bits.push_back(h.bits(dst));
  }
  EXPECT_EQ(bits[0], bits[1]);
}

}  // namespace

// --- tensor_tensor ---

TEST(TensorTensor, AnyOperatorDtypeBufferAndLayout) {
  Choices choose(1);
  for (int i = 0; i < 400; ++i) {
    Harness h(trn2(), 1 + i % 2);
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const Buffer buffer1 = choose.buffer();
    const Tile a = reference::tile(h, buffer1, choose.of(computable_dtypes()), rows, n, choose.of(kLies));
    const Tile b = reference::tile(h, buffer1 == Buffer::psum ? Buffer::sbuf : choose.buffer(),
                                   choose.of(computable_dtypes()), rows, n, choose.of(kLies));
    const Tile dst =
        reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, n, writable(choose));
    const Alu op = choose.of(reference::kBinary);
    const std::vector<double> x = reference::fill(h, a), y = reference::fill(h, b);
    // Left open, 32-bit integers would go to GpSimd, which doesn't saturate.
    tensor_tensor(dst, a, b, op,
                  {.engine = i % 3 == 0 || is_integer(dst.dtype()) ? Engine::vector : Engine::unknown});
    h.run();
    std::vector<double> expected;
    for (std::size_t k = 0; k < x.size(); ++k)
      expected.push_back(reference::kept(dst.dtype(), reference::binary(op, x[k], y[k])));
    EXPECT_EQ(h.numbers(dst), expected) << i << ' ' << name_of(op);
  }
}

TEST(TensorTensor, WideIntegersAreExactOnGpSimd) {
  Choices choose(2);
  for (Alu op : reference::kBinary)
    for (int i = 0; i < 12; ++i) {
      Harness h;
      const DType types[] = {DType::i32, DType::u32};
      const Tile a = reference::tile(h, Buffer::sbuf, types[i & 1], 32, 12, choose.of(kLies));
      const Tile b = reference::tile(h, Buffer::sbuf, types[i / 2 % 2], 32, 12, choose.of(kLies));
      const Tile dst = reference::tile(h, Buffer::sbuf, types[i / 4 % 2], 32, 12, writable(choose));
      const std::vector<double> x = fill_bits(h, a, choose), y = fill_bits(h, b, choose);
      tensor_tensor(dst, a, b, op);
      EXPECT_EQ(h.nki.program().instructions.back()->engines(Check(trn2(), h.nki.program(), h.diagnostics())),
                Engines(Engine::gpsimd));
      h.run();
      std::vector<std::uint64_t> expected;
      for (std::size_t k = 0; k < x.size(); ++k) {
        const auto p = static_cast<std::int64_t>(x[k]), q = static_cast<std::int64_t>(y[k]);
        // Wrapping: the low 32 bits.
        std::uint64_t value;
        if (op == Alu::add) {
          value = static_cast<std::uint64_t>(p + q);
        } else if (op == Alu::subtract) {
          value = static_cast<std::uint64_t>(p - q);
        } else if (op == Alu::multiply) {
          value = static_cast<std::uint64_t>(p) * static_cast<std::uint64_t>(q);
        } else {
          value = static_cast<std::uint64_t>(static_cast<std::int64_t>(reference::binary(op, x[k], y[k])));
        }
        expected.push_back(value & 0xffffffffu);
      }
      EXPECT_EQ(h.bits(dst), expected) << name_of(op) << ' ' << i;
    }
}

TEST(TensorTensor, WideIntegersOnTheVectorEngineRoundToFloat32) {
  for (const bool psum : {false, true}) {
    Harness h;
    const Tile a = h.nki.sbuf(DType::i32, {1, 2});
    const Tile dst = psum ? h.nki.psum(DType::i32, {1, 2}) : h.nki.sbuf(DType::i32, {1, 2});
    h.set(a, {16777217, 5});
    tensor_tensor(dst, a, a, Alu::add, {.engine = psum ? Engine::unknown : Engine::vector});
    h.run();
    EXPECT_EQ(h.numbers(dst), (std::vector<double>{33554432, 10}));
  }
}

TEST(TensorTensor, Bits) {
  Choices choose(3);
  for (int i = 0; i < 150; ++i) {
    Harness h;
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const int bytes = 1 << (i % 3);
    const auto dtype = [&] {
      return bytes == 1   ? (choose.flip() ? DType::u8 : DType::i8)
             : bytes == 2 ? (choose.flip() ? DType::u16 : DType::i16)
                          : (choose.flip() ? DType::u32 : DType::i32);
    };
    const Alu op = choose.of(reference::kBitwise);
    const bool shifts = op == Alu::left_shift || op == Alu::right_shift;
    const Tile a = reference::tile(h, choose.buffer(), dtype(), rows, n, choose.of(kLies));
    const Tile b = reference::tile(h, Buffer::sbuf, dtype(), rows, n, choose.of(kLies));
    const Tile dst = reference::tile(h, choose.buffer(), dtype(), rows, n, writable(choose));
    fill_bits(h, a, choose);
    fill_bits(h, b, choose, shifts ? 40 : kAll);
    const std::vector<std::uint64_t> x = h.bits(a), y = h.bits(b);
    tensor_tensor(dst, a, b, op);
    h.run();
    std::vector<std::uint64_t> expected;
    for (std::size_t k = 0; k < x.size(); ++k)
      expected.push_back(reference::bitwise(op, x[k], y[k], 8 * bytes));
    EXPECT_EQ(h.bits(dst), expected) << name_of(op);
  }
}

TEST(TensorTensor, PowerOnGpSimd) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 9}), b = h.nki.sbuf(DType::bf16, {128, 9}),
             dst = h.nki.sbuf(DType::f32, {128, 9});
  const std::vector<double> x = h.fill(a, 0.1, 9), y = h.fill(b, -3, 3);
  tensor_tensor(dst, a, b, Alu::power);
  h.run();
  std::vector<double> expected;
  for (std::size_t k = 0; k < x.size(); ++k) expected.push_back(std::pow(x[k], y[k]));
  expect_close(h.numbers(dst), expected, std::ldexp(1.0, -23));  // one unit in the last place
}

// All is read before anything is written, however the result lies on an operand.
TEST(TensorTensor, ResultsMayLieOnOperands) {
  const auto expect = [](const std::function<void(Recorder&, const Tile&, const Tile&)>& work,
                         std::int64_t to, std::int64_t from) {
    for (DType dtype : {DType::f32, DType::bf16}) {
      Harness h;
      const Tile t = h.nki.sbuf(dtype, {64, 40}), other = h.nki.sbuf(dtype, {64, 30});
      const std::vector<double> x = h.fill(t), y = h.fill(other);
      work(h.nki, t, other);
      h.run();
      const std::vector<double> got = h.numbers(t(ds(0, 64), ds(to, 30)));
      for (std::size_t r = 0; r < 64; ++r)
        for (std::size_t k = 0; k < 30; ++k)
          ASSERT_EQ(got[r * 30 + k],
                    reference::kept(dtype, reference::binary(Alu::subtract,
                                                             x[r * 40 + k + static_cast<std::size_t>(from)],
                                                             y[r * 30 + k])));
    }
  };
  const auto at = [](const Tile& t, std::int64_t first) { return t(ds(0, 64), ds(first, 30)); };
  expect(
      [&](Recorder&, const Tile& t, const Tile& o) { tensor_tensor(at(t, 4), at(t, 4), o, Alu::subtract); },
      4, 4);
  expect(
      [&](Recorder&, const Tile& t, const Tile& o) { tensor_tensor(at(t, 7), at(t, 0), o, Alu::subtract); },
      7, 0);
  expect(
      [&](Recorder&, const Tile& t, const Tile& o) { tensor_tensor(at(t, 0), at(t, 7), o, Alu::subtract); },
      0, 7);
}

TEST(TensorTensor, PhysicalMemoryIsShared) {
  Harness h;
  // The same bytes under two names, shifted by 8 elements.
  const Tile a = h.nki.sbuf(DType::f32, {128, 64}, {.name = "a", .address = Address{0, 1024}});
  const Tile b = h.nki.sbuf(DType::f32, {128, 64}, {.name = "b", .address = Address{0, 1024 + 32}});
  const Tile one = h.nki.sbuf(DType::f32, {128, 64});
  const std::vector<double> x = h.fill(a), y = h.fill(one);
  tensor_tensor(b, a, one, Alu::add);
  h.run();
  std::vector<double> expected;
  for (std::size_t k = 0; k < x.size(); ++k) expected.push_back(reference::binary(Alu::add, x[k], y[k]));
  EXPECT_EQ(h.numbers(b), expected);
}

TEST(TensorTensor, SameBitsOnTwoThreads) {
  for (DType dtype : {DType::f32, DType::bf16})
    expect_same_on_two_threads([&](Harness& h) {
      const Tile a = h.nki.sbuf(dtype, {128, 512}), b = h.nki.sbuf(DType::f32, {128, 512});
      h.fill(a);
      h.fill(b);
      tensor_tensor(a(ds(0, 128), ds(1, 500)), a(ds(0, 128), ds(0, 500)), b(ds(0, 128), ds(0, 500)),
                    Alu::multiply);
      return a;
    });
}

TEST(TensorTensor, Rules) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 8}), p = h.nki.psum(DType::f32, {128, 8});
  const Tile ints = h.nki.sbuf(DType::i32, {128, 8}), bytes = h.nki.sbuf(DType::u8, {128, 8});
  const Tile hbm = h.nki.input("x", DType::f32, {128, 8}), packed = h.nki.sbuf(DType::f8e5m2_x4, {128, 8});
  const Tile flags = h.nki.sbuf(DType::boolean, {128, 8});
  EXPECT_BREAKS("buffer", "SBUF or PSUM", tensor_tensor(hbm, a, a, Alu::add));
  EXPECT_BREAKS("buffer", "data1", tensor_tensor(a, hbm, a, Alu::add));
  EXPECT_BREAKS("buffer", "data2", tensor_tensor(a, a, hbm, Alu::add));
  EXPECT_BREAKS("partitions", "64", tensor_tensor(a, a(ds(0, 64)), a(ds(0, 64)), Alu::add));
  EXPECT_BREAKS("partitions", "data2", tensor_tensor(a, a, a(ds(0, 64)), Alu::add));
  EXPECT_BREAKS("shape", "has 8 elements",
                tensor_tensor(a, a(ds(0, 128), ds(0, 4)), a(ds(0, 128), ds(0, 4)), Alu::add));
  EXPECT_BREAKS("shape", "data2 has 4", tensor_tensor(a, a, a(ds(0, 128), ds(0, 4)), Alu::add));
  EXPECT_BREAKS("both-psum", "data2", tensor_tensor(a, p, p, Alu::add));
  EXPECT_BREAKS("dtype", "float8_e5m2_x4", tensor_tensor(a, packed, a, Alu::add));
  EXPECT_BREAKS("dtype", "data2", tensor_tensor(a, a, packed, Alu::add));
  EXPECT_BREAKS("dtype", "dst", tensor_tensor(packed, a, a, Alu::add));
  EXPECT_BREAKS("op", "rsqrt", tensor_tensor(a, a, a, Alu::rsqrt));
  EXPECT_BREAKS("op", "bypass", tensor_tensor(a, a, a, Alu::bypass));
  EXPECT_BREAKS("op", "average", tensor_tensor(a, a, a, Alu::average));
  EXPECT_BREAKS("op", "invert", tensor_tensor(ints, ints, ints, Alu::invert));
  EXPECT_BREAKS("generation", "abs_max", tensor_tensor(a, a, a, Alu::abs_max));
  EXPECT_BREAKS("dtype", "float32 is none", tensor_tensor(ints, a, ints, Alu::bitwise_and));
  EXPECT_BREAKS("dtype", "data2", tensor_tensor(ints, ints, a, Alu::bitwise_and));
  EXPECT_BREAKS("dtype", "dst", tensor_tensor(a, ints, ints, Alu::bitwise_and));
  EXPECT_BREAKS("dtype", "bool", tensor_tensor(flags, flags, flags, Alu::bitwise_and));
  EXPECT_BREAKS("bit-width", "uint8 and int32", tensor_tensor(ints, bytes, ints, Alu::bitwise_or));
  EXPECT_BREAKS("bit-width", "data2", tensor_tensor(ints, ints, bytes, Alu::bitwise_or));
  EXPECT_BREAKS("gpsimd-psum", "power runs on it", tensor_tensor(p, a, a, Alu::power));
  EXPECT_BREAKS("gpsimd-psum", "data1", tensor_tensor(a, p, a, Alu::power));
  EXPECT_BREAKS("gpsimd-psum", "data2", tensor_tensor(a, a, p, Alu::add, {.engine = Engine::gpsimd}));
  EXPECT_BREAKS("engine", "gpsimd, vector can", tensor_tensor(a, a, a, Alu::add, {.engine = Engine::scalar}));
  EXPECT_BREAKS("engine", "vector can",
                tensor_tensor(ints, ints, ints, Alu::bitwise_and, {.engine = Engine::gpsimd}));
  EXPECT_BREAKS("engine", "gpsimd can", tensor_tensor(a, a, a, Alu::power, {.engine = Engine::vector}));
}

// As long as rows may be, and longer.
TEST(TensorTensor, LongestRows) {
  Harness h;
  const Tile bytes = h.nki.sbuf(DType::u8, {1, 65536}), p = h.nki.psum(DType::f32, {1, 4096});
  const Tile a = h.nki.sbuf(DType::f32, {1, 4096}), four = h.nki.sbuf(DType::u8, {1, 4, 1});
  const Tile two = h.nki.psum(DType::f32, {1, 2, 1});
  h.fill(bytes, 0, 100);
  h.fill(four, 0, 100);
  const Tile whole = bytes.reshape({1, 4, 16384});
  const std::vector<double> x = h.numbers(whole), s = h.numbers(four), y = h.fill(p), z = h.fill(a);
  tensor_tensor(whole, whole, four.broadcast(2, 16384), Alu::maximum);
  tensor_tensor(p, p, a, Alu::multiply);
  h.run();
  std::vector<double> maxima, products;
  for (std::size_t k = 0; k < x.size(); ++k) maxima.push_back(std::max(x[k], s[k / 16384]));
  for (std::size_t k = 0; k < y.size(); ++k) products.push_back(reference::f32(y[k] * z[k]));
  EXPECT_EQ(h.numbers(whole), maxima);
  EXPECT_EQ(h.numbers(p), products);
  // In PSUM what is repeated counts once; windows that overlap are different elements.
  const Tile longer = four.broadcast(2, 16385), in_psum = p.pattern({{4096, 1}, {1, 2049}, {1, 2}});
  const Tile repeated = h.nki.sbuf(DType::f32, {1, 2, 4096});
  h.fill(two);
  tensor_copy(repeated, two.broadcast(2, 4096));
  EXPECT_BREAKS("free-size", "65540", tensor_tensor(longer, longer, longer, Alu::add));
  EXPECT_BREAKS("free-size", "data1", tensor_tensor(whole, longer, whole, Alu::add));
  EXPECT_BREAKS("free-size", "data2", tensor_tensor(whole, whole, longer, Alu::add));
  EXPECT_BREAKS("free-size", "PSUM may have 4096", tensor_tensor(in_psum, a, a, Alu::add));
  EXPECT_BREAKS("free-size", "data", scalar_tensor_tensor(whole, longer, Alu::add, 1.0, Alu::add, whole));
  EXPECT_BREAKS("free-size", "operand1", scalar_tensor_tensor(whole, whole, Alu::add, 1.0, Alu::add, longer));
  EXPECT_BREAKS("free-size", "dst", scalar_tensor_tensor(longer, whole, Alu::add, 1.0, Alu::add, whole));
  EXPECT_BREAKS("free-size", "data", reciprocal(whole, longer));
  EXPECT_BREAKS("free-size", "dst", reciprocal(longer, whole));
}

TEST(TensorTensor, LargerMagnitudeOnTrainium3) {
  Harness h(trn3());
  const Tile a = h.nki.sbuf(DType::f32, {1, 3}), b = h.nki.sbuf(DType::f32, {1, 3}),
             dst = h.nki.sbuf(DType::f32, {1, 3});
  h.set(a, {-5, 1, 2});
  h.set(b, {3, -1, -4});
  tensor_tensor(dst, a, b, Alu::abs_max);
  h.run();
  EXPECT_EQ(h.numbers(dst), (std::vector<double>{-5, -1, -4}));
  EXPECT_BREAKS("engine", "vector can", tensor_tensor(dst, a, b, Alu::abs_min, {.engine = Engine::gpsimd}));
}

// --- scalar_tensor_tensor ---

TEST(ScalarTensorTensor, AnyOperatorsDtypeBufferAndLayout) {
  Choices choose(21);
  for (int i = 0; i < 300; ++i) {
    Harness h(trn2(), 1 + i % 2);
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const Buffer buffer = choose.buffer();
    const Tile data = reference::tile(h, buffer, choose.of(computable_dtypes()), rows, n, choose.of(kLies));
    const Tile other = reference::tile(h, buffer == Buffer::psum ? Buffer::sbuf : choose.buffer(),
                                       choose.of(computable_dtypes()), rows, n, choose.of(kLies));
    const Tile dst =
        reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, n, writable(choose));
    const std::vector<double> x = reference::fill(h, data), y = reference::fill(h, other);
    std::vector<double> s(static_cast<std::size_t>(rows), 1.25);
    Scalar operand0 = 1.25f;
    if (choose.flip()) {
      const Tile column =
          reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, 1, Lie::whole);
      s = reference::fill(h, column);
      operand0 = column;
    }
    const Alu op0 = choose.of(reference::kBinary), op1 = choose.of(reference::kBinary);
    const ScalarTensorTensorOptions options{.reverse0 = choose.flip(), .reverse1 = choose.flip()};
    scalar_tensor_tensor(dst, data, op0, operand0, op1, other, options);
    h.run();
    s = repeat(s, n);
    std::vector<double> expected;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double first = reference::either(op0, x[k], s[k], options.reverse0);
      expected.push_back(reference::kept(dst.dtype(), reference::either(op1, first, y[k], options.reverse1)));
    }
    ASSERT_EQ(h.numbers(dst), expected) << i << ' ' << name_of(op0) << ' ' << name_of(op1);
  }
}

TEST(ScalarTensorTensor, ResultMayLieOnEitherTile) {
  for (const Alu op0 : {Alu::multiply, Alu::greater})
    for (const bool on_data : {false, true}) {
      Harness h;
      const Tile data = h.nki.sbuf(DType::f32, {128, 70}), other = h.nki.sbuf(DType::f32, {128, 70});
      const std::vector<double> x = h.fill(data), y = h.fill(other);
      const Tile dst = on_data ? data : other;
      scalar_tensor_tensor(dst, data, op0, 0.5, Alu::subtract, other);
      h.run();
      std::vector<double> expected;
      for (std::size_t k = 0; k < x.size(); ++k)
        expected.push_back(reference::f32(reference::binary(op0, x[k], 0.5) - y[k]));
      EXPECT_EQ(h.numbers(dst), expected);
    }
}

TEST(ScalarTensorTensor, Rules) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 8}), p = h.nki.psum(DType::f32, {128, 8});
  const Tile hbm = h.nki.input("x", DType::f32, {128, 8}), packed = h.nki.sbuf(DType::f8e5m2_x4, {128, 8});
  const Tile narrow = a(ds(0, 128), ds(0, 3));
  const auto record = [&](const Tile& dst, const Tile& data, const Scalar& scalar, const Tile& operand1,
                          Alu op0 = Alu::add, Alu op1 = Alu::add) {
    scalar_tensor_tensor(dst, data, op0, scalar, op1, operand1);
  };
  EXPECT_BREAKS("buffer", "dst", record(hbm, a, 1.0, a));
  EXPECT_BREAKS("buffer", "data", record(a, hbm, 1.0, a));
  EXPECT_BREAKS("buffer", "operand1", record(a, a, 1.0, hbm));
  EXPECT_BREAKS("buffer", "operand0", record(a, a, hbm(ds(0, 128), ds(0, 1)), a));
  EXPECT_BREAKS("partitions", "data", record(a, a(ds(0, 32)), 1.0, a(ds(0, 32))));
  EXPECT_BREAKS("partitions", "operand1", record(a, a, 1.0, a(ds(0, 32))));
  EXPECT_BREAKS("shape", "data", record(a, narrow, 1.0, narrow));
  EXPECT_BREAKS("shape", "operand1", record(a, a, 1.0, narrow));
  EXPECT_BREAKS("shape", "operand0", record(a, a, a, a));
  EXPECT_BREAKS("both-psum", "operand1", record(a, p, 1.0, p));
  EXPECT_BREAKS("dtype", "dst", record(packed, a, 1.0, a));
  EXPECT_BREAKS("dtype", "data", record(a, packed, 1.0, a));
  EXPECT_BREAKS("dtype", "operand1", record(a, a, 1.0, packed));
  EXPECT_BREAKS("dtype", "operand0", record(a, a, packed(ds(0, 128), ds(0, 1)), a));
  EXPECT_BREAKS("op", "bitwise_and", record(a, a, 1.0, a, Alu::bitwise_and));
  EXPECT_BREAKS("op", "abs", record(a, a, 1.0, a, Alu::add, Alu::abs));
  EXPECT_BREAKS("op", "power runs on the GpSimd", record(a, a, 1.0, a, Alu::power));
  EXPECT_BREAKS("op", "op1", record(a, a, 1.0, a, Alu::add, Alu::power));
  EXPECT_BREAKS("generation", "abs_max", record(a, a, 1.0, a, Alu::abs_max));
}

// --- reciprocal ---

TEST(Reciprocal, AnyDtypeBufferAndLayout) {
  Choices choose(31);
  for (int i = 0; i < 120; ++i) {
    Harness h(trn2(), 1 + i % 2);
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const Tile data =
        reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, n, choose.of(kLies));
    const Tile dst =
        reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, n, writable(choose));
    const std::vector<double> x = reference::fill(h, data);
    reciprocal(dst, data);
    h.run();
    std::vector<double> expected;
    for (double number : x)
      expected.push_back(reference::kept(dst.dtype(), reference::unary(Alu::reciprocal, number)));
    expect_close(h.numbers(dst), expected, 0);
  }
}

TEST(Reciprocal, Rules) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 8}), hbm = h.nki.input("x", DType::f32, {128, 8});
  const Tile packed = h.nki.sbuf(DType::f8e5m2_x4, {128, 8});
  EXPECT_BREAKS("buffer", "dst", reciprocal(hbm, a));
  EXPECT_BREAKS("buffer", "data", reciprocal(a, hbm));
  EXPECT_BREAKS("partitions", "data", reciprocal(a, a(ds(0, 32))));
  EXPECT_BREAKS("shape", "data", reciprocal(a, a(ds(0, 128), ds(0, 3))));
  EXPECT_BREAKS("dtype", "dst", reciprocal(packed, a));
  EXPECT_BREAKS("dtype", "data", reciprocal(a, packed));
}

}  // namespace headway::chip
