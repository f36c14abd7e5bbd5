// Chip files: every number of a machine with its unit, its source and what it rests on. docs/formats.md has
// the format, chip_schema.h the keys.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace headway::chip {

// What a number rests on.
enum class Tag { documented, measured, fitted, assumed };
std::string_view name_of(Tag tag);

struct Entry {
  std::variant<double, bool, std::string> value;  // a double for counts too
  std::string unit;                               // as the schema has it
  std::string source;
  Tag tag = Tag::assumed;
  std::string where;  // "file:line"
};

class ChipFile {
 public:
  // Throws InputError with file and line for whatever the schema doesn't allow: keys it doesn't know, values
  // of another kind, unit or range, entries without source or a known tag, keys that are missing.
  static ChipFile read(const std::filesystem::path& path);
  static ChipFile parse(std::string_view text, const std::string& file);

  const std::string& file() const { return file_; }
  const std::string& name() const { return name_; }
  // Of the file's bytes, XXH3, 64 bits, as 16 hexadecimal digits: which numbers a time was made with.
  const std::string& hash() const { return hash_; }
  // By key, "tensor_engine.clock".
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }

 private:
  std::string file_, name_, hash_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace headway::chip
