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

constexpr std::uint64_t kAll = ~std::uint64_t{0};

// Random bits of integers, kept in doubles (32 bits at most).
std::vector<double> fill_bits(Harness& h, const Tile& tile, Choices& choose, std::uint64_t below = kAll) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < tile.view().elements(); ++i) {
    const std::uint64_t range = std::uint64_t{1} << (8 * size_of(tile.dtype()));
    std::uint64_t bits = static_cast<std::uint64_t>(choose.below(1 << 30)) * 7919 % range % below;
    double number = static_cast<double>(bits);
    const bool is_signed =
        tile.dtype() == DType::i8 || tile.dtype() == DType::i16 || tile.dtype() == DType::i32;
    if (is_signed && bits >= range / 2) number -= static_cast<double>(range);
    numbers.push_back(number);
  }
  h.set(tile, numbers);
  return h.numbers(tile);
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

// --- tensor_scalar ---

TEST(TensorScalar, AnyOperatorsDtypeBufferAndLayout) {
  Choices choose(11);
  std::vector<Alu> ops(std::begin(reference::kBinary), std::end(reference::kBinary));
  for (Alu op : {Alu::abs, Alu::reciprocal, Alu::rsqrt}) ops.push_back(op);
  for (int i = 0; i < 400; ++i) {
    Harness h(trn2(), 1 + i % 2);
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const Alu op0 = choose.of(ops), op1 = choose.of(ops);
    const bool two = choose.flip(), gpsimd = op0 == Alu::rsqrt || (two && op1 == Alu::rsqrt);
    const auto buffer = [&] { return gpsimd ? Buffer::sbuf : choose.buffer(); };
    const Tile data = reference::tile(h, buffer(), choose.of(computable_dtypes()), rows, n, choose.of(kLies));
    const Tile dst = reference::tile(h, buffer(), choose.of(computable_dtypes()), rows, n, writable(choose));
    const std::vector<double> x = reference::fill(h, data);
    const auto operand = [&](Alu op, std::vector<double>& values) -> Scalar {
      values.assign(static_cast<std::size_t>(rows), 0);
      if (is_unary(op)) return 0;
      if (choose.flip()) {
        const float number = static_cast<float>(choose.below(64)) / 8 - 4;
        values.assign(static_cast<std::size_t>(rows), static_cast<double>(number));
        return number;
      }
      const Tile column =
          reference::tile(h, buffer(), DType::f32, rows, 4, Lie::whole)(ds(0, rows), ds(choose.below(4), 1));
      values = h.fill(column);
      return column;
    };
    std::vector<double> s0, s1;
    const Scalar operand0 = operand(op0, s0);
    TensorScalarOptions options{.reverse0 = choose.flip()};
    if (two) {
      options.op1 = op1;
      options.operand1 = operand(op1, s1);
      options.reverse1 = choose.flip();
    }
    tensor_scalar(dst, data, op0, operand0, options);
    h.run();
    std::vector<double> expected;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const std::size_t r = k / static_cast<std::size_t>(n);
      double value = reference::either(op0, x[k], s0[r], options.reverse0);
      if (two) value = reference::either(op1, value, s1[r], options.reverse1);
      expected.push_back(reference::kept(dst.dtype(), value));
    }
    expect_close(h.numbers(dst), expected, 0);  // NaN where NaN is expected
    if (HasFailure()) FAIL() << i << ' ' << name_of(op0) << ' ' << (two ? name_of(op1) : "");
  }
}

TEST(TensorScalar, BitsWithImmediatesAndColumns) {
  Choices choose(12);
  std::vector<Alu> ops(std::begin(reference::kBitwise), std::end(reference::kBitwise));
  ops.push_back(Alu::invert);
  for (int i = 0; i < 200; ++i) {
    Harness h;
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const DType dtype = choose.of(integer_dtypes());
    const int bits = 8 * size_of(dtype);
    const Tile data = reference::tile(h, choose.buffer(), dtype, rows, n, choose.of(kLies));
    const Tile dst = reference::tile(h, choose.buffer(), dtype, rows, n, writable(choose));
    fill_bits(h, data, choose);
    const std::vector<std::uint64_t> x = h.bits(data);
    const auto operand = [&](Alu op, std::vector<std::uint64_t>& values) -> Scalar {
      values.assign(static_cast<std::size_t>(rows), 0);
      if (op == Alu::invert) return 0;
      const bool shifts = op == Alu::left_shift || op == Alu::right_shift;
      const std::int32_t number = shifts          ? static_cast<std::int32_t>(choose.below(bits + 3))
                                  : choose.flip() ? -6
                                                  : 77;
      const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
      values.assign(static_cast<std::size_t>(rows), static_cast<std::uint64_t>(number) & mask);
      if (choose.flip()) return choose.flip() ? Scalar(number) : Scalar(static_cast<float>(number));
      const Tile column = h.nki.sbuf(dtype, {rows, 1});
      fill_bits(h, column, choose, shifts ? static_cast<std::uint64_t>(bits + 3) : kAll);
      values = h.bits(column);
      return column;
    };
    const Alu op0 = choose.of(ops), op1 = choose.of(ops);
    std::vector<std::uint64_t> s0, s1;
    const Scalar operand0 = operand(op0, s0);
    TensorScalarOptions options{.reverse0 = choose.flip()};
    if (choose.flip()) {
      options.op1 = op1;
      options.operand1 = operand(op1, s1);
      options.reverse1 = choose.flip();
    }
    tensor_scalar(dst, data, op0, operand0, options);
    h.run();
    const auto either = [&](Alu op, std::uint64_t a, std::uint64_t b, bool reversed) {
      return reversed && op != Alu::invert ? reference::bitwise(op, b, a, bits)
                                           : reference::bitwise(op, a, b, bits);
    };
    std::vector<std::uint64_t> expected;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const std::size_t r = k / static_cast<std::size_t>(n);
      std::uint64_t value = either(op0, x[k], s0[r], options.reverse0);
      if (options.op1) value = either(op1, value, s1[r], options.reverse1);
      expected.push_back(value);
    }
    ASSERT_EQ(h.bits(dst), expected) << i << ' ' << name_of(op0);
  }
}

TEST(TensorScalar, AddressesAreExact) {
  for (const bool reversed : {false, true}) {
    Harness h;
    Choices choose(13);
    const Tile data = h.nki.sbuf(DType::i32, {32, 5}), dst = h.nki.sbuf(DType::u32, {32, 5});
    const Tile stride = h.nki.sbuf(DType::u32, {32, 1});
    const std::vector<double> x = fill_bits(h, data, choose), s = fill_bits(h, stride, choose);
    tensor_scalar(dst, data, Alu::subtract, stride,
                  {.reverse0 = reversed, .op1 = Alu::multiply, .operand1 = 1000003, .reverse1 = reversed});
    EXPECT_EQ(h.nki.program().instructions.back()->engines(Check(trn2(), h.nki.program(), h.diagnostics())),
              Engines(Engine::gpsimd));
    h.run();
    std::vector<std::uint64_t> expected;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const auto difference = static_cast<std::int64_t>(reversed ? s[k / 5] - x[k] : x[k] - s[k / 5]);
      expected.push_back(static_cast<std::uint64_t>(difference) * 1000003 & 0xffffffffu);
    }
    EXPECT_EQ(h.bits(dst), expected);
  }
}

TEST(TensorScalar, IntegersWithFloatOperandsRoundToFloat32) {
  Harness h;
  const Tile data = h.nki.sbuf(DType::i32, {1, 2}), dst = h.nki.sbuf(DType::i32, {1, 2});
  h.set(data, {16777217, -7});
  tensor_scalar(dst, data, Alu::add, 2);
  h.run();
  EXPECT_EQ(h.numbers(dst), (std::vector<double>{16777218, -5}));
}

TEST(TensorScalar, InPlaceShiftedAndWithItsOwnColumn) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::f32, {128, 33});
  const std::vector<double> x = h.fill(t);
  const Tile body = t(ds(0, 128), ds(1, 32));
  tensor_scalar(body, t(ds(0, 128), ds(0, 32)), Alu::multiply, t(ds(0, 128), ds(32, 1)),
                {.op1 = Alu::subtract, .operand1 = t(ds(0, 128), ds(1, 1))});
  h.run();
  std::vector<double> expected;
  for (std::size_t r = 0; r < 128; ++r)
    for (std::size_t k = 0; k < 32; ++k)
      expected.push_back(reference::f32(reference::f32(x[r * 33 + k] * x[r * 33 + 32]) - x[r * 33 + 1]));
  EXPECT_EQ(h.numbers(body), expected);
}

TEST(TensorScalar, EnginesByGeneration) {
  const auto engines = [](const Spec& spec, Alu op0, std::optional<Alu> op1 = {}) {
    Harness h(spec);
    const Tile a = h.nki.sbuf(DType::f32, {128, 8});
    TensorScalarOptions options{.op1 = op1};
    if (op1 && !is_unary(*op1)) options.operand1 = 1.0f;
    tensor_scalar(a, a, op0, is_unary(op0) ? 0.0f : 2.0f, options);
    return h.nki.program().instructions.back()->engines(Check(spec, h.nki.program(), h.diagnostics()));
  };
  const Engines vector = Engine::vector, both = Engine::vector | Engine::scalar;
  EXPECT_EQ(engines(trn2(), Alu::multiply), both);
  EXPECT_EQ(engines(trn2(), Alu::add), both);
  EXPECT_EQ(engines(trn2(), Alu::multiply, Alu::add), both);
  EXPECT_EQ(engines(trn2(), Alu::add, Alu::multiply), vector);
  EXPECT_EQ(engines(trn2(), Alu::subtract), vector);
  EXPECT_EQ(engines(trn1(), Alu::multiply), vector);
  EXPECT_EQ(engines(trn3(), Alu::maximum, Alu::subtract), both);
  EXPECT_EQ(engines(trn3(), Alu::square), both);
  EXPECT_EQ(engines(trn2(), Alu::rsqrt), Engines(Engine::gpsimd));
  EXPECT_EQ(engines(trn2(), Alu::add, Alu::power), Engines(Engine::gpsimd));
  EXPECT_EQ(engines(trn3(), Alu::rsqrt), Engine::gpsimd | Engine::scalar);
}

TEST(TensorScalar, NewOperatorsOfTrainium3) {
  Harness h(trn3());
  const Tile a = h.nki.sbuf(DType::f32, {1, 3}), b = h.nki.sbuf(DType::f32, {1, 3});
  h.set(a, {-1.5, 0, 3});
  tensor_scalar(b, a, Alu::square);
  h.run();
  EXPECT_EQ(h.numbers(b), (std::vector<double>{2.25, 0, 9}));
  tensor_scalar(b, a, Alu::relu, 0, {.op1 = Alu::abs_min, .operand1 = -2.0});
  h.run();
  EXPECT_EQ(h.numbers(b), (std::vector<double>{0, 0, -2}));
  EXPECT_BREAKS("op", "square can only be the first",
                tensor_scalar(b, a, Alu::add, 1.0, {.op1 = Alu::square}));
}

TEST(TensorScalar, Rules) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 8}), p = h.nki.psum(DType::f32, {128, 8});
  const Tile ints = h.nki.sbuf(DType::i32, {128, 8}), bytes = h.nki.sbuf(DType::u8, {128, 8});
  const Tile hbm = h.nki.input("x", DType::f32, {128, 8}), packed = h.nki.sbuf(DType::f8e5m2_x4, {128, 8});
  const Tile column = h.nki.sbuf(DType::f32, {128, 1}), half = h.nki.sbuf(DType::bf16, {128, 1});
  const Tile whole = h.nki.sbuf(DType::i32, {128, 1}), byte = h.nki.sbuf(DType::u8, {128, 1});
  const Tile far = h.nki.psum(DType::i32, {128, 1});
  EXPECT_BREAKS("buffer", "dst", tensor_scalar(hbm, a, Alu::add, 1.0));
  EXPECT_BREAKS("buffer", "data", tensor_scalar(a, hbm, Alu::add, 1.0));
  EXPECT_BREAKS("buffer", "operand0", tensor_scalar(a, a, Alu::add, hbm(ds(0, 128), ds(0, 1))));
  EXPECT_BREAKS("partitions", "data", tensor_scalar(a, a(ds(0, 32)), Alu::add, 1.0));
  EXPECT_BREAKS("shape", "data", tensor_scalar(a, a(ds(0, 128), ds(0, 3)), Alu::add, 1.0));
  EXPECT_BREAKS("dtype", "dst", tensor_scalar(packed, a, Alu::add, 1.0));
  EXPECT_BREAKS("dtype", "data", tensor_scalar(a, packed, Alu::add, 1.0));
  EXPECT_BREAKS("op-mix", "add and bitwise_and",
                tensor_scalar(ints, ints, Alu::add, 1, {.op1 = Alu::bitwise_and, .operand1 = 1}));
  EXPECT_BREAKS("operand", "op1 isn't", tensor_scalar(a, a, Alu::add, 1.0, {.operand1 = 1.0}));
  EXPECT_BREAKS("operand", "op1 needs it", tensor_scalar(a, a, Alu::add, 1.0, {.op1 = Alu::multiply}));
  EXPECT_BREAKS("unary-operand", "rsqrt", tensor_scalar(a, a, Alu::rsqrt, 1.0));
  EXPECT_BREAKS("unary-operand", "operand1",
                tensor_scalar(a, a, Alu::add, 1.0, {.op1 = Alu::abs, .operand1 = column}));
  EXPECT_BREAKS("unary-operand", "invert", tensor_scalar(ints, ints, Alu::invert, 3));
  EXPECT_BREAKS("scalar-dtype", "bfloat16", tensor_scalar(a, a, Alu::add, half));
  EXPECT_BREAKS("scalar-dtype", "int32", tensor_scalar(a, a, Alu::add, whole));
  EXPECT_BREAKS("scalar-dtype", "operand1",
                tensor_scalar(ints, ints, Alu::add, 1.5, {.op1 = Alu::add, .operand1 = whole}));
  EXPECT_BREAKS("shape", "[128, 1]", tensor_scalar(a, a, Alu::add, a));
  EXPECT_BREAKS("shape", "operand0", tensor_scalar(ints, ints, Alu::bitwise_or, ints));
  EXPECT_BREAKS("dtype", "operand0", tensor_scalar(ints, ints, Alu::bitwise_or, column));
  EXPECT_BREAKS("bit-width", "operand0", tensor_scalar(ints, ints, Alu::bitwise_or, byte));
  EXPECT_BREAKS("bit-width", "data", tensor_scalar(ints, bytes, Alu::bitwise_or, 1));
  EXPECT_BREAKS("dtype", "dst", tensor_scalar(a, ints, Alu::bitwise_or, 1));
  EXPECT_BREAKS("dtype", "data", tensor_scalar(ints, a, Alu::bitwise_or, 1));
  EXPECT_BREAKS("buffer", "operand0", tensor_scalar(ints, ints, Alu::bitwise_or, hbm(ds(0, 128), ds(0, 1))));
  EXPECT_BREAKS("bit-immediate", "0.5", tensor_scalar(ints, ints, Alu::bitwise_or, 0.5));
  EXPECT_BREAKS("bit-immediate", "256 doesn't fit", tensor_scalar(bytes, bytes, Alu::bitwise_or, 256));
  EXPECT_BREAKS("bit-immediate", "-129", tensor_scalar(bytes, bytes, Alu::bitwise_or, -129));
  EXPECT_BREAKS("op", "bypass", tensor_scalar(a, a, Alu::bypass, 1.0));
  EXPECT_BREAKS("op", "average", tensor_scalar(a, a, Alu::add, 1.0, {.op1 = Alu::average, .operand1 = 1.0}));
  EXPECT_BREAKS("generation", "square", tensor_scalar(a, a, Alu::square));
  EXPECT_BREAKS("generation", "relu", tensor_scalar(a, a, Alu::relu));
  EXPECT_BREAKS("generation", "abs_min", tensor_scalar(a, a, Alu::abs_min, 1.0));
  EXPECT_BREAKS("gpsimd-psum", "activation has it", tensor_scalar(p, a, Alu::rsqrt));
  EXPECT_BREAKS("gpsimd-psum", "power runs on it", tensor_scalar(a, p, Alu::power, 2.0));
  EXPECT_BREAKS("gpsimd-psum", "arithmetic with int32", tensor_scalar(ints, ints, Alu::add, far));
  EXPECT_BREAKS("gpsimd-psum", "operand1",
                tensor_scalar(ints, ints, Alu::add, 1, {.op1 = Alu::add, .operand1 = far}));
  EXPECT_BREAKS("gpsimd-psum", "use the Vector engine",
                tensor_scalar(p, a, Alu::add, 1.0, {.engine = Engine::gpsimd}));
  EXPECT_BREAKS("engine", "vector can", tensor_scalar(a, a, Alu::subtract, 1.0, {.engine = Engine::scalar}));
  EXPECT_BREAKS("engine", "gpsimd engine can't",
                tensor_scalar(a, a, Alu::add, 1.0, {.engine = Engine::gpsimd}));
  EXPECT_BREAKS("engine", "vector can",
                tensor_scalar(ints, ints, Alu::bitwise_or, 1, {.engine = Engine::scalar}));
  Harness old(trn1());
  const Tile b = old.nki.sbuf(DType::f32, {128, 8});
  EXPECT_BREAKS("generation", "Scalar engine",
                tensor_scalar(b, b, Alu::multiply, 1.0, {.engine = Engine::scalar}));
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
  for (const bool on_data : {false, true}) {
    Harness h;
    const Tile data = h.nki.sbuf(DType::f32, {128, 70}), other = h.nki.sbuf(DType::f32, {128, 70});
    const std::vector<double> x = h.fill(data), y = h.fill(other);
    const Tile dst = on_data ? data : other;
    scalar_tensor_tensor(dst, data, Alu::multiply, 3.0, Alu::subtract, other);
    h.run();
    std::vector<double> expected;
    for (std::size_t k = 0; k < x.size(); ++k)
      expected.push_back(reference::f32(reference::f32(x[k] * 3) - y[k]));
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
