#include "chip/alu.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "chip/vector_reference.h"

namespace headway::chip {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

constexpr Alu kUnary[] = {Alu::abs, Alu::square, Alu::relu, Alu::rsqrt, Alu::reciprocal};
constexpr Alu kArithmetic[] = {
    Alu::add,        Alu::subtract,    Alu::multiply,      Alu::maximum, Alu::minimum,    Alu::equal,
    Alu::not_equal,  Alu::greater,     Alu::greater_equal, Alu::less,    Alu::less_equal, Alu::logical_and,
    Alu::logical_or, Alu::logical_xor, Alu::power,         Alu::abs_max, Alu::abs_min};

std::vector<float> special() {
  return {0.0f,   -0.0f, 1.0f,   -1.0f,           0.5f,
          3.0f,   -2.5f, 1e-40f, -1e-40f,         std::numeric_limits<float>::denorm_min(),
          kInf,   -kInf, kNan,   16777216.0f,     16777217.0f,
          -7.25f, 3e38f, -3e38f, 1.17549435e-38f, 0.1f};
}

std::vector<float> random_numbers(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  const std::vector<float> odd = special();
  std::vector<float> numbers(n);
  for (float& number : numbers) {
    const auto pick = random();
    number = pick % 8 == 0 ? odd[random() % odd.size()]
                           : std::ldexp(static_cast<float>(static_cast<std::int32_t>(random())),
                                        static_cast<int>(pick % 40) - 45);
  }
  return numbers;
}

// The same number; the sign of zero counts, which NaN it is doesn't.
testing::AssertionResult same(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return testing::AssertionSuccess();
  if (std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << a << " is not " << b;
}

// The same value.
testing::AssertionResult equals(float a, double b) {
  if ((std::isnan(a) && std::isnan(b)) || static_cast<double>(a) == b) return testing::AssertionSuccess();
  return testing::AssertionFailure() << a << " is not " << b;
}

}  // namespace

TEST(Alu, NamesAndKinds) {
  EXPECT_EQ(name_of(Alu::bypass), "bypass");
  EXPECT_EQ(name_of(Alu::greater_equal), "greater_equal");
  EXPECT_EQ(name_of(Alu::invert), "invert");
  EXPECT_EQ(name_of(Alu::average), "average");
  int bitwise = 0, unary = 0, reductions = 0;
  for (std::size_t i = 0; i < names_of(Alu{}).size(); ++i) {
    EXPECT_FALSE(names_of(Alu{})[i].empty());
    bitwise += is_bitwise(static_cast<Alu>(i));
    unary += is_unary(static_cast<Alu>(i));
    reductions += is_reduction(static_cast<Alu>(i));
  }
  EXPECT_EQ(bitwise, 6);
  EXPECT_EQ(unary, 6);
  EXPECT_EQ(reductions, 12);
  EXPECT_TRUE(is_unary(Alu::invert) && is_bitwise(Alu::invert));
  EXPECT_FALSE(is_reduction(Alu::power) || is_reduction(Alu::left_shift) || is_reduction(Alu::greater));
}

TEST(Alu, OperatorsMeanWhatTheDocumentsSay) {
  std::vector<float> numbers = special();
  for (float number : random_numbers(40, 1)) numbers.push_back(number);
  for (Alu op : kArithmetic) {
    if (op == Alu::power) continue;
    for (float a : numbers)
      for (float b : numbers)
        EXPECT_TRUE(equals(apply_alu(op, a, b), reference::binary(op, a, b)))
            << name_of(op) << ' ' << a << ' ' << b;
  }
  for (Alu op : kUnary)
    for (float a : numbers)
      EXPECT_TRUE(equals(apply_alu(op, a), reference::unary(op, a))) << name_of(op) << ' ' << a;
  EXPECT_EQ(apply_alu(Alu::bypass, 3.0f, 4.0f), 3.0f);
  EXPECT_EQ(apply_alu(Alu::bypass, 3.0f), 3.0f);
}

TEST(Alu, NanAndZeros) {
  for (Alu op : {Alu::maximum, Alu::minimum}) {
    EXPECT_TRUE(std::isnan(apply_alu(op, kNan, 1.0f)));
    EXPECT_TRUE(std::isnan(apply_alu(op, 1.0f, kNan)));
    EXPECT_TRUE(same(apply_alu(op, 0.0f, -0.0f), -0.0f));
    EXPECT_TRUE(same(apply_alu(op, -0.0f, 0.0f), 0.0f));
  }
  EXPECT_EQ(apply_alu(Alu::not_equal, kNan, kNan), 1);
  EXPECT_EQ(apply_alu(Alu::equal, kNan, kNan), 0);
  EXPECT_EQ(apply_alu(Alu::greater_equal, kNan, 0), 0);
  EXPECT_EQ(apply_alu(Alu::logical_and, kNan, 1), 1);
  EXPECT_EQ(apply_alu(Alu::abs_max, kNan, 2), 2);
  EXPECT_TRUE(std::isnan(apply_alu(Alu::abs_min, 2, kNan)));
  EXPECT_EQ(apply_alu(Alu::abs_max, 1, -1), -1);  // a tie gives the second
  EXPECT_EQ(apply_alu(Alu::abs_min, 1, -1), -1);
  EXPECT_TRUE(same(apply_alu(Alu::relu, -0.0f), 0.0f));
  EXPECT_TRUE(std::isnan(apply_alu(Alu::relu, kNan)));
  EXPECT_EQ(apply_alu(Alu::rsqrt, 0.0f), kInf);
  EXPECT_TRUE(std::isnan(apply_alu(Alu::rsqrt, -1.0f)));
  EXPECT_EQ(apply_alu(Alu::reciprocal, -0.0f), -kInf);
  EXPECT_EQ(apply_alu(Alu::power, 0, 0), 1);
  EXPECT_TRUE(std::isnan(apply_alu(Alu::power, -2, 0.5f)));
}

// Within one unit in the last place: 2^-23 of the number.
TEST(Alu, PowerAndRsqrtAreAccurate) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> base(0.001f, 100), exponent(-6, 6);
  for (int i = 0; i < 20000; ++i) {
    const float a = base(random), b = exponent(random);
    const double exact = std::pow(static_cast<double>(a), static_cast<double>(b));
    EXPECT_LE(std::abs(static_cast<double>(apply_alu(Alu::power, a, b)) - exact), std::ldexp(exact, -23));
    const double root = 1 / std::sqrt(static_cast<double>(a));
    EXPECT_LE(std::abs(static_cast<double>(apply_alu(Alu::rsqrt, a)) - root), std::ldexp(root, -23));
  }
  for (int n = -8; n <= 8; ++n)
    EXPECT_EQ(apply_alu(Alu::power, -2, static_cast<float>(n)), std::ldexp(n % 2 ? -1.0f : 1.0f, n));
}

TEST(Alu, BitsOfEveryWidth) {
  std::mt19937 random(7);
  for (int bits : {8, 16, 32}) {
    const std::uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
    for (Alu op : {Alu::bitwise_and, Alu::bitwise_or, Alu::bitwise_xor, Alu::left_shift, Alu::right_shift,
                   Alu::invert})
      for (int i = 0; i < 200; ++i) {
        const auto a = static_cast<std::uint32_t>(random()) & mask;
        const auto b = (op == Alu::left_shift || op == Alu::right_shift) && i < 150
                           ? static_cast<std::uint32_t>(i) % 50
                           : static_cast<std::uint32_t>(random()) & mask;
        EXPECT_EQ(apply_bits(op, a, b, bits), reference::bitwise(op, a, b, bits))
            << name_of(op) << ' ' << a << ' ' << b;
      }
  }
}

TEST(Alu, IntegersAreExact) {
  std::mt19937 random(8);
  std::vector<std::uint32_t> values = {0, 1, 2, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 16777217};
  for (int i = 0; i < 20; ++i) values.push_back(static_cast<std::uint32_t>(random()));
  for (Alu op : reference::kBinary)
    for (bool a_signed : {false, true})
      for (bool b_signed : {false, true})
        for (std::uint32_t a : values)
          for (std::uint32_t b : values) {
            const __int128 x =
                a_signed ? static_cast<__int128>(static_cast<std::int32_t>(a)) : static_cast<__int128>(a);
            const __int128 y =
                b_signed ? static_cast<__int128>(static_cast<std::int32_t>(b)) : static_cast<__int128>(b);
            __int128 expected;
            switch (op) {
              case Alu::add:
                expected = x + y;
                break;
              case Alu::subtract:
                expected = x - y;
                break;
              case Alu::multiply:
                expected = x * y;
                break;
              default:  // these don't round: doubles hold all 32-bit values
                expected = static_cast<__int128>(
                    reference::binary(op, static_cast<double>(x), static_cast<double>(y)));
            }
            const std::uint32_t out = apply_integers(op, a, a_signed, b, b_signed);
            ASSERT_EQ(out, static_cast<std::uint32_t>(static_cast<std::uint64_t>(expected))) << name_of(op);
            std::uint32_t row[3] = {a, a, a}, other[3] = {b, b, b};
            alu_integer_rows(op, {row, 3}, a_signed, {other, 3}, b_signed, {row, 3}, 1, 3);
            ASSERT_EQ(row[0], out) << name_of(op);
            ASSERT_EQ(row[2], out);
          }
}

TEST(AluRows, AreTheScalarOperatorsToTheBit) {
  for (std::int64_t n : {1, 2, 3, 7, 8, 15, 16, 17, 33, 64, 100, 257}) {
    const auto count = static_cast<std::size_t>(n);
    const std::vector<float> a = random_numbers(count, 11), b = random_numbers(count, 12);
    const float s = random_numbers(5, static_cast<unsigned>(n))[3];
    for (Alu op : kArithmetic) {
      std::vector<float> out(count);
      alu_row(op, a.data(), b.data(), out.data(), n);
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_TRUE(same(out[i], apply_alu(op, a[i], b[i]))) << name_of(op);
      std::vector<float> in_place = a;
      alu_row(op, in_place.data(), b.data(), in_place.data(), n);
      for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(same(in_place[i], out[i])) << name_of(op);
      in_place = b;
      alu_row(op, a.data(), in_place.data(), in_place.data(), n);
      for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(same(in_place[i], out[i])) << name_of(op);
      alu_row(op, a.data(), s, false, out.data(), n);
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_TRUE(same(out[i], apply_alu(op, a[i], s))) << name_of(op);
      alu_row(op, a.data(), s, true, out.data(), n);
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_TRUE(same(out[i], apply_alu(op, s, a[i]))) << name_of(op);
    }
    for (Alu op : kUnary) {
      std::vector<float> out = a;
      alu_row(op, out.data(), out.data(), n);
      for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(same(out[i], apply_alu(op, a[i]))) << name_of(op);
    }
  }
}

TEST(AluRows, ManyRowsWithStridesAndSingles) {
  for (std::int64_t rows : {1, 3, 128})
    for (std::int64_t n : {1, 2, 8, 33})
      for (bool a_single : {false, true})
        for (bool b_single : {false, true})
          for (std::int64_t gap : {0, 3}) {
            const std::int64_t stride = n + gap;
            const auto size = static_cast<std::size_t>(rows * stride);
            const std::vector<float> a = random_numbers(size, 21), b = random_numbers(size, 22);
            const std::int64_t a_stride = a_single ? gap : stride, b_stride = b_single ? 1 : stride;
            for (Alu op : {Alu::subtract, Alu::maximum, Alu::greater}) {
              std::vector<float> out(size, 77.0f);
              alu_rows(op, {a.data(), a_stride, a_single}, {b.data(), b_stride, b_single},
                       {out.data(), stride}, rows, n);
              for (std::int64_t r = 0; r < rows; ++r)
                for (std::int64_t i = 0; i < stride; ++i) {
                  const auto at = static_cast<std::size_t>(r * stride + i);
                  if (i >= n) {
                    ASSERT_EQ(out[at], 77.0f);
                    continue;
                  }
                  const float x = a[static_cast<std::size_t>(r * a_stride + (a_single ? 0 : i))];
                  const float y = b[static_cast<std::size_t>(r * b_stride + (b_single ? 0 : i))];
                  ASSERT_TRUE(same(out[at], apply_alu(op, x, y))) << name_of(op) << ' ' << rows << ' ' << n;
                }
            }
          }
}

// Two operators in one pass are the two of them one after the other.
TEST(AluRows, Pairs) {
  int pairs = 0;
  for (const auto& [rows, n, gap] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{5, 37, 2}, {6, 16, 0}, {40, 1, 1}})
    for (Alu op0 : kArithmetic)
      for (Alu op1 : kArithmetic)
        for (int variant = 0; variant < 16; ++variant) {
          const OpPair ops{op0, op1, (variant & 1) != 0, (variant & 2) != 0};
          const bool s_same = variant & 4, b_single = variant & 8;
          const std::int64_t stride = n + gap;
          const auto size = static_cast<std::size_t>(rows * stride);
          const std::vector<float> a = random_numbers(size, 91),
                                   s = random_numbers(static_cast<std::size_t>(rows), 92);
          std::vector<float> b = random_numbers(size, 93);
          const std::vector<float> second = b;
          const Rows<float> scalar{s.data(), s_same ? 0 : 1, true};
          // Where b is a tile, the result replaces it.
          std::vector<float> apart(size);
          float* const out = b_single ? apart.data() : b.data();
          const Rows<float> other{b.data(), b_single ? 1 : stride, b_single};
          if (!alu_pair_rows(ops, {a.data(), stride, false}, scalar, other, {out, stride}, rows, n)) continue;
          ++pairs;
          for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t i = 0; i < n; ++i) {
              const auto at = static_cast<std::size_t>(r * stride + i);
              const float x = s[s_same ? 0 : static_cast<std::size_t>(r)];
              const float y = second[b_single ? static_cast<std::size_t>(r) : at];
              const float t = ops.reverse0 ? apply_alu(op0, x, a[at]) : apply_alu(op0, a[at], x);
              const float expected = ops.reverse1 ? apply_alu(op1, y, t) : apply_alu(op1, t, y);
              ASSERT_TRUE(same(out[at], expected)) << name_of(op0) << ' ' << name_of(op1) << ' ' << variant;
            }
        }
  // Of 17 operators with reversals, 8 are in pairs.
  EXPECT_EQ(pairs, 3 * 8 * 8 * 4);
}

TEST(AluRows, Bits) {
  std::mt19937 random(9);
  for (int bits : {8, 16, 32})
    for (std::int64_t n : {1, 5, 16, 67}) {
      std::vector<std::uint32_t> a(static_cast<std::size_t>(n)), b(a.size()), out(a.size());
      const std::uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
      for (Alu op : {Alu::bitwise_and, Alu::bitwise_or, Alu::bitwise_xor, Alu::left_shift, Alu::right_shift,
                     Alu::invert}) {
        const bool shifts = op == Alu::left_shift || op == Alu::right_shift;
        for (std::uint32_t& x : a) x = static_cast<std::uint32_t>(random()) & mask;
        for (std::uint32_t& x : b) x = static_cast<std::uint32_t>(random()) & (shifts ? 63 : mask);
        alu_bits_row(op, a.data(), b.data(), out.data(), n, bits);
        for (std::size_t i = 0; i < a.size(); ++i)
          ASSERT_EQ(out[i], reference::bitwise(op, a[i], b[i], bits));
        alu_bits_row(op, a.data(), b[0], false, out.data(), n, bits);
        for (std::size_t i = 0; i < a.size(); ++i)
          ASSERT_EQ(out[i], reference::bitwise(op, a[i], b[0], bits));
        if (op == Alu::invert) continue;
        alu_bits_row(op, a.data(), b[0], true, out.data(), n, bits);
        for (std::size_t i = 0; i < a.size(); ++i)
          ASSERT_EQ(out[i], reference::bitwise(op, b[0], a[i], bits));
      }
    }
}

TEST(AluReduce, FollowsTheOrderItPromises) {
  std::mt19937 random(31);
  std::uniform_real_distribution<float> uniform(-3, 3);
  for (std::int64_t n = 1; n <= 300; n += n < 70 ? 1 : 23) {
    std::vector<float> row(static_cast<std::size_t>(n));
    for (float& x : row) x = uniform(random);
    for (Alu op : {Alu::add, Alu::subtract, Alu::multiply, Alu::maximum, Alu::minimum, Alu::logical_and,
                   Alu::logical_or, Alu::logical_xor}) {
      if (op == Alu::logical_and || op == Alu::logical_or || op == Alu::logical_xor)
        for (float& x : row) x = random() % 5 == 0 ? 0.0f : x;
      const std::vector<double> numbers(row.begin(), row.end());
      for (float init : {identity(op), 0.75f, 0.0f}) {
        const double start = static_cast<double>(init);
        EXPECT_TRUE(equals(reduce_row(op, row.data(), n, init), reference::reduce(op, numbers, &start)))
            << name_of(op) << ' ' << n;
      }
      float out = 0;
      reduce_rows(op, {row.data(), n}, nullptr, {&out, 1}, 1, 1, n);
      EXPECT_TRUE(equals(out, reference::reduce(op, numbers))) << name_of(op) << ' ' << n;
    }
  }
  EXPECT_EQ(reduce_row(Alu::add, nullptr, 0, 4.0f), 4.0f);
}

TEST(AluReduce, GroupsOfRows) {
  const std::vector<float> a = random_numbers(6 * 50, 41);
  for (const auto& [groups, n] : {std::pair<std::int64_t, std::int64_t>{1, 40}, {5, 8}, {40, 1}, {2, 20}}) {
    const float init[6] = {1, 2, 3, 4, 5, 6};
    std::vector<float> out(6 * 45, 9.0f);
    reduce_rows(Alu::maximum, {a.data(), 50}, init, {out.data(), 45}, 6, groups, n);
    for (std::int64_t r = 0; r < 6; ++r)
      for (std::int64_t g = 0; g < 45; ++g) {
        const float got = out[static_cast<std::size_t>(r * 45 + g)];
        if (g >= groups) {
          ASSERT_EQ(got, 9.0f);
          continue;
        }
        const float* from = a.data() + r * 50 + g * n;
        const double start = static_cast<double>(init[r]);
        ASSERT_TRUE(equals(got, reference::reduce(Alu::maximum, {from, from + n}, &start)));
      }
  }
}

TEST(AluReduce, NanReachesTheResult) {
  for (std::size_t n : {1u, 7u, 64u, 130u})
    for (std::size_t at : {std::size_t{0}, n / 2, n - 1})
      for (Alu op : {Alu::add, Alu::multiply, Alu::maximum, Alu::minimum}) {
        std::vector<float> row(n, 1.5f);
        row[at] = kNan;
        EXPECT_TRUE(std::isnan(reduce_row(op, row.data(), static_cast<std::int64_t>(n), identity(op))))
            << name_of(op);
      }
}

TEST(AluReduce, Bits) {
  std::mt19937 random(51);
  for (Alu op : {Alu::bitwise_and, Alu::bitwise_or, Alu::bitwise_xor})
    for (std::size_t n : {1u, 2u, 16u, 77u}) {
      std::vector<std::uint32_t> row(n);
      for (std::uint32_t& x : row) x = static_cast<std::uint32_t>(random()) | 0x10u;
      std::uint64_t expected = row[0];
      for (std::size_t i = 1; i < n; ++i) expected = reference::bitwise(op, expected, row[i], 32);
      std::uint32_t out = 0;
      reduce_bits_rows(op, {row.data(), static_cast<std::int64_t>(n)}, {&out, 1}, 1, 1,
                       static_cast<std::int64_t>(n));
      EXPECT_EQ(out, expected);
      EXPECT_EQ(reduce_bits_row(op, row.data(), static_cast<std::int64_t>(n), 0xff00ffu),
                reference::bitwise(op, 0xff00ff, expected, 32));
    }
}

TEST(AluReduce, Identities) {
  EXPECT_EQ(identity(Alu::add), 0);
  EXPECT_EQ(identity(Alu::subtract), 0);
  EXPECT_EQ(identity(Alu::multiply), 1);
  EXPECT_EQ(identity(Alu::maximum), -kInf);
  EXPECT_EQ(identity(Alu::minimum), kInf);
  EXPECT_EQ(identity(Alu::logical_and), 1);
  EXPECT_EQ(identity(Alu::logical_xor), 0);
  EXPECT_THROW(identity(Alu::bitwise_and), Bug);
}

TEST(AluScan, EveryPairOfOperators) {
  const std::int64_t n = 9;
  for (std::int64_t rows : {1, 8, 13}) {
    const auto size = static_cast<std::size_t>(rows * n);
    const std::vector<float> a = random_numbers(size, 61), b = random_numbers(size, 62);
    const std::vector<float> first = random_numbers(static_cast<std::size_t>(rows), 63);
    for (Alu op0 : kArithmetic)
      for (Alu op1 : kArithmetic)
        for (int reversals = 0; reversals < 4; ++reversals) {
          const OpPair step{op0, op1, (reversals & 1) != 0, (reversals & 2) != 0};
          std::vector<float> state = first, out(size);
          scan_rows(step, {a.data(), n}, {b.data(), n}, state.data(), {out.data(), n}, rows, n);
          for (std::int64_t r = 0; r < rows; ++r) {
            float s = first[static_cast<std::size_t>(r)];
            for (std::int64_t i = 0; i < n; ++i) {
              const auto at = static_cast<std::size_t>(r * n + i);
              const float t = step.reverse0 ? apply_alu(op0, s, a[at]) : apply_alu(op0, a[at], s);
              s = step.reverse1 ? apply_alu(op1, b[at], t) : apply_alu(op1, t, b[at]);
              ASSERT_TRUE(same(out[at], s)) << name_of(op0) << ' ' << name_of(op1) << ' ' << reversals;
            }
            ASSERT_TRUE(same(state[static_cast<std::size_t>(r)], s));
          }
        }
  }
}

TEST(AluScan, SinglesAndCumulation) {
  const std::int64_t rows = 11, n = 6;
  const std::vector<float> a = random_numbers(66, 71), b = random_numbers(11, 72);
  std::vector<float> state(11, 0.5f), out(66);
  scan_rows({Alu::multiply, Alu::add}, {a.data(), n}, {b.data(), 1, true}, state.data(), {out.data(), n},
            rows, n);
  for (std::size_t r = 0; r < 11; ++r) {
    double s = 0.5;
    for (std::size_t i = 0; i < 6; ++i) {
      s = reference::binary(Alu::add, reference::binary(Alu::multiply, a[r * 6 + i], s), b[r]);
      ASSERT_TRUE(equals(out[r * 6 + i], s));
    }
  }
  for (Alu op : {Alu::add, Alu::subtract, Alu::multiply, Alu::maximum, Alu::minimum}) {
    std::vector<float> reg(11, 2.0f);
    cumulate_rows(op, {a.data(), n}, reg.data(), {out.data(), n}, rows, n);
    for (std::size_t r = 0; r < 11; ++r) {
      double s = 2;
      for (std::size_t i = 0; i < 6; ++i) {
        s = reference::binary(op, a[r * 6 + i], s);
        ASSERT_TRUE(equals(out[r * 6 + i], s)) << name_of(op);
      }
      ASSERT_TRUE(equals(reg[r], s));
    }
  }
}

}  // namespace headway::chip
