#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "chip/vector_arithmetic.h"
#include "chip/vector_reference.h"

namespace headway::chip {
namespace {

using reference::Choices;
using reference::fill_bits;
using reference::kAll;
using reference::kLies;
using reference::kWritable;
using reference::Lie;

Lie writable(Choices& choose) { return kLies[choose.below(kWritable)]; }

}  // namespace

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

// An immediate is as wide as the elements.
TEST(TensorScalar, NegativeImmediatesForNarrowBits) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::u8, {1, 3}), b = h.nki.sbuf(DType::u16, {1, 2});
  h.set(a, {0, 1, 4});
  h.set(b, {0x1234, 0xffff});
  tensor_scalar(a, a, Alu::right_shift, -6, {.reverse0 = true});
  tensor_scalar(b, b, Alu::bitwise_xor, -1, {.op1 = Alu::right_shift, .operand1 = 4});
  h.run();
  EXPECT_EQ(h.bits(a), (std::vector<std::uint64_t>{0xfa, 0x7d, 0x0f}));
  EXPECT_EQ(h.bits(b), (std::vector<std::uint64_t>{0xedc, 0}));
}

// Float32 elements at odd bytes: a view of bytes whose partitions are no multiple of four long.
TEST(TensorScalar, UnalignedRows) {
  Harness h;
  const Tile bytes = h.nki.sbuf(DType::u8, {128, 13}), dst = h.nki.sbuf(DType::f32, {128, 3});
  const Tile view = bytes(ds(0, 128), ds(0, 12)).reinterpret(DType::f32);
  const std::vector<double> x = h.fill(view);
  tensor_scalar(dst, view, Alu::multiply, 2.0);
  tensor_scalar(view, view, Alu::add, 1.0);
  h.run();
  std::vector<double> doubled, more;
  for (double number : x) {
    doubled.push_back(number * 2);
    more.push_back(reference::f32(number + 1));
  }
  EXPECT_EQ(h.numbers(dst), doubled);
  EXPECT_EQ(h.numbers(view), more);
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

// Reading a program file makes instructions from their fields.
TEST(TensorScalar, FieldsAreAllOfIt) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 8}), column = h.nki.sbuf(DType::f32, {128, 1});
  tensor_scalar(a, a, Alu::subtract, 2.5);
  tensor_scalar(a, a, Alu::subtract, column,
                {.reverse0 = true, .op1 = Alu::multiply, .operand1 = Scalar(column), .reverse1 = true});
  tensor_scalar(a, a, Alu::add, 1, {.op1 = Alu::abs});
  for (const auto& instruction : h.nki.program().instructions)
    EXPECT_EQ(to_string(*copy(*instruction), h.nki.program()), to_string(*instruction, h.nki.program()));
  EXPECT_NE(to_string(*h.nki.program().instructions[1], h.nki.program()).find("multiply"), std::string::npos);
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
  const Tile longer = h.nki.sbuf(DType::f32, {128, 2, 1}).broadcast(2, 32769);
  EXPECT_BREAKS("free-size", "dst", tensor_scalar(longer, a, Alu::add, 1.0));
  EXPECT_BREAKS("free-size", "data", tensor_scalar(a, longer, Alu::add, 1.0));
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

}  // namespace headway::chip
