#include "chip/collective_cost.h"

#include <algorithm>
#include <cmath>

namespace headway::chip {
namespace {

// Steps of one phase: gathering, or reducing and scattering.
double steps_of(Algorithm algorithm, double ranks) {
  switch (algorithm) {
    case Algorithm::mesh:
      return 1;
    case Algorithm::halves_and_doubles:
      return std::ceil(std::log2(ranks));
    case Algorithm::kanga_ring:
      return std::ceil(ranks / 2);
    case Algorithm::ring:
      return ranks - 1;
  }
  return 1;
}

double phases_of(Exchange exchange) { return exchange == Exchange::all_reduce ? 2 : 1; }
bool is_direct(Exchange exchange) {
  return exchange == Exchange::all_to_all || exchange == Exchange::permute;
}

}  // namespace

Algorithm algorithm_of(const Timing& timing, double bytes) {
  const Timing::Collectives& c = timing.collectives;
  if (c.mesh_below.value <= 0) return Algorithm::ring;
  if (bytes < c.mesh_below.value) return Algorithm::mesh;
  return bytes <= c.ring_above.value ? Algorithm::halves_and_doubles : Algorithm::kanga_ring;
}

double bytes_sent(Exchange exchange, std::int64_t ranks, double bytes) {
  if (ranks < 2) return 0;
  const auto r = static_cast<double>(ranks);
  switch (exchange) {
    case Exchange::all_gather:
      return (r - 1) * bytes;
    case Exchange::permute:
      return bytes;
    case Exchange::all_reduce:
    case Exchange::reduce_scatter:
    case Exchange::all_to_all:
      return phases_of(exchange) * (r - 1) / r * bytes;
  }
  return bytes;
}

Duration collective_time(const Timing& timing, Exchange exchange, const Spread& spread, double bytes) {
  const Timing::Collectives& c = timing.collectives;
  Duration time;
  time.add(c.start_latency.value, c.start_latency.tag);
  if (spread.ranks < 2) return time;
  const auto ranks = static_cast<double>(spread.ranks), servers = static_cast<double>(spread.servers);
  const double inside = ranks / servers;  // ranks of a server
  const double message = exchange == Exchange::all_gather ? ranks * bytes : bytes;
  const Algorithm algorithm = algorithm_of(timing, message);
  const double steps = is_direct(exchange) ? 1 : phases_of(exchange) * steps_of(algorithm, inside);
  if (inside > 1) time.add(steps * c.hop_latency.value, c.hop_latency.tag);

  const double sent = bytes_sent(exchange, spread.ranks, bytes);
  Constant bandwidth = c.rank_bandwidth;
  if (spread.chips > 1) {
    const double share = c.server_bandwidth.value * static_cast<double>(spread.chips) / ranks;
    if (share < bandwidth.value) bandwidth = {share, c.server_bandwidth.tag};
  }
  time.add(sent / bandwidth.value, bandwidth.tag);
  if (spread.servers > 1) {
    const double rounds = is_direct(exchange) ? 1 : phases_of(exchange) * (servers - 1);
    time.add(rounds * c.server_hop_latency.value, c.server_hop_latency.tag);
    const double outside = sent * (servers - 1) / servers * inside / c.network_bandwidth.value;
    time.add(outside, c.network_bandwidth.tag);
  }
  return time;
}

Cost Collective::cost(const Costing& costing) const {
  const Timing& t = costing.timing;
  double bytes = 0;
  bool hbm = true;
  for (const View& src : srcs) {
    bytes += static_cast<double>(src.elements() * size_of(src.dtype));
    hbm = hbm && is_hbm(costing.buffer(src));
  }
  const std::int64_t ranks = replica_group.sizes.empty() ? 2 : replica_group.sizes.front();
  const Duration time = collective_time(t, pattern(), {ranks, 1, 1}, bytes);
  Cost cost = fixed_cost(t.word_write);
  cost.latency = time.total;
  cost.basis = time.basis;
  cost.calibrated = false;
  // All DMA engines of the core move a part.
  const auto sent = static_cast<std::int64_t>(bytes_sent(pattern(), ranks, bytes));
  cost.dma.any = sent > 0;
  cost.dma.bytes = sent;
  cost.dma.engines = static_cast<int>(t.dma.engines.value);
  cost.dma.engine_time =
      picoseconds(static_cast<double>(sent) / (t.dma.engine_effective_bandwidth.value * t.dma.engines.value));
  cost.dma.descriptor_bytes = static_cast<std::int64_t>(t.dma.packet_bytes.value);
  cost.dma.descriptors = std::max<std::int64_t>(1, sent / cost.dma.descriptor_bytes);
  (hbm ? cost.dma.hbm_read : cost.dma.sbuf_read) = sent;
  (hbm ? cost.dma.hbm_written : cost.dma.sbuf_written) = sent;
  return cost;
}

}  // namespace headway::chip
