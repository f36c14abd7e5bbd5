#include "cli/kernel_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/toml.h"

namespace headway::cli {
namespace {

using kernels::Parameter;

// "bf16", "f32" and the like, or the full name.
DType dtype_of(const std::string& text, const std::string& where) {
  static const std::map<std::string, DType> kShort = {
      {"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16},       {"tf32", DType::tf32},
      {"i32", DType::i32}, {"u32", DType::u32},   {"i16", DType::i16},       {"u16", DType::u16},
      {"i8", DType::i8},   {"u8", DType::u8},     {"f8e4m3", DType::f8e4m3}, {"f8e5m2", DType::f8e5m2}};
  const auto found = kShort.find(text);
  if (found != kShort.end()) return found->second;
  const std::optional<DType> full = dtype_named(text);
  if (full && *full != DType::f64 && !is_packed(*full)) return *full;
  std::vector<std::string> names;
  for (const auto& [name, dtype] : kShort) names.push_back(name);
  refuse_name(where, "dtype", text, names);
}

std::int64_t whole_number(const std::string& text, const std::string& where) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    throw InputError(where, fmt::format("'{}' is no extent", text), "An extent is a whole number from 1");
  return value;
}

}  // namespace

Argument parse_argument(const std::string& arg) {
  const std::string where = "--arg " + arg;
  const std::size_t equals = arg.find('=');
  if (equals == std::string::npos || equals == 0)
    throw InputError(where, "isn't NAME=VALUE",
                     "For an input NAME=DTYPE[EXTENT,...], for an attribute NAME=VALUE");
  const std::string name = arg.substr(0, equals), value = arg.substr(equals + 1);
  const std::size_t bracket = value.find('[');
  if (bracket == std::string::npos || bracket == 0) return {name, value};
  if (value.back() != ']') throw InputError(where, "its shape has no closing bracket");
  Parameter parameter{name, dtype_of(value.substr(0, bracket), where), {}};
  for (std::size_t at = bracket + 1; at < value.size();) {
    const std::size_t end = value.find_first_of(",]", at);
    parameter.shape.push_back(whole_number(value.substr(at, end - at), where));
    at = end + 1;
  }
  return {name, std::move(parameter)};
}

KernelCall kernel_call(const kernels::Kernel& kernel, const std::vector<std::string>& args) {
  std::vector<Parameter> inputs = kernel.inputs;
  std::map<std::string, double> attributes;
  for (const std::string& arg : args) {
    const std::string where = "--arg " + arg;
    Argument argument = parse_argument(arg);
    if (const auto* text = std::get_if<std::string>(&argument.value)) {
      double number = 0;
      const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
      if (error != std::errc() || end != text->data() + text->size())
        throw InputError(where, fmt::format("'{}' is neither a number nor DTYPE[EXTENT,...]", *text));
      attributes[argument.name] = number;
      continue;
    }
    const auto input = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const Parameter& p) { return p.name == argument.name; });
    if (input == inputs.end()) {
      std::vector<std::string> names;
      for (const Parameter& p : inputs) names.push_back(p.name);
      refuse_name(where, "input of " + std::string(kernel.name), argument.name, names);
    }
    *input = std::move(std::get<Parameter>(argument.value));
  }
  return {std::move(inputs), kernels::Attributes(std::move(attributes))};
}

std::string to_text(const Parameter& p) {
  return fmt::format("{}={}{}", p.name, name_of(p.dtype), to_string(p.shape));
}

}  // namespace headway::cli
