// The reference kernels, in double, against formulas written down a second time in another way, and every
// gradient kernel against differences of those formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <map>

#include "graph/operators/elementwise.h"
#include "graph/operators/linear.h"
#include "graph/operators/loss.h"
#include "graph/operators/sequence.h"
#include "graph/operators/update.h"
#include "host/interpret.h"
#include "host/operator_cases.h"
#include "host/singular_values.h"

namespace headway::test {
namespace {

using Tensors = std::vector<Numbers>;
using Check = std::function<void(const Case&, const Tensors& in, const Tensors& out)>;

constexpr double kTolerance = 1e-11;

template <class T>
Tensors run(const Case& instance, const Tensors& operands, const host::Options& options = {}) {
  ThreadPool pool(1, false);
  const graph::Operator* op = instance.op.get();
  const auto output_types = op->infer(instance.types);
  std::vector<Buffer> in, out;
  for (std::size_t k = 0; k < operands.size(); ++k)
    in.push_back(Buffer::of<T>(instance.types[k], operands[k]));
  for (const auto& type : output_types) out.push_back(Buffer::of<T>(type));
  call_kernel(host::reference_kernels<T>().single(op->name()), {&op, 1}, instance.types, in, output_types,
              out, std::vector<bool>(out.size(), false), pool, options);
  Tensors results;
  for (const Buffer& buffer : out) results.push_back(buffer.numbers());
  return results;
}

void expect_close(const Numbers& found, const Numbers& expected, const std::string& what = "output") {
  EXPECT_LT(relative_difference(found, expected), kTolerance) << what;
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// A function of one number, element by element.
Check each(double (*f)(double)) {
  return [f](const Case&, const Tensors& in, const Tensors& out) {
    Numbers expected;
    for (double x : in[0]) expected.push_back(f(x));
    expect_close(out[0], expected);
  };
}

// Expects that `gradient` is the gradient of `f` at `at` by comparing slopes along random directions.
void expect_gradient(const std::function<double(const Numbers&)>& f, const Numbers& at,
                     const Numbers& gradient, const std::string& what) {
  ASSERT_EQ(at.size(), gradient.size());
  Random random(99);
  for (int trial = 0; trial < 2; ++trial) {
    Numbers direction(at.size());
    for (double& d : direction) d = random.normal();
    const double length = norm(direction);
    for (double& d : direction) d /= length;
    const auto beside = [&](double distance) {
      Numbers point = at;
      for (std::size_t i = 0; i < point.size(); ++i) point[i] += distance * direction[i];
      return f(point);
    };
    const double step = 1e-3;
    const double slope =
        (8 * (beside(step) - beside(-step)) - (beside(2 * step) - beside(-2 * step))) / (12 * step);
    EXPECT_NEAR(dot(gradient, direction), slope, 1e-8 * std::max(1.0, norm(gradient))) << what;
  }
}

// An activation's gradient (x, dy) -> dx against the slope of `f`, where no kink is near.
Check slope_of(double (*f)(double)) {
  return [f](const Case&, const Tensors& in, const Tensors& out) {
    for (std::size_t i = 0; i < in[0].size(); ++i) {
      const double x = in[0][i], h = 1e-3;
      if (std::abs(x) < 3 * h) continue;
      const double slope = (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
      EXPECT_NEAR(out[0][i], slope * in[1][i], 1e-9 * std::max(1.0, std::abs(x))) << "at x = " << x;
    }
  };
}

double relu(double x) { return (x + std::abs(x)) / 2; }
double relu2(double x) { return x * relu(x); }
double gelu(double x) {
  return x > -5 ? x / 2 * (1 + std::erf(x / std::sqrt(2.0))) : x / 2 * std::erfc(-x / std::sqrt(2.0));
}
double silu(double x) {
  return x > -15 ? x / 2 * (1 + std::tanh(x / 2)) : x * std::exp(x) / (1 + std::exp(x));
}

// cap tanh(x / cap) by exponentials.
double capped(double x, double cap) {
  if (cap == 0) return x;
  const double e = std::exp(-2 * std::abs(x) / cap);
  return std::copysign(cap * (1 - e) / (1 + e), x);
}

// [rows, columns]
struct Matrix {
  std::size_t rows, columns;
  Numbers data;
  double& at(std::size_t r, std::size_t c) { return data[r * columns + c]; }
  double at(std::size_t r, std::size_t c) const { return data[r * columns + c]; }
};

Matrix matrix(const graph::TensorType& type, const Numbers& data) {
  const auto columns = static_cast<std::size_t>(type.shape.back());
  return {data.size() / columns, columns, data};
}

Numbers times(const Matrix& a, const Numbers& v) {
  Numbers result(a.rows, 0.0);
  for (std::size_t r = 0; r < a.rows; ++r)
    for (std::size_t c = 0; c < a.columns; ++c) result[r] += a.at(r, c) * v[c];
  return result;
}

Numbers times(const Numbers& v, const Matrix& a) {
  Numbers result(a.columns, 0.0);
  for (std::size_t r = 0; r < a.rows; ++r)
    for (std::size_t c = 0; c < a.columns; ++c) result[c] += v[r] * a.at(r, c);
  return result;
}

Numbers random_vector(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Numbers v(count);
  for (double& value : v) value = random.normal();
  return v;
}

// u^T y v, for random u and v, against `expected` of the same u and v: matrices that agree on that agree.
void expect_bilinear(const Matrix& y,
                     const std::function<double(const Numbers& u, const Numbers& v)>& expected) {
  for (std::uint64_t trial = 0; trial < 4; ++trial) {
    const Numbers u = random_vector(y.rows, 2 * trial + 10), v = random_vector(y.columns, 2 * trial + 11);
    EXPECT_NEAR(dot(u, times(y, v)), expected(u, v), kTolerance * norm(u) * norm(y.data) * norm(v));
  }
}

// Attention through whole matrices of probabilities, with keys and values repeated for each head of the
// queries.
struct FullAttention {
  graph::AttentionShape s;
  std::size_t batch, time;

  std::size_t index(std::size_t heads, std::size_t b, std::size_t t, std::size_t h, std::size_t c) const {
    return ((b * time + t) * heads + h) * static_cast<std::size_t>(s.head_dim) + c;
  }

  // (o, lse)
  Tensors operator()(const Numbers& q, const Numbers& k, const Numbers& v) const {
    const auto heads = static_cast<std::size_t>(s.heads), kv_heads = static_cast<std::size_t>(s.kv_heads),
               d = static_cast<std::size_t>(s.head_dim), shared = heads / kv_heads;
    Numbers o(q.size(), 0.0), lse(batch * heads * time);
    for (std::size_t b = 0; b < batch; ++b) {
      for (std::size_t h = 0; h < heads; ++h) {
        Matrix e{time, time, Numbers(time * time, 0.0)};
        for (std::size_t i = 0; i < time; ++i) {
          for (std::size_t j = 0; j < time; ++j) {
            const auto distance = static_cast<std::int64_t>(i) - static_cast<std::int64_t>(j);
            if (distance < 0 || distance > s.window) continue;
            double score = 0;
            for (std::size_t c = 0; c < d; ++c)
              score += q[index(heads, b, i, h, c)] * k[index(kv_heads, b, j, h / shared, c)];
            e.at(i, j) = std::exp(s.scale * score);
          }
        }
        const Numbers sums = times(e, Numbers(time, 1.0));
        for (std::size_t i = 0; i < time; ++i) {
          lse[(b * heads + h) * time + i] = std::log(sums[i]);
          for (std::size_t c = 0; c < d; ++c)
            for (std::size_t j = 0; j < time; ++j)
              o[index(heads, b, i, h, c)] += e.at(i, j) / sums[i] * v[index(kv_heads, b, j, h / shared, c)];
        }
      }
    }
    return {o, lse};
  }
};

FullAttention full_attention(const Case& instance, const graph::AttentionShape& shape) {
  return {shape, static_cast<std::size_t>(instance.types[0].shape[0]),
          static_cast<std::size_t>(instance.types[0].shape[1])};
}

// The convolution of each channel as a product with a banded matrix [time, time].
Numbers convolved(const Shape& shape, std::size_t taps, const Numbers& x, const Numbers& weight) {
  const auto batch = static_cast<std::size_t>(shape[0]), time = static_cast<std::size_t>(shape[1]),
             n = static_cast<std::size_t>(shape[2]);
  Numbers y(x.size(), 0.0);
  for (std::size_t c = 0; c < n; ++c) {
    Matrix band{time, time, Numbers(time * time, 0.0)};
    for (std::size_t t = 0; t < time; ++t)
      for (std::size_t lag = 0; lag < taps && lag <= t; ++lag)
        band.at(t, t - lag) = weight[c * taps + taps - 1 - lag];
    for (std::size_t b = 0; b < batch; ++b) {
      Numbers channel(time);
      for (std::size_t t = 0; t < time; ++t) channel[t] = x[(b * time + t) * n + c];
      const Numbers result = times(band, channel);
      for (std::size_t t = 0; t < time; ++t) y[(b * time + t) * n + c] = result[t];
    }
  }
  return y;
}

double cross_entropy(const Matrix& logits, const Numbers& targets, double cap) {
  double total = 0, count = 0;
  for (std::size_t r = 0; r < logits.rows; ++r) {
    if (targets[r] < 0) continue;
    double sum = 0;
    const double own = capped(logits.at(r, static_cast<std::size_t>(targets[r])), cap);
    for (std::size_t v = 0; v < logits.columns; ++v) sum += std::exp(capped(logits.at(r, v), cap) - own);
    total -= std::log(1 / sum);
    count += 1;
  }
  return count > 0 ? total / count : 0;
}

Numbers normalised(const graph::RmsNorm& op, const Numbers& x) {
  Numbers y(x.size());
  const auto size = static_cast<std::size_t>(op.size);
  for (std::size_t run = 0; run < x.size(); run += size) {
    const Numbers part(x.begin() + static_cast<std::ptrdiff_t>(run),
                       x.begin() + static_cast<std::ptrdiff_t>(run + size));
    const double rms = std::hypot(norm(part) / std::sqrt(static_cast<double>(size)), std::sqrt(op.eps));
    for (std::size_t i = run; i < run + size; ++i) y[i] = x[i] / rms;
  }
  return y;
}

Numbers gated(const Numbers& e, const Numbers& g) {
  Numbers y(e.size());
  for (std::size_t i = 0; i < e.size(); ++i) y[i] = (1 + std::tanh(g[i / (e.size() / g.size())] / 2)) * e[i];
  return y;
}

// f(x) = w . y(x) for the weights w = dy.
std::function<double(const Numbers&)> weighted(const Numbers& dy,
                                               const std::function<Numbers(const Numbers&)>& y) {
  return [=](const Numbers& x) { return dot(dy, y(x)); };
}

std::map<std::string, Check> checks() {
  std::map<std::string, Check> table;

  table["linear"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const Matrix x = matrix(c.types[0], in[0]), w = matrix(c.types[1], in[1]);
    expect_bilinear({x.rows, w.rows, out[0]},
                    [&](const Numbers& u, const Numbers& v) { return dot(times(u, x), times(v, w)); });
  };
  table["linear_grad_input"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const Matrix dy = matrix(c.types[0], in[0]), w = matrix(c.types[1], in[1]);
    expect_bilinear({dy.rows, w.columns, out[0]},
                    [&](const Numbers& u, const Numbers& v) { return dot(times(u, dy), times(w, v)); });
  };
  table["linear_grad_weight"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const Matrix dy = matrix(c.types[0], in[0]), x = matrix(c.types[1], in[1]);
    expect_bilinear({dy.columns, x.columns, out[0]},
                    [&](const Numbers& u, const Numbers& v) { return dot(times(dy, u), times(x, v)); });
  };

  table["add"] = [](const Case&, const Tensors& in, const Tensors& out) {
    Numbers rest = out[0];
    for (const Numbers& x : in)
      for (std::size_t i = 0; i < x.size(); ++i) rest[i] -= x[i];
    EXPECT_LT(norm(rest), 1e-13 * norm(out[0]));
  };
  table["multiply"] = [](const Case&, const Tensors& in, const Tensors& out) {
    // a b = ((a + b)^2 - (a - b)^2) / 4
    for (std::size_t i = 0; i < in[0].size(); ++i) {
      const double sum = in[0][i] + in[1][i], difference = in[0][i] - in[1][i];
      EXPECT_NEAR(out[0][i], (sum * sum - difference * difference) / 4, 1e-13);
    }
  };
  table["relu"] = each(relu);
  table["relu2"] = each(relu2);
  table["gelu"] = each(gelu);
  table["silu"] = each(silu);
  table["relu_grad"] = slope_of(relu);
  table["relu2_grad"] = slope_of(relu2);
  table["gelu_grad"] = slope_of(gelu);
  table["silu_grad"] = slope_of(silu);
  table["softcap"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const double cap = dynamic_cast<const graph::Softcap&>(*c.op).cap;
    Numbers expected;
    for (double x : in[0]) expected.push_back(capped(x, cap));
    expect_close(out[0], expected);
  };
  table["softcap_grad"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const double cap = dynamic_cast<const graph::SoftcapGrad&>(*c.op).cap;
    for (std::size_t i = 0; i < in[0].size(); ++i) {
      if (std::abs(in[0][i]) > 0.999 * cap) continue;  // x can't be found back from a y so near the cap
      const double x = cap * std::atanh(in[0][i] / cap), h = 1e-3;
      const double slope = (8 * (capped(x + h, cap) - capped(x - h, cap)) -
                            (capped(x + 2 * h, cap) - capped(x - 2 * h, cap))) /
                           (12 * h);
      EXPECT_NEAR(out[0][i], in[1][i] * slope, 1e-9) << "at y = " << in[0][i];
    }
  };
  table["residual_mix"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const auto layer = static_cast<std::size_t>(dynamic_cast<const graph::ResidualMix&>(*c.op).layer);
    const Matrix streams{2, in[0].size(), [&] {
                           Numbers both = in[0];
                           both.insert(both.end(), in[1].begin(), in[1].end());
                           return both;
                         }()};
    expect_close(out[0], times(Numbers{in[2][layer], in[3][layer]}, streams));
  };
  table["residual_mix_grad"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const auto layer = static_cast<std::size_t>(dynamic_cast<const graph::ResidualMixGrad&>(*c.op).layer);
    for (std::size_t k = 0; k < 4; ++k) {
      expect_gradient(
          [&](const Numbers& moved) {
            Tensors at = in;
            at[k] = moved;
            return at[2][layer] * dot(in[4], at[0]) + at[3][layer] * dot(in[4], at[1]);
          },
          in[k], out[k], "operand " + std::to_string(k));
    }
    for (std::size_t k : {2u, 3u})
      for (std::size_t other = 0; other < out[k].size(); ++other)
        EXPECT_TRUE(other == layer || out[k][other] == 0) << "layer " << other;
  };
  table["slice_columns"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const auto& op = dynamic_cast<const graph::SliceColumns&>(*c.op);
    const Matrix x = matrix(c.types[0], in[0]);
    // A product with columns of the unit matrix.
    Matrix unit{x.columns, static_cast<std::size_t>(op.end - op.begin), {}};
    unit.data.resize(unit.rows * unit.columns);
    for (std::size_t i = 0; i < unit.columns; ++i) unit.at(i + static_cast<std::size_t>(op.begin), i) = 1;
    expect_bilinear({x.rows, unit.columns, out[0]},
                    [&](const Numbers& u, const Numbers& v) { return dot(times(u, x), times(unit, v)); });
  };
  table["pad_columns"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const auto& op = dynamic_cast<const graph::PadColumns&>(*c.op);
    const Matrix x = matrix(c.types[0], in[0]);
    const Matrix y{x.rows, static_cast<std::size_t>(op.width), out[0]};
    for (std::size_t r = 0; r < y.rows; ++r) {
      for (std::size_t col = 0; col < y.columns; ++col) {
        const bool inside =
            col >= static_cast<std::size_t>(op.begin) && col - static_cast<std::size_t>(op.begin) < x.columns;
        EXPECT_EQ(y.at(r, col), inside ? x.at(r, col - static_cast<std::size_t>(op.begin)) : 0);
      }
    }
  };
  table["value_gate"] = [](const Case&, const Tensors& in, const Tensors& out) {
    Numbers expected = gated(in[1], in[2]);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += in[0][i];
    expect_close(out[0], expected);
  };
  table["value_gate_grad"] = [](const Case&, const Tensors& in, const Tensors& out) {
    expect_gradient(weighted(in[2], [&](const Numbers& e) { return gated(e, in[1]); }), in[0], out[0], "e");
    expect_gradient(weighted(in[2], [&](const Numbers& g) { return gated(in[0], g); }), in[1], out[1], "g");
  };

  // Rows of the table chosen by a product with one-hot rows.
  static const auto one_hot = [](const Numbers& tokens, std::int64_t vocab) {
    Matrix chosen{tokens.size(), static_cast<std::size_t>(vocab), {}};
    chosen.data.resize(chosen.rows * chosen.columns);
    for (std::size_t r = 0; r < tokens.size(); ++r) chosen.at(r, static_cast<std::size_t>(tokens[r])) = 1;
    return chosen;
  };
  table["embedding"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const Matrix rows = matrix(c.types[1], in[1]), chosen = one_hot(in[0], c.types[1].shape[0]);
    expect_bilinear({chosen.rows, rows.columns, out[0]}, [&](const Numbers& u, const Numbers& v) {
      return dot(times(u, chosen), times(rows, v));
    });
  };
  table["embedding_grad"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const std::int64_t vocab = dynamic_cast<const graph::EmbeddingGrad&>(*c.op).vocab;
    const Matrix dy = matrix(c.types[1], in[1]), chosen = one_hot(in[0], vocab);
    expect_bilinear({chosen.columns, dy.columns, out[0]},
                    [&](const Numbers& u, const Numbers& v) { return dot(times(chosen, u), times(dy, v)); });
  };
  table["rms_norm"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    expect_close(out[0], normalised(dynamic_cast<const graph::RmsNorm&>(*c.op), in[0]));
  };
  table["rms_norm_grad"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const auto& op = dynamic_cast<const graph::RmsNormGrad&>(*c.op);
    // Runs of zeros are left alone: with a small eps the norm bends there within one step of the differences.
    Numbers at, dy, dx;
    const auto size = static_cast<std::size_t>(op.size);
    for (std::size_t run = 0; run < in[0].size(); run += size) {
      const bool zero = std::all_of(&in[0][run], &in[0][run] + size, [](double x) { return x == 0; });
      for (std::size_t i = run; i < run + size; ++i) {
        if (zero) {
          EXPECT_NEAR(out[0][i], in[1][i] / std::sqrt(op.eps), 1e-9 / std::sqrt(op.eps));
        } else {
          at.push_back(in[0][i]);
          dy.push_back(in[1][i]);
          dx.push_back(out[0][i]);
        }
      }
    }
    const graph::RmsNorm forward(op.size, op.eps);
    if (size > 2)
      expect_gradient(weighted(dy, [&](const Numbers& x) { return normalised(forward, x); }), at, dx, "x");
  };
  table["rotary"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const auto& op = dynamic_cast<const graph::Rotary&>(*c.op);
    const auto d = static_cast<std::size_t>(op.head_dim), half = d / 2,
               channels = static_cast<std::size_t>(c.types[0].shape[2]),
               time = static_cast<std::size_t>(c.types[0].shape[1]);
    Numbers expected(in[0].size());
    for (std::size_t start = 0; start < in[0].size(); start += d) {
      const auto t = static_cast<double>(start / channels % time);
      for (std::size_t i = 0; i < half; ++i) {
        // (a + i b) turned clockwise.
        const double frequency = 1 / std::pow(op.base, static_cast<double>(i) / static_cast<double>(half));
        const std::complex<double> turned = std::complex(in[0][start + i], in[0][start + half + i]) *
                                            std::polar(1.0, (op.inverse ? 1 : -1) * t * frequency);
        expected[start + i] = turned.real();
        expected[start + half + i] = turned.imag();
      }
    }
    expect_close(out[0], expected);
  };
  table["attention"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const Tensors expected =
        full_attention(c, dynamic_cast<const graph::Attention&>(*c.op).shape)(in[0], in[1], in[2]);
    expect_close(out[0], expected[0], "o");
    for (std::size_t i = 0; i < expected[1].size(); ++i)
      EXPECT_NEAR(out[1][i], expected[1][i], 1e-12) << "lse";
  };
  table["attention_grad"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const FullAttention forward = full_attention(c, dynamic_cast<const graph::AttentionGrad&>(*c.op).shape);
    if (forward.time > 64) return;  // minutes of differences; the kernel has no cases by size
    // o and lse were rounded to float, the kernel's answer with them: take the exact ones.
    Tensors exact = in;
    const Tensors o_lse = forward(in[0], in[1], in[2]);
    exact[3] = o_lse[0];
    exact[4] = o_lse[1];
    const Tensors gradients = run<double>(c, exact);
    EXPECT_LT(relative_difference(out[2], gradients[2]), 1e-5);
    for (std::size_t k = 0; k < 3; ++k) {
      expect_gradient(
          [&](const Numbers& moved) {
            Tensors at = {in[0], in[1], in[2]};
            at[k] = moved;
            return dot(in[5], forward(at[0], at[1], at[2])[0]);
          },
          in[k], gradients[k], "operand " + std::to_string(k));
    }
  };
  table["causal_convolution"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    expect_close(out[0],
                 convolved(c.types[0].shape, static_cast<std::size_t>(c.types[1].shape[1]), in[0], in[1]));
  };
  table["causal_convolution_grad"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const auto taps = static_cast<std::size_t>(c.types[1].shape[1]);
    const Shape& shape = c.types[0].shape;
    expect_gradient(weighted(in[2], [&](const Numbers& x) { return convolved(shape, taps, x, in[1]); }),
                    in[0], out[0], "x");
    expect_gradient(weighted(in[2], [&](const Numbers& w) { return convolved(shape, taps, in[0], w); }),
                    in[1], out[1], "weight");
  };
  table["softcap_cross_entropy"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const double cap = dynamic_cast<const graph::SoftcapCrossEntropy&>(*c.op).cap;
    EXPECT_NEAR(out[0][0], cross_entropy(matrix(c.types[0], in[0]), in[1], cap), 1e-12);
  };
  table["softcap_cross_entropy_grad"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const double cap = dynamic_cast<const graph::SoftcapCrossEntropyGrad&>(*c.op).cap;
    expect_gradient(
        [&](const Numbers& x) { return in[2][0] * cross_entropy(matrix(c.types[0], x), in[1], cap); }, in[0],
        out[0], "logits");
  };

  table["adamw"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const auto& op = dynamic_cast<const graph::AdamW&>(*c.op);
    const double lr = in[4][0], weight_decay = in[5][0], step = in[6][0];
    Numbers p, m, v;
    for (std::size_t i = 0; i < in[0].size(); ++i) {
      const double g = in[1][i];
      m.push_back(in[2][i] + (1 - op.beta1) * (g - in[2][i]));
      v.push_back(in[3][i] + (1 - op.beta2) * (g * g - in[3][i]));
      // The corrections moved into the step size and eps (Kingma, Ba 2015, section 2).
      const double root = std::sqrt(1 - std::pow(op.beta2, step));
      p.push_back(in[0][i] - lr * weight_decay * in[0][i] -
                  lr * root / (1 - std::pow(op.beta1, step)) * m.back() /
                      (std::sqrt(v.back()) + op.eps * root));
    }
    expect_close(out[0], p, "p");
    expect_close(out[1], m, "m");
    expect_close(out[2], v, "v");
  };
  table["nesterov_momentum"] = [](const Case&, const Tensors& in, const Tensors& out) {
    const double mu = in[2][0];
    Numbers update, buffer;
    for (std::size_t i = 0; i < in[0].size(); ++i) {
      buffer.push_back(mu * in[1][i] + (1 - mu) * in[0][i]);
      update.push_back(mu * mu * in[1][i] + (1 - mu * mu) * in[0][i]);
    }
    expect_close(out[0], update, "update");
    expect_close(out[1], buffer, "buffer");
  };
  table["polar_express"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    // The iteration acts on singular values alone, each as an odd polynomial.
    const auto m = static_cast<std::size_t>(c.types[0].shape[0]),
               n = static_cast<std::size_t>(c.types[0].shape[1]);
    const int iterations = dynamic_cast<const graph::PolarExpress&>(*c.op).iterations;
    const Decomposition d = decompose(in[0], m, n);
    Numbers expected(m * n, 0.0);
    for (std::size_t k = 0; k < n; ++k) {
      const double own = d.singular_value(k);
      if (own < 1e-9) continue;
      double s = own / (1.01 * norm(in[0]) + 1e-6);
      for (int i = 0; i < iterations; ++i) {
        const auto& [a, b, e] = graph::PolarExpress::coefficients[static_cast<std::size_t>(i)];
        s = a * s + b * std::pow(s, 3) + e * std::pow(s, 5);
      }
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j)
          expected[i * n + j] += d.scaled[i * n + k] / own * s * d.v[j * n + k];
    }
    EXPECT_LT(relative_difference(out[0], expected), 1e-9);
  };
  table["normuon"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const double beta2 = dynamic_cast<const graph::NorMuon&>(*c.op).beta2;
    const Matrix u = matrix(c.types[0], in[0]), scaled = matrix(c.types[0], out[0]);
    EXPECT_NEAR(norm(out[0]), norm(in[0]), 1e-12 * norm(in[0])) << "the norm is kept";
    const bool by_rows = u.rows >= u.columns;
    const std::size_t lines = by_rows ? u.rows : u.columns, length = by_rows ? u.columns : u.rows;
    double factor = 0;  // the rescaling, the same for all lines
    for (std::size_t l = 0; l < lines; ++l) {
      Numbers before, after;
      for (std::size_t e = 0; e < length; ++e) {
        before.push_back(by_rows ? u.at(l, e) : u.at(e, l));
        after.push_back(by_rows ? scaled.at(l, e) : scaled.at(e, l));
      }
      const double mean = dot(before, before) / static_cast<double>(length);
      EXPECT_NEAR(out[1][l], beta2 * in[1][l] + (1 - beta2) * mean, 1e-13);
      if (norm(before) == 0) continue;
      EXPECT_NEAR(dot(before, after), norm(before) * norm(after), 1e-12 * norm(before) * norm(after))
          << "line " << l;
      const double own = norm(after) / norm(before) * std::sqrt(std::max(out[1][l], 1e-10));
      if (factor == 0) factor = own;
      EXPECT_NEAR(own, factor, 1e-11 * factor) << "line " << l;
    }
  };
  table["cautious_update"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const double s = dynamic_cast<const graph::CautiousUpdate&>(*c.op).lr_scale, lr = in[2][0],
                 weight_decay = in[3][0];
    Numbers expected;
    for (std::size_t i = 0; i < in[0].size(); ++i) {
      const bool agree = std::signbit(in[0][i]) == std::signbit(in[1][i]);
      expected.push_back(in[0][i] * (agree ? 1 - s * lr * weight_decay : 1) - s * lr * in[1][i]);
    }
    expect_close(out[0], expected);
  };
  table["global_norm"] = [](const Case&, const Tensors& in, const Tensors& out) {
    double length = 0;
    for (const Numbers& g : in)
      for (double value : g) length = std::hypot(length, value);
    EXPECT_NEAR(out[0][0], length, 1e-12 * length);
  };
  table["clip_by_norm"] = [](const Case& c, const Tensors& in, const Tensors& out) {
    const double limit = dynamic_cast<const graph::ClipByNorm&>(*c.op).max_norm, length = in[1][0];
    for (std::size_t i = 0; i < in[0].size(); ++i)
      EXPECT_DOUBLE_EQ(out[0][i] * std::max(limit, length), in[0][i] * limit);
  };
  return table;
}

TEST(Operators, EveryReferenceHasCasesAndAFormula) {
  const auto table = checks();
  ASSERT_FALSE(host::reference_names().empty());
  for (const std::string& op : host::reference_names()) {
    EXPECT_FALSE(cases_of(op).empty()) << "operator " << op << " has no case in operator_cases.cc";
    EXPECT_TRUE(table.contains(op)) << "operator " << op << " has no formula in operator_test.cc";
  }
}

class OperatorTest : public ::testing::TestWithParam<std::string> {};

TEST_P(OperatorTest, AgreesWithTheFormula) {
  const Check check = checks().at(GetParam());
  for (const Case& instance : cases_of(GetParam())) {
    SCOPED_TRACE(instance.label());
    const Tensors operands = instance.operands(5);
    check(instance, operands, run<double>(instance, operands));
  }
}

TEST_P(OperatorTest, TheFloatInstanceIsTheSameMathematics) {
  for (const Case& instance : cases_of(GetParam())) {
    SCOPED_TRACE(instance.label());
    const Tensors operands = instance.operands(6);
    const Tensors expected = run<double>(instance, operands), found = run<float>(instance, operands);
    for (std::size_t o = 0; o < expected.size(); ++o) {
      EXPECT_LT(relative_difference(found[o], expected[o]), 1e-3) << "output " << o;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OperatorTest, ::testing::ValuesIn(host::reference_names()),
                         [](const auto& parameter) { return parameter.param; });

// The message of the InputError that running the case throws.
std::string refusal(const Case& instance, const Tensors& operands) {
  try {
    run<double>(instance, operands);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(Operators, TokensOutsideTheVocabularyAreRefused) {
  const Case embedding{std::make_shared<graph::Embedding>(), {{{3}, DType::i32}, {{5, 2}, DType::f32}}};
  for (double token : {5.0, -1.0}) {
    EXPECT_EQ(
        refusal(embedding, {{0, 4, token}, Numbers(10, 1.0)}),
        "[embedding]: token " + std::to_string(static_cast<int>(token)) + " is outside the vocabulary of 5");
  }
  const Case embedding_grad{std::make_shared<graph::EmbeddingGrad>(5),
                            {{{1}, DType::i32}, {{1, 2}, DType::f32}}};
  EXPECT_EQ(refusal(embedding_grad, {{77}, {1, 1}}),
            "[embedding_grad]: token 77 is outside the vocabulary of 5");
  const Case loss{std::make_shared<graph::SoftcapCrossEntropy>(0.0),
                  {{{2, 4}, DType::f32}, {{2}, DType::i32}}};
  for (double target : {4.0, -2.0}) {
    EXPECT_EQ(refusal(loss, {Numbers(8, 0.0), {0, target}}), "[softcap_cross_entropy]: target " +
                                                                 std::to_string(static_cast<int>(target)) +
                                                                 " is outside the vocabulary of 4");
  }
  const Case loss_grad{std::make_shared<graph::SoftcapCrossEntropyGrad>(0.0),
                       {{{1, 4}, DType::f32}, {{1}, DType::i32}, {{}, DType::f32}}};
  EXPECT_EQ(refusal(loss_grad, {Numbers(4, 0.0), {9}, {1}}),
            "[softcap_cross_entropy_grad]: target 9 is outside the vocabulary of 4");
}

TEST(Operators, LossOfUniformLogitsIsTheLogarithmOfTheVocabulary) {
  const Case loss{std::make_shared<graph::SoftcapCrossEntropy>(15.0),
                  {{{3, 50}, DType::f32}, {{3}, DType::i32}}};
  EXPECT_NEAR(run<double>(loss, {Numbers(150, 2.5), {0, -1, 49}})[0][0], std::log(50.0), 1e-14);
  EXPECT_EQ(run<double>(loss, {Numbers(150, 2.5), {-1, -1, -1}})[0][0], 0);
}

TEST(Operators, AttentionOverAWindowOfZeroIsTheValueItself) {
  const Case c{std::make_shared<graph::Attention>(graph::AttentionShape{2, 1, 2, 0, 0.7}),
               {{{1, 3, 4}, DType::f32}, {{1, 3, 2}, DType::f32}, {{1, 3, 2}, DType::f32}}};
  const Tensors in = c.operands(3);
  const Numbers o = run<double>(c, in)[0];
  for (std::size_t t = 0; t < 3; ++t)
    for (std::size_t channel = 0; channel < 4; ++channel)
      EXPECT_NEAR(o[t * 4 + channel], in[2][t * 2 + channel % 2], 1e-15);
}

TEST(Operators, PolarExpressBringsSingularValuesNearOne) {
  for (const Shape& shape : std::vector<Shape>{{5, 8}, {8, 5}}) {
    const Case c{std::make_shared<graph::PolarExpress>(5), {{shape, DType::f32}}};
    const auto m = static_cast<std::size_t>(shape[0]), n = static_cast<std::size_t>(shape[1]);
    const Decomposition before = decompose(c.operands(4)[0], m, n);
    const Decomposition after = decompose(run<double>(c, c.operands(4))[0], m, n);
    std::size_t near_one = 0;
    for (std::size_t k = 0; k < n; ++k) {
      EXPECT_LT(after.singular_value(k), 1.3);
      near_one += after.singular_value(k) > 0.7 ? 1 : 0;
    }
    EXPECT_EQ(near_one, std::min(m, n));
    // The polynomial alone: the least singular value was far from 1.
    double least = 1e9;
    for (std::size_t k = 0; k < n; ++k)
      if (before.singular_value(k) > 1e-9) least = std::min(least, before.singular_value(k));
    EXPECT_LT(least / norm(before.scaled), 0.3);
  }
}

TEST(Operators, ProductsInBfloat16RoundTheirOperands) {
  for (const std::string op : {"linear", "linear_grad_input", "linear_grad_weight"}) {
    const Case instance = cases_of(op)[4];
    SCOPED_TRACE(instance.label());
    const Tensors operands = instance.operands(9);
    Tensors rounded = operands;
    for (Numbers& numbers : rounded)
      for (double& value : numbers) value = round_to_bf16(static_cast<float>(value));
    ASSERT_NE(rounded, operands);
    host::Options options;
    options.bf16_products = true;
    EXPECT_EQ(run<double>(instance, operands, options), run<double>(instance, rounded));
  }
}

}  // namespace
}  // namespace headway::test
