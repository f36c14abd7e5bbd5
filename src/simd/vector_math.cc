#include "simd/vector_math.h"

#include "simd/simd_math.h"

namespace headway::simd::vector_math {
namespace {

template <F32 (*function)(F32)>
void over(const float* x, float* y, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(y + i, function(load(x + i)));
  if (i < count) store_first(y + i, function(load_first(x + i, count - i)), count - i);
}

}  // namespace

void exp(const float* x, float* y, std::int64_t count) { over<simd::exp>(x, y, count); }
void tanh(const float* x, float* y, std::int64_t count) { over<simd::tanh>(x, y, count); }
void sigmoid(const float* x, float* y, std::int64_t count) { over<simd::sigmoid>(x, y, count); }
void normal_cdf(const float* x, float* y, std::int64_t count) { over<simd::normal_cdf>(x, y, count); }

}  // namespace headway::simd::vector_math
