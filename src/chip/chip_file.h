// Chip files: every number of a machine with its unit, its source and what it rests on.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace headway::chip {

// What a number rests on.
enum class Tag { documented, measured, fitted, assumed };
std::string_view name_of(Tag tag);

struct Number {
  double value = 0;
  std::string unit;
  std::string source;
  Tag tag = Tag::assumed;
};

class ChipFile {
 public:
  // Throws InputError with file and line for entries without value, unit, source or a known tag.
  explicit ChipFile(const std::filesystem::path& path);

  const std::string& name() const { return name_; }
  // "tensor_engine.clock". Throws InputError naming the file when it is missing.
  const Number& number(const std::string& key) const;

 private:
  std::filesystem::path path_;
  std::string name_;
  std::map<std::string, Number> numbers_;
};

// Peak FLOP/s of one core's tensor engine in bfloat16: 2 x rows x columns x clock.
double peak_flops_per_core(const ChipFile& chip);

}  // namespace headway::chip
