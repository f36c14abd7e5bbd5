#include "chip/trust.h"

#include <algorithm>

#include "chip/dma_cost.h"

namespace headway::chip {
namespace {

// What the time of an instruction rests on, from its start to the start of what waits for it.
Basis basis_of(const Timeline& timeline, const Event& event, const Timing& timing) {
  const Program& program = *timeline.cores[event.core].program;
  const Instruction& instruction = *program.instructions[event.instruction];
  const bool moves = event.transfer >= 0;
  const Cost cost = cost_of(instruction, moves ? Engine::dma : event.engine, program, timing);
  Basis basis = cost.basis;
  if (moves) {
    const Constant& start =
        start_constant(timing, timeline.transfers[static_cast<std::size_t>(event.transfer)].dge);
    basis[start.tag] += picoseconds(start.value);
    basis[timing.dma.completion_latency.tag] += picoseconds(timing.dma.completion_latency.value);
  }
  basis[timing.semaphore_latency.tag] += picoseconds(timing.semaphore_latency.value);
  if (event.calibrated) return basis;
  Basis all;
  for (const Picoseconds part : basis.by_tag) all[Tag::assumed] += part;
  return all;
}

}  // namespace

void weigh(Timeline& timeline, const Timing& timing) {
  timeline.basis = {};
  const std::vector<std::uint32_t> path = critical_path(timeline);
  Picoseconds now = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const Event& event = timeline.events[path[i]];
    const Picoseconds until = i + 1 < path.size() ? timeline.events[path[i + 1]].start : timeline.total;
    const Picoseconds time = std::max<Picoseconds>(until - now, 0);
    now = std::max(now, until);
    const Basis basis = basis_of(timeline, event, timing);
    Picoseconds sum = 0;
    for (const Picoseconds part : basis.by_tag) sum += part;
    Picoseconds given = 0;
    std::size_t most = 0;
    for (std::size_t tag = 0; tag < basis.by_tag.size() && sum > 0; ++tag) {
      const auto part = static_cast<Picoseconds>(
          static_cast<double>(time) * static_cast<double>(basis.by_tag[tag]) / static_cast<double>(sum));
      timeline.basis.by_tag[tag] += part;
      given += part;
      if (basis.by_tag[tag] > basis.by_tag[most]) most = tag;
    }
    timeline.basis.by_tag[most] += time - given;
  }
  double error = 0;
  for (std::size_t tag = 0; tag < timeline.basis.by_tag.size(); ++tag)
    error += static_cast<double>(timeline.basis.by_tag[tag]) * timing.errors[tag].value;
  timeline.low = timeline.total - std::min(timeline.total, static_cast<Picoseconds>(error));
  timeline.high = timeline.total + static_cast<Picoseconds>(error);
}

}  // namespace headway::chip
