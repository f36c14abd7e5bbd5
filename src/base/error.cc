#include "base/error.h"

namespace headway {
namespace {

std::string sentence(const std::string& where, const std::string& rule, const std::string& remedy) {
  std::string text = where.empty() ? rule : where + ": " + rule;
  if (!remedy.empty()) text += (text.ends_with('.') ? " " : ". ") + remedy;
  return text;
}

}  // namespace

InputError::InputError(const std::string& where, const std::string& rule, const std::string& remedy)
    : Error(sentence(where, rule, remedy), 2) {}
KernelError::KernelError(const std::string& message) : Error(message, 3) {}
Unsupported::Unsupported(const std::string& message) : Error(message, 4) {}
SystemError::SystemError(const std::string& where, const std::string& what, const std::string& remedy)
    : Error(sentence(where, what, remedy), 5) {}
Bug::Bug(const std::string& message) : Error("bug in headway: " + message, 70) {}

}  // namespace headway
