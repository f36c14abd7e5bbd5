#include "chip/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace headway::chip {

std::string Diagnostic::text() const {
  std::string text;
  if (!where.empty()) text += where + ": ";
  if (!instruction.empty()) text += instruction;
  if (!operand.empty()) text += (instruction.empty() ? "" : ", ") + operand;
  if (!instruction.empty() || !operand.empty()) text += ": ";
  return text + message + " [" + rule + "]";
}

void Diagnostics::report(Diagnostic diagnostic) {
  if (tolerates(diagnostic.rule)) diagnostic.severity = Severity::warning;
  const auto same = [&](const Diagnostic& other) {
    return other.rule == diagnostic.rule && other.where == diagnostic.where &&
           other.message == diagnostic.message && other.operand == diagnostic.operand &&
           other.instruction == diagnostic.instruction;
  };
  const bool fresh = std::none_of(all_.begin(), all_.end(), same);
  if (fresh) all_.push_back(diagnostic);
  if (diagnostic.severity == Severity::warning) return;
  if (fresh) ++errors_;
  if (mode_ == Mode::collect) return;
  if (diagnostic.severity == Severity::unsupported) throw Unsupported(diagnostic.text());
  throw KernelError(diagnostic.text());
}

}  // namespace headway::chip
