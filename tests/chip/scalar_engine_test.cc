// Activation and activation_reduce on the machine, against float64.
#include "chip/scalar_engine.h"

#include <cmath>
#include <limits>

#include "chip/exact_functions.h"
#include "chip/harness.h"
#include "chip/layouts.h"

namespace headway::chip {
namespace {

using Numbers = std::vector<double>;

float as_float(double x) { return static_cast<float>(x); }

// op(x * scale + bias) with product and sum in float32, as the documentation has it; `scale` and `bias` have
// one number a row.
Numbers reference(Function op, const Numbers& x, const Numbers& scale, const Numbers& bias) {
  const std::size_t n = x.size() / scale.size();
  Numbers y;
  for (std::size_t i = 0; i < x.size(); ++i)
    y.push_back(exact(op, as_float(double{as_float(x[i] * scale[i / n])} + bias[i / n])));
  return y;
}
Numbers repeated(std::int64_t count, double value) { return Numbers(static_cast<std::size_t>(count), value); }

// Sums of rows of n, and what float32 may lose: each of n additions rounds a sum of at most that of the
// magnitudes.
Numbers row_sums(const Numbers& y, std::size_t n) {
  Numbers sums;
  for (std::size_t i = 0; i < y.size(); i += n) {
    double sum = 0;
    for (std::size_t j = i; j < i + n; ++j) sum += y[j];
    sums.push_back(sum);
  }
  return sums;
}
double sum_error(const Numbers& y, std::size_t n) {
  double most = 0;
  for (std::size_t i = 0; i < y.size(); i += n) {
    double magnitude = 0;
    for (std::size_t j = i; j < i + n; ++j) magnitude += std::abs(y[j]);
    most = std::max(most, magnitude);
  }
  return most * (static_cast<double>(n) * 0x1p-24 + 1e-6);
}

TEST(Activation, GoesOverAllLayoutsBuffersAndShapes) {
  const std::vector<std::array<std::int64_t, 2>> shapes = {{1, 1},   {128, 1}, {128, 8},  {1, 512},
                                                           {32, 30}, {64, 77}, {97, 130}, {128, 512}};
  for (const auto& [p, n] : shapes)
    for (const Layout& from : layouts())
      for (const Layout& to : layouts()) {
        if (!to.writable || (&from != &to && from.name != "whole" && to.name != "whole" && n > 100)) continue;
        const bool psum = (p + n) % 2 == 0;
        Harness h;
        const Tile x = from.make(h.nki, psum ? Buffer::psum : Buffer::sbuf, DType::f32, p, n);
        const Tile y = to.make(h.nki, psum ? Buffer::sbuf : Buffer::psum, DType::f32, p, n);
        const Tile scale = h.nki.sbuf(DType::f32, {p, 1}), bias = h.nki.sbuf(DType::f32, {p, 1});
        SCOPED_TRACE(from.name + " to " + to.name);
        h.fill(x);
        const Numbers nx = h.numbers(x), ns = h.fill(scale), nb = h.fill(bias);
        activation(y, Function::silu, x, {.bias = bias, .scale = scale});
        h.run();
        expect_stored(h.numbers(y), reference(Function::silu, nx, ns, nb), DType::f32, 2e-7, 1e-37);
      }
}

TEST(Activation, TakesAndGivesAllDtypes) {
  for (const DType in : computable_dtypes())
    for (const DType out : computable_dtypes())
      for (const std::int64_t n : {5, 70}) {
        Harness h;
        const Tile x = h.nki.sbuf(in, {40, n}), y = h.nki.psum(out, {40, n});
        const Numbers nx = h.fill(x, in == DType::u8 || in == DType::u16 || in == DType::u32 ? 0 : -2, 3);
        activation(y, Function::square, x, {.bias = 0.25, .scale = 1.5});
        h.run();
        SCOPED_TRACE(std::string(name_of(in)) + " to " + std::string(name_of(out)));
        expect_stored(h.numbers(y), reference(Function::square, nx, repeated(40, 1.5), repeated(40, 0.25)),
                      out, 1e-7, 0);
      }
}

TEST(Activation, ComputesEveryFunction) {
  for (std::size_t f = 0; f < names_of(Function{}).size(); ++f) {
    const auto op = static_cast<Function>(f);
    Harness h;
    const Tile x = h.nki.sbuf(DType::f32, {128, 33}), y = h.nki.sbuf(DType::f32, {128, 33});
    const bool positive = op == Function::log || op == Function::sqrt || op == Function::rsqrt;
    const Numbers nx = h.fill(x, positive ? 0.01 : -1.5, 1.5);
    activation(y, op, x);
    h.run();
    const Error error = stated_error(op);
    expect_stored(h.numbers(y), reference(op, nx, repeated(128, 1), repeated(128, 0)), DType::f32,
                  error.relative, error.absolute);
    EXPECT_EQ(h.diagnostics().all().size(), 0u) << names_of(op)[f];
  }
}

TEST(Activation, TakesNumbersAndVectorsOfScaleAndBias) {
  for (const DType dtype : computable_dtypes()) {
    if (dtype == DType::tf32) continue;
    Harness h;
    const Tile x = h.nki.sbuf(DType::f32, {16, 70}), y = h.nki.sbuf(DType::f32, {16, 70}),
               z = h.nki.sbuf(DType::f32, {16, 70}), bias = h.nki.psum(dtype, {16, 1});
    const Numbers nx = h.fill(x), nb = h.fill(bias, 0, 3);
    activation(y, Function::copy, x, {.bias = bias, .scale = 2});
    activation(z, Function::copy, x, {.bias = -1, .scale = -0.5});
    h.run();
    expect_close(h.numbers(y), reference(Function::copy, nx, repeated(16, 2), nb), 0);
    expect_close(h.numbers(z), reference(Function::copy, nx, repeated(16, -0.5), repeated(16, -1)), 0);
  }
}

TEST(Activation, ReadsAllBeforeItWrites) {
  const std::int64_t n = 300;
  Harness h;
  const Tile t = h.nki.sbuf(DType::f32, {128, n + 7});
  const Tile in_place = h.nki.sbuf(DType::f32, {128, n});
  const Tile narrow = h.nki.sbuf(DType::f32, {128, n});
  h.fill(t);
  const Numbers shifted = h.numbers(t(ds(0, 128), ds(0, n))), same = h.fill(in_place), wide = h.fill(narrow);
  activation(t(ds(0, 128), ds(7, n)), Function::square, t(ds(0, 128), ds(0, n)));
  activation(in_place, Function::square, in_place);
  // Half as wide elements in the memory of the operand.
  const Tile half = narrow.reinterpret(DType::bf16)(ds(0, 128), ds(0, n));
  activation(half, Function::square, narrow);
  h.run();
  const Numbers one = repeated(128, 1), zero = repeated(128, 0);
  expect_stored(h.numbers(t(ds(0, 128), ds(7, n))), reference(Function::square, shifted, one, zero),
                DType::f32, 1e-7, 0);
  expect_stored(h.numbers(in_place), reference(Function::square, same, one, zero), DType::f32, 1e-7, 0);
  expect_stored(h.numbers(half), reference(Function::square, wide, one, zero), DType::bf16, 1e-7, 0);
}

TEST(Activation, MovesBetweenPartitions) {
  Harness h;
  const Tile t = h.nki.sbuf(DType::f32, {128, 10});
  h.fill(t);
  const Numbers low = h.numbers(t(ds(0, 20))), high = h.numbers(t(ds(64, 64)));
  activation(t(ds(96, 20)), Function::copy, t(ds(0, 20)));
  activation(t(ds(0, 32)), Function::copy, t(ds(64, 32)));
  h.run();
  EXPECT_EQ(h.numbers(t(ds(96, 20))), low);
  EXPECT_EQ(h.numbers(t(ds(0, 32))), Numbers(high.begin(), high.begin() + 320));
}

TEST(Activation, SumsRowsBeforeConversion) {
  for (const DType out : {DType::f32, DType::bf16, DType::i8})
    for (const std::int64_t n : {1, 7, 64, 509}) {
      Harness h;
      const Tile x = h.nki.psum(DType::f32, {128, n}), y = h.nki.sbuf(out, {128, n}),
                 sum = h.nki.sbuf(DType::f32, {128, 1}), rounded = h.nki.psum(DType::bf16, {128, 1});
      const Numbers nx = h.fill(x);
      activation(y, Function::exp, x,
                 {.reduce_op = Alu::add, .reduce_res = sum, .reduce_cmd = ReduceCmd::reset_reduce});
      activation_reduce(y, Function::exp, x, Alu::add, rounded);
      h.run();
      const Numbers ny = reference(Function::exp, nx, repeated(128, 1), repeated(128, 0));
      const Numbers sums = row_sums(ny, static_cast<std::size_t>(n));
      expect_stored(h.numbers(y), ny, out, 1e-7, 0);
      expect_stored(h.numbers(sum), sums, DType::f32, 0, sum_error(ny, static_cast<std::size_t>(n)));
      expect_stored(h.numbers(rounded), sums, DType::bf16, 0, sum_error(ny, static_cast<std::size_t>(n)));
    }
}

TEST(Activation, RegistersKeepTheirSums) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {128, 40}), y = h.nki.sbuf(DType::f32, {128, 40});
  const Numbers nx = h.fill(x, 0, 1);
  const auto run = [&](ReduceCmd cmd) {
    const Tile res = h.nki.sbuf(DType::f32, {128, 1});
    activation(y, Function::copy, x,
               {.reduce_op = reduces(cmd) ? std::optional(Alu::add) : std::nullopt,
                .reduce_res = res,
                .reduce_cmd = cmd});
    h.run();
    return h.numbers(res);
  };
  const Numbers sums = row_sums(nx, 40);
  const auto times = [&](double k) {
    Numbers all = sums;
    for (double& s : all) s *= k;
    return all;
  };
  expect_close(run(ReduceCmd::idle), times(0), 0);  // registers start at 0
  expect_close(run(ReduceCmd::reduce), times(1), 1e-5);
  expect_close(run(ReduceCmd::reduce), times(2), 1e-5);
  expect_close(run(ReduceCmd::idle), times(2), 1e-5);
  expect_close(run(ReduceCmd::reset_reduce), times(1), 1e-5);
  expect_close(run(ReduceCmd::reset), times(0), 0);
  EXPECT_EQ(h.numbers(y), nx) << "reset computes dst all the same";
  // Without reduce_res the sum waits in the registers.
  activation(y, Function::copy, x, {.reduce_op = Alu::add, .reduce_cmd = ReduceCmd::reset_reduce});
  activation_reduce(y, Function::copy, x, Alu::add, std::nullopt);
  expect_close(run(ReduceCmd::reduce), times(2), 1e-5);
  EXPECT_EQ(h.diagnostics().all().size(), 0u);
}

TEST(Activation, RegistersBelongToTheLanesOfData) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {128, 5}), y = h.nki.sbuf(DType::f32, {128, 5});
  const Tile fixed = h.nki.sbuf(DType::f32, {32, 5}, {.address = Address{64, 0}});
  const Tile res = h.nki.sbuf(DType::f32, {128, 1});
  const Numbers nx = h.fill(x), nf = h.fill(fixed);
  activation(y, Function::copy, x, {.reduce_op = Alu::add, .reduce_cmd = ReduceCmd::reset_reduce});
  activation(y(ds(0, 32)), Function::copy, x(ds(32, 32)),
             {.reduce_op = Alu::add, .reduce_cmd = ReduceCmd::reset_reduce});
  activation(y(ds(0, 32)), Function::copy, fixed, {.reduce_op = Alu::add, .reduce_cmd = ReduceCmd::reduce});
  activation(y, Function::copy, x, {.reduce_res = res});
  h.run();
  Numbers sums = row_sums(nx, 5);
  const Numbers more = row_sums(nf, 5);
  for (std::size_t r = 0; r < 32; ++r) sums[64 + r] += more[r];
  expect_close(h.numbers(res), sums, 1e-6, 1e-6);
}

TEST(Activation, TheSumStaysWhereItSharesMemoryWithDst) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {128, 50}), y = h.nki.sbuf(DType::f32, {128, 50});
  const Numbers nx = h.fill(x);
  activation(
      y, Function::copy, x,
      {.reduce_op = Alu::add, .reduce_res = y(ds(0, 128), ds(3, 1)), .reduce_cmd = ReduceCmd::reset_reduce});
  h.run();
  expect_close(h.numbers(y(ds(0, 128), ds(3, 1))), row_sums(nx, 50), 0, sum_error(nx, 50));
  EXPECT_EQ(h.numbers(y(ds(0, 128), ds(4, 1)))[7], nx[7 * 50 + 4]);
}

TEST(Activation, GivesTheSameOnAnyNumberOfThreads) {
  for (const bool sums : {false, true})
    expect_same_on_two_threads([&](Harness& h) {
      const Tile x = h.nki.psum(DType::f32, {128, 511}), y = h.nki.sbuf(DType::bf16, {128, 511}),
                 bias = h.nki.sbuf(DType::f32, {128, 1}), sum = h.nki.sbuf(DType::f32, {128, 1});
      h.fill(x);
      h.fill(bias);
      activation(
          y, Function::exp, x,
          {.bias = bias, .reduce_op = Alu::add, .reduce_res = sum, .reduce_cmd = ReduceCmd::reset_reduce});
      return sums ? sum : y;
    });
}

TEST(Activation, WarnsOnceOfInputsOutsideTheValidRange) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {128, 300}), y = h.nki.sbuf(DType::f32, {128, 300});
  Numbers nx = h.fill(x, 1, 2);
  nx[100 * 300 + 17] = 9;
  h.set(x, nx);
  for (int i = 0; i < 3; ++i) {
    activation(y, Function::sin, x);
    h.run();
    nx[100 * 300 + 17] += 1;
    h.set(x, nx);
  }
  auto texts = warnings(h, "activation-range");
  ASSERT_EQ(texts.size(), 1u) << "a line says it once";
  EXPECT_NE(texts[0].find("activation, data: sin is valid for magnitudes of 0 to 3.14159 only"),
            std::string::npos)
      << texts[0];
  EXPECT_NE(texts[0].find("data * scale + bias is 9 "), std::string::npos) << texts[0];
  // In range after scaling: nothing to say. Another function: its own warning.
  activation(y, Function::sin, x, {.scale = 0.1f});
  activation(y, Function::log, x, {.bias = -1.5f});
  h.run();
  texts = warnings(h, "activation-range");
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_NE(texts[1].find("log is valid for 5.42101e-20 to 1.84467e+19 only"), std::string::npos) << texts[1];
}

TEST(Activation, WarnsOfASumThatIsNotTaken) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {8, 8}), res = h.nki.sbuf(DType::f32, {8, 1});
  activation(x, Function::copy, x, {.reduce_op = Alu::add, .reduce_res = res});
  const auto texts = warnings(h, "reduce-idle");
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("reset_reduce"), std::string::npos);
}

TEST(Activation, RefusesWhatTheScalarEngineCant) {
  Harness h;
  Recorder& nki = h.nki;
  const Tile x = nki.sbuf(DType::f32, {64, 16}), y = nki.sbuf(DType::f32, {64, 16}),
             col = nki.sbuf(DType::f32, {64, 1});
  const Tile hbm = nki.private_hbm(DType::f32, {64, 16}), packed = nki.sbuf(DType::f8e4m3fn_x4, {64, 16}),
             scales = nki.sbuf(DType::f8e8m0fnu, {64, 16});
  const auto copy = [&](const Tile& to, const Tile& from, const ActivationOptions& o = {}) {
    activation(to, Function::copy, from, o);
  };
  EXPECT_BREAKS("buffer", "activation, dst", copy(hbm, x));
  EXPECT_BREAKS("buffer", "activation, data", copy(y, hbm));
  EXPECT_BREAKS("dtype", "dst", copy(packed, x));
  EXPECT_BREAKS("dtype", "data", copy(y, scales));
  EXPECT_BREAKS("partitions", "dst", copy(y(ds(0, 32)), x));
  EXPECT_BREAKS("shape", "dst", copy(y(ds(0, 64), ds(0, 8)), x));
  // scale and bias
  EXPECT_BREAKS("shape", "scale", copy(y, x, {.scale = col(ds(0, 32))}));
  EXPECT_BREAKS("shape", "bias", copy(y, x, {.bias = x}));
  EXPECT_BREAKS("buffer", "bias", copy(y, x, {.bias = nki.private_hbm(DType::f32, {64, 1})}));
  EXPECT_BREAKS("dtype", "scale", copy(y, x, {.scale = nki.sbuf(DType::bf16, {64, 1})}));
  EXPECT_BREAKS("dtype", "tfloat32", copy(y, x, {.bias = nki.sbuf(DType::tf32, {64, 1})}));
  // the registers
  EXPECT_BREAKS("reduce-op", "must be add, not maximum",
                copy(y, x, {.reduce_op = Alu::maximum, .reduce_cmd = ReduceCmd::reset_reduce}));
  EXPECT_BREAKS("reduce-op", "it is none", copy(y, x, {.reduce_cmd = ReduceCmd::reduce}));
  EXPECT_BREAKS("reduce-cmd", "load_reduce",
                copy(y, x, {.reduce_op = Alu::add, .reduce_cmd = ReduceCmd::load_reduce}));
  const auto sum_to = [&](const Tile& res) {
    copy(y, x, {.reduce_op = Alu::add, .reduce_res = res, .reduce_cmd = ReduceCmd::reset_reduce});
  };
  EXPECT_BREAKS("shape", "reduce_res", sum_to(col(ds(0, 32))));
  EXPECT_BREAKS("buffer", "reduce_res", sum_to(nki.private_hbm(DType::f32, {64, 1})));
  EXPECT_BREAKS("dtype", "reduce_res", sum_to(nki.sbuf(DType::f8e5m2_x4, {64, 1})));
  EXPECT_BREAKS("reduce-op", "activation_reduce", activation_reduce(y, Function::exp, x, Alu::multiply, col));
  EXPECT_EQ(nki.program().instructions.size(), 0u) << "what is refused isn't recorded";
}

TEST(Activation, KnowsTheFirstGenerationsLimits) {
  Harness h(trn1());
  const Tile x = h.nki.sbuf(DType::f32, {64, 16}), col = h.nki.sbuf(DType::f32, {64, 1});
  EXPECT_BREAKS("bias-vector", "not the number 0.5", activation(x, Function::exp, x, {.bias = 0.5f}));
  EXPECT_BREAKS("reciprocal-bias", "reciprocal takes no bias",
                activation(x, Function::reciprocal, x, {.bias = col}));
  activation(x, Function::exp, x, {.bias = col});
  activation(x, Function::reciprocal, x, {.scale = 2});
  Harness later;
  const Tile z = later.nki.sbuf(DType::f32, {64, 16});
  activation(z, Function::reciprocal, z, {.bias = 0.5f});
  EXPECT_EQ(h.nki.program().instructions.size() + later.nki.program().instructions.size(), 3u);
}

TEST(Activation, PrintsItsParametersByName) {
  Harness h;
  const Tile x = h.nki.sbuf(DType::f32, {64, 16}, {.name = "x"}),
             s = h.nki.sbuf(DType::f32, {64, 1}, {.name = "s"});
  activation(
      x, Function::gelu_dx, x,
      {.bias = s, .scale = 0.5, .reduce_op = Alu::add, .reduce_res = s, .reduce_cmd = ReduceCmd::reduce});
  activation_reduce(x, Function::exp, x, Alu::add, s, {.scale = s});
  const auto text = [&](std::size_t i) {
    return to_string(*h.nki.program().instructions[i], h.nki.program());
  };
  for (const char* part : {"activation(", "dst='x'", "op=gelu_dx", "data='x'", "bias='s'", "scale=0.5",
                           "reduce_op=add", "reduce_res='s'", "reduce_cmd=reduce"})
    EXPECT_NE(text(0).find(part), std::string::npos) << text(0);
  for (const char* part : {"activation_reduce(", "reduce_op=add", "reduce_res='s'", "scale='s'"})
    EXPECT_NE(text(1).find(part), std::string::npos) << text(1);
}

}  // namespace
}  // namespace headway::chip
