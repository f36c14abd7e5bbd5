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
