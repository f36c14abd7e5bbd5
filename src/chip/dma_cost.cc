#include "chip/dma_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "chip/dma_engine.h"

namespace headway::chip {
namespace {

// Elements of the view in order until the first gap in memory. Rows on chip lie in different partitions.
std::int64_t contiguous(const View& view, bool on_chip) {
  std::int64_t run = 1;
  for (int d = view.rank - 1; d >= (on_chip ? 1 : 0); --d) {
    const Pair& pair = view.pairs[static_cast<std::size_t>(d)];
    if (pair.count == 1) continue;
    if (pair.step != run) break;
    run *= pair.count;
  }
  return run;
}

// Of `rows` partitions from the view's first on: how many engines serve them, and the most that one of them
// has.
struct Share {
  std::int64_t engines = 1, most = 1;
};
Share share_of(const Costing& costing, const View& view) {
  const Tensor& tensor = costing.program.tensors[view.tensor];
  const std::int64_t first = view.partition + (tensor.address ? tensor.address->partition : 0);
  const std::int64_t rows = view.rows(), end = first + rows;
  const auto engines = static_cast<std::int64_t>(costing.timing.dma.engines.value);
  const std::int64_t each = std::max<std::int64_t>(1, costing.timing.spec.partitions / engines);
  const std::int64_t from = first / each, to = (end - 1) / each;
  if (from == to) return {1, rows};
  if (to - from > 1) return {to - from + 1, each};
  return {2, std::max((from + 1) * each - first, end - to * each)};
}

}  // namespace

Runs common_runs(const Program& program, const View& dst, const View& src) {
  const std::int64_t n = dst.elements();
  const std::int64_t a = contiguous(dst, is_on_chip(program.tensors[dst.tensor].buffer));
  const std::int64_t b = contiguous(src, is_on_chip(program.tensors[src.tensor].buffer));
  // Runs of a and of b elements end together where both do.
  const std::int64_t together = a / std::gcd(a, b) * b;
  const std::int64_t count = std::max<std::int64_t>(1, n / a + n / b - n / together);
  return {count, static_cast<double>(n) / static_cast<double>(count)};
}

double descriptor_seconds(const Timing& timing, double bytes) {
  return timing.dma.descriptor_overhead.value + bytes / timing.dma.engine_bandwidth.value;
}
double descriptor_interval(const Timing& timing, double bytes) {
  return descriptor_seconds(timing, bytes) - timing.dma.descriptor_overlap.value;
}

void add_transfer(const Costing& costing, const View& dst, const View& src, const TransferOptions& options,
                  DmaWork& work, Duration& time) {
  const Timing& t = costing.timing;
  const Buffer from = costing.buffer(src), to = costing.buffer(dst);
  const std::int64_t elements = dst.elements();
  const std::int64_t read = elements * size_of(src.dtype), written = elements * size_of(dst.dtype);
  Runs runs;
  if (options.transpose) {
    const Pair& last = src.pairs[src.rank - 1u];
    const std::int64_t run = last.step == 1 ? last.count : 1;
    runs = {elements / run, static_cast<double>(run)};
  } else {
    runs = common_runs(costing.program, dst, src);
  }
  // Where the dtypes differ, the longer side takes the time.
  const double element = std::max(size_of(src.dtype), size_of(dst.dtype));
  double most;  // descriptors of the engine that has the most
  if (is_hbm(from) && is_hbm(to)) {
    const double packets = std::ceil(runs.elements * element / t.dma.packet_bytes.value);
    runs.count = static_cast<std::int64_t>(static_cast<double>(runs.count) * packets);
    runs.elements /= packets;
    const auto engines = static_cast<std::int64_t>(t.dma.engines.value);
    work.engines = static_cast<int>(std::min(engines, runs.count));
    most = static_cast<double>((runs.count + work.engines - 1) / work.engines);
  } else {
    const View& chip_side = is_on_chip(to) ? dst : src;
    const Share part = share_of(costing, chip_side);
    work.engines = std::max(work.engines, static_cast<int>(part.engines));
    most = static_cast<double>(runs.count) * static_cast<double>(part.most) /
           static_cast<double>(chip_side.rows());
  }
  const double bytes = runs.elements * element;
  time.add(most * (t.dma.descriptor_overhead.value - t.dma.descriptor_overlap.value),
           weaker(t.dma.descriptor_overhead.tag, t.dma.descriptor_overlap.tag));
  time.add(most * bytes / (t.dma.engine_bandwidth.value * options.share.value),
           weaker(t.dma.engine_bandwidth.tag, options.share.tag));
  if (is_hbm(from)) time.add(t.dma.copy_overhead.value, t.dma.copy_overhead.tag);

  work.any = true;
  work.descriptors += runs.count;
  work.descriptor_bytes = static_cast<std::int64_t>(bytes);
  (is_hbm(from) ? work.hbm_read : work.sbuf_read) += read;
  if (options.reads_only) return;
  work.bytes += written;
  (is_hbm(to) ? work.hbm_written : work.sbuf_written) += written;
}

Cost dma_cost(const Costing& costing, DgeMode mode, bool needs_software, const DmaWork& work,
              const Duration& time) {
  const Timing& t = costing.timing;
  Cost cost;
  cost.dma = work;
  cost.dma.engine_time = time.total;
  cost.basis = time.basis;
  cost.dma.dge_open = mode == DgeMode::unknown && !needs_software;
  const bool hardware = t.dma.hardware_issue.value > 0;
  if (needs_software || mode == DgeMode::swdge || costing.engine == Engine::gpsimd)
    cost.dma.dge = Dge::software;
  else if (mode == DgeMode::hwdge || (mode == DgeMode::unknown && hardware))
    cost.dma.dge = Dge::hardware;
  const Constant& issue = cost.dma.dge == Dge::software   ? t.dma.software_issue
                          : cost.dma.dge == Dge::hardware ? t.dma.hardware_issue
                                                          : t.word_write;
  cost.busy = cost.latency = picoseconds(issue.value);
  cost.basis[issue.tag] += cost.busy;
  cost.calibrated = near_measured(t.dma.measured_bytes, static_cast<double>(work.descriptor_bytes));
  return cost;
}

namespace {

Picoseconds grown(const Timing& timing, const Constant& least, const Constant& full,
                  std::int64_t descriptors) {
  const double all = static_cast<double>(timing.spec.partitions);
  const double share = std::min(static_cast<double>(descriptors), all) / all;
  return picoseconds(least.value + (full.value - least.value) * share);
}

}  // namespace

Picoseconds software_wait(const Timing& timing, std::int64_t descriptors) {
  return grown(timing, timing.dma.least_software_wait, timing.dma.software_wait, descriptors);
}
Picoseconds software_issue(const Timing& timing, std::int64_t descriptors) {
  return grown(timing, timing.dma.least_software_issue, timing.dma.software_issue, descriptors);
}

Picoseconds issue_interval(const Timing& timing, Dge dge, std::int64_t descriptors) {
  return dge == Dge::software   ? software_issue(timing, descriptors)
         : dge == Dge::hardware ? picoseconds(timing.dma.hardware_issue.value)
                                : Picoseconds{0};
}

const Constant& start_constant(const Timing& timing, Dge dge) {
  const Constant& hardware = timing.dma.hardware_start_latency;
  return dge == Dge::hardware && hardware.value > 0 ? hardware : timing.dma.start_latency;
}

Picoseconds start_latency(const Timing& timing, Dge dge, int engines) {
  const double most = timing.dma.engines.value;
  const double missing = most > 1 ? (most - std::min<double>(engines, most)) / (most - 1) : 0;
  return picoseconds(start_constant(timing, dge).value - timing.dma.start_spread.value * missing);
}

Picoseconds load_spread(const Timing& timing, const DmaWork& work) {
  if (work.hbm_read == 0 || work.sbuf_written == 0) return 0;
  const double most = timing.dma.engines.value;
  const double others = most > 1 ? (std::min<double>(work.engines, most) - 1) / (most - 1) : 0;
  const double busy = std::max(seconds(work.engine_time) - timing.dma.copy_overhead.value, 0.0);
  return picoseconds(std::min(timing.dma.load_spread.value, busy) * others);
}

}  // namespace headway::chip
