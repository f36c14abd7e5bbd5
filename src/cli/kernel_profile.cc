// headway kernel time, headway kernel profile: how long a kernel takes on the chip, and why.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/progress.h"
#include "chip/perfetto.h"
#include "chip/profile.h"
#include "chip/profile_file.h"
#include "chip/program_file.h"
#include "chip/timeline.h"
#include "cli/commands.h"
#include "cli/kernel_recording.h"
#include "show/profile_page.h"
#include "show/profile_text.h"

namespace headway::cli {
namespace {

struct Options {
  std::string name, chip = "trn2", open, against, save, pftrace, html;
  std::vector<std::string> args, programs;
  std::vector<int> grid;
  bool json = false;
};

// What to time: programs, and what they were called with.
struct Subject {
  std::vector<chip::Program> programs;
  std::vector<std::string> arguments;
};

Subject subject(const Options& o, const chip::Spec& spec) {
  if (o.name.empty() == o.programs.empty())
    throw InputError(
        "headway kernel", o.name.empty() ? "names no kernel" : "names a kernel and program files",
        "Give the name of a kernel (see `headway kernel list`), FILE.py:KERNEL, or --program FILE of "
        "each core");
  Subject s;
  chip::Diagnostics diagnostics;
  if (!o.programs.empty()) {
    if (!o.args.empty())
      throw InputError("--arg " + o.args[0], "goes with a kernel, not with a program file");
    for (const std::string& file : o.programs)
      s.programs.push_back(chip::load_program(file, spec, diagnostics));
    return s;
  }
  KernelRecording kernel = record_kernel({o.name, o.chip, o.args, o.grid}, spec, diagnostics);
  for (const std::string& warning : kernel.warnings) fmt::print(stderr, "warning: {}\n", warning);
  s.programs = std::move(kernel.programs);
  s.arguments = std::move(kernel.arguments);
  return s;
}

chip::Timeline timeline_of(const Subject& s, const chip::Timing& timing) {
  std::vector<const chip::Program*> programs;
  for (const chip::Program& program : s.programs) programs.push_back(&program);
  return chip::time(programs, timing);
}

void time(const Options& o) {
  const chip::Spec spec = chip::Spec::load(o.chip);
  const chip::Timing timing(spec);
  const Subject s = subject(o, spec);
  const chip::Timeline timeline = timeline_of(s, timing);
  const chip::Trust trust = chip::trust_of(timeline);
  const double total = chip::seconds(timeline.total), launch = chip::seconds(timeline.launch);
  const double latency = chip::seconds(timeline.total + timeline.launch);
  fmt::print("{} on chip {}: {}\n", s.programs[0].kernel, spec.label(), show::trust_text(total, trust));
  if (launch > 0) fmt::print("with the launch: {}\n", chip::time_text(latency));
  for (const std::string& warning : timeline.warnings) fmt::print(stderr, "warning: {}\n", warning);
  if (o.json) {
    nlohmann::json line = {{"kernel", s.programs[0].kernel},
                           {"chip", spec.name},
                           {"chip_hash", spec.file().hash()},
                           {"cores", s.programs.size()},
                           {"arguments", s.arguments},
                           {"total_time", total},
                           {"launch_time", launch},
                           {"latency", latency},
                           {"low", trust.low},
                           {"high", trust.high},
                           {"uncalibrated", trust.uncalibrated},
                           {"event_count", timeline.events.size()},
                           {"warnings", timeline.warnings}};
    for (std::size_t tag = 0; tag < trust.shares.size(); ++tag)
      line[std::string(name_of(static_cast<chip::Tag>(tag)))] = trust.shares[tag];
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}

chip::Profile opened(const std::string& file) { return chip::parse_profile(read_file(file), file); }

chip::Profile profile_of(const Options& o) {
  if (!o.open.empty()) {
    if (!o.name.empty() || !o.programs.empty())
      throw InputError("--open " + o.open, "is a profile already", "Give a kernel or a profile, not both");
    return opened(o.open);
  }
  const chip::Spec spec = chip::Spec::load(o.chip);
  const chip::Timing timing(spec);
  const Subject s = subject(o, spec);
  return chip::profile(timeline_of(s, timing), timing, s.arguments);
}

void write(const std::string& file, const std::string& contents, const char* what) {
  FileSystem::real().write_atomically(file, contents);
  fmt::print("{}: {}, {} KB\n", file, what, grouped(static_cast<std::int64_t>(contents.size() / 1000 + 1)));
}

void profile(const Options& o) {
  const chip::Profile p = profile_of(o);
  std::optional<chip::Profile> other;
  if (!o.against.empty()) other = opened(o.against);
  fmt::print("{}", other ? show::comparison_text(p, *other) : show::profile_text(p));
  if (!o.save.empty() || !o.pftrace.empty() || !o.html.empty()) fmt::print("\n");
  if (!o.save.empty()) write(o.save, chip::to_json(p), "the profile");
  if (!o.pftrace.empty()) write(o.pftrace, chip::to_perfetto(p), "for ui.perfetto.dev");
  if (!o.html.empty())
    write(o.html, show::profile_page(p, other ? &*other : nullptr), "open it in a browser");
  if (o.json)
    fmt::print("{}\n", other ? fmt::format("{{\"profile\":{},\"against\":{}}}", chip::summary_json(p),
                                           chip::summary_json(*other))
                             : chip::summary_json(p));
}

}  // namespace

void add_kernel_time(CLI::App& kernel) {
  const auto o = std::make_shared<Options>();
  for (const bool whole : {false, true}) {
    CLI::App* command = whole ? kernel.add_subcommand(
                                    "profile", "Where a kernel's time on the chip goes, and what would help")
                              : kernel.add_subcommand("time", "How long a kernel takes on the chip");
    command->add_option("name", o->name, "Kernel, see `kernel list`, or FILE.py:KERNEL");
    command->add_option("--arg", o->args, "NAME=DTYPE[EXTENT,...] of an input or NAME=VALUE, an attribute");
    add_grid(*command, o->grid);
    command->add_option("--chip", o->chip, "Chip name or file")->capture_default_str();
    command->add_option("--program", o->programs,
                        "Instead of a kernel: the program that `kernel run --save` wrote, of each core");
    command->add_flag("--json", o->json, "End with one line of JSON");
    if (!whole) {
      command->callback([o] { time(*o); });
      continue;
    }
    command->add_option("--open", o->open, "Instead of a kernel: a profile that --save wrote");
    command->add_option("--against", o->against, "Compare with this saved profile");
    command->add_option("--save", o->save, "Write the profile, to open or compare with later");
    command->add_option("--pftrace", o->pftrace, "Write a trace for ui.perfetto.dev");
    command->add_option("--html", o->html, "Write a page with the timeline");
    command->callback([o] { profile(*o); });
  }
}

}  // namespace headway::cli
