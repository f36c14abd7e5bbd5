// The critical path, divided: which engine or queue each moment of the total belongs to.
#include <algorithm>
#include <map>

#include "chip/dma_cost.h"
#include "chip/profile.h"

namespace headway::chip {

CriticalPath divide_critical_path(const Timeline& timeline, const Timing& timing) {
  CriticalPath path;
  path.events = critical_path(timeline);
  path.blame.resize(path.events.size());

  std::map<std::pair<std::string, Cause>, std::pair<Picoseconds, std::int64_t>> parts;
  Picoseconds now = 0;
  // What passes up to `until` (or the end of the link) belongs to `what`.
  const auto pass = [&](Picoseconds until, Picoseconds end, std::string what, Cause cause,
                        Picoseconds& blamed) {
    const Picoseconds time = std::min(until, end) - now;
    if (time <= 0) return;
    auto& part = parts[{std::move(what), cause}];
    part.first += time;
    ++part.second;
    blamed += time;
    now += time;
  };
  for (std::size_t i = 0; i < path.events.size(); ++i) {
    const Event& event = timeline.events[path.events[i]];
    const bool last = i + 1 == path.events.size();
    const Event* next = last ? nullptr : &timeline.events[path.events[i + 1]];
    const Picoseconds end = last ? timeline.total : next->start;
    const Cause cause = last ? Cause::nothing : next->cause;
    const std::string engine(names_of(Engine{})[static_cast<std::size_t>(event.engine)]);
    Blame& blame = path.blame[i];
    // Only the first of the path begins later than the link before it ended.
    pass(event.start, end, "start", Cause::nothing, blame.other);
    if (event.transfer >= 0) {
      pass(event.free, end, engine + " DMA trigger", cause, blame.engine);
      // The engine may go on while the bytes move.
      if (cause != Cause::engine && cause != Cause::table) {
        const Transfer& transfer = timeline.transfers[static_cast<std::size_t>(event.transfer)];
        const Picoseconds latency = picoseconds(start_constant(timing, transfer.dge).value);
        pass(std::min(transfer.start, event.start + latency), end, "DMA start", cause, blame.queue);
        pass(transfer.start, end, "DMA queue", cause, blame.backlog);
        pass(transfer.end, end, "DMA transfer", cause, blame.transfer);
        pass(transfer.visible, end, "DMA completion", cause, blame.queue);
      }
    } else {
      pass(event.free, end, engine, cause, blame.engine);
      if (cause != Cause::engine && cause != Cause::table)
        pass(event.end, end, engine + " latency", cause, blame.latency);
    }
    pass(end, end,
         cause == Cause::table     ? "table load"
         : cause == Cause::meeting ? "other cores"
                                   : "semaphores",
         cause, blame.other);
  }
  const auto total = static_cast<double>(std::max<Picoseconds>(timeline.total, 1));
  for (const auto& [key, part] : parts)
    path.parts.push_back(
        {key.first, key.second, seconds(part.first), static_cast<double>(part.first) / total, part.second});
  std::stable_sort(path.parts.begin(), path.parts.end(),
                   [](const PathPart& a, const PathPart& b) { return a.time > b.time; });
  return path;
}

}  // namespace headway::chip
