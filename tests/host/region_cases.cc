#include "host/region_cases.h"

#include <algorithm>
#include <map>

#include "graph/operators/elementwise.h"
#include "graph/operators/linear.h"
#include "graph/operators/loss.h"
#include "graph/operators/sequence.h"

namespace headway::test {
namespace {

graph::TensorType real(Shape shape) { return {std::move(shape), DType::f32}; }

std::map<std::string, std::vector<RegionCase>> table() {
  std::map<std::string, std::vector<RegionCase>> cases;

  // The last product, the loss and their gradients, which a kernel can do in pieces of the vocabulary or of
  // the rows.
  struct Head {
    Shape rows;
    std::int64_t channels, vocab;
  };
  for (const Head& h : {Head{{1}, 1, 1}, Head{{2, 3}, 5, 7}, Head{{1, 33}, 16, 50}, Head{{3, 65}, 48, 300},
                        Head{{2, 300}, 32, 65}, Head{{70}, 20, 1030}}) {
    Shape x_shape = h.rows, logits_shape = h.rows;
    x_shape.push_back(h.channels);
    logits_shape.push_back(h.vocab);
    const graph::TensorType x = real(x_shape), weight = real({h.vocab, h.channels}),
                            logits = real(logits_shape), targets{h.rows, DType::i32};
    for (double cap : {0.0, 2.0, 15.0}) {
      const auto linear = std::make_shared<graph::Linear>();
      const auto loss = std::make_shared<graph::SoftcapCrossEntropy>(cap);
      const std::int64_t reduction = std::max({h.vocab, h.channels, elements(h.rows)});
      cases["linear+softcap_cross_entropy"].push_back(
          {{linear, loss}, {{x, weight}, {logits, targets}}, reduction, h.vocab});
      cases["linear+softcap_cross_entropy+softcap_cross_entropy_grad+linear_grad_input+linear_grad_weight"]
          .push_back(
              {{linear, loss, std::make_shared<graph::SoftcapCrossEntropyGrad>(cap),
                std::make_shared<graph::LinearGradInput>(), std::make_shared<graph::LinearGradWeight>()},
               {{x, weight}, {logits, targets}, {logits, targets, real({})}, {logits, weight}, {logits, x}},
               reduction,
               h.vocab});
    }
  }

  // Norms of heads, of parts of heads, of several heads and of whole rows.
  struct Heads {
    std::int64_t batch, time, heads, d, size;
  };
  for (const Heads& h :
       {Heads{1, 1, 1, 2, 2}, Heads{2, 5, 3, 6, 6}, Heads{1, 33, 2, 16, 16}, Heads{2, 17, 4, 32, 128},
        Heads{1, 9, 4, 10, 20}, Heads{2, 3, 2, 64, 32}, Heads{3, 65, 1, 128, 128}}) {
    const graph::TensorType x = real({h.batch, h.time, h.heads * h.d});
    for (double eps : {1e-6, 1e-2}) {
      const auto norm = std::make_shared<graph::RmsNorm>(h.size, eps);
      const auto norm_grad = std::make_shared<graph::RmsNormGrad>(h.size, eps);
      for (bool inverse : {false, true}) {
        const auto rotary = std::make_shared<graph::Rotary>(h.d, 1000.0, inverse);
        cases["rotary+rms_norm"].push_back({{rotary, norm}, {{x}, {x}}, h.size});
        cases["rms_norm_grad+rotary"].push_back({{norm_grad, rotary}, {{x, x}, {x}}, h.size});
      }
      cases["rms_norm_grad+add"].push_back(
          {{norm_grad, std::make_shared<graph::Add>()}, {{x, x}, {x, x}}, h.size});
    }
  }
  return cases;
}

}  // namespace

std::string name_of(const host::Pattern& pattern) {
  std::string name;
  for (const auto& node : pattern.nodes) name += (name.empty() ? "" : "+") + node.op;
  return name;
}

std::vector<RegionCase> region_cases_of(const std::string& name) {
  static const auto cases = table();
  const auto found = cases.find(name);
  return found == cases.end() ? std::vector<RegionCase>{} : found->second;
}

}  // namespace headway::test
