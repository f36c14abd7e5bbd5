// Views of [P, N] in all sorts of memory, and what float32 results of known error may have become in them.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "chip/harness.h"

namespace headway::chip {

struct Layout {
  std::string name;
  bool writable = true;
  std::function<Tile(Recorder&, Buffer, DType, std::int64_t p, std::int64_t n)> make;
};

inline Tile tile_in(Recorder& nki, Buffer buffer, DType dtype, const Shape& shape) {
  return buffer == Buffer::psum ? nki.psum(dtype, shape) : nki.sbuf(dtype, shape);
}

inline std::int64_t smallest_factor(std::int64_t n) {
  for (std::int64_t f = 2; f * f <= n; ++f)
    if (n % f == 0) return f;
  return 1;
}

inline std::vector<Layout> layouts() {
  using R = Recorder&;
  return {
      {"whole", true,
       [](R nki, Buffer b, DType d, auto p, auto n) {
         return tile_in(nki, b, d, {p, n});
       }},
      {"last partitions", true,
       [](R nki, Buffer b, DType d, auto p, auto n) {
         const std::int64_t start = p <= 32 ? 96 : p <= 64 ? 64 : 0;
         return tile_in(nki, b, d, {start + p, n})(ds(start, p));
       }},
      {"offset and stride", true,
       [](R nki, Buffer b, DType d, auto p, auto n) {
         return tile_in(nki, b, d, {p, 2 * n + 3})(ds(0, p), range(3, 3 + 2 * n, 2));
       }},
      {"rows of a wider tensor", true,
       [](R nki, Buffer b, DType d, auto p, auto n) {
         return tile_in(nki, b, d, {p, n + 5})(ds(0, p), ds(1, n));
       }},
      {"two extents", true,
       [](R nki, Buffer b, DType d, auto p, auto n) {
         const std::int64_t f = smallest_factor(n);
         return tile_in(nki, b, d, {p, f, n / f + 2})(ds(0, p), ds(0, f), ds(1, n / f));
       }},
      {"transposed extents", true,
       [](R nki, Buffer b, DType d, auto p, auto n) {
         const std::int64_t f = smallest_factor(n);
         return tile_in(nki, b, d, {p, f, n / f}).permute({0, 2, 1});
       }},
      {"one value repeated", false,
       [](R nki, Buffer b, DType d, auto p, auto n) {
         return tile_in(nki, b, d, {p, 1}).broadcast(1, n);
       }},
  };
}

// Each number is what storing something within `exact` -+ (relative |exact| + absolute) may give: conversions
// are monotonic, so no dtype needs a tolerance of its own.
inline void expect_stored(const std::vector<double>& got, const std::vector<double>& exact, DType dtype,
                          double relative, double absolute) {
  ASSERT_EQ(got.size(), exact.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::isfinite(exact[i]) ? relative * std::abs(exact[i]) + absolute : 0;
    const double low = stored(dtype, exact[i] - error), high = stored(dtype, exact[i] + error);
    if (std::isnan(low)) {
      ASSERT_TRUE(std::isnan(got[i])) << "at " << i << ": " << got[i];
    } else {
      ASSERT_TRUE(low <= got[i] && got[i] <= high) << "at " << i << ": " << got[i] << " as " << name_of(dtype)
                                                   << " instead of " << low << " to " << high;
    }
  }
}

// The bits that `program` leaves in the tile it returns, on as many threads.
inline std::vector<std::uint64_t> bits_with(int threads, const std::function<Tile(Harness&)>& program) {
  Harness h(trn2(), threads);
  const Tile result = program(h);
  h.run();
  return h.bits(result);
}
inline void expect_same_on_two_threads(const std::function<Tile(Harness&)>& program) {
  EXPECT_EQ(bits_with(1, program), bits_with(2, program));
}

// The warnings of a rule.
inline std::vector<std::string> warnings(Harness& h, const std::string& rule) {
  std::vector<std::string> texts;
  for (const Diagnostic& d : h.diagnostics().all())
    if (d.rule == rule && d.severity == Severity::warning) texts.push_back(d.text());
  return texts;
}

}  // namespace headway::chip
