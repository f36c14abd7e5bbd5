// headway chip: the machines that there is a file of, and their numbers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "chip/chip_schema.h"
#include "chip/spec.h"
#include "cli/commands.h"
#include "show/text_table.h"

namespace headway::cli {
namespace {

using chip::Entry;
using chip::Spec;

// 2.4e9, "Hz" -> "2.4 GHz"
std::string with_prefix(double value, std::string_view unit) {
  static constexpr std::array<std::string_view, 9> prefixes = {"p", "n", "u", "m", "", "k", "M", "G", "T"};
  const int thousands = value == 0 ? 0 : static_cast<int>(std::floor(std::log10(value) / 3 + 1e-9));
  const int at = std::clamp(thousands, -4, 4);
  return fmt::format("{:.6g} {}{}", value / std::pow(1000.0, at), prefixes[static_cast<std::size_t>(at + 4)],
                     unit);
}

// 229376 -> "224 KiB", 1000000 -> "1 MB"; what is a whole number of neither stays as it is.
std::string bytes(double value) {
  for (const auto& [unit, name] :
       {std::pair(0x1p30, "GiB"), std::pair(0x1p20, "MiB"), std::pair(1e6, "MB"), std::pair(0x1p10, "KiB")})
    if (value >= unit && std::fmod(value, unit) == 0) return fmt::format("{} {}", value / unit, name);
  return fmt::format("{:.0f} B", value);
}

std::string readable(const Entry& entry) {
  if (const bool* flag = std::get_if<bool>(&entry.value)) return *flag ? "yes" : "no";
  if (const std::string* text = std::get_if<std::string>(&entry.value)) return *text;
  const double value = std::get<double>(entry.value);
  if (entry.unit == "1") return fmt::format("{}", value);
  if (entry.unit == "B") return bytes(value);
  for (std::string_view unit : {"Hz", "s", "B/s", "FLOP/s"})
    if (entry.unit == unit) return with_prefix(value, unit);
  return fmt::format("{} {}", value, entry.unit);
}

nlohmann::json to_json(const chip::Rule& rule, const Entry* entry) {
  if (!entry) return nullptr;
  nlohmann::json json = {{"tag", name_of(entry->tag)}, {"source", entry->source}};
  std::visit([&](const auto& value) { json["value"] = value; }, entry->value);
  if (rule.kind == chip::Kind::count) json["value"] = std::llround(std::get<double>(entry->value));
  if (!entry->unit.empty()) json["unit"] = entry->unit;
  return json;
}

void list(bool json) {
  show::TextTable table(
      {"chip", "core", "cores", "TFLOP/s bf16", "HBM", "numbers", "documented", "measured", "fitted",
       "assumed"},
      {show::TextTable::left, show::TextTable::left, show::TextTable::right, show::TextTable::right,
       show::TextTable::right, show::TextTable::right, show::TextTable::right, show::TextTable::right,
       show::TextTable::right, show::TextTable::right});
  nlohmann::json chips = nlohmann::json::array();
  for (const std::string& name : chip::chip_names()) {
    const Spec spec = Spec::load(name);
    std::array<int, 4> tags{};
    for (const auto& [key, entry] : spec.file().entries()) ++tags[static_cast<std::size_t>(entry.tag)];
    const double flops = static_cast<double>(spec.cores) * chip::peak_flops_per_core(spec);
    const std::int64_t hbm = spec.hbm_stacks * spec.hbm_stack_bytes;
    table.add({name, spec.core_name, std::to_string(spec.cores), fmt::format("{:.0f}", flops / 1e12),
               bytes(static_cast<double>(hbm)), std::to_string(spec.file().entries().size()),
               std::to_string(tags[0]), std::to_string(tags[1]), std::to_string(tags[2]),
               std::to_string(tags[3])});
    chips.push_back({{"name", name},
                     {"file", spec.file().file()},
                     {"core", spec.core_name},
                     {"cores", spec.cores},
                     {"bfloat16_flops", flops},
                     {"hbm_bytes", hbm},
                     {"documented", tags[0]},
                     {"measured", tags[1]},
                     {"fitted", tags[2]},
                     {"assumed", tags[3]}});
  }
  fmt::print("{}", table.text());
  if (json) fmt::print("{}\n", nlohmann::json{{"chips", chips}}.dump());
}

void show(const std::string& name, bool json) {
  const Spec spec = Spec::load(name);
  show::TextTable table({"key", "value", "tag", "source"}, {show::TextTable::left, show::TextTable::right,
                                                            show::TextTable::left, show::TextTable::left});
  nlohmann::json entries = nlohmann::json::object();
  for (const chip::Rule& rule : chip::schema()) {
    const Entry* entry = spec.find(rule.key);
    if (!entry) continue;
    table.add({std::string(rule.key), readable(*entry), std::string(name_of(entry->tag)), entry->source});
    entries[std::string(rule.key)] = to_json(rule, entry);
  }
  fmt::print("{}, {}\n\n{}", spec.name, spec.file().file(), table.text());
  if (json) fmt::print("{}\n", nlohmann::json{{"name", spec.name}, {"entries", entries}}.dump());
}

void show_difference(const std::string& first, const std::string& second, bool json) {
  const Spec a = Spec::load(first), b = Spec::load(second);
  show::TextTable table({"key", first, "tag", second, "tag"},
                        {show::TextTable::left, show::TextTable::right, show::TextTable::left,
                         show::TextTable::right, show::TextTable::left});
  nlohmann::json differences = nlohmann::json::object();
  for (const chip::Rule& rule : chip::schema()) {
    const Entry *of_a = a.find(rule.key), *of_b = b.find(rule.key);
    if (!of_a && !of_b) continue;
    if (of_a && of_b && of_a->value == of_b->value) continue;
    const auto value = [](const Entry* entry) { return entry ? readable(*entry) : "-"; };
    const auto tag = [](const Entry* entry) { return std::string(entry ? name_of(entry->tag) : "-"); };
    table.add({std::string(rule.key), value(of_a), tag(of_a), value(of_b), tag(of_b)});
    differences[std::string(rule.key)] = {to_json(rule, of_a), to_json(rule, of_b)};
  }
  fmt::print("{}", table.text());
  if (json)
    fmt::print("{}\n", nlohmann::json{{"chips", {first, second}}, {"differences", differences}}.dump());
}

struct Arguments {
  std::string name;
  std::vector<std::string> difference;
  bool json = false;
};

}  // namespace

void add_chip_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("chip", "Machines and their numbers (chips/)");
  command->require_subcommand(1);
  auto a = std::make_shared<Arguments>();

  CLI::App* all = command->add_subcommand("list", "The machines there is a file of");
  all->add_flag("--json", a->json, "End with one line of JSON");
  all->callback([a] { list(a->json); });

  CLI::App* one = command->add_subcommand("show", "Every number of a machine, with what it rests on");
  CLI::Option* name = one->add_option("chip", a->name, "trn2, or the path of a chip file");
  CLI::Option* difference = one->add_option("--diff", a->difference, "Two machines: only what differs")
                                ->expected(2)
                                ->excludes(name);
  one->add_flag("--json", a->json, "End with one line of JSON");
  one->callback([a, name, difference] {
    if (*difference) {
      show_difference(a->difference[0], a->difference[1], a->json);
    } else if (*name) {
      show(a->name, a->json);
    } else {
      throw InputError("chip show", "needs a machine", "For example: headway chip show trn2");
    }
  });
  add_chip_validate(*command);
}

}  // namespace headway::cli
