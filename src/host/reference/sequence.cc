#include "graph/operators/sequence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "graph/operators/linear.h"
#include "host/kernel.h"
#include "host/reference/references.h"

namespace headway::host {
namespace {

void check_token(std::int32_t token, std::int64_t vocab, const char* op) {
  if (token >= 0 && token < vocab) return;
  throw InputError(
      op, "token " + std::to_string(token) + " is outside the vocabulary of " + std::to_string(vocab));
}

// tokens [rows], table [vocab, n] -> y [rows, n]
template <class T>
void embedding(const Call& call) {
  const auto* tokens = call.inputs[0].as<std::int32_t>();
  const T* table = call.inputs[1].as<T>();
  T* y = call.outputs[0].as<T>();
  const std::int64_t vocab = call.inputs[1].shape[0], n = call.inputs[1].shape[1];
  for (std::int64_t r = 0; r < call.inputs[0].count(); ++r) {
    check_token(tokens[r], vocab, "[embedding]");
    for (std::int64_t c = 0; c < n; ++c) y[r * n + c] = table[tokens[r] * n + c];
  }
}

// tokens [rows], dy [rows, n] -> dtable [vocab, n]
template <class T>
void embedding_grad(const Call& call) {
  const auto* tokens = call.inputs[0].as<std::int32_t>();
  const T* dy = call.inputs[1].as<T>();
  T* dtable = call.outputs[0].as<T>();
  const std::int64_t vocab = call.outputs[0].shape[0], n = call.outputs[0].shape[1];
  std::fill_n(dtable, vocab * n, T(0));
  for (std::int64_t r = 0; r < call.inputs[0].count(); ++r) {
    check_token(tokens[r], vocab, "[embedding_grad]");
    for (std::int64_t c = 0; c < n; ++c) dtable[tokens[r] * n + c] += dy[r * n + c];
  }
}

// x [runs, size] -> y [runs, size]
template <class T>
void rms_norm(const Call& call) {
  const auto& op = call.op<graph::RmsNorm>();
  for (std::int64_t run = 0; run < call.inputs[0].count() / op.size; ++run) {
    const T* x = call.inputs[0].as<T>() + run * op.size;
    T* y = call.outputs[0].as<T>() + run * op.size;
    T squares = 0;
    for (std::int64_t i = 0; i < op.size; ++i) squares += x[i] * x[i];
    const T scale = 1 / std::sqrt(squares / op.size + static_cast<T>(op.eps));
    for (std::int64_t i = 0; i < op.size; ++i) y[i] = scale * x[i];
  }
}

// x, dy [runs, size] -> dx [runs, size]. With s = (mean(x^2) + eps)^(-1/2), ds / dx_i = -s^3 x_i / size, so
// dx_i = s dy_i - s^3 x_i mean(dy x).
template <class T>
void rms_norm_grad(const Call& call) {
  const auto& op = call.op<graph::RmsNormGrad>();
  for (std::int64_t run = 0; run < call.inputs[0].count() / op.size; ++run) {
    const T* x = call.inputs[0].as<T>() + run * op.size;
    const T* dy = call.inputs[1].as<T>() + run * op.size;
    T* dx = call.outputs[0].as<T>() + run * op.size;
    T squares = 0, along = 0;
    for (std::int64_t i = 0; i < op.size; ++i) {
      squares += x[i] * x[i];
      along += dy[i] * x[i];
    }
    const T scale = 1 / std::sqrt(squares / op.size + static_cast<T>(op.eps));
    for (std::int64_t i = 0; i < op.size; ++i)
      dx[i] = scale * dy[i] - scale * scale * scale * x[i] * along / op.size;
  }
}

// x [batch, time, heads, d] -> y of the same shape. Angles are taken in double: in float, position times
// frequency already loses what distinguishes neighbouring positions.
template <class T>
void rotary(const Call& call) {
  const auto& op = call.op<graph::Rotary>();
  const Shape& shape = call.inputs[0].shape;
  const std::int64_t batch = shape[0], time = shape[1], heads = shape[2] / op.head_dim,
                     half = op.head_dim / 2;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < time; ++t) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t start = ((b * time + t) * heads + h) * op.head_dim;
        const T* x = call.inputs[0].as<T>() + start;
        T* y = call.outputs[0].as<T>() + start;
        for (std::int64_t i = 0; i < half; ++i) {
          const double turn =
              std::pow(op.base, -2.0 * static_cast<double>(i) / static_cast<double>(op.head_dim));
          const double angle = static_cast<double>(op.inverse ? -t : t) * turn;
          const T c = static_cast<T>(std::cos(angle)), s = static_cast<T>(std::sin(angle));
          y[i] = x[i] * c + x[i + half] * s;
          y[i + half] = x[i + half] * c - x[i] * s;
        }
      }
    }
  }
}

// Where head `head` of position `t` begins in a tensor [batch, time, heads, d].
std::int64_t head_start(const Shape& shape, std::int64_t heads, std::int64_t b, std::int64_t t,
                        std::int64_t head) {
  return (b * shape[1] + t) * shape[2] + head * (shape[2] / heads);
}

template <class T>
T dot(const T* a, const T* b, std::int64_t n) {
  T sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// q [b, t, heads, d], k, v [b, t, kv_heads, d] -> o [b, t, heads, d], lse [b, heads, t]
template <class T>
void attention(const Call& call) {
  const graph::AttentionShape& s = call.op<graph::Attention>().shape;
  const Shape &q_shape = call.inputs[0].shape, &kv_shape = call.inputs[1].shape;
  const std::int64_t batch = q_shape[0], time = q_shape[1], d = s.head_dim;
  const T scale = static_cast<T>(s.scale);
  std::vector<T> p(static_cast<std::size_t>(time));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const std::int64_t kv = h * s.kv_heads / s.heads;
      for (std::int64_t i = 0; i < time; ++i) {
        const T* q = call.inputs[0].as<T>() + head_start(q_shape, s.heads, b, i, h);
        T* o = call.outputs[0].as<T>() + head_start(q_shape, s.heads, b, i, h);
        const std::int64_t first = std::max<std::int64_t>(0, i - s.window);
        T largest = -std::numeric_limits<T>::infinity();
        for (std::int64_t j = first; j <= i; ++j) {
          const T* k = call.inputs[1].as<T>() + head_start(kv_shape, s.kv_heads, b, j, kv);
          p[static_cast<std::size_t>(j)] = scale * dot(q, k, d);
          largest = std::max(largest, p[static_cast<std::size_t>(j)]);
        }
        T sum = 0;
        for (std::int64_t j = first; j <= i; ++j) sum += std::exp(p[static_cast<std::size_t>(j)] - largest);
        const T lse = largest + std::log(sum);
        call.outputs[1].as<T>()[(b * s.heads + h) * time + i] = lse;
        std::fill_n(o, d, T(0));
        for (std::int64_t j = first; j <= i; ++j) {
          const T* v = call.inputs[2].as<T>() + head_start(kv_shape, s.kv_heads, b, j, kv);
          const T probability = std::exp(p[static_cast<std::size_t>(j)] - largest) / sum;
          for (std::int64_t c = 0; c < d; ++c) o[c] += probability * v[c];
        }
      }
    }
  }
}

// q [b, t, heads, d], k, v [b, t, kv_heads, d], o [b, t, heads, d], lse [b, heads, t], do [b, t, heads, d]
// -> dq [b, t, heads, d], dk, dv [b, t, kv_heads, d].
// With p_ij = exp(scale q_i k_j - lse_i): dv_j = sum_i p_ij do_i, and d score_ij = p_ij (do_i v_j - do_i
// o_i), as do_i o_i is the mean of do_i v_j under p_i.
template <class T>
void attention_grad(const Call& call) {
  const graph::AttentionShape& s = call.op<graph::AttentionGrad>().shape;
  const Shape &q_shape = call.inputs[0].shape, &kv_shape = call.inputs[1].shape;
  const std::int64_t batch = q_shape[0], time = q_shape[1], d = s.head_dim;
  const T scale = static_cast<T>(s.scale);
  for (const Tensor& output : call.outputs) std::fill_n(output.as<T>(), output.count(), T(0));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const std::int64_t kv = h * s.kv_heads / s.heads;
      for (std::int64_t i = 0; i < time; ++i) {
        const std::int64_t at_i = head_start(q_shape, s.heads, b, i, h);
        const T* q = call.inputs[0].as<T>() + at_i;
        const T* o = call.inputs[3].as<T>() + at_i;
        const T lse = call.inputs[4].as<T>()[(b * s.heads + h) * time + i];
        const T* d_o = call.inputs[5].as<T>() + at_i;
        T* dq = call.outputs[0].as<T>() + at_i;
        const T mean = dot(d_o, o, d);
        for (std::int64_t j = std::max<std::int64_t>(0, i - s.window); j <= i; ++j) {
          const std::int64_t at_j = head_start(kv_shape, s.kv_heads, b, j, kv);
          const T* k = call.inputs[1].as<T>() + at_j;
          const T* v = call.inputs[2].as<T>() + at_j;
          T* dk = call.outputs[1].as<T>() + at_j;
          T* dv = call.outputs[2].as<T>() + at_j;
          const T p = std::exp(scale * dot(q, k, d) - lse);
          const T d_score = p * (dot(d_o, v, d) - mean);
          for (std::int64_t c = 0; c < d; ++c) {
            dv[c] += p * d_o[c];
            dq[c] += scale * d_score * k[c];
            dk[c] += scale * d_score * q[c];
          }
        }
      }
    }
  }
}

// x [batch, time, n], weight [n, taps] -> y [batch, time, n]
template <class T>
void causal_convolution(const Call& call) {
  const T* x = call.inputs[0].as<T>();
  const T* weight = call.inputs[1].as<T>();
  T* y = call.outputs[0].as<T>();
  const Shape& shape = call.inputs[0].shape;
  const std::int64_t batch = shape[0], time = shape[1], n = shape[2], taps = call.inputs[1].shape[1];
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < time; ++t) {
      for (std::int64_t c = 0; c < n; ++c) {
        T sum = 0;
        for (std::int64_t k = 0; k < taps; ++k) {
          const std::int64_t from = t - (taps - 1) + k;
          if (from >= 0) sum += weight[c * taps + k] * x[(b * time + from) * n + c];
        }
        y[(b * time + t) * n + c] = sum;
      }
    }
  }
}

// x [batch, time, n], weight [n, taps], dy [batch, time, n] -> dx [batch, time, n], dweight [n, taps]
template <class T>
void causal_convolution_grad(const Call& call) {
  const T* x = call.inputs[0].as<T>();
  const T* weight = call.inputs[1].as<T>();
  const T* dy = call.inputs[2].as<T>();
  T* dx = call.outputs[0].as<T>();
  T* dweight = call.outputs[1].as<T>();
  const Shape& shape = call.inputs[0].shape;
  const std::int64_t batch = shape[0], time = shape[1], n = shape[2], taps = call.inputs[1].shape[1];
  for (const Tensor& output : call.outputs) std::fill_n(output.as<T>(), output.count(), T(0));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < time; ++t) {
      for (std::int64_t c = 0; c < n; ++c) {
        for (std::int64_t k = 0; k < taps; ++k) {
          const std::int64_t from = t - (taps - 1) + k;
          if (from < 0) continue;
          dx[(b * time + from) * n + c] += weight[c * taps + k] * dy[(b * time + t) * n + c];
          dweight[c * taps + k] += x[(b * time + from) * n + c] * dy[(b * time + t) * n + c];
        }
      }
    }
  }
}

}  // namespace

void register_sequence_references() {
  Reference("embedding", embedding<float>, embedding<double>);
  Reference("embedding_grad", embedding_grad<float>, embedding_grad<double>);
  Reference("rms_norm", rms_norm<float>, rms_norm<double>);
  Reference("rms_norm_grad", rms_norm_grad<float>, rms_norm_grad<double>);
  Reference("rotary", rotary<float>, rotary<double>);
  Reference("attention", attention<float>, attention<double>);
  Reference("attention_grad", attention_grad<float>, attention_grad<double>);
  Reference("causal_convolution", causal_convolution<float>, causal_convolution<double>);
  Reference("causal_convolution_grad", causal_convolution_grad<float>, causal_convolution_grad<double>);
}

}  // namespace headway::host
