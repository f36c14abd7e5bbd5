#include "chip/chip_file.h"

#include "base/error.h"
#include "base/toml.h"

namespace headway::chip {

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

ChipFile::ChipFile(const std::filesystem::path& path) : path_(path) {
  TomlTable root = TomlTable::read(path);
  name_ = root.text("name");
  for (const std::string& section : root.keys()) {
    if (section == "name") continue;
    TomlTable table = root.table(section);
    for (const std::string& key : table.keys()) {
      TomlTable entry = table.table(key);
      Number number;
      number.value = entry.number("value");
      number.unit = entry.text("unit");
      number.source = entry.text("source");
      const std::string tag = entry.text("tag");
      bool known = false;
      for (Tag candidate : {Tag::documented, Tag::measured, Tag::fitted, Tag::assumed}) {
        if (tag != name_of(candidate)) continue;
        number.tag = candidate;
        known = true;
      }
      if (!known)
        refuse_name(entry.where("tag"), "tag", tag, {"documented", "measured", "fitted", "assumed"});
      entry.finish();
      numbers_[section + "." + key] = number;
    }
  }
}

const Number& ChipFile::number(const std::string& key) const {
  const auto found = numbers_.find(key);
  if (found == numbers_.end()) throw InputError(path_.string(), "has no number '" + key + "'");
  return found->second;
}

double peak_flops_per_core(const ChipFile& chip) {
  return 2 * chip.number("tensor_engine.rows").value * chip.number("tensor_engine.columns").value *
         chip.number("tensor_engine.clock").value;
}

}  // namespace headway::chip
