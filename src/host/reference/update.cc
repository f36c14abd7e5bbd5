#include "graph/operators/update.h"

#include <algorithm>
#include <cmath>

#include "host/kernel.h"
#include "host/reference/references.h"

namespace headway::host {
namespace {

// p, g, m, v [...], lr, weight_decay, step [] -> p', m', v' [...]
template <class T>
void adamw(const Call& call) {
  const auto& op = call.op<graph::AdamW>();
  const T* p = call.inputs[0].as<T>();
  const T* g = call.inputs[1].as<T>();
  const T* m = call.inputs[2].as<T>();
  const T* v = call.inputs[3].as<T>();
  const T lr = *call.inputs[4].as<T>(), weight_decay = *call.inputs[5].as<T>();
  const double step = *call.inputs[6].as<T>();
  T* new_p = call.outputs[0].as<T>();
  T* new_m = call.outputs[1].as<T>();
  T* new_v = call.outputs[2].as<T>();
  const T beta1 = static_cast<T>(op.beta1), beta2 = static_cast<T>(op.beta2), eps = static_cast<T>(op.eps);
  // 1 - beta^step in double: for beta2 near 1 and the first steps, float would keep three digits of it.
  const T correction1 = static_cast<T>(1 - std::pow(op.beta1, step));
  const T correction2 = static_cast<T>(1 - std::pow(op.beta2, step));
  const T rest1 = static_cast<T>(1 - op.beta1), rest2 = static_cast<T>(1 - op.beta2);
  for (std::int64_t i = 0; i < call.inputs[0].count(); ++i) {
    new_m[i] = beta1 * m[i] + rest1 * g[i];
    new_v[i] = beta2 * v[i] + rest2 * g[i] * g[i];
    const T m_hat = new_m[i] / correction1, v_hat = new_v[i] / correction2;
    new_p[i] = p[i] * (1 - lr * weight_decay) - lr * m_hat / (std::sqrt(v_hat) + eps);
  }
}

// g, buffer [...], momentum [] -> update, buffer' [...]
template <class T>
void nesterov_momentum(const Call& call) {
  const T* g = call.inputs[0].as<T>();
  const T* buffer = call.inputs[1].as<T>();
  const T momentum = *call.inputs[2].as<T>();
  T* update = call.outputs[0].as<T>();
  T* new_buffer = call.outputs[1].as<T>();
  for (std::int64_t i = 0; i < call.inputs[0].count(); ++i) {
    new_buffer[i] = buffer[i] + (1 - momentum) * (g[i] - buffer[i]);
    update[i] = g[i] + momentum * (new_buffer[i] - g[i]);
  }
}

// The Frobenius norm.
template <class T>
double norm(const std::vector<T>& x) {
  double squares = 0;
  for (T value : x) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

// a [rows, inner] b [inner, columns]
template <class T>
std::vector<T> product(const std::vector<T>& a, const std::vector<T>& b, std::size_t rows, std::size_t inner,
                       std::size_t columns) {
  std::vector<T> c(rows * columns, T(0));
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < inner; ++k)
      for (std::size_t j = 0; j < columns; ++j) c[i * columns + j] += a[i * inner + k] * b[k * columns + j];
  return c;
}

template <class T>
std::vector<T> transposed(const std::vector<T>& a, std::size_t rows, std::size_t columns) {
  std::vector<T> c(a.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) c[j * rows + i] = a[i * columns + j];
  return c;
}

// x [m, n] -> y [m, n]
template <class T>
void polar_express(const Call& call) {
  const auto& op = call.op<graph::PolarExpress>();
  const auto m = static_cast<std::size_t>(call.inputs[0].shape[0]);
  const auto n = static_cast<std::size_t>(call.inputs[0].shape[1]);
  std::vector<T> x(call.inputs[0].as<T>(), call.inputs[0].as<T>() + m * n);
  const bool tall = m > n;
  if (tall) x = transposed(x, m, n);
  const std::size_t rows = std::min(m, n), columns = std::max(m, n);  // x is [rows, columns] from here
  const T scale = static_cast<T>(1 / (1.01 * norm(x) + 1e-6));
  for (T& value : x) value *= scale;
  for (int k = 0; k < op.iterations; ++k) {
    const auto& [a, b, c] = graph::PolarExpress::coefficients[static_cast<std::size_t>(k)];
    const std::vector<T> gram = product(x, transposed(x, rows, columns), rows, columns, rows);
    std::vector<T> polynomial = product(gram, gram, rows, rows, rows);
    for (std::size_t i = 0; i < polynomial.size(); ++i)
      polynomial[i] = static_cast<T>(b) * gram[i] + static_cast<T>(c) * polynomial[i];
    const std::vector<T> rest = product(polynomial, x, rows, rows, columns);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(a) * x[i] + rest[i];
  }
  if (tall) x = transposed(x, rows, columns);
  std::copy(x.begin(), x.end(), call.outputs[0].as<T>());
}

// u [m, n], second [max(m, n)] -> u', second'
template <class T>
void normuon(const Call& call) {
  const T rest = static_cast<T>(1 - call.op<graph::NorMuon>().beta2);
  const T* u = call.inputs[0].as<T>();
  const T* second = call.inputs[1].as<T>();
  T* new_u = call.outputs[0].as<T>();
  T* new_second = call.outputs[1].as<T>();
  const std::int64_t m = call.inputs[0].shape[0], n = call.inputs[0].shape[1];
  // Lines are rows, or columns where m < n; element e of line l is at l * line_step + e * element_step.
  const bool by_rows = m >= n;
  const std::int64_t lines = std::max(m, n), length = std::min(m, n);
  const std::int64_t line_step = by_rows ? n : 1, element_step = by_rows ? 1 : n;
  double before = 0, after = 0;  // squared norms
  for (std::int64_t l = 0; l < lines; ++l) {
    T squares = 0;
    for (std::int64_t e = 0; e < length; ++e) {
      const T value = u[l * line_step + e * element_step];
      squares += value * value;
    }
    new_second[l] = second[l] + rest * (squares / static_cast<T>(length) - second[l]);
    const T scale = 1 / std::sqrt(std::max(new_second[l], static_cast<T>(1e-10)));
    for (std::int64_t e = 0; e < length; ++e) {
      const std::int64_t at = l * line_step + e * element_step;
      new_u[at] = u[at] * scale;
      after += static_cast<double>(new_u[at]) * new_u[at];
    }
    before += squares;
  }
  // Where u is zero, so is u'.
  const T keep = after > 0 ? static_cast<T>(std::sqrt(before / after)) : T(0);
  for (std::int64_t i = 0; i < m * n; ++i) new_u[i] *= keep;
}

// p, u [...], lr, weight_decay [] -> p' [...]
template <class T>
void cautious_update(const Call& call) {
  const T scale = static_cast<T>(call.op<graph::CautiousUpdate>().lr_scale);
  const T* p = call.inputs[0].as<T>();
  const T* u = call.inputs[1].as<T>();
  const T lr = *call.inputs[2].as<T>(), weight_decay = *call.inputs[3].as<T>();
  T* new_p = call.outputs[0].as<T>();
  for (std::int64_t i = 0; i < call.inputs[0].count(); ++i) {
    const T decay = u[i] * p[i] >= 0 ? weight_decay * p[i] : T(0);
    new_p[i] = p[i] - scale * lr * u[i] - scale * lr * decay;
  }
}

template <class T>
void global_norm(const Call& call) {
  double squares = 0;
  for (const Tensor& g : call.inputs)
    for (std::int64_t i = 0; i < g.count(); ++i) squares += static_cast<double>(g.as<T>()[i]) * g.as<T>()[i];
  *call.outputs[0].as<T>() = static_cast<T>(std::sqrt(squares));
}

// g [...], norm [] -> g' [...]
template <class T>
void clip_by_norm(const Call& call) {
  const T max_norm = static_cast<T>(call.op<graph::ClipByNorm>().max_norm);
  const T* g = call.inputs[0].as<T>();
  const T norm = *call.inputs[1].as<T>();
  T* clipped = call.outputs[0].as<T>();
  const T scale = norm > max_norm ? max_norm / norm : T(1);
  for (std::int64_t i = 0; i < call.inputs[0].count(); ++i) clipped[i] = g[i] * scale;
}

}  // namespace

void register_update_references() {
  Reference("adamw", adamw<float>, adamw<double>);
  Reference("nesterov_momentum", nesterov_momentum<float>, nesterov_momentum<double>);
  Reference("polar_express", polar_express<float>, polar_express<double>);
  Reference("normuon", normuon<float>, normuon<double>);
  Reference("cautious_update", cautious_update<float>, cautious_update<double>);
  Reference("global_norm", global_norm<float>, global_norm<double>);
  Reference("clip_by_norm", clip_by_norm<float>, clip_by_norm<double>);
}

}  // namespace headway::host
