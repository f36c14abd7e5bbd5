#include <algorithm>
#include <cmath>
#include <numbers>

#include "graph/operators/elementwise.h"
#include "graph/operators/linear.h"
#include "host/kernel.h"
#include "host/reference/references.h"

namespace headway::host {
namespace {

using graph::ActivationKind;

template <class T>
void add(const Call& call) {
  T* y = call.outputs[0].as<T>();
  for (std::int64_t i = 0; i < call.outputs[0].count(); ++i) {
    T sum = 0;
    for (const Tensor& x : call.inputs) sum += x.as<T>()[i];
    y[i] = sum;
  }
}

template <class T>
void multiply(const Call& call) {
  const T* a = call.inputs[0].as<T>();
  const T* b = call.inputs[1].as<T>();
  T* y = call.outputs[0].as<T>();
  for (std::int64_t i = 0; i < call.outputs[0].count(); ++i) y[i] = a[i] * b[i];
}

template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

// The distribution function of the standard normal.
template <class T>
T normal_cdf(T x) {
  return std::erfc(-x / std::numbers::sqrt2_v<T>) / 2;
}

template <class T>
T normal_density(T x) {
  return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
}

template <class T>
T activated(ActivationKind kind, T x) {
  const T positive = std::max(x, T(0));
  switch (kind) {
    case ActivationKind::relu:
      return positive;
    case ActivationKind::relu2:
      return positive * positive;
    case ActivationKind::gelu:
      return x * normal_cdf(x);
    case ActivationKind::silu:
      return x * sigmoid(x);
  }
  throw Bug("unknown activation");
}

template <class T>
T derivative(ActivationKind kind, T x) {
  switch (kind) {
    case ActivationKind::relu:
      return x > 0 ? T(1) : T(0);
    case ActivationKind::relu2:
      return 2 * std::max(x, T(0));
    case ActivationKind::gelu:
      return normal_cdf(x) + x * normal_density(x);
    case ActivationKind::silu:
      return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
  }
  throw Bug("unknown activation");
}

template <class T>
void activation(const Call& call) {
  const ActivationKind kind = call.op<graph::Activation>().kind;
  const T* x = call.inputs[0].as<T>();
  T* y = call.outputs[0].as<T>();
  for (std::int64_t i = 0; i < call.outputs[0].count(); ++i) y[i] = activated(kind, x[i]);
}

template <class T>
void activation_grad(const Call& call) {
  const ActivationKind kind = call.op<graph::ActivationGrad>().kind;
  const T* x = call.inputs[0].as<T>();
  const T* dy = call.inputs[1].as<T>();
  T* dx = call.outputs[0].as<T>();
  for (std::int64_t i = 0; i < call.outputs[0].count(); ++i) dx[i] = dy[i] * derivative(kind, x[i]);
}

template <class T>
void softcap(const Call& call) {
  const T cap = static_cast<T>(call.op<graph::Softcap>().cap);
  const T* x = call.inputs[0].as<T>();
  T* y = call.outputs[0].as<T>();
  for (std::int64_t i = 0; i < call.outputs[0].count(); ++i) y[i] = cap * std::tanh(x[i] / cap);
}

template <class T>
void softcap_grad(const Call& call) {
  const T cap = static_cast<T>(call.op<graph::SoftcapGrad>().cap);
  const T* y = call.inputs[0].as<T>();
  const T* dy = call.inputs[1].as<T>();
  T* dx = call.outputs[0].as<T>();
  for (std::int64_t i = 0; i < call.outputs[0].count(); ++i)
    dx[i] = dy[i] * (1 - (y[i] / cap) * (y[i] / cap));
}

// x, x0 [...], a, b [layers] -> y [...]
template <class T>
void residual_mix(const Call& call) {
  const std::int64_t layer = call.op<graph::ResidualMix>().layer;
  const T* x = call.inputs[0].as<T>();
  const T* x0 = call.inputs[1].as<T>();
  const T a = call.inputs[2].as<T>()[layer], b = call.inputs[3].as<T>()[layer];
  T* y = call.outputs[0].as<T>();
  for (std::int64_t i = 0; i < call.outputs[0].count(); ++i) y[i] = a * x[i] + b * x0[i];
}

// x, x0 [...], a, b [layers], dy [...] -> dx, dx0 [...], da, db [layers]
template <class T>
void residual_mix_grad(const Call& call) {
  const std::int64_t layer = call.op<graph::ResidualMixGrad>().layer;
  const T* x = call.inputs[0].as<T>();
  const T* x0 = call.inputs[1].as<T>();
  const T a = call.inputs[2].as<T>()[layer], b = call.inputs[3].as<T>()[layer];
  const T* dy = call.inputs[4].as<T>();
  T* dx = call.outputs[0].as<T>();
  T* dx0 = call.outputs[1].as<T>();
  T* da = call.outputs[2].as<T>();
  T* db = call.outputs[3].as<T>();
  double along_x = 0, along_x0 = 0;
  for (std::int64_t i = 0; i < call.inputs[0].count(); ++i) {
    dx[i] = a * dy[i];
    dx0[i] = b * dy[i];
    along_x += static_cast<double>(dy[i]) * x[i];
    along_x0 += static_cast<double>(dy[i]) * x0[i];
  }
  std::fill_n(da, call.outputs[2].count(), T(0));
  std::fill_n(db, call.outputs[3].count(), T(0));
  da[layer] = static_cast<T>(along_x);
  db[layer] = static_cast<T>(along_x0);
}

// x [rows, n] -> y [rows, end - begin]
template <class T>
void slice_columns(const Call& call) {
  const std::int64_t begin = call.op<graph::SliceColumns>().begin;
  const T* x = call.inputs[0].as<T>();
  T* y = call.outputs[0].as<T>();
  const std::int64_t n = call.inputs[0].shape.back(), width = call.outputs[0].shape.back();
  for (std::int64_t r = 0; r < graph::rows(call.inputs[0].shape); ++r)
    for (std::int64_t c = 0; c < width; ++c) y[r * width + c] = x[r * n + begin + c];
}

// x [rows, n] -> y [rows, width]
template <class T>
void pad_columns(const Call& call) {
  const std::int64_t begin = call.op<graph::PadColumns>().begin;
  const T* x = call.inputs[0].as<T>();
  T* y = call.outputs[0].as<T>();
  const std::int64_t n = call.inputs[0].shape.back(), width = call.outputs[0].shape.back();
  std::fill_n(y, call.outputs[0].count(), T(0));
  for (std::int64_t r = 0; r < graph::rows(call.inputs[0].shape); ++r)
    for (std::int64_t c = 0; c < n; ++c) y[r * width + begin + c] = x[r * n + c];
}

// v, e [rows, heads, d], g [rows, heads] -> y [rows, heads, d]
template <class T>
void value_gate(const Call& call) {
  const T* v = call.inputs[0].as<T>();
  const T* e = call.inputs[1].as<T>();
  const T* g = call.inputs[2].as<T>();
  T* y = call.outputs[0].as<T>();
  const std::int64_t d = call.inputs[0].shape.back() / call.inputs[2].shape.back();
  for (std::int64_t i = 0; i < call.outputs[0].count(); ++i) y[i] = v[i] + 2 * sigmoid(g[i / d]) * e[i];
}

// e [rows, heads, d], g [rows, heads], dy [rows, heads, d] -> de [rows, heads, d], dg [rows, heads]
template <class T>
void value_gate_grad(const Call& call) {
  const T* e = call.inputs[0].as<T>();
  const T* g = call.inputs[1].as<T>();
  const T* dy = call.inputs[2].as<T>();
  T* de = call.outputs[0].as<T>();
  T* dg = call.outputs[1].as<T>();
  const std::int64_t d = call.inputs[0].shape.back() / call.inputs[1].shape.back();
  for (std::int64_t head = 0; head < call.inputs[1].count(); ++head) {
    const T gate = sigmoid(g[head]);
    T sum = 0;
    for (std::int64_t i = head * d; i < (head + 1) * d; ++i) {
      de[i] = 2 * gate * dy[i];
      sum += dy[i] * e[i];
    }
    dg[head] = 2 * gate * (1 - gate) * sum;
  }
}

}  // namespace

void register_elementwise_references() {
  Reference("add", add<float>, add<double>);
  Reference("multiply", multiply<float>, multiply<double>);
  for (ActivationKind kind :
       {ActivationKind::relu, ActivationKind::relu2, ActivationKind::gelu, ActivationKind::silu}) {
    const std::string name(graph::name_of(kind));
    Reference(name, activation<float>, activation<double>);
    Reference(name + "_grad", activation_grad<float>, activation_grad<double>);
  }
  Reference("softcap", softcap<float>, softcap<double>);
  Reference("softcap_grad", softcap_grad<float>, softcap_grad<double>);
  Reference("residual_mix", residual_mix<float>, residual_mix<double>);
  Reference("residual_mix_grad", residual_mix_grad<float>, residual_mix_grad<double>);
  Reference("slice_columns", slice_columns<float>, slice_columns<double>);
  Reference("pad_columns", pad_columns<float>, pad_columns<double>);
  Reference("value_gate", value_gate<float>, value_gate<double>);
  Reference("value_gate_grad", value_gate_grad<float>, value_gate_grad<double>);
}

}  // namespace headway::host
