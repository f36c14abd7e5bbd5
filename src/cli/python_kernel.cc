#include "cli/python_kernel.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "chip/check.h"
#include "chip/program_file.h"
#include "cli/kernel_arguments.h"
#include "cli/python_process.h"

namespace headway::cli {
namespace {

using nlohmann::json;

template <class Number>
std::optional<Number> number_of(const std::string& text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

json attribute(const std::string& text, const std::string& where) {
  if (const auto whole = number_of<std::int64_t>(text)) return *whole;
  if (const auto number = number_of<double>(text)) return *number;
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  if (text == "none" || text == "None") return nullptr;
  if (text.starts_with('[')) {
    const json list = json::parse(text, nullptr, false);
    if (!list.is_array()) throw InputError(where, fmt::format("'{}' is no list", text), "As in size=[2,2]");
    return list;
  }
  return text;
}

// What the worker said went wrong, as an exception of ours.
[[noreturn]] void raise(const json& answer, const std::string& name) {
  const std::string type = answer.value("error", "error"), message = answer.value("message", "");
  const std::string file = answer.value("file", "");
  // Errors of instructions begin with their place already.
  const std::string place = file.empty() ? name : fmt::format("{}:{}", file, answer.value("line", 0));
  const std::string base = place.substr(place.find_last_of('/') + 1);
  const std::string text = message.starts_with(base + ":") ? message : fmt::format("{}: {}", place, message);
  const std::string trace = answer.value("traceback", "");
  if (type == "KernelError") throw KernelError(text);
  if (type == "Unsupported") throw Unsupported(text);
  if (type == "InputError") throw InputError(name, message);
  if (type == "Bug") throw Bug(text);
  // An exception of the kernel's own.
  fmt::print(stderr, "{}", trace);
  throw InputError(place, fmt::format("{}: {}", type, message));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

bool is_python_kernel(const std::string& name) {
  return name.ends_with(".py") || name.find(".py:") != std::string::npos;
}

std::string python_request(const PythonCall& call) {
  json inputs = json::array(), attributes = json::object();
  for (const std::string& arg : call.args) {
    const Argument argument = parse_argument(arg);
    if (const auto* parameter = std::get_if<kernels::Parameter>(&argument.value))
      inputs.push_back(
          {{"name", argument.name}, {"dtype", name_of(parameter->dtype)}, {"shape", parameter->shape}});
    else
      attributes[argument.name] = attribute(std::get<std::string>(argument.value), "--arg " + arg);
  }
  json request = {{"kernel", call.name}, {"inputs", inputs}, {"attributes", attributes}, {"chip", call.chip}};
  if (!call.grid.empty()) request["grid"] = call.grid;
  return request.dump();
}

PythonRecording record_python(const PythonCall& call, const chip::Spec& spec,
                              chip::Diagnostics& diagnostics) {
  const PythonAnswer answer = run_python({"-m", "headway.nki.worker"}, python_request(call) + "\n");
  const std::string head = first_line(answer.output);
  const json header = json::parse(head, nullptr, false);
  const auto refuse = [&](const std::string& rule) {
    throw InputError(python_program(), rule,
                     "Set HEADWAY_PYTHON to a Python that has the package headway-nki, or build it here: "
                     "./run python -V");
  };
  if (!header.is_object() && answer.code != 0)
    refuse(fmt::format("ended with code {} before it answered: see above", answer.code));
  PythonRecording recording;
  try {
    if (!header.at("ok").get<bool>()) raise(header, call.name);
    std::size_t at = head.size() + 1;
    for (const auto& count : header.at("programs")) {
      const auto size = count.get<std::size_t>();
      if (at > answer.output.size() || size > answer.output.size() - at)
        throw SystemError(python_program(), "ended in the middle of a program");
      chip::Program program =
          chip::parse_program(std::string_view(answer.output).substr(at, size), call.name);
      if (program.chip != spec.name)
        throw InputError(call.name, fmt::format("was recorded for {}, not for {}", program.chip, spec.name));
      chip::Check::whole(spec, program, diagnostics);
      recording.programs.push_back(std::move(program));
      at += size;
    }
    for (const auto& warning : header.value("warnings", json::array()))
      recording.warnings.push_back(warning.get<std::string>());
  } catch (const json::exception&) {
    refuse("answered what isn't the worker's protocol");
  }
  if (recording.programs.empty()) refuse("answered what isn't the worker's protocol");
  return recording;
}

}  // namespace headway::cli
