// The matrix part of Muon: Polar Express and NorMuon.
#include <cmath>
#include <memory>
#include <utility>

#include "graph/operators/update.h"
#include "host/kernels/families.h"
#include "host/kernels/pieces.h"
#include "host/kernels/vectors.h"
#include "simd/gemm.h"
#include "simd/lanes.h"

namespace headway::host {
namespace {

// x [m, n] -> y. With a tall x the Gram matrix is x^T x and multiplies from the right, which is what
// transposing, iterating and transposing back computes.
class PolarExpressKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const auto& op = call.op<graph::PolarExpress>();
    const std::int64_t m = call.inputs[0].shape[0], n = call.inputs[0].shape[1], count = m * n;
    const std::int64_t small = std::min(m, n);
    const Space space(m, n, call.pool.size());
    auto* own = static_cast<float*>(call.workspace);
    float *gram = own + space.gram, *polynomial = own + space.polynomial;

    const float* x = call.inputs[0].as<float>();
    float* sums = own + space.sums;
    sum_pieces(call.pool, count, sums,
               [&](std::int64_t begin, std::int64_t end) { return dot(x + begin, x + begin, end - begin); });
    const auto scale = static_cast<float>(1 / (1.01 * std::sqrt(total(sums, piece_count(count))) + 1e-6));
    // The last iteration has to write to the output.
    float *from = call.outputs[0].as<float>(), *to = own + space.other;
    if (op.iterations % 2 != 0) std::swap(from, to);
    for_lanes(call.pool, count, [&](std::int64_t i, auto at) { at.store(from + i, at.load(x + i) * scale); });

    for (int k = 0; k < op.iterations; ++k) {
      const auto& triple = graph::PolarExpress::coefficients[static_cast<std::size_t>(k)];
      const auto a = static_cast<float>(triple[0]), b = static_cast<float>(triple[1]),
                 c = static_cast<float>(triple[2]);
      Gemm g;
      g.m = g.n = small;
      g.k = std::max(m, n);
      g.a_transposed = m > n;
      g.b_transposed = !g.a_transposed;
      g.a = g.b = from;
      g.lda = g.ldb = n;
      g.c = gram;
      g.ldc = small;
      gemm(g, call.pool, own + space.gemm);

      // polynomial = a + b gram + c gram^2; gram is its own transpose.
      Gemm square;
      square.m = square.n = square.k = small;
      square.a = square.b = gram;
      square.lda = square.ldb = small;
      square.c = polynomial;
      square.ldc = small;
      square.finished = [&](std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) {
        for (std::int64_t r = r0; r < r1; ++r) {
          float* row = polynomial + r * small;
          for_lanes(c0, c1, [&](std::int64_t i, auto at) {
            at.store(row + i, b * at.load(gram + r * small + i) + c * at.load(row + i));
          });
          if (r >= c0 && r < c1) row[r] += a;
        }
      };
      gemm(square, call.pool, own + space.gemm);

      Gemm next;
      next.m = m;
      next.n = n;
      next.k = small;
      next.a = m > n ? from : polynomial;
      next.b = m > n ? polynomial : from;
      next.lda = m > n ? n : small;
      next.ldb = n;
      next.c = to;
      next.ldc = n;
      gemm(next, call.pool, own + space.gemm);
      std::swap(from, to);
    }
  }
  std::int64_t workspace(std::span<const graph::Operator* const>, std::span<const graph::TensorType> inputs,
                         std::span<const graph::TensorType>, int threads) const override {
    const Space space(inputs[0].shape[0], inputs[0].shape[1], threads);
    return space.gemm * static_cast<std::int64_t>(sizeof(float)) + space.gemm_bytes;
  }

 private:
  // Scratch in floats.
  struct Space {
    std::int64_t gram, polynomial, other, sums, gemm, gemm_bytes;
    Space(std::int64_t m, std::int64_t n, int threads) {
      const auto aligned = [](std::int64_t floats) { return (floats + 15) / 16 * 16; };
      const std::int64_t small = std::min(m, n), large = std::max(m, n);
      gram = 0;
      polynomial = gram + aligned(small * small);
      other = polynomial + aligned(small * small);
      sums = other + aligned(m * n);
      gemm = sums + aligned(piece_count(m * n));
      gemm_bytes =
          std::max({gemm_workspace(small, small, large, threads),
                    gemm_workspace(small, small, small, threads), gemm_workspace(m, n, small, threads)});
    }
  };
};

// Workspace: per line (a row, or a column where m < n) its sum of squares and its scale.
class NorMuonKernel : public Kernel {
 public:
  void run(const Call& call) const override {
    const std::int64_t m = call.inputs[0].shape[0], n = call.inputs[0].shape[1];
    const std::int64_t lines = std::max(m, n), length = std::min(m, n);
    const bool by_rows = m >= n;
    const float *u = call.inputs[0].as<float>(), *second = call.inputs[1].as<float>();
    float *new_u = call.outputs[0].as<float>(), *new_second = call.outputs[1].as<float>();
    auto* squares = static_cast<float*>(call.workspace);
    float* scales = squares + lines;
    if (by_rows) {
      for_rows(call.pool, m, n, [&](std::int64_t r) { squares[r] = dot(u + r * n, u + r * n, n); });
    } else {
      call.pool.for_range(
          n,
          [&](std::int64_t begin, std::int64_t end, int) {
            std::fill(squares + begin, squares + end, 0.0f);
            for (std::int64_t r = 0; r < m; ++r) {
              for_lanes(begin, end, [&](std::int64_t i, auto at) {
                const F32 value = at.load(u + r * n + i);
                at.store(squares + i, at.load(squares + i) + value * value);
              });
            }
          },
          kLanes);
    }
    const auto rest = static_cast<float>(1 - call.op<graph::NorMuon>().beta2);
    double before = 0, after = 0;
    for (std::int64_t l = 0; l < lines; ++l) {
      new_second[l] = second[l] + rest * (squares[l] / static_cast<float>(length) - second[l]);
      scales[l] = 1 / std::sqrt(std::max(new_second[l], 1e-10f));
      before += static_cast<double>(squares[l]);
      after +=
          static_cast<double>(squares[l]) * static_cast<double>(scales[l]) * static_cast<double>(scales[l]);
    }
    const float keep = after > 0 ? static_cast<float>(std::sqrt(before / after)) : 0.0f;
    for_rows(call.pool, m, n, [&](std::int64_t r) {
      if (by_rows) {
        const float scale = scales[r] * keep;
        for_lanes(r * n, (r + 1) * n,
                  [&](std::int64_t i, auto at) { at.store(new_u + i, at.load(u + i) * scale); });
      } else {
        for_lanes(0, n, [&](std::int64_t i, auto at) {
          at.store(new_u + r * n + i, at.load(u + r * n + i) * (at.load(scales + i) * keep));
        });
      }
    });
  }
  std::int64_t workspace(std::span<const graph::Operator* const>, std::span<const graph::TensorType> inputs,
                         std::span<const graph::TensorType>, int) const override {
    return 2 * std::max(inputs[0].shape[0], inputs[0].shape[1]) * static_cast<std::int64_t>(sizeof(float));
  }
  int may_overwrite(int output) const override { return output; }
};

}  // namespace

void add_muon_kernels(Kernels& kernels) {
  kernels.add("polar_express", std::make_shared<PolarExpressKernel>());
  kernels.add("normuon", std::make_shared<NorMuonKernel>());
}

}  // namespace headway::host
