// Matrix products of whole tensors, divided over the pool.
#pragma once

#include <cstdint>
#include <functional>

#include "base/threads.h"

namespace headway::simd {

// C [m, n] (+)= op(A) op(B), all row-major with leading dimensions. a_transposed: A is stored as [k, m];
// b_transposed: B is stored as [n, k].
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const float* b = nullptr;
  std::int64_t ldb = 0;
  float* c = nullptr;
  std::int64_t ldc = 0;
  bool accumulate = false;
  bool round_to_bf16 = false;
  // Called when the columns [column_begin, column_end) of rows [row_begin, row_end) of C are final and still
  // in the cache.
  std::function<void(std::int64_t row_begin, std::int64_t row_end, std::int64_t column_begin,
                     std::int64_t column_end)>
      finished;
};

// Bytes of scratch for a product of this size.
std::int64_t gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k, int threads);

// Every element of C is the sum over k in the same order whatever the number of threads.
void gemm(const Gemm& product, ThreadPool& pool, void* workspace);

}  // namespace headway::simd
