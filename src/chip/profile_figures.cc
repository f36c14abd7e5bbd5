// The summary: figures over the whole run. Counts and bytes are sums over cores, times means over them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "chip/profile.h"

namespace headway::chip {
namespace {

// When an instruction's bar ends: its result is there. A DMA's is its trigger.
Picoseconds bar_end(const Event& e) { return e.transfer >= 0 ? e.free : std::max(e.free, e.end); }

// How much of [start, end] passes at less than the full clock. `steps` are one core's, in order of time.
Picoseconds cold_part(const std::vector<ClockStep>& steps, Picoseconds start, Picoseconds end) {
  Picoseconds cold = 0;
  auto step = std::upper_bound(steps.begin(), steps.end(), start,
                               [](Picoseconds t, const ClockStep& s) { return t < s.start; });
  if (step != steps.begin()) --step;
  for (; step != steps.end() && step->start < end; ++step) {
    const Picoseconds until = std::next(step) == steps.end() ? end : std::min(end, std::next(step)->start);
    if (step->share < 1) cold += std::max<Picoseconds>(0, until - std::max(start, step->start));
  }
  return cold;
}

constexpr std::array kEngines = {Engine::tensor, Engine::vector, Engine::scalar, Engine::gpsimd,
                                 Engine::sync};

void add_engines(Profile& p, const Timeline& timeline) {
  const auto total = static_cast<double>(std::max<Picoseconds>(timeline.total, 1));
  const auto cores = static_cast<double>(timeline.cores.size());
  Picoseconds active_any = 0, cold = 0, tensor_time = 0;
  for (std::size_t core = 0; core < timeline.cores.size(); ++core) {
    std::array<std::vector<Interval>, 8> active, occupied;
    std::array<EngineFigures, 8> figures;
    std::vector<Interval> anything;
    std::vector<ClockStep> clock;
    for (const ClockStep& step : timeline.clock)
      if (step.core == core) clock.push_back(step);
    for (std::size_t i = timeline.core_from[core]; i < timeline.core_from[core + 1]; ++i) {
      const Event& e = timeline.events[i];
      const auto engine = static_cast<std::size_t>(e.engine);
      active[engine].emplace_back(e.start, bar_end(e));
      occupied[engine].emplace_back(e.start, e.free);
      figures[engine].instruction_time += seconds(bar_end(e) - e.start);
      ++figures[engine].instructions;
      anything.emplace_back(active[engine].back());
    }
    for (const Transfer& t : timeline.transfers)
      if (t.core == core) anything.emplace_back(t.start, t.end);
    active_any += length_of_union(anything);
    p.engines.emplace_back();
    for (const Engine engine : kEngines) {
      const auto e = static_cast<std::size_t>(engine);
      figures[e].engine = names_of(Engine{})[e];
      figures[e].active = seconds(length_of_union(active[e]));
      figures[e].occupied = seconds(length_of_union(occupied[e]));
      p.engines.back().push_back(figures[e]);
    }
    std::vector<Interval>& working = occupied[static_cast<std::size_t>(Engine::tensor)];
    tensor_time += length_of_union(working);
    for (const auto& [start, end] : working) cold += cold_part(clock, start, end);
  }
  Figures& f = p.figures;
  f.set("total_active_time", seconds(active_any) / cores);
  f.set("total_active_time_percent", static_cast<double>(active_any) / total / cores);
  for (std::size_t e = 0; e < kEngines.size(); ++e) {
    EngineFigures sum;
    for (const auto& engines : p.engines) {
      sum.active += engines[e].active;
      sum.instruction_time += engines[e].instruction_time;
      sum.instructions += engines[e].instructions;
    }
    const std::string name = p.engines[0][e].engine + "_engine_";
    f.set(name + "active_time", sum.active / cores);
    f.set(name + "active_time_percent", sum.active / cores / (total * 1e-12));
    f.set(name + "instruction_time", sum.instruction_time / cores);
    f.set(name + "instruction_count", static_cast<double>(sum.instructions));
  }
  f.set("throttle_active_time", seconds(cold) / cores);
  f.set("throttle_active_time_percent",
        tensor_time > 0 ? static_cast<double>(cold) / static_cast<double>(tensor_time) : 0);

  std::int64_t matmuls = 0, activations = 0;
  Picoseconds activation_time = 0;
  for (std::size_t i = 0; i < p.events.size(); ++i) {
    const std::string& name = p.operations[static_cast<std::size_t>(p.events[i].operation)][0];
    matmuls += p.events[i].engine == Engine::tensor && name.starts_with("nc_");
    if (!name.starts_with("activation")) continue;
    ++activations;
    activation_time += bar_end(timeline.events[i]) - timeline.events[i].start;
  }
  f.set("matmul_instruction_count", static_cast<double>(matmuls));
  f.set("activate_instruction_count", static_cast<double>(activations));
  f.set("activate_instruction_time", seconds(activation_time) / cores);
}

void add_dma(Profile& p, const Timeline& timeline) {
  const auto total = static_cast<double>(std::max<Picoseconds>(timeline.total, 1));
  const auto cores = static_cast<double>(timeline.cores.size());
  struct Kind {
    double packets = 0, bytes = 0;
    std::vector<Interval> intervals;
  };
  std::array<Kind, 3> kinds;  // by Dge
  std::vector<Interval> all;
  Picoseconds packet_time = 0, transfer_time = 0;
  for (const Transfer& t : timeline.transfers) {
    Kind& kind = kinds[static_cast<std::size_t>(t.dge)];
    kind.packets += t.descriptors;
    kind.bytes += static_cast<double>(t.bytes);
    kind.intervals.emplace_back(t.start, t.end);
    all.emplace_back(t.start, t.end);
    packet_time += t.engine_time;
    transfer_time += t.end - t.start;
  }
  const double packets = kinds[0].packets + kinds[1].packets + kinds[2].packets;
  const double bytes = kinds[0].bytes + kinds[1].bytes + kinds[2].bytes;
  const auto count = static_cast<double>(timeline.transfers.size());
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  Figures& f = p.figures;
  // Cores have DMA engines of their own, yet what one moves often is for the other: time in which any moves.
  const double active = seconds(length_of_union(all));
  f.set("dma_active_time", active);
  f.set("dma_active_time_percent", active / (total * 1e-12));
  f.set("dma_packet_time", seconds(packet_time) / cores);
  f.set("dma_packet_count", packets);
  f.set("dma_packet_average_bytes", share(bytes, packets));
  f.set("dma_transfer_count", count);
  f.set("dma_transfer_time", seconds(transfer_time) / cores);
  f.set("dma_transfer_total_bytes", bytes);
  f.set("dma_transfer_average_bytes", share(bytes, count));
  f.set("dma_queue_count", static_cast<double>(timeline.queues.size()));
  static constexpr std::array kNames = {"static", "software_dynamic", "hardware_dynamic"};
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const std::string name = std::string(kNames[k]) + "_dma_";
    const double time = seconds(length_of_union(kinds[k].intervals));
    f.set(name + "packet_count", kinds[k].packets);
    f.set(name + "packet_percent", share(kinds[k].packets, packets));
    f.set(name + "size", kinds[k].bytes);
    f.set(name + "size_percent", share(kinds[k].bytes, bytes));
    f.set(name + "active_time", time);
    f.set(name + "active_time_percent", share(time, active));
  }
  f.set("dynamic_dma_packet_percent", share(packets - kinds[0].packets, packets));
  f.set("dynamic_dma_size_percent", share(bytes - kinds[0].bytes, bytes));
}

}  // namespace

void add_figures(Profile& p, const Timeline& timeline, const Timing& timing) {
  Figures& f = p.figures;
  const double total = seconds(std::max<Picoseconds>(timeline.total, 1));
  f.set("total_time", seconds(timeline.total));
  f.set("launch_time", seconds(timeline.launch));
  f.set("latency", seconds(timeline.total + timeline.launch));
  f.set("event_count", static_cast<double>(timeline.events.size()));
  add_engines(p, timeline);

  Traffic traffic;
  for (const CoreTimeline& core : timeline.cores) {
    const Traffic& t = core.traffic;
    traffic.hbm_read += t.hbm_read, traffic.hbm_written += t.hbm_written;
    traffic.sbuf_read += t.sbuf_read, traffic.sbuf_written += t.sbuf_written;
    traffic.psum_read += t.psum_read, traffic.psum_written += t.psum_written;
    traffic.spill_saved += t.spill_saved, traffic.spill_loaded += t.spill_loaded;
    traffic.flops += t.flops, traffic.transpose_flops += t.transpose_flops;
  }
  const auto cores = static_cast<double>(timeline.cores.size());
  const double peak = peak_flops_per_core(timing.spec) * cores;
  // The cores of a launch sit together at as few stacks as they fit.
  const double stacks = std::ceil(cores / static_cast<double>(timing.spec.cores_per_stack));
  const double bandwidth = timing.stack_bandwidth.value * stacks;
  const auto moved = static_cast<double>(traffic.hbm_read + traffic.hbm_written);
  const double ratio = peak / bandwidth;
  p.roofline = {bandwidth, peak, "bfloat16", {}};
  for (const char* dtype : {"bfloat16", "float8", "float32"})
    p.roofline.peaks.emplace_back(dtype, cores * timing.spec[fmt::format("tensor_engine.{}_flops", dtype)]);
  const double intensity = moved > 0 ? traffic.flops / moved : 0;
  f.set("hardware_flops", traffic.flops + traffic.transpose_flops);
  f.set("transpose_flops", traffic.transpose_flops);
  f.set("mfu_estimated_percent", traffic.flops / total / peak);
  f.set("hfu_estimated_percent", (traffic.flops + traffic.transpose_flops) / total / peak);
  f.set("mm_arithmetic_intensity", intensity);
  f.set("peak_flops_bandwidth_ratio", ratio);
  f.set("mfu_max_achievable_estimated_percent", moved > 0 ? std::min(1.0, intensity / ratio) : 1);
  f.set("mbu_estimated_percent", moved / total / bandwidth);
  f.set("hbm_read_bytes", static_cast<double>(traffic.hbm_read));
  f.set("hbm_write_bytes", static_cast<double>(traffic.hbm_written));
  f.set("sbuf_read_bytes", static_cast<double>(traffic.sbuf_read));
  f.set("sbuf_write_bytes", static_cast<double>(traffic.sbuf_written));
  f.set("psum_read_bytes", static_cast<double>(traffic.psum_read));
  f.set("psum_write_bytes", static_cast<double>(traffic.psum_written));
  f.set("spill_save_bytes", static_cast<double>(traffic.spill_saved));
  f.set("spill_reload_bytes", static_cast<double>(traffic.spill_loaded));
  std::int64_t sbuf = 0, psum = 0;
  for (const CoreTimeline& core : timeline.cores) {
    sbuf = std::max(sbuf, core.lowered.sbuf_peak);
    psum = std::max(psum, core.lowered.psum_peak);
  }
  f.set("sbuf_peak_partition_bytes", static_cast<double>(sbuf));
  f.set("psum_peak_partition_bytes", static_cast<double>(psum));
  add_dma(p, timeline);
}

}  // namespace headway::chip
