// What bounds a kernel: each resource's own least time against the total.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "chip/profile.h"

namespace headway::chip {
namespace {

// A resource that is busy for this share of the time is called the bound; below, it is the order of things.
constexpr double kBusy = 0.6;

struct CoreLoad {
  std::array<std::vector<Interval>, 8> work, triggers;  // by engine
  Picoseconds dma = 0;                                  // of all DMA engines together
  std::int64_t bytes = 0;
};

}  // namespace

Bound find_bound(const Profile& p, const Timeline& timeline, const Timing& timing) {
  const double total = seconds(std::max<Picoseconds>(timeline.total, 1));
  std::vector<CoreLoad> loads(timeline.cores.size());
  for (const Event& e : timeline.events) {
    CoreLoad& load = loads[e.core];
    const auto engine = static_cast<std::size_t>(e.engine);
    (e.transfer >= 0 ? load.triggers : load.work)[engine].emplace_back(e.start, e.free);
  }
  for (const Transfer& t : timeline.transfers) {
    CoreLoad& load = loads[t.core];
    load.dma += t.engine_time;
    load.bytes += t.bytes;
  }

  Bound bound;
  // Of the core with the most of it.
  const auto add = [&](std::string by, std::string name, double time) {
    if (time <= 0) return;
    for (Limit& limit : bound.limits) {
      if (limit.by != by) continue;
      if (time > limit.time) limit = {by, name, time, time / total};
      return;
    }
    bound.limits.push_back({std::move(by), std::move(name), time, time / total});
  };
  for (CoreLoad& load : loads) {
    for (const Engine engine : {Engine::tensor, Engine::vector, Engine::scalar, Engine::gpsimd}) {
      const auto e = static_cast<std::size_t>(engine);
      const std::string name(names_of(Engine{})[e]);
      add(name, name + " engine", seconds(length_of_union(load.work[e])));
    }
    Picoseconds issue = 0;
    for (std::vector<Interval>& triggers : load.triggers) issue = std::max(issue, length_of_union(triggers));
    add("dma_issue", "DMA issue", seconds(issue));
    // The DMA engines' work alone: how much of it is bytes at the engines' full speed, how much is one
    // descriptor after another?
    const double dma = seconds(load.dma) / timing.dma.engines.value;
    const double bytes =
        static_cast<double>(load.bytes) / (timing.dma.engines.value * timing.dma.engine_bandwidth.value);
    const bool descriptors = bytes < dma / 2;
    add(descriptors ? "dma_descriptors" : "dma_bandwidth", descriptors ? "DMA descriptors" : "DMA bandwidth",
        dma);
  }
  add("hbm_bandwidth", "HBM bandwidth", p.figures["mbu_estimated_percent"] * total);
  std::stable_sort(bound.limits.begin(), bound.limits.end(),
                   [](const Limit& a, const Limit& b) { return a.time > b.time; });

  const double launch = seconds(timeline.launch);
  if (launch > total) {
    bound.by = "launch";
    bound.name = "launch";
    bound.share = launch / (launch + total);
    bound.reason = fmt::format("The launch takes {}, the kernel {}.", time_text(launch), time_text(total));
    return bound;
  }
  if (!bound.limits.empty() && bound.limits[0].share >= kBusy) {
    const Limit& first = bound.limits[0];
    bound.by = first.by == "hbm_bandwidth" ? "dma_bandwidth" : first.by;
    bound.name = first.name;
    bound.share = first.share;
    bound.reason = fmt::format("{} alone takes {} of {} ({:.0f}%)", first.name, time_text(first.time),
                               time_text(total), first.share * 100);
    if (bound.limits.size() > 1)
      bound.reason +=
          fmt::format("; next is {} with {}", bound.limits[1].name, time_text(bound.limits[1].time));
    bound.reason += ".";
    return bound;
  }
  bound.by = "latency";
  bound.name = "latency and dependencies";
  std::map<std::string, double> waits;
  for (const PathPart& part : p.critical_path) waits[part.what] += part.time;
  std::vector<std::pair<double, std::string>> largest;
  for (const auto& [what, time] : waits) {
    const bool waiting = what.starts_with("DMA") || what.ends_with("latency") || what == "semaphores" ||
                         what == "table load" || what == "other cores" || what == "start";
    if (waiting) bound.share += time / total;
    if (waiting) largest.emplace_back(time, what);
  }
  std::sort(largest.rbegin(), largest.rend());
  bound.reason = "Things wait for each other: ";
  bound.reason += bound.limits.empty()
                      ? "no resource is used"
                      : fmt::format("the busiest resource, {}, is needed for {:.0f}% of the time",
                                    bound.limits[0].name, bound.limits[0].share * 100);
  for (std::size_t i = 0; i < std::min<std::size_t>(3, largest.size()); ++i)
    bound.reason += fmt::format("{}{} {}", i == 0 ? "; the critical path spends " : ", ",
                                time_text(largest[i].first), (i == 0 ? "in " : "") + largest[i].second);
  bound.reason += ".";
  return bound;
}

}  // namespace headway::chip
