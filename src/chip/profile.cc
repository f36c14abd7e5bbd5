#include "chip/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "chip/advice.h"

namespace headway::chip {
namespace {

// Names given numbers in the order they come.
template <class Name>
class Names {
 public:
  std::int32_t number(const Name& name) {
    const auto [at, added] = numbers_.try_emplace(name, static_cast<std::int32_t>(all_.size()));
    if (added) all_.push_back(name);
    return at->second;
  }
  std::vector<Name> take() { return std::move(all_); }

 private:
  std::map<Name, std::int32_t> numbers_;
  std::vector<Name> all_;
};

// What an instruction is called and what it writes first: enough to tell a hundred like it apart.
std::array<std::string, 2> operation_of(const Instruction& instruction, const Program& program) {
  std::string written;
  for (const OperandView& operand : operand_views(instruction, program)) {
    if (operand.access == Access::read) continue;
    const Tensor& tensor = program.tensors[operand.view->tensor];
    written = fmt::format("{}{} {}", name_of(operand.view->dtype), to_string(operand.view->shape()),
                          name_of(tensor.buffer));
    break;
  }
  return {std::string(instruction.name()), written};
}

// Of one instruction, as MFU counts them.
double flops_of(const Instruction& instruction, Engine engine, const Program& program, const Timing& timing) {
  if (engine != Engine::tensor) return 0;
  const Cost cost = cost_of(instruction, engine, program, timing);
  return cost.transpose ? 0 : cost.flops;
}

void add_events(Profile& p, const Timeline& timeline, const Timing& timing) {
  Names<std::pair<std::array<std::string, 2>, double>> operations;
  Names<std::string> sources;
  sources.number("");
  p.core_from = timeline.core_from;
  p.events.reserve(timeline.events.size());
  for (std::size_t core = 0; core < timeline.cores.size(); ++core) {
    const Program& program = *timeline.cores[core].program;
    // Loops run an instruction many times; its names are found once.
    std::vector<std::pair<std::int32_t, std::int32_t>> known(program.instructions.size(), {-1, -1});
    for (std::size_t i = timeline.core_from[core]; i < timeline.core_from[core + 1]; ++i) {
      const Event& e = timeline.events[i];
      auto& [operation, source] = known[e.instruction];
      if (operation < 0) {
        const Instruction& instruction = *program.instructions[e.instruction];
        operation = operations.number(
            {operation_of(instruction, program), flops_of(instruction, e.engine, program, timing)});
        source = sources.number(program.where(instruction.source));
      }
      ProfileEvent event;
      event.start = whole_ns(e.start);
      // Differences of rounded times, so that what touches keeps touching.
      event.busy = whole_ns(e.free) - event.start;
      // A DMA's result comes with its transfer.
      event.latency = e.transfer >= 0 ? 0 : std::max<std::int64_t>(0, whole_ns(e.end) - whole_ns(e.free));
      event.operation = operation;
      event.source = source;
      event.by =
          e.cause_event < 0 ? 0 : static_cast<std::int32_t>(static_cast<std::int64_t>(i) - e.cause_event);
      event.transfer = e.transfer + 1;
      event.engine = e.engine;
      event.cause = e.cause;
      event.calibrated = e.calibrated;
      p.events.push_back(event);
    }
  }
  for (const Transfer& t : timeline.transfers) {
    ProfileTransfer transfer;
    transfer.start = whole_ns(t.start);
    transfer.length = whole_ns(t.end) - transfer.start;
    transfer.arrival = std::max<std::int64_t>(0, whole_ns(t.visible) - whole_ns(t.end));
    transfer.bytes = t.bytes;
    transfer.event = static_cast<std::int32_t>(t.event);
    transfer.queue = t.queue;
    transfer.descriptors = t.descriptors;
    transfer.descriptor_bytes = t.descriptor_bytes;
    transfer.engines = t.engines;
    transfer.mode = t.dge;
    transfer.from = t.from;
    transfer.to = t.to;
    p.transfers.push_back(transfer);
  }
  for (auto& [operation, flops] : operations.take()) {
    p.operations.push_back(std::move(operation));
    p.operation_flops.push_back(flops);
  }
  p.sources = sources.take();
  p.queues = timeline.queues;
}

// The lines that the time goes to.
void add_lines(Profile& p, const Timeline& timeline, const CriticalPath& path) {
  constexpr std::size_t kMost = 200;
  struct Line {
    Picoseconds time = 0, critical = 0;
    std::int64_t count = 0;
    std::set<std::string> operations;
  };
  std::vector<Line> lines(p.sources.size());
  for (std::size_t i = 0; i < p.events.size(); ++i) {
    Line& line = lines[static_cast<std::size_t>(p.events[i].source)];
    line.time += timeline.events[i].free - timeline.events[i].start;
    ++line.count;
    line.operations.insert(p.operations[static_cast<std::size_t>(p.events[i].operation)][0]);
  }
  for (std::size_t i = 0; i < path.events.size(); ++i)
    lines[static_cast<std::size_t>(p.events[path.events[i]].source)].critical += path.blame[i].total();
  for (std::size_t s = 0; s < lines.size(); ++s) {
    if (lines[s].count == 0) continue;
    std::string operations;
    for (const std::string& name : lines[s].operations) operations += (operations.empty() ? "" : ", ") + name;
    p.lines.push_back(
        {p.sources[s], operations, seconds(lines[s].time), seconds(lines[s].critical), lines[s].count});
  }
  std::stable_sort(p.lines.begin(), p.lines.end(), [](const LineFigures& a, const LineFigures& b) {
    return std::pair(a.critical, a.time) > std::pair(b.critical, b.time);
  });
  if (p.lines.size() > kMost) p.lines.resize(kMost);
}

}  // namespace

std::string time_text(double seconds) {
  const double s = std::abs(seconds);
  if (s == 0) return "0 us";
  if (s < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (s < 1e-3) return fmt::format("{:.{}f} us", seconds * 1e6, s < 1e-4 ? 2 : 1);
  if (s < 1) return fmt::format("{:.{}f} ms", seconds * 1e3, s < 0.1 ? 3 : 1);
  return fmt::format("{:.3f} s", seconds);
}

void Figures::set(std::string_view name, double value) {
  for (auto& [known, number] : all_) {
    if (known != name) continue;
    number = value;
    return;
  }
  all_.emplace_back(name, value);
}

bool Figures::has(std::string_view name) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& figure) { return figure.first == name; });
}

double Figures::operator[](std::string_view name) const {
  for (const auto& [known, number] : all_)
    if (known == name) return number;
  throw Bug("no figure is named " + std::string(name));
}

Trust trust_of(const Timeline& timeline) {
  Trust trust;
  trust.low = seconds(timeline.low);
  trust.high = seconds(timeline.high);
  trust.uncalibrated = timeline.uncalibrated;
  Picoseconds sum = 0;
  for (const Picoseconds part : timeline.basis.by_tag) sum += part;
  for (std::size_t tag = 0; sum > 0 && tag < trust.shares.size(); ++tag)
    trust.shares[tag] = static_cast<double>(timeline.basis.by_tag[tag]) / static_cast<double>(sum);
  return trust;
}

Profile profile(const Timeline& timeline, const Timing& timing, std::vector<std::string> arguments) {
  HEADWAY_CHECK(!timeline.cores.empty() && timeline.core_from.size() == timeline.cores.size() + 1);
  Profile p;
  p.kernel = timeline.cores[0].program->kernel;
  p.chip = timing.spec.name;
  p.chip_hash = timing.spec.file().hash();
  p.core = timing.spec.core_name;
  p.generation = timing.spec.generation;
  p.cores = static_cast<std::int32_t>(timeline.cores.size());
  p.arguments = std::move(arguments);
  p.trust = trust_of(timeline);
  p.warnings = timeline.warnings;
  add_events(p, timeline, timing);
  add_figures(p, timeline, timing);
  add_counters(p, timeline, timing);
  CriticalPath path = divide_critical_path(timeline, timing);
  p.critical_path = path.parts;
  add_lines(p, timeline, path);
  p.bound = find_bound(p, timeline, timing);
  p.advice = advise(p, timeline, timing, path);
  p.critical_events = std::move(path.events);
  return p;
}

}  // namespace headway::chip
