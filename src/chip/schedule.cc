#include "chip/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/machine.h"

namespace headway::chip {
namespace {

class Schedule {
 public:
  explicit Schedule(Machine& machine)
      : machine_(machine), waits_(static_cast<std::size_t>(machine.cores())) {}

  void run() {
    for (;;) {
      int next = 0;
      while (next < machine_.cores() && (waits(next) || done(next))) ++next;
      if (next < machine_.cores()) {
        if (machine_.in_step) {
          for (int c = next; c < machine_.cores(); ++c)
            if (!waits(c) && !done(c)) run_for(machine_.core(c), 1);
        } else {
          run_for(machine_.core(next), ~std::uint64_t{0});
        }
      } else if (std::any_of(waits_.begin(), waits_.end(),
                             [](const Wait& wait) { return wait.meeting != nullptr; })) {
        report_deadlock();
      } else {
        return;
      }
    }
  }

 private:
  // A core at a meeting whose other cores aren't all there.
  struct Wait {
    const Meeting* meeting = nullptr;
    Meeting::Key key;
    std::vector<int> participants;
  };
  Wait& wait(int core) { return waits_[static_cast<std::size_t>(core)]; }
  bool waits(int core) { return wait(core).meeting != nullptr; }
  bool done(int core) const {
    return machine_.core(core).next >= machine_.core(core).program().instructions.size();
  }
  void stop(Core& core) { core.next = core.program().instructions.size(); }

  // To its next meeting, at most so many instructions.
  void run_for(Core& core, std::uint64_t most) {
    const auto& instructions = core.program().instructions;
    for (; most > 0 && core.next < instructions.size(); --most) {
      const Instruction& instruction = *instructions[core.next];
      const Meeting* meeting = instruction.broken ? nullptr : instruction.meeting();
      if (meeting) return arrive(core, *meeting);
      if (machine_.instructions_run() >= machine_.max_instructions) return stop_endless(core);
      machine_.step(core);
    }
  }

  void arrive(Core& core, const Meeting& meeting) {
    if (machine_.instructions_run() >= machine_.max_instructions) return stop_endless(core);
    Wait& mine = wait(core.number());
    mine = {&meeting, meeting.key(core), meeting.participants(core)};
    for (int other : mine.participants)
      if (!together(mine, wait(other))) return;
    std::vector<Core*> cores;
    for (int other : mine.participants) cores.push_back(&machine_.core(other));
    for (const Core* other : cores) wait(other->number()).meeting = nullptr;
    machine_.meet(cores);
  }

  static bool together(const Wait& a, const Wait& b) {
    return a.meeting && b.meeting && a.key == b.key && a.participants == b.participants;
  }

  std::string place(const Core& core, const Instruction& instruction) const {
    const std::string where = core.program().where(instruction.source);
    return (where.empty() ? "" : "at " + where + " ") + "in " + to_string(instruction, core.program());
  }

  void report_deadlock() {
    std::vector<std::string> lines;
    const Core* first = nullptr;
    for (int c = 0; c < machine_.cores(); ++c) {
      Core& core = machine_.core(c);
      if (!waits(c)) {
        lines.push_back(fmt::format("core {} has ended", c));
        continue;
      }
      if (!first) first = &core;
      std::vector<int> missing;
      for (int other : wait(c).participants)
        if (!together(wait(c), wait(other))) missing.push_back(other);
      lines.push_back(fmt::format("core {} waits {} for core {}", c, place(core, *wait(c).meeting),
                                  fmt::join(missing, ", ")));
    }
    Diagnostic diagnostic;
    diagnostic.rule = "deadlock";
    diagnostic.instruction = wait(first->number()).meeting->name();
    diagnostic.where = first->program().where(wait(first->number()).meeting->source);
    diagnostic.message = fmt::format("no core can go on: {}", fmt::join(lines, "; "));
    machine_.diagnostics().report(std::move(diagnostic));
    for (int c = 0; c < machine_.cores(); ++c)
      if (waits(c)) {
        wait(c).meeting = nullptr;
        stop(machine_.core(c));
      }
  }

  void stop_endless(Core& core) {
    core.position = core.next;
    try {
      core.report(Severity::kernel_error, "endless", "",
                  fmt::format("the cores have run {} instructions, the most they may; is a loop without end?",
                              machine_.instructions_run()));
    } catch (const KernelError&) {
      if (!machine_.diagnostics().collecting()) throw;
    }
    stop(core);
  }

  Machine& machine_;
  std::vector<Wait> waits_;
};

}  // namespace

void run_cores(Machine& machine) { Schedule(machine).run(); }

}  // namespace headway::chip
