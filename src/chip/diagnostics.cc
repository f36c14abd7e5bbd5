#include "chip/diagnostics.h"

#include <fmt/format.h>


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
  const bool tolerated = tolerates(diagnostic.rule);
  if (tolerated) diagnostic.severity = Severity::warning;
  // Of what is tolerated a line and operand says enough: a kernel that goes on may do it at every byte.
  const char* end = "\n";
  std::string key = diagnostic.rule + end + diagnostic.where + end + diagnostic.operand + end + diagnostic.instruction;
  if (!tolerated || diagnostic.where.empty()) key += end + diagnostic.message;
  const bool fresh = said_.insert(std::move(key)).second;
  if (fresh) all_.push_back(diagnostic);
  if (diagnostic.severity == Severity::warning) return;
  if (fresh) ++errors_;
  if (mode_ == Mode::collect) return;
  if (diagnostic.severity == Severity::unsupported) throw Unsupported(diagnostic.text());
  throw KernelError(diagnostic.text());
}

}  // namespace headway::chip
