#include "host/operator_cases.h"

#include <array>
#include <cmath>
#include <map>

#include "graph/operators/elementwise.h"
#include "graph/operators/linear.h"
#include "graph/operators/loss.h"
#include "graph/operators/sequence.h"
#include "graph/operators/update.h"
#include "host/interpret.h"

namespace headway::test {
namespace {

using graph::TensorType;
using Make = std::function<void(std::vector<Numbers>&, Random&)>;

TensorType real(Shape shape) { return {std::move(shape), DType::f32}; }
TensorType whole(Shape shape) { return {std::move(shape), DType::i32}; }

// Replaces operand k by a scalar.
Make scalar(std::size_t k, double value) {
  return [=](std::vector<Numbers>& operands, Random&) { operands[k] = {value}; };
}

Make all_of(std::vector<Make> makers) {
  return [makers = std::move(makers)](std::vector<Numbers>& operands, Random& random) {
    for (const Make& make : makers) make(operands, random);
  };
}

Make positive(std::size_t k, double scale) {
  return [=](std::vector<Numbers>& operands, Random&) {
    for (double& value : operands[k]) value = scale * std::abs(value);
  };
}

Make tokens(std::size_t k, std::int64_t vocab) {
  return [=](std::vector<Numbers>& operands, Random& random) {
    operands[k] = random_tokens(operands[k].size(), vocab, random);
  };
}

Make targets(std::size_t k, std::int64_t vocab, bool none = false) {
  return [=](std::vector<Numbers>& operands, Random& random) {
    operands[k] = random_targets(operands[k].size(), vocab, random, none);
  };
}

class Table {
 public:
  Table() {
    products();
    elementwise();
    residuals();
    columns();
    embeddings();
    norms();
    positions();
    attentions();
    losses();
    optimizers();
  }
  std::map<std::string, std::vector<Case>> cases;

 private:
  void put(std::shared_ptr<const graph::Operator> op, std::vector<TensorType> types,
           std::int64_t reduction = 1, Make make = {}) {
    auto& list = cases[std::string(op->name())];
    list.push_back({std::move(op), std::move(types), reduction, std::move(make)});
  }
  template <class Op, class... Arguments>
  static std::shared_ptr<const graph::Operator> make(Arguments... arguments) {
    return std::make_shared<Op>(arguments...);
  }

  void products() {
    struct Size {
      Shape leading;
      std::int64_t in, out;
    };
    for (const Size& s :
         {Size{{1}, 1, 1}, Size{{1}, 7, 5}, Size{{2, 3}, 5, 7}, Size{{}, 16, 3}, Size{{3, 11}, 33, 17},
          Size{{64}, 64, 64}, Size{{2, 65}, 48, 129}, Size{{31}, 130, 1}, Size{{5}, 1, 40},
          Size{{128}, 96, 32}, Size{{1}, 300, 100}, Size{{130}, 700, 300}}) {
      Shape x = s.leading, y = s.leading;
      x.push_back(s.in);
      y.push_back(s.out);
      put(make<graph::Linear>(), {real(x), real({s.out, s.in})}, s.in);
      put(make<graph::LinearGradInput>(), {real(y), real({s.out, s.in})}, s.out);
      put(make<graph::LinearGradWeight>(), {real(y), real(x)}, graph::rows(x));
    }
  }

  void elementwise() {
    using graph::ActivationKind;
    for (const Shape& shape : std::vector<Shape>{{1}, {7}, {16}, {3, 5}, {2, 3, 33}, {4, 257}, {1, 31, 64}}) {
      const TensorType x = real(shape);
      for (std::size_t operands : {1u, 2u, 3u, 5u})
        put(make<graph::Add>(), std::vector<TensorType>(operands, x));
      put(make<graph::Multiply>(), {x, x});
      // Some large arguments too: tails and overflow of exponentials.
      const Make wide = [](std::vector<Numbers>& operands, Random&) {
        for (std::size_t i = 0; i < operands[0].size(); i += 3) operands[0][i] *= 30;
      };
      for (ActivationKind kind :
           {ActivationKind::relu, ActivationKind::relu2, ActivationKind::gelu, ActivationKind::silu}) {
        put(make<graph::Activation>(kind), {x}, 1, wide);
        put(make<graph::ActivationGrad>(kind), {x, x}, 1, wide);
      }
      for (double cap : {2.0, 15.0}) {
        put(make<graph::Softcap>(cap), {x}, 1, wide);
        put(make<graph::SoftcapGrad>(cap), {x, x}, 1, [cap](std::vector<Numbers>& operands, Random&) {
          for (double& y : operands[0]) y = cap * std::tanh(y / cap);
        });
      }
    }
  }

  void residuals() {
    for (const Shape& shape : std::vector<Shape>{{1}, {2, 3, 5}, {1, 17, 33}, {4, 16, 64}}) {
      for (const auto& [layer, layers] : {std::pair{0, 1}, std::pair{2, 3}, std::pair{1, 12}}) {
        const TensorType x = real(shape), weights = real({layers});
        put(make<graph::ResidualMix>(layer), {x, x, weights, weights});
        put(make<graph::ResidualMixGrad>(layer), {x, x, weights, weights, x}, elements(shape));
      }
    }
    struct Size {
      Shape leading;
      std::int64_t heads, d;
    };
    for (const Size& s :
         {Size{{1}, 1, 1}, Size{{2, 3}, 3, 5}, Size{{1, 9}, 2, 16}, Size{{2, 17}, 4, 32}, Size{{3}, 1, 70}}) {
      Shape v = s.leading, g = s.leading;
      v.push_back(s.heads * s.d);
      g.push_back(s.heads);
      put(make<graph::ValueGate>(), {real(v), real(v), real(g)});
      put(make<graph::ValueGateGrad>(), {real(v), real(g), real(v)}, s.d);
    }
  }

  void columns() {
    struct Size {
      Shape leading;
      std::int64_t begin, part, width;
    };
    for (const Size& s : {Size{{}, 0, 1, 1}, Size{{3}, 0, 4, 9}, Size{{2, 5}, 5, 4, 9},
                          Size{{2, 3}, 16, 33, 65}, Size{{7}, 0, 12, 12}}) {
      Shape whole_rows = s.leading, part = s.leading;
      whole_rows.push_back(s.width);
      part.push_back(s.part);
      put(make<graph::SliceColumns>(s.begin, s.begin + s.part), {real(whole_rows)});
      put(make<graph::PadColumns>(s.begin, s.width), {real(part)});
    }
  }

  void embeddings() {
    struct Size {
      Shape tokens;
      std::int64_t vocab, n;
    };
    for (const Size& s : {Size{{1}, 1, 1}, Size{{2, 7}, 5, 3}, Size{{3, 33}, 50, 17}, Size{{4, 64}, 300, 64},
                          Size{{200}, 2, 9}}) {
      Shape y = s.tokens;
      y.push_back(s.n);
      put(make<graph::Embedding>(), {whole(s.tokens), real({s.vocab, s.n})}, 1, tokens(0, s.vocab));
      put(make<graph::EmbeddingGrad>(s.vocab), {whole(s.tokens), real(y)}, elements(s.tokens),
          tokens(0, s.vocab));
    }
  }

  void norms() {
    struct Size {
      Shape leading;
      std::int64_t runs, size;
    };
    for (const Size& s : {Size{{1}, 1, 1}, Size{{2, 3}, 1, 7}, Size{{2, 5}, 3, 4}, Size{{17}, 1, 64},
                          Size{{2, 9}, 4, 33}, Size{{3, 7}, 2, 128}}) {
      Shape shape = s.leading;
      shape.push_back(s.runs * s.size);
      const Make zero_run = [size = s.size](std::vector<Numbers>& operands, Random&) {
        // eps decides where there is nothing else.
        if (static_cast<std::int64_t>(operands[0].size()) > size) std::fill_n(operands[0].begin(), size, 0.0);
      };
      // Of a run of one element only eps / (x^2 + eps) of the gradient is left: lost in rounding where eps is
      // small.
      for (double eps : s.size == 1 ? std::vector<double>{1.0} : std::vector<double>{1e-6, 1e-2}) {
        put(make<graph::RmsNorm>(s.size, eps), {real(shape)}, s.size, zero_run);
        put(make<graph::RmsNormGrad>(s.size, eps), {real(shape), real(shape)}, s.size, zero_run);
      }
    }
  }

  void positions() {
    struct Size {
      std::int64_t batch, time, heads, d;
    };
    for (const Size& s :
         {Size{1, 1, 1, 2}, Size{2, 5, 3, 6}, Size{1, 33, 2, 16}, Size{2, 65, 1, 64}, Size{1, 300, 1, 10}}) {
      for (double base : {100.0, 10000.0})
        for (bool inverse : {false, true})
          put(make<graph::Rotary>(s.d, base, inverse), {real({s.batch, s.time, s.heads * s.d})});
    }
    for (const auto& [batch, time, n, taps] : {std::array<std::int64_t, 4>{1, 1, 1, 1},
                                               {2, 5, 3, 4},
                                               {1, 2, 7, 4},
                                               {3, 17, 33, 3},
                                               {2, 40, 64, 4},
                                               {1, 9, 5, 1}}) {
      const TensorType x = real({batch, time, n}), weight = real({n, taps});
      put(make<graph::CausalConvolution>(), {x, weight}, taps);
      put(make<graph::CausalConvolutionGrad>(), {x, weight, x}, batch * time);
    }
  }

  void attentions() {
    struct Size {
      std::int64_t batch, time, heads, kv_heads, d, window;
    };
    for (const Size& s : {Size{1, 1, 1, 1, 4, 0}, Size{1, 1, 2, 1, 3, 5}, Size{2, 5, 2, 2, 4, 5},
                          Size{1, 7, 4, 2, 5, 0}, Size{2, 9, 6, 2, 8, 3}, Size{1, 33, 2, 1, 16, 33},
                          Size{1, 33, 2, 1, 16, 32}, Size{2, 65, 3, 3, 32, 100}, Size{1, 65, 4, 1, 64, 17},
                          Size{1, 130, 2, 2, 24, 1}, Size{1, 130, 1, 1, 128, 64}}) {
      const TensorType q = real({s.batch, s.time, s.heads * s.d}),
                       k = real({s.batch, s.time, s.kv_heads * s.d}), lse = real({s.batch, s.heads, s.time});
      const graph::AttentionShape shape{s.heads, s.kv_heads, s.d, s.window,
                                        1 / std::sqrt(static_cast<double>(s.d))};
      const std::int64_t reduction = std::max(std::min(s.time, s.window + 1), s.d);
      put(make<graph::Attention>(shape), {q, k, k}, reduction);
      put(make<graph::AttentionGrad>(shape), {q, k, k, q, lse, q}, reduction * s.heads / s.kv_heads,
          [=](std::vector<Numbers>& operands, Random&) {
            graph::Graph graph(std::make_shared<graph::Variables>());
            const auto forward = graph.apply(make<graph::Attention>(shape),
                                             {graph.input("q", q), graph.input("k", k), graph.input("v", k)});
            Interpreter<double> machine(graph, host::reference_kernels<double>());
            machine.bind("q", operands[0]);
            machine.bind("k", operands[1]);
            machine.bind("v", operands[2]);
            machine.run();
            operands[3] = machine.value(forward[0]);
            operands[4] = machine.value(forward[1]);
          });
    }
  }

  void losses() {
    struct Size {
      Shape targets;
      std::int64_t vocab;
      bool none;
    };
    for (const Size& s : {Size{{1}, 1, false}, Size{{2, 3}, 5, false}, Size{{2, 9}, 33, false},
                          Size{{5}, 16, true}, Size{{3, 11}, 300, false}, Size{{65}, 64, false}}) {
      Shape logits = s.targets;
      logits.push_back(s.vocab);
      for (double cap : {0.0, 2.0, 15.0}) {
        const Make spread = [](std::vector<Numbers>& operands, Random&) {
          for (double& logit : operands[0]) logit *= 5;
        };
        const Make make_targets = targets(1, s.vocab, s.none);
        put(make<graph::SoftcapCrossEntropy>(cap), {real(logits), whole(s.targets)}, s.vocab,
            all_of({spread, make_targets}));
        put(make<graph::SoftcapCrossEntropyGrad>(cap), {real(logits), whole(s.targets), real({})}, s.vocab,
            all_of({spread, make_targets}));
      }
    }
  }

  void optimizers() {
    for (const Shape& shape : std::vector<Shape>{{1}, {7}, {3, 5}, {16, 16}, {33, 65}, {12, 128}}) {
      const TensorType p = real(shape), s = real({});
      for (double step : {1.0, 2.0, 1000.0}) {
        put(make<graph::AdamW>(0.9, 0.95, 1e-8), {p, p, p, p, s, s, s}, 1,
            all_of({positive(3, 1), scalar(4, 0.01), scalar(5, 0.1), scalar(6, step)}));
        put(make<graph::AdamW>(0.8, 0.999, 1e-10), {p, p, p, p, s, s, s}, 1,
            all_of({positive(3, 1e-4), scalar(4, 0.3), scalar(5, 0), scalar(6, step)}));
      }
      for (double momentum : {0.0, 0.85, 0.95})
        put(make<graph::NesterovMomentum>(), {p, p, s}, 1, scalar(2, momentum));
      for (double lr_scale : {1.0, 2.5}) {
        put(make<graph::CautiousUpdate>(lr_scale), {p, p, s, s}, 1,
            all_of({scalar(2, 0.02), scalar(3, 0.2)}));
        put(make<graph::CautiousUpdate>(lr_scale), {p, p, s, s}, 1, all_of({scalar(2, 0.02), scalar(3, 0)}));
      }
      put(make<graph::GlobalNorm>(), {p}, elements(shape));
      put(make<graph::GlobalNorm>(), {p, real({5}), real({1}), real({3, 70})}, elements(shape) + 216);
      for (double norm : {0.0, 0.5, 1.0, 7.0}) put(make<graph::ClipByNorm>(1.0), {p, s}, 1, scalar(1, norm));
    }
    for (const Shape& shape :
         std::vector<Shape>{{1, 1}, {1, 6}, {6, 1}, {4, 4}, {3, 8}, {8, 3}, {16, 33}, {40, 17}, {64, 64}}) {
      for (int iterations : {1, 3, 5})
        put(make<graph::PolarExpress>(iterations), {real(shape)}, std::max(shape[0], shape[1]));
      put(make<graph::NorMuon>(0.95), {real(shape), real({std::max(shape[0], shape[1])})}, elements(shape),
          positive(1, 1));
      // A second moment that has just begun, and an update that is zero.
      put(make<graph::NorMuon>(0.9), {real(shape), real({std::max(shape[0], shape[1])})}, elements(shape),
          positive(1, 0));
      put(make<graph::NorMuon>(0.9), {real(shape), real({std::max(shape[0], shape[1])})}, elements(shape),
          all_of({positive(0, 0), positive(1, 0)}));
    }
  }
};

}  // namespace

std::vector<Numbers> random_operands(const std::vector<TensorType>& types, const Make& make,
                                     std::uint64_t seed) {
  Random random(seed);
  std::vector<Numbers> operands;
  for (const TensorType& type : types) {
    operands.emplace_back(static_cast<std::size_t>(elements(type.shape)));
    for (double& value : operands.back()) value = random.normal();
  }
  if (make) make(operands, random);
  for (Numbers& numbers : operands)
    for (double& value : numbers) value = static_cast<float>(value);
  return operands;
}

Numbers random_tokens(std::size_t count, std::int64_t vocab, Random& random) {
  Numbers tokens(count);
  for (double& token : tokens) token = static_cast<double>(random.below(static_cast<std::uint64_t>(vocab)));
  return tokens;
}

Numbers random_targets(std::size_t count, std::int64_t vocab, Random& random, bool none) {
  Numbers targets = random_tokens(count, vocab, random);
  for (double& target : targets)
    if (none || random.below(4) == 0) target = -1;
  return targets;
}

std::vector<Numbers> Case::operands(std::uint64_t seed) const { return random_operands(types, make, seed); }

std::string Case::label() const {
  std::string text(op->name());
  for (const TensorType& type : types) text += " " + std::string(name_of(type.dtype)) + to_string(type.shape);
  return text + " " + op->attributes().dump();
}

std::vector<Case> cases_of(const std::string& op) {
  static const Table table;
  const auto found = table.cases.find(op);
  return found == table.cases.end() ? std::vector<Case>{} : found->second;
}

}  // namespace headway::test
