#include "chip/chip_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/toml.h"
#include "chip/chip_schema.h"

namespace headway::chip {
namespace {

std::string section_of(std::string_view key) { return std::string(key.substr(0, key.find('.'))); }

[[noreturn]] void refuse_key(const std::string& where, const std::string& key) {
  std::vector<std::string> keys, siblings;
  for (const Rule& rule : schema()) {
    keys.emplace_back(rule.key);
    if (section_of(rule.key) == section_of(key)) siblings.emplace_back(rule.key);
  }
  const std::string close = nearest(key, siblings.empty() ? keys : siblings);
  throw InputError(where, fmt::format("'{}' is not a key of chip files", key),
                   close.empty()
                       ? fmt::format("Known: {}", fmt::join(siblings.empty() ? keys : siblings, ", "))
                       : fmt::format("Did you mean '{}'?", close));
}

Tag read_tag(TomlTable& table) {
  const std::string tag = table.text("tag");
  std::vector<std::string> known;
  for (Tag candidate : {Tag::documented, Tag::measured, Tag::fitted, Tag::assumed}) {
    if (tag == name_of(candidate)) return candidate;
    known.emplace_back(name_of(candidate));
  }
  refuse_name(table.where("tag"), "tag", tag, known);
}

Entry read_entry(TomlTable table, const Rule& rule) {
  Entry entry;
  entry.where = table.where();
  if (rule.kind == Kind::text) {
    entry.value = table.text("value");
  } else if (rule.kind == Kind::flag) {
    entry.value = table.boolean("value");
  } else {
    const double value =
        rule.kind == Kind::count ? static_cast<double>(table.integer("value")) : table.number("value");
    entry.unit = table.text("unit");
    if (entry.unit != rule.unit)
      table.refuse("unit", fmt::format("is '{}', must be '{}'", entry.unit, rule.unit),
                   std::string(rule.meaning));
    if (!(value >= rule.low && value <= rule.high))
      table.refuse("value",
                   fmt::format("is {} {}, must be {:g} to {:g}", value, rule.unit, rule.low, rule.high));
    entry.value = value;
  }
  entry.source = table.text("source");
  if (entry.source.empty()) table.refuse("source", "is empty", "Name the document or the measurement");
  entry.tag = read_tag(table);
  table.finish();
  return entry;
}

}  // namespace

std::string_view name_of(Tag tag) {
  switch (tag) {
    case Tag::documented:
      return "documented";
    case Tag::measured:
      return "measured";
    case Tag::fitted:
      return "fitted";
    case Tag::assumed:
      return "assumed";
  }
  throw Bug("unknown tag");
}

ChipFile ChipFile::read(const std::filesystem::path& path) { return parse(read_file(path), path.string()); }

ChipFile ChipFile::parse(std::string_view text, const std::string& file) {
  TomlTable root = TomlTable::parse(text, file);
  ChipFile chip;
  chip.file_ = file;
  chip.name_ = root.text("name");
  chip.hash_ = fmt::format("{:016x}", hash64(text));
  std::map<std::string, std::string> places;  // of the sections
  for (const std::string& section : root.keys()) {
    if (section == "name") continue;
    TomlTable table = root.table(section);
    places[section] = table.where();
    for (const std::string& name : table.keys()) {
      const std::string key = section + "." + name;
      const Rule* rule = rule_of(key);
      if (!rule) refuse_key(table.where(name), key);
      chip.entries_[key] = read_entry(table.table(name), *rule);
    }
  }
  for (const Rule& rule : schema()) {
    if (rule.optional || chip.entries_.contains(rule.key)) continue;
    const auto place = places.find(section_of(rule.key));
    throw InputError(
        place == places.end() ? file : place->second, fmt::format("{} is missing", rule.key),
        rule.unit.empty() ? std::string(rule.meaning) : fmt::format("In {}: {}", rule.unit, rule.meaning));
  }
  return chip;
}

}  // namespace headway::chip
