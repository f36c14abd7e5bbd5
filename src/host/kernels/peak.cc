#include "host/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace headway::host {
namespace {

// One register of the widest kind the compiler knows for this processor.
#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
using Vector [[gnu::vector_size(kLanes * sizeof(float))]] = float;

constexpr int kChains = 12;  // enough independent multiply-adds to hide their latency
constexpr int kRounds = 200'000;

float spin() {
  Vector sums[kChains];
  for (int c = 0; c < kChains; ++c)
    for (int i = 0; i < kLanes; ++i) sums[c][i] = static_cast<float>(c + i);
  Vector factor, term;
  for (int i = 0; i < kLanes; ++i) {
    factor[i] = 0.999f;
    term[i] = 0.001f;
  }
  for (int round = 0; round < kRounds; ++round) {
    asm volatile("" : "+x"(factor), "+x"(term));  // or the loop would be computed ahead of time
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = sums[c] * factor + term;
  }
  float sum = 0;
  for (const Vector& v : sums) sum += v[0];
  return sum;
}

}  // namespace

double measure_peak_flops(ThreadPool& pool) {
  double best = 0;
  std::vector<float> keep(static_cast<std::size_t>(pool.size()));
  for (int repeat = 0; repeat < 6; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    pool.run([&](int thread) { keep[static_cast<std::size_t>(thread)] = spin(); });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2.0 * kLanes * kChains * kRounds * pool.size() / seconds);
  }
  volatile float sink = keep[0];
  (void)sink;
  return best;
}

}  // namespace headway::host
