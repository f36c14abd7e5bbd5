// The elementary functions that the fast kernels use, over arrays: for tests and benchmarks.
#pragma once

#include <cstdint>

namespace headway::simd::vector_math {

// y[i] = f(x[i]) for i < count. Largest relative errors: exp 9e-8, tanh and sigmoid 1.5e-7, normal_cdf 5e-7
// (down to x = -13). exp is 0 below -87.3 and 2.4e38 above 88.3.
void exp(const float* x, float* y, std::int64_t count);
void tanh(const float* x, float* y, std::int64_t count);
void sigmoid(const float* x, float* y, std::int64_t count);
void normal_cdf(const float* x, float* y, std::int64_t count);

}  // namespace headway::simd::vector_math
