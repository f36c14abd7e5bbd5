// A singular value decomposition by one-sided Jacobi rotations (Hestenes 1958): slow, short, accurate.
#pragma once

#include <cmath>
#include <vector>

#include "host/numbers.h"

namespace headway::test {

// x = sum_k u_k s_k v_k^T. `scaled` holds the columns u_k s_k, [m, n]; `v` the columns v_k, [n, n].
struct Decomposition {
  std::size_t m, n;
  Numbers scaled, v;

  double singular_value(std::size_t k) const {
    double squares = 0;
    for (std::size_t i = 0; i < m; ++i) squares += scaled[i * n + k] * scaled[i * n + k];
    return std::sqrt(squares);
  }
};

inline Decomposition decompose(const Numbers& x, std::size_t m, std::size_t n) {
  Decomposition d{m, n, x, Numbers(n * n, 0.0)};
  for (std::size_t k = 0; k < n; ++k) d.v[k * n + k] = 1;
  const auto turn = [n](Numbers& a, std::size_t rows, std::size_t p, std::size_t q, double c, double s) {
    for (std::size_t i = 0; i < rows; ++i) {
      const double left = a[i * n + p], right = a[i * n + q];
      a[i * n + p] = c * left - s * right;
      a[i * n + q] = s * left + c * right;
    }
  };
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool turned = false;
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        double pp = 0, qq = 0, pq = 0;
        for (std::size_t i = 0; i < m; ++i) {
          pp += d.scaled[i * n + p] * d.scaled[i * n + p];
          qq += d.scaled[i * n + q] * d.scaled[i * n + q];
          pq += d.scaled[i * n + p] * d.scaled[i * n + q];
        }
        if (std::abs(pq) <= 1e-15 * std::sqrt(pp * qq) || pp * qq < 1e-280) continue;
        turned = true;
        const double zeta = (qq - pp) / (2 * pq);
        const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double c = 1 / std::sqrt(1 + t * t);
        turn(d.scaled, m, p, q, c, c * t);
        turn(d.v, n, p, q, c, c * t);
      }
    }
    if (!turned) break;
  }
  return d;
}

}  // namespace headway::test
