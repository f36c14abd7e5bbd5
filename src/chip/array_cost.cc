#include "chip/array_cost.h"

#include <algorithm>

#include "chip/engine_cost.h"

namespace headway::chip {
namespace {

// Cycles of one pass, and what gives them.
struct Pass {
  Constant column;  // of the key: cycles of a column, all passes
  double each = 1;  // cycles of a column in this pass
  int passes = 1;
  double columns = 0;  // that the stream counts
};
Pass pass_of(const Timing::Tensor& t, const Product& p) {
  Pass pass;
  // A few columns take no less than the least there is, or than loading the next operand.
  pass.columns =
      std::max(static_cast<double>(p.columns), std::min(static_cast<double>(p.rows), t.least_columns.value));
  pass.column = !p.float32 ? t.cycles : p.transpose ? t.float32_transpose_cycles : t.float32_cycles;
  pass.each = pass.column.value;
  if (p.float32 && !p.transpose) {
    pass.each /= t.float32_passes.value;
    // Zeros and ones have no second half that a second pass would multiply.
    pass.passes = p.onezero ? 1 : static_cast<int>(t.float32_passes.value);
  }
  return pass;
}
double load_cycles(const Timing::Tensor& t, const Product& p, const Pass& pass) {
  return static_cast<double>(p.rows) * t.load_cycles.value * pass.each;
}

}  // namespace

Cost product_cost(const Costing& costing, const Product& p) {
  const Timing::Tensor& t = costing.timing.tensor;
  const Pass pass = pass_of(t, p);
  const Tag tag = weaker(pass.column.tag, t.clock.tag);
  Cost cost;
  cost.array.passes = pass.passes;
  cost.array.load_cycles = load_cycles(t, p, pass);
  cost.array.stream_cycles = pass.columns * pass.each * p.array_share;
  cost.array.activity = std::min(
      1.0, static_cast<double>(p.contraction) / static_cast<double>(costing.timing.spec.matmul_contraction));
  Duration latency;
  latency.add(t.latency.value, t.latency.tag);
  // A tile's own stream is as long as ever; it leaves the rest of the array to others.
  const double rest = pass.columns * pass.each * (1 - p.array_share) / t.clock.value;
  if (rest > 0) latency.add(rest, tag);
  cost.latency = latency.total;
  cost.basis = latency.basis;
  cost.basis[tag] += picoseconds(cost.array.stream_cycles * pass.passes / t.clock.value);
  cost.flops =
      2.0 * static_cast<double>(p.contraction) * static_cast<double>(p.rows) * static_cast<double>(p.columns);
  cost.transpose = p.transpose;
  cost.calibrated = near_measured(t.measured_columns, static_cast<double>(p.columns));
  return cost;
}

double pass_interval(const Timing& timing, const Product& p, double clock_share) {
  const Timing::Tensor& t = timing.tensor;
  const Pass pass = pass_of(t, p);
  return std::max(pass.columns * pass.each * p.array_share, load_cycles(t, p, pass)) /
         (t.clock.value * clock_share);
}

double pass_seconds(const Timing& timing, const Product& p, double clock_share) {
  const Timing::Tensor& t = timing.tensor;
  const Pass pass = pass_of(t, p);
  return pass.columns * pass.each / (t.clock.value * clock_share) + t.latency.value;
}

double load_seconds(const Timing& timing, const Product& p, double clock_share) {
  const Timing::Tensor& t = timing.tensor;
  const double parts = !p.float32    ? 1
                       : p.transpose ? t.float32_transpose_load_parts.value
                                     : t.float32_load_parts.value;
  return t.load_latency.value +
         static_cast<double>(p.rows) * t.load_latency_cycles.value * parts / (t.clock.value * clock_share);
}

}  // namespace headway::chip
