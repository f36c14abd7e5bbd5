#include "chip/vector_reduce.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "chip/vector_arithmetic.h"
#include "chip/vector_copy.h"
#include "chip/vector_reference.h"

namespace headway::chip {
namespace {

using reference::Choices;
using reference::kLies;
using reference::kWritable;
using reference::Lie;

constexpr Alu kReductions[] = {Alu::add,     Alu::subtract,    Alu::multiply,   Alu::maximum,
                               Alu::minimum, Alu::logical_and, Alu::logical_or, Alu::logical_xor};
constexpr Alu kAccumulations[] = {Alu::add, Alu::multiply, Alu::maximum, Alu::minimum};
constexpr Alu kCumulations[] = {Alu::add, Alu::subtract, Alu::multiply, Alu::maximum, Alu::minimum};

std::vector<double> part(const std::vector<double>& all, std::size_t first, std::size_t count) {
  return {all.begin() + static_cast<std::ptrdiff_t>(first),
          all.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

const double* pointer(const double& number) { return &number; }

}  // namespace

// --- tensor_reduce ---

TEST(TensorReduce, AnyOperatorDtypeAndLayout) {
  Choices choose(1);
  for (int i = 0; i < 400; ++i) {
    Harness h(trn2(), 1 + i % 2);
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const Alu op = choose.of(kReductions);
    const Tile data =
        reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, n, choose.of(kLies));
    const std::vector<double> x = reference::fill(h, data);
    // Some or all of its free extents, the last ones.
    std::vector<std::int64_t> axis;
    std::int64_t reduced = 1;
    const int rank = data.view().rank;
    const auto count = static_cast<int>(1 + choose.below(rank - 1));
    for (int d = rank - count; d < rank; ++d) {
      axis.push_back(choose.flip() ? d : d - rank);
      reduced *= data.extent(d);
    }
    const std::int64_t groups = n / reduced;
    const Tile dst = reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, groups,
                                     kLies[choose.below(kWritable)]);
    const bool negate = choose.flip();
    tensor_reduce(dst, op, data, axis, {.negate = negate, .keepdims = choose.flip()});
    h.run();
    std::vector<double> expected;
    for (std::int64_t g = 0; g < rows * groups; ++g) {
      const double value = reference::reduce(
          op, part(x, static_cast<std::size_t>(g * reduced), static_cast<std::size_t>(reduced)));
      expected.push_back(reference::kept(dst.dtype(), negate ? -value : value));
    }
    expect_close(h.numbers(dst), expected, 0);
    if (HasFailure()) FAIL() << i << ' ' << name_of(op);
  }
}

// However the sum is ordered, it is one of float32 numbers: off by at most half a unit per addition of the
// largest partial sum.
TEST(TensorReduce, IsNearTheExactSum) {
  Harness h;
  const Tile data = h.nki.sbuf(DType::f32, {128, 512}), dst = h.nki.sbuf(DType::f32, {128, 1});
  const std::vector<double> x = h.fill(data, 0, 1);
  tensor_reduce(dst, Alu::add, data, {1});
  h.run();
  std::vector<double> expected(128, 0);
  for (std::size_t k = 0; k < x.size(); ++k) expected[k / 512] += x[k];
  expect_close(h.numbers(dst), expected, 512 * std::ldexp(1.0, -24));
}

TEST(TensorReduce, Bits) {
  Choices choose(2);
  for (int i = 0; i < 120; ++i) {
    Harness h;
    const DType dtype = choose.of(integer_dtypes());
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const Alu op =
        std::vector{Alu::bitwise_and, Alu::bitwise_or, Alu::bitwise_xor}[static_cast<std::size_t>(i % 3)];
    const Tile data = h.nki.sbuf(dtype, {rows, 3, n}),
               dst = reference::tile(h, choose.buffer(), dtype, rows, 3, Lie::strided);
    const bool has_sign = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32;
    h.fill(data, has_sign ? -100 : 0, 127);
    const std::vector<std::uint64_t> x = h.bits(data);
    tensor_reduce(dst, op, data, {2});
    h.run();
    std::vector<std::uint64_t> expected;
    for (std::size_t g = 0; g < static_cast<std::size_t>(rows * 3); ++g) {
      std::uint64_t value = x[g * static_cast<std::size_t>(n)];
      for (std::size_t k = 1; k < static_cast<std::size_t>(n); ++k)
        value = reference::bitwise(op, value, x[g * static_cast<std::size_t>(n) + k], 8 * size_of(dtype));
      expected.push_back(value);
    }
    ASSERT_EQ(h.bits(dst), expected);
  }
}

// Pooling: windows of an image, read through a view of five extents.
TEST(TensorReduce, Windows) {
  Harness h;
  const Tile image = h.nki.sbuf(DType::f16, {2, 36}), dst = h.nki.sbuf(DType::f32, {2, 3, 3});
  const std::vector<double> x = h.fill(image);
  tensor_reduce(dst, Alu::maximum, image.pattern({{36, 2}, {12, 3}, {2, 3}, {6, 2}, {1, 2}}), {3, 4});
  h.run();
  std::vector<double> expected;
  for (std::size_t p = 0; p < 2; ++p)
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) {
        const std::size_t at = p * 36 + i * 12 + j * 2;
        expected.push_back(std::max({x[at], x[at + 1], x[at + 6], x[at + 7]}));
      }
  EXPECT_EQ(h.numbers(dst), expected);
}

TEST(TensorReduce, ResultMayLieOnTheData) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::f32, {128, 4, 9});
  const std::vector<double> x = h.fill(t);
  const Tile dst = t.reshape({128, 36})(ds(0, 128), ds(2, 4));
  tensor_reduce(dst, Alu::add, t, {2});
  h.run();
  std::vector<double> expected;
  for (std::size_t g = 0; g < 512; ++g) expected.push_back(reference::reduce(Alu::add, part(x, g * 9, 9)));
  EXPECT_EQ(h.numbers(dst), expected);
}

TEST(TensorReduce, OneLongRowAndTwoThreads) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    std::vector<std::vector<double>> results;
    for (int threads : {1, 2}) {
      Harness h(trn2(), threads);
      const Tile row = h.nki.sbuf(dtype, {1, 50000}), many = h.nki.sbuf(dtype, {128, 700});
      const Tile dst = h.nki.sbuf(DType::f32, {1, 1}), sums = h.nki.sbuf(DType::f32, {128, 1});
      const std::vector<double> x = h.fill(row), y = h.fill(many);
      tensor_reduce(dst, Alu::add, row, {1});
      tensor_reduce(sums, Alu::add, many, {1});
      h.run();
      EXPECT_EQ(h.numbers(dst)[0], reference::reduce(Alu::add, x));
      EXPECT_EQ(h.numbers(sums)[77], reference::reduce(Alu::add, part(y, 77 * 700, 700)));
      results.push_back(h.numbers(sums));
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST(TensorReduce, Rules) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 4, 6}), one = h.nki.sbuf(DType::f32, {128, 1}),
             four = h.nki.sbuf(DType::f32, {128, 4});
  const Tile ints = h.nki.sbuf(DType::i32, {128, 4}), bytes = h.nki.sbuf(DType::u8, {128, 1}),
             whole = h.nki.sbuf(DType::i32, {128, 1});
  const Tile hbm = h.nki.input("x", DType::f32, {128, 4}), packed = h.nki.sbuf(DType::f8e5m2_x4, {128, 4});
  EXPECT_BREAKS("buffer", "data", tensor_reduce(one, Alu::add, hbm, {1}));
  EXPECT_BREAKS("buffer", "dst", tensor_reduce(hbm, Alu::add, a, {2}));
  const Tile longer = h.nki.sbuf(DType::f32, {128, 2, 1}).broadcast(2, 32769);
  EXPECT_BREAKS("free-size", "data", tensor_reduce(one, Alu::add, longer, {1, 2}));
  EXPECT_BREAKS("free-size", "dst", tensor_reduce(longer, Alu::add, a, {1, 2}));
  EXPECT_BREAKS("partitions", "has 32 partitions", tensor_reduce(one(ds(0, 32)), Alu::add, four, {1}));
  EXPECT_BREAKS("dtype", "data", tensor_reduce(one, Alu::add, packed, {1}));
  EXPECT_BREAKS("dtype", "dst", tensor_reduce(packed, Alu::add, a, {2}));
  EXPECT_BREAKS("op", "greater can't reduce", tensor_reduce(one, Alu::greater, four, {1}));
  EXPECT_BREAKS("op", "average", tensor_reduce(one, Alu::average, four, {1}));
  EXPECT_BREAKS("op", "left_shift", tensor_reduce(whole, Alu::left_shift, ints, {1}));
  EXPECT_BREAKS("dtype", "data", tensor_reduce(whole, Alu::bitwise_and, four, {1}));
  EXPECT_BREAKS("dtype", "dst", tensor_reduce(one, Alu::bitwise_and, ints, {1}));
  EXPECT_BREAKS("bit-width", "int32 and uint8", tensor_reduce(bytes, Alu::bitwise_and, ints, {1}));
  EXPECT_BREAKS("negate", "bitwise_or", tensor_reduce(whole, Alu::bitwise_or, ints, {1}, {.negate = true}));
  for (const std::vector<std::int64_t>& axis :
       {std::vector<std::int64_t>{}, {0}, {1}, {0, 1, 2}, {3}, {-3}, {-4}, {2, 2}, {2, -1}})
    EXPECT_BREAKS("axis", "[128, 4, 6]", tensor_reduce(four, Alu::add, a, axis));
  EXPECT_BREAKS("shape", "the reduction leaves 4", tensor_reduce(one, Alu::add, a, {2}));
}

// --- tensor_scalar_reduce ---

TEST(TensorScalarReduce, AnyOperatorDtypeAndLayout) {
  Choices choose(11);
  std::vector<Alu> ops(std::begin(reference::kBinary), std::end(reference::kBinary));
  ops.push_back(Alu::abs);
  ops.push_back(Alu::reciprocal);
  for (int i = 0; i < 300; ++i) {
    Harness h(trn2(), 1 + i % 2);
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const Alu op0 = choose.of(ops), op = choose.of(kAccumulations);
    const Tile data =
        reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, n, choose.of(kLies));
    const Tile dst = reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, n,
                                     kLies[choose.below(kWritable)]);
    const Tile result =
        reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, 1, Lie::strided);
    const std::vector<double> x = reference::fill(h, data);
    std::vector<double> s(static_cast<std::size_t>(rows), 0.75);
    Scalar operand0 = is_unary(op0) ? 0.0f : 0.75f;
    if (!is_unary(op0) && choose.flip()) {
      const Tile column = h.nki.sbuf(DType::f32, {rows, 1});
      s = h.fill(column);
      operand0 = column;
    }
    const bool negate = choose.flip();
    tensor_scalar_reduce(dst, data, op0, operand0, op, result, {.reduce_res_negate = negate});
    h.run();
    std::vector<double> expected, reduced;
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
      std::vector<double> row;
      for (std::size_t k = 0; k < static_cast<std::size_t>(n); ++k)
        row.push_back(reference::either(op0, x[r * static_cast<std::size_t>(n) + k], s[r]));
      for (double value : row) expected.push_back(reference::kept(dst.dtype(), value));
      const double start = op == Alu::add        ? 0
                           : op == Alu::multiply ? 1
                           : op == Alu::maximum  ? -INFINITY
                                                 : INFINITY;
      const double value = reference::reduce(op, row, pointer(start));
      reduced.push_back(reference::kept(result.dtype(), negate ? -value : value));
    }
    expect_close(h.numbers(dst), expected, 0);
    expect_close(h.numbers(result), reduced, 0);
    if (HasFailure()) FAIL() << i << ' ' << name_of(op0) << ' ' << name_of(op);
  }
}

// The registers stay from one instruction to the next, each lane its own.
TEST(TensorScalarReduce, AccumulatesOverInstructions) {
  Harness h;
  const Tile data = h.nki.sbuf(DType::f32, {128, 6}), dst = h.nki.sbuf(DType::f32, {128, 6}),
             sum = h.nki.sbuf(DType::f32, {128, 1});
  const Tile init = h.nki.sbuf(DType::f32, {128, 1}), upper = h.nki.sbuf(DType::f32, {32, 1}),
             loaded = h.nki.sbuf(DType::f32, {128, 1});
  const std::vector<double> x = h.fill(data), start = h.fill(init);
  const auto columns = [&](std::int64_t first, std::int64_t count) {
    return data(ds(0, 128), ds(first, count));
  };
  tensor_scalar_reduce(dst(ds(0, 128), ds(0, 2)), columns(0, 2), Alu::add, 1.0, Alu::add);
  tensor_scalar_reduce(dst(ds(0, 128), ds(0, 4)), columns(2, 4), Alu::add, 1.0, Alu::add, sum,
                       {.reduce_cmd = ReduceCmd::reduce});
  // The lanes of partitions 64 to 95 alone.
  tensor_scalar_reduce(dst(ds(64, 32), ds(0, 2)), data(ds(64, 32), ds(0, 2)), Alu::add, 0.0, Alu::add, upper,
                       {.reduce_cmd = ReduceCmd::reduce});
  tensor_scalar_reduce(dst, data, Alu::add, 0.0, Alu::maximum, loaded,
                       {.reduce_cmd = ReduceCmd::load_reduce, .reduce_init = Scalar(init)});
  h.run();
  std::vector<double> sums, uppers, maxima;
  for (std::size_t r = 0; r < 128; ++r) {
    const auto ones = [&](std::size_t first, std::size_t count) {
      std::vector<double> row;
      for (std::size_t k = 0; k < count; ++k) row.push_back(reference::f32(x[r * 6 + first + k] + 1));
      return row;
    };
    const double zero = 0, first = reference::reduce(Alu::add, ones(0, 2), &zero);
    sums.push_back(reference::reduce(Alu::add, ones(2, 4), &first));
    if (r >= 64 && r < 96) uppers.push_back(reference::reduce(Alu::add, part(x, r * 6, 2), &sums[r]));
    maxima.push_back(reference::reduce(Alu::maximum, part(x, r * 6, 6), &start[r]));
  }
  EXPECT_EQ(h.numbers(sum), sums);
  EXPECT_EQ(h.numbers(upper), uppers);
  EXPECT_EQ(h.numbers(loaded), maxima);
}

// What is reduced is not what dst keeps of it; and the result may be written over dst.
TEST(TensorScalarReduce, ReducesBeforeRounding) {
  Harness h;
  const Tile data = h.nki.sbuf(DType::f32, {1, 3}), dst = h.nki.sbuf(DType::i8, {1, 3}),
             sum = h.nki.sbuf(DType::f32, {1, 1});
  const Tile all = h.nki.sbuf(DType::f32, {1, 3});
  h.set(data, {0.25, 0.25, 100});
  tensor_scalar_reduce(dst, data, Alu::multiply, 2.0, Alu::add, sum);
  tensor_scalar_reduce(all, data, Alu::multiply, 2.0, Alu::add, View(all(ds(0, 1), ds(1, 1))));
  h.run();
  EXPECT_EQ(h.numbers(dst), (std::vector<double>{0, 0, 127}));
  EXPECT_EQ(h.numbers(sum)[0], 201);
  EXPECT_EQ(h.numbers(all), (std::vector<double>{0.5, 201, 200}));
}

TEST(TensorScalarReduce, Rules) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 8}), one = h.nki.sbuf(DType::f32, {128, 1}),
             half = h.nki.sbuf(DType::bf16, {128, 1});
  const Tile hbm = h.nki.input("x", DType::f32, {128, 8}), packed = h.nki.sbuf(DType::f8e5m2_x4, {128, 8});
  const auto record = [&](const Tile& dst, const Tile& data, Alu op0 = Alu::add,
                          const Scalar& operand0 = 1.0f, Alu op = Alu::add, std::optional<View> result = {}) {
    tensor_scalar_reduce(dst, data, op0, operand0, op, result);
  };
  EXPECT_BREAKS("buffer", "dst", record(hbm, a));
  EXPECT_BREAKS("buffer", "data", record(a, hbm));
  const Tile longer = h.nki.sbuf(DType::f32, {128, 2, 1}).broadcast(2, 32769);
  EXPECT_BREAKS("free-size", "dst", record(longer, a));
  EXPECT_BREAKS("free-size", "data", record(a, longer));
  EXPECT_BREAKS("partitions", "data", record(a, a(ds(0, 32))));
  EXPECT_BREAKS("shape", "data", record(a, a(ds(0, 128), ds(0, 3))));
  EXPECT_BREAKS("dtype", "dst", record(packed, a));
  EXPECT_BREAKS("dtype", "data", record(a, packed));
  EXPECT_BREAKS("op", "bitwise_or", record(a, a, Alu::bitwise_or));
  EXPECT_BREAKS("op", "rsqrt runs on the GpSimd", record(a, a, Alu::rsqrt, 0.0));
  EXPECT_BREAKS("op", "power runs on the GpSimd", record(a, a, Alu::power));
  EXPECT_BREAKS("generation", "square", record(a, a, Alu::square, 0.0));
  EXPECT_BREAKS("unary-operand", "operand0", record(a, a, Alu::abs, 1.0));
  EXPECT_BREAKS("scalar-dtype", "operand0", record(a, a, Alu::add, half));
  EXPECT_BREAKS("shape", "operand0", record(a, a, Alu::add, a));
  EXPECT_BREAKS("buffer", "operand0", record(a, a, Alu::add, hbm(ds(0, 128), ds(0, 1))));
  EXPECT_BREAKS("op", "reduce_op", record(a, a, Alu::add, 1.0, Alu::subtract));
  EXPECT_BREAKS("shape", "reduce_res", record(a, a, Alu::add, 1.0, Alu::add, View(a)));
  EXPECT_BREAKS("buffer", "reduce_res",
                record(a, a, Alu::add, 1.0, Alu::add, View(hbm(ds(0, 128), ds(0, 1)))));
  EXPECT_BREAKS("dtype", "reduce_res",
                record(a, a, Alu::add, 1.0, Alu::add, View(packed(ds(0, 128), ds(0, 1)))));
  const auto with = [&](const TensorScalarReduceOptions& options) {
    tensor_scalar_reduce(a, a, Alu::add, 1.0, Alu::add, one, options);
  };
  EXPECT_BREAKS("reverse0", "not supported", with({.reverse0 = true}));
  EXPECT_BREAKS("reduce-cmd", "not idle", with({.reduce_cmd = ReduceCmd::idle}));
  EXPECT_BREAKS("reduce-cmd", "not reset", with({.reduce_cmd = ReduceCmd::reset}));
  EXPECT_BREAKS("reduce-init", "load_reduce needs it", with({.reduce_cmd = ReduceCmd::load_reduce}));
  EXPECT_BREAKS("reduce-init", "only for load_reduce", with({.reduce_init = 1.0}));
  EXPECT_BREAKS("scalar-dtype", "reduce_init",
                with({.reduce_cmd = ReduceCmd::load_reduce, .reduce_init = Scalar(half)}));
  EXPECT_BREAKS("shape", "reduce_init",
                with({.reduce_cmd = ReduceCmd::load_reduce, .reduce_init = Scalar(a)}));
}

TEST(TensorScalarReduce, FieldsAreAllOfIt) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 8}), one = h.nki.sbuf(DType::f32, {128, 1});
  tensor_scalar_reduce(a, a, Alu::add, 1.0, Alu::maximum, View(one),
                       {.reduce_cmd = ReduceCmd::load_reduce, .reduce_init = 3.0, .reduce_res_negate = true});
  tensor_scalar_cumulative(a, a, Alu::add, Alu::minimum, one,
                           {.imm1 = Scalar(one), .reduce_cmd = ReduceCmd::load_reduce});
  tensor_reduce(one, Alu::add, a, {1}, {.negate = true, .keepdims = true});
  tensor_tensor_scan(a, a, a, one, Alu::multiply, Alu::add, {.reverse0 = true, .reverse1 = true});
  for (const auto& instruction : h.nki.program().instructions)
    EXPECT_EQ(to_string(*copy(*instruction), h.nki.program()), to_string(*instruction, h.nki.program()));
}

TEST(TensorScalarReduce, SquaresOnTrainium3) {
  Harness h(trn3());
  const Tile a = h.nki.sbuf(DType::f32, {1, 3}), sum = h.nki.sbuf(DType::f32, {1, 1});
  h.set(a, {-2, 1, 3});
  tensor_scalar_reduce(a, a, Alu::square, 0.0, Alu::add, sum);
  h.run();
  EXPECT_EQ(h.numbers(sum)[0], 14);
}

// --- tensor_scalar_cumulative ---

TEST(TensorScalarCumulative, AnyOperatorDtypeAndLayout) {
  Choices choose(21);
  const DType dtypes[] = {DType::bf16,   DType::f16, DType::f32, DType::f8e4m3, DType::f8e4m3fn,
                          DType::f8e5m2, DType::u8,  DType::u16, DType::i8,     DType::i16};
  for (int i = 0; i < 300; ++i) {
    Harness h(trn2(), 1 + i % 2);
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const Alu op0 = choose.of(reference::kBinary), op1 = choose.of(kCumulations);
    const Tile src = reference::tile(h, choose.buffer(), choose.of(dtypes), rows, n, choose.of(kLies));
    const Tile dst =
        reference::tile(h, choose.buffer(), choose.of(dtypes), rows, n, kLies[choose.below(kWritable)]);
    const std::vector<double> x = reference::fill(h, src);
    std::vector<double> s(static_cast<std::size_t>(rows), -0.5), reg(static_cast<std::size_t>(rows));
    Scalar imm0 = -0.5f;
    if (choose.flip()) {
      const Tile column = h.nki.sbuf(DType::f32, {rows, 1});
      s = h.fill(column);
      imm0 = column;
    }
    TensorScalarCumulativeOptions options;
    const double start = op1 == Alu::multiply  ? 1
                         : op1 == Alu::maximum ? -INFINITY
                         : op1 == Alu::minimum ? INFINITY
                                               : 0;
    reg.assign(reg.size(), start);
    if (choose.flip()) {
      const Tile column = h.nki.psum(DType::f32, {rows, 1});
      reg = h.fill(column);
      options = {.imm1 = Scalar(column), .reduce_cmd = ReduceCmd::load_reduce};
    }
    tensor_scalar_cumulative(dst, src, op0, op1, imm0, options);
    const bool again = choose.flip();
    if (again) tensor_scalar_cumulative(dst, src, op0, op1, imm0, {.reduce_cmd = ReduceCmd::reduce});
    h.run();
    std::vector<double> expected;
    for (int pass = 0; pass < (again ? 2 : 1); ++pass) {
      expected.clear();
      for (std::size_t k = 0; k < x.size(); ++k) {
        double& state = reg[k / static_cast<std::size_t>(n)];
        state =
            reference::binary(op1, reference::binary(op0, x[k], s[k / static_cast<std::size_t>(n)]), state);
        expected.push_back(reference::kept(dst.dtype(), state));
      }
    }
    expect_close(h.numbers(dst), expected, 0);
    if (HasFailure()) FAIL() << i << ' ' << name_of(op0) << ' ' << name_of(op1);
  }
}

TEST(TensorScalarCumulative, Rules) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 8}), half = h.nki.sbuf(DType::bf16, {128, 1}),
             ints = h.nki.sbuf(DType::i32, {128, 8});
  const Tile hbm = h.nki.input("x", DType::f32, {128, 8});
  const auto record = [&](const Tile& dst, const Tile& src, Alu op0 = Alu::add, Alu op1 = Alu::add,
                          const Scalar& imm0 = 1.0f) { tensor_scalar_cumulative(dst, src, op0, op1, imm0); };
  EXPECT_BREAKS("buffer", "dst", record(hbm, a));
  EXPECT_BREAKS("buffer", "src", record(a, hbm));
  const Tile longer = h.nki.sbuf(DType::f32, {128, 2, 1}).broadcast(2, 32769);
  EXPECT_BREAKS("free-size", "dst", record(longer, a));
  EXPECT_BREAKS("free-size", "src", record(a, longer));
  EXPECT_BREAKS("partitions", "src", record(a, a(ds(0, 32))));
  EXPECT_BREAKS("shape", "src", record(a, a(ds(0, 128), ds(0, 3))));
  EXPECT_BREAKS("dtype", "not int32", record(ints, a));
  EXPECT_BREAKS("dtype", "src", record(a, ints));
  EXPECT_BREAKS("op", "bitwise_xor", record(a, a, Alu::bitwise_xor));
  EXPECT_BREAKS("op", "abs", record(a, a, Alu::abs));
  EXPECT_BREAKS("op", "power runs on the GpSimd", record(a, a, Alu::power));
  EXPECT_BREAKS("op", "op1", record(a, a, Alu::add, Alu::logical_or));
  EXPECT_BREAKS("generation", "abs_max", record(a, a, Alu::abs_max));
  EXPECT_BREAKS("scalar-dtype", "imm0", record(a, a, Alu::add, Alu::add, half));
  EXPECT_BREAKS("shape", "imm0", record(a, a, Alu::add, Alu::add, a));
  const auto with = [&](const TensorScalarCumulativeOptions& options) {
    tensor_scalar_cumulative(a, a, Alu::add, Alu::add, 1.0, options);
  };
  EXPECT_BREAKS("reduce-cmd", "not idle", with({.reduce_cmd = ReduceCmd::idle}));
  EXPECT_BREAKS("reduce-init", "imm1", with({.reduce_cmd = ReduceCmd::load_reduce}));
  EXPECT_BREAKS("reduce-init", "only for load_reduce", with({.imm1 = 1.0}));
  EXPECT_BREAKS("scalar-dtype", "imm1", with({.imm1 = Scalar(half), .reduce_cmd = ReduceCmd::load_reduce}));
}

// --- tensor_tensor_scan ---

TEST(TensorTensorScan, AnyOperatorsDtypeAndLayout) {
  Choices choose(31);
  for (int i = 0; i < 300; ++i) {
    Harness h(trn2(), 1 + i % 2);
    const std::int64_t rows = choose.rows(), n = choose.elements();
    const Alu op0 = choose.of(reference::kBinary), op1 = choose.of(reference::kBinary);
    const Buffer buffer = choose.buffer();
    const Tile data0 = reference::tile(h, buffer, choose.of(computable_dtypes()), rows, n, choose.of(kLies));
    const Tile data1 = reference::tile(h, buffer == Buffer::psum ? Buffer::sbuf : choose.buffer(),
                                       choose.of(computable_dtypes()), rows, n, choose.of(kLies));
    const Tile dst = reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, n,
                                     kLies[choose.below(kWritable)]);
    const std::vector<double> x = reference::fill(h, data0), y = reference::fill(h, data1);
    std::vector<double> state(static_cast<std::size_t>(rows), 0.5);
    Scalar initial = 0.5f;
    if (choose.flip()) {
      const Tile column =
          reference::tile(h, choose.buffer(), choose.of(computable_dtypes()), rows, 1, Lie::whole);
      state = reference::fill(h, column);
      initial = column;
    }
    const TensorTensorScanOptions options{.reverse0 = choose.flip(), .reverse1 = choose.flip()};
    tensor_tensor_scan(dst, data0, data1, initial, op0, op1, options);
    h.run();
    std::vector<double> expected;
    for (std::size_t k = 0; k < x.size(); ++k) {
      double& s = state[k / static_cast<std::size_t>(n)];
      s = reference::either(op1, reference::either(op0, x[k], s, options.reverse0), y[k], options.reverse1);
      expected.push_back(reference::kept(dst.dtype(), s));
    }
    expect_close(h.numbers(dst), expected, 0);
    if (HasFailure()) FAIL() << i << ' ' << name_of(op0) << ' ' << name_of(op1);
  }
}

TEST(TensorTensorScan, ResultMayLieOnItsOperandsAndChain) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 20}), b = h.nki.sbuf(DType::f32, {128, 20});
  const std::vector<double> x = h.fill(a), y = h.fill(b);
  const auto half = [](const Tile& t, std::int64_t first) { return t(ds(0, 128), ds(first, 10)); };
  tensor_tensor_scan(half(b, 0), half(a, 0), half(b, 0), 0.0, Alu::multiply, Alu::add);
  tensor_tensor_scan(half(a, 10), half(a, 10), half(b, 10), b(ds(0, 128), ds(9, 1)), Alu::multiply, Alu::add);
  tensor_tensor_scan(half(a, 1), half(a, 0), half(a, 10), 1.0, Alu::add, Alu::maximum);
  h.run();
  std::vector<double> scan, shifted;
  for (std::size_t r = 0; r < 128; ++r) {
    double s = 0;
    for (std::size_t k = 0; k < 20; ++k) {
      s = reference::f32(reference::f32(x[r * 20 + k] * s) + y[r * 20 + k]);
      scan.push_back(s);
    }
    s = 1;
    for (std::size_t k = 0; k < 10; ++k) {
      s = std::max(reference::f32(x[r * 20 + k] + s), scan[r * 20 + 10 + k]);
      shifted.push_back(s);
    }
  }
  std::vector<double> first;
  for (std::size_t r = 0; r < 128; ++r)
    for (std::size_t k = 0; k < 10; ++k) first.push_back(scan[r * 20 + k]);
  EXPECT_EQ(h.numbers(half(b, 0)), first);
  EXPECT_EQ(h.numbers(half(a, 1)), shifted);
}

TEST(TensorTensorScan, Rules) {
  Harness h;
  const Tile a = h.nki.sbuf(DType::f32, {128, 8}), p = h.nki.psum(DType::f32, {128, 8}),
             narrow = a(ds(0, 128), ds(0, 3));
  const Tile hbm = h.nki.input("x", DType::f32, {128, 8}), packed = h.nki.sbuf(DType::f8e5m2_x4, {128, 8});
  const auto record = [&](const Tile& dst, const Tile& data0, const Tile& data1, const Scalar& initial = 0.0f,
                          Alu op0 = Alu::multiply,
                          Alu op1 = Alu::add) { tensor_tensor_scan(dst, data0, data1, initial, op0, op1); };
  EXPECT_BREAKS("buffer", "dst", record(hbm, a, a));
  EXPECT_BREAKS("buffer", "data0", record(a, hbm, a));
  EXPECT_BREAKS("buffer", "data1", record(a, a, hbm));
  const Tile longer = h.nki.sbuf(DType::f32, {128, 2, 1}).broadcast(2, 32769);
  EXPECT_BREAKS("free-size", "dst", record(longer, a, a));
  EXPECT_BREAKS("free-size", "data0", record(a, longer, a));
  EXPECT_BREAKS("free-size", "data1", record(a, a, longer));
  EXPECT_BREAKS("partitions", "data0", record(a, a(ds(0, 32)), a(ds(0, 32))));
  EXPECT_BREAKS("partitions", "data1", record(a, a, a(ds(0, 32))));
  EXPECT_BREAKS("shape", "data0", record(a, narrow, narrow));
  EXPECT_BREAKS("shape", "data1", record(a, a, narrow));
  EXPECT_BREAKS("both-psum", "data1", record(a, p, p));
  EXPECT_BREAKS("dtype", "dst", record(packed, a, a));
  EXPECT_BREAKS("dtype", "data0", record(a, packed, a));
  EXPECT_BREAKS("dtype", "data1", record(a, a, packed));
  EXPECT_BREAKS("op", "bitwise_and", record(a, a, a, 0.0, Alu::bitwise_and));
  EXPECT_BREAKS("op", "op1", record(a, a, a, 0.0, Alu::add, Alu::abs));
  EXPECT_BREAKS("op", "power runs on the GpSimd", record(a, a, a, 0.0, Alu::add, Alu::power));
  EXPECT_BREAKS("generation", "abs_max", record(a, a, a, 0.0, Alu::abs_max));
  EXPECT_BREAKS("shape", "initial", record(a, a, a, a));
  EXPECT_BREAKS("buffer", "initial", record(a, a, a, hbm(ds(0, 128), ds(0, 1))));
  EXPECT_BREAKS("dtype", "initial", record(a, a, a, packed(ds(0, 128), ds(0, 1))));
}

}  // namespace headway::chip
