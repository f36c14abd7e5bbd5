#include "graph/operators/update.h"

#include <algorithm>

namespace headway::graph {
namespace {

bool scalars(std::span<const TensorType> types) {
  return std::all_of(types.begin(), types.end(), [](const TensorType& t) { return t.shape.empty(); });
}

}  // namespace

std::vector<TensorType> AdamW::infer(std::span<const TensorType> in) const {
  require(in.size() == 7 && in[1] == in[0] && in[2] == in[0] && in[3] == in[0] && scalars(in.subspan(4)),
          *this, "takes p, g, m, v of one shape and scalars lr, weight decay, step", in);
  return {in[0], in[0], in[0]};
}

std::vector<TensorType> NesterovMomentum::infer(std::span<const TensorType> in) const {
  require(in.size() == 3 && in[1] == in[0] && scalars(in.subspan(2)), *this,
          "takes g and buffer of one shape and a scalar momentum", in);
  return {in[0], in[0]};
}

std::vector<TensorType> PolarExpress::infer(std::span<const TensorType> in) const {
  require(in.size() == 1 && in[0].shape.size() == 2 && iterations >= 1 &&
              iterations <= static_cast<int>(coefficients.size()),
          *this, "takes a matrix and 1 to 5 iterations", in);
  return {in[0]};
}

double PolarExpress::flops(std::span<const TensorType> in, std::span<const TensorType>) const {
  const auto small = static_cast<double>(std::min(in[0].shape[0], in[0].shape[1]));
  const auto large = static_cast<double>(std::max(in[0].shape[0], in[0].shape[1]));
  return iterations * (4 * small * small * large + 2 * small * small * small);
}

std::vector<TensorType> NorMuon::infer(std::span<const TensorType> in) const {
  require(in.size() == 2 && in[0].shape.size() == 2 &&
              in[1].shape == Shape{std::max(in[0].shape[0], in[0].shape[1])},
          *this, "takes u [m, n] and second [max(m, n)]", in);
  return {in[0], in[1]};
}

std::vector<TensorType> CautiousUpdate::infer(std::span<const TensorType> in) const {
  require(in.size() == 4 && in[1] == in[0] && scalars(in.subspan(2)), *this,
          "takes p and u of one shape and scalars lr and weight decay", in);
  return {in[0]};
}

std::vector<TensorType> GlobalNorm::infer(std::span<const TensorType> in) const {
  require(!in.empty(), *this, "takes at least one tensor", in);
  return {{{}, in[0].dtype}};
}

std::vector<TensorType> ClipByNorm::infer(std::span<const TensorType> in) const {
  require(in.size() == 2 && scalars(in.subspan(1)), *this, "takes g and a scalar norm", in);
  return {in[0]};
}

}  // namespace headway::graph
