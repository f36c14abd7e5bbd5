#include "chip/engine_cost.h"

#include <algorithm>

namespace headway::chip {
namespace {

constexpr double kTrust = 4;  // how far beyond what was measured a model is still taken to hold

// Elements from one to the next of a row; 0 where it is one, repeated.
std::int64_t inner_step(const View& view) {
  for (int d = view.rank - 1; d > 0; --d) {
    const Pair& pair = view.pairs[static_cast<std::size_t>(d)];
    if (pair.count > 1) return pair.step;
  }
  return 1;
}
bool neighbours(const View& view) { return inner_step(view) == 1; }

// GpSimd's cores serve several partitions each and move so many bytes a cycle, in and out at a time.
double gpsimd_cycles(const Timing& timing, std::int64_t bytes_in, std::int64_t bytes_out) {
  return static_cast<double>(std::max(bytes_in, bytes_out)) * timing.gpsimd.partitions_per_core.value /
         timing.gpsimd.bytes_per_cycle.value;
}

}  // namespace

bool is_dynamic(const View& view) { return view.dynamic >= 0; }
bool is_16_bit(DType dtype) { return size_of(dtype) == 2; }

bool far_apart(const Costing& costing, const View& view) {
  const std::int64_t step = inner_step(view);
  return static_cast<double>((step < 0 ? -step : step) * size_of(view.dtype)) >
         costing.timing.fast_stride.value;
}

bool near_measured(const Constant& most, double size) { return size <= kTrust * most.value; }

double cycles_of_one(const Costing& costing, const View& out, const View* in) {
  const Timing& t = costing.timing;
  const View& from = in ? *in : out;
  if (costing.engine == Engine::gpsimd)
    return gpsimd_cycles(t, in ? size_of(in->dtype) : 0, size_of(out.dtype));
  const bool far = far_apart(costing, out) || far_apart(costing, from);
  const double all = static_cast<double>(t.spec.partitions), port = far ? 2 : 1;
  const bool narrow = is_16_bit(out.dtype) && is_16_bit(from.dtype);
  const bool dense = neighbours(out) && neighbours(from);
  if (costing.engine == Engine::scalar)
    return port * all / (narrow ? t.scalar.elements_16bit.value : t.scalar.elements.value);
  const bool sbuf = costing.buffer(out) == Buffer::sbuf && costing.buffer(from) == Buffer::sbuf;
  if (sbuf && narrow && dense) return port * all / t.vector.elements_16bit.value;
  if (sbuf ? narrow || dense : narrow && dense) return port * all / t.vector.elements.value;
  return port;
}

double cycles_of_two(const Costing& costing, const View& out, const View& a, const View& b) {
  const Timing& t = costing.timing;
  if (costing.engine == Engine::gpsimd)
    return gpsimd_cycles(t, size_of(a.dtype) + size_of(b.dtype), size_of(out.dtype));
  const double port = far_apart(costing, out) || far_apart(costing, a) || far_apart(costing, b) ? 2 : 1;
  if (costing.buffer(a) == Buffer::psum || costing.buffer(b) == Buffer::psum) return port;
  const bool narrow = is_16_bit(out.dtype) && is_16_bit(a.dtype) && is_16_bit(b.dtype);
  const bool modes = t.vector.elements.value > static_cast<double>(t.spec.partitions);
  const bool old = out.dtype == DType::bf16 && a.dtype == DType::bf16 && b.dtype == DType::bf16 &&
                   neighbours(out) && neighbours(a) && neighbours(b);
  return (modes ? narrow : old) ? port : 2 * port;
}

double cycles_of_any(const Costing& costing, const View& out, const View& in) {
  return far_apart(costing, out) || far_apart(costing, in) ? 2 : 1;
}

Cost fixed_cost(const Constant& constant) {
  Cost cost;
  cost.busy = cost.latency = picoseconds(constant.value);
  cost.basis[constant.tag] = cost.busy;
  return cost;
}

Cost stream_cost(const Costing& costing, const Stream& stream) {
  const Timing& t = costing.timing;
  const bool scalar = costing.engine == Engine::scalar, gpsimd = costing.engine == Engine::gpsimd;
  const Constant& clock = scalar ? t.scalar.clock : gpsimd ? t.gpsimd.clock : t.vector.clock;
  const Tag tag = weaker(stream.tag, clock.tag);
  Duration time;
  if (gpsimd) {
    time.add(t.gpsimd.start.value / clock.value, weaker(t.gpsimd.start.tag, clock.tag));
  } else {
    const Constant& overhead = !scalar           ? t.vector.overhead
                               : stream.function ? t.scalar.activation_overhead
                                                 : t.scalar.overhead;
    time.add(overhead.value, overhead.tag);
    const Constant& pointer = scalar ? t.scalar.pointer_overhead : t.vector.pointer_overhead;
    // A function's overhead was measured with one.
    if (stream.pointer && !stream.function) time.add(pointer.value, pointer.tag);
  }
  time.add(stream.cycles / clock.value, tag);
  if (stream.reads_accumulator) time.add(t.interval.value / clock.value, weaker(t.interval.tag, clock.tag));
  const Constant& interval = stream.dynamic ? t.dynamic_interval : t.interval;
  time.at_least(interval.value / clock.value, weaker(interval.tag, clock.tag));

  const Constant& most = scalar ? t.scalar.measured_elements : t.vector.measured_elements;
  Cost cost;
  cost.latency = time.total;
  // The next instruction begins while this one's last results are on their way out.
  const double overlap = gpsimd ? 0 : scalar ? t.scalar.overlap.value : t.vector.overlap.value;
  cost.busy = std::max(time.total - picoseconds(overlap),
                       std::min(time.total, picoseconds(interval.value / clock.value)));
  // Before NeuronCore-v3 Vector and GpSimd always shared it.
  cost.bus = gpsimd || (!scalar && (t.spec.generation < 3 || stream.cycles < static_cast<double>(stream.elements)));
  cost.basis = time.basis;
  cost.calibrated = stream.measured && !gpsimd && near_measured(most, static_cast<double>(stream.elements));
  return cost;
}

}  // namespace headway::chip
