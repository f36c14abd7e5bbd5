#include "chip/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/threads.h"
#include "chip/core_run.h"
#include "chip/machine.h"
#include "chip/trust.h"

namespace headway::chip {

std::span<const std::string_view> names_of(Cause) {
  static constexpr std::array<std::string_view, 10> kNames = {
      "nothing", "engine", "operand", "overwrite", "memory", "table", "queue", "meeting", "conflict", "edge"};
  return kNames;
}

Timeline time(std::span<const Program* const> programs, const Timing& timing, const TimeOptions& options) {
  Stacks stacks(static_cast<std::size_t>(std::max<std::int64_t>(timing.spec.hbm_stacks, 1)),
                SharedRate(timing.stack_bandwidth.value * 1e-12));
  std::uint64_t budget = options.max_instructions;
  std::vector<std::unique_ptr<CoreRun>> cores;
  for (std::size_t c = 0; c < programs.size(); ++c)
    cores.push_back(
        std::make_unique<CoreRun>(*programs[c], static_cast<int>(c), timing, stacks, options, budget));
  // Who meets whom depends on registers only; the machine knows.
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Machine> machine;
  Diagnostics diagnostics(Diagnostics::Mode::collect);
  std::vector<bool> more(cores.size());
  for (std::size_t c = 0; c < cores.size(); ++c) more[c] = cores[c]->run();
  while (std::find(more.begin(), more.end(), true) != more.end()) {
    if (!machine) {
      pool = std::make_unique<ThreadPool>(1);
      const int lnc = programs[0]->num_programs;
      machine = std::make_unique<Machine>(timing.spec,
                                          std::vector<const Program*>(programs.begin(), programs.end()), lnc,
                                          *pool, diagnostics);
    }
    bool met = false;
    for (std::size_t c = 0; c < cores.size() && !met; ++c) {
      if (!more[c]) continue;
      const auto with_registers = [&](std::size_t i) -> const Core& {
        Core& core = machine->core(static_cast<int>(i));
        core.position = cores[i]->sequencer().position();
        for (std::size_t r = 0; r < cores[i]->sequencer().registers().size(); ++r)
          if (const auto value = cores[i]->sequencer().registers()[r])
            core.set_register(Register{static_cast<std::uint32_t>(r)}, static_cast<std::uint32_t>(*value));
        return core;
      };
      const Meeting& meeting = *cores[c]->sequencer().at().meeting();
      const Meeting::Key key = meeting.key(with_registers(c));
      const std::vector<int> who = meeting.participants(with_registers(c));
      bool all = !who.empty();
      for (int other : who) {
        const auto o = static_cast<std::size_t>(other);
        all = all && o < cores.size() && more[o] &&
              cores[o]->sequencer().at().meeting()->key(with_registers(o)) == key;
      }
      if (!all) continue;
      Picoseconds start = 0;
      for (int other : who) start = std::max(start, cores[static_cast<std::size_t>(other)]->arrives());
      for (int other : who) {
        CoreRun& core = *cores[static_cast<std::size_t>(other)];
        const Cost cost =
            cost_of(core.sequencer().at(), Engine::dma, *programs[static_cast<std::size_t>(other)], timing);
        core.meets(start, cost);
      }
      for (int other : who)
        more[static_cast<std::size_t>(other)] = cores[static_cast<std::size_t>(other)]->run();
      met = true;
    }
    if (!met)
      throw KernelError(
          programs[0]->kernel +
          ": cores wait for each other where they can't meet; `headway kernel run` says who waits where");
  }

  Timeline timeline;
  for (std::string_view name : kQueueNames) timeline.queues.emplace_back(name);
  timeline.launch = picoseconds(timing.launch_overhead.value);
  bool guessed = false;
  for (std::size_t c = 0; c < cores.size(); ++c) {
    const auto events_before = static_cast<std::int32_t>(timeline.events.size());
    const auto transfers_before = static_cast<std::int32_t>(timeline.transfers.size());
    timeline.core_from.push_back(timeline.events.size());
    if (c == 0) {
      timeline.events = std::move(cores[c]->events());
      timeline.transfers = std::move(cores[c]->transfers());
    } else {
      for (Event event : cores[c]->events()) {
        if (event.cause_event >= 0) event.cause_event += events_before;
        if (event.transfer >= 0) event.transfer += transfers_before;
        timeline.events.push_back(event);
      }
      for (Transfer transfer : cores[c]->transfers()) {
        transfer.event += static_cast<std::uint32_t>(events_before);
        timeline.transfers.push_back(transfer);
      }
    }
    for (const ArrayClock::Step& step : cores[c]->clock().steps())
      timeline.clock.push_back({static_cast<std::uint8_t>(c), step.share, step.start});
    guessed = guessed || cores[c]->sequencer().guessed();
    timeline.cores.push_back(cores[c]->summary());
    for (const std::string& warning : timeline.cores.back().lowered.warnings)
      timeline.warnings.push_back(warning);
    cores[c].reset();
  }
  timeline.core_from.push_back(timeline.events.size());
  for (const Event& event : timeline.events) {
    timeline.total = std::max({timeline.total, event.free, event.transfer >= 0 ? Picoseconds{0} : event.end});
    timeline.uncalibrated += !event.calibrated;
  }
  for (const Transfer& transfer : timeline.transfers) timeline.total = std::max(timeline.total, transfer.end);
  weigh(timeline, timing);
  if (guessed) timeline.warnings.push_back("a loop's bounds depend on data: its body is counted once");
  return timeline;
}

Timeline time(const Program& program, const Timing& timing, const TimeOptions& options) {
  const Program* const one[] = {&program};
  return time(one, timing, options);
}

std::vector<std::uint32_t> critical_path(const Timeline& timeline) {
  std::vector<std::uint32_t> path;
  if (timeline.events.empty()) return path;
  const auto end = [&](const Event& e) {
    return e.transfer >= 0 ? timeline.transfers[static_cast<std::size_t>(e.transfer)].end : e.end;
  };
  std::size_t last = 0;
  for (std::size_t i = 1; i < timeline.events.size(); ++i)
    if (end(timeline.events[i]) > end(timeline.events[last])) last = i;
  for (auto at = static_cast<std::int32_t>(last); at >= 0;) {
    path.push_back(static_cast<std::uint32_t>(at));
    at = timeline.events[static_cast<std::size_t>(at)].cause_event;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace headway::chip
