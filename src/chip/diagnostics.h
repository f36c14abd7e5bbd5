// What is wrong with a kernel, said as its author wants to hear it.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace headway::chip {

enum class Severity : unsigned char {
  warning,       // legal, but not what it seems: undefined accumulation and the like
  kernel_error,  // the hardware doesn't allow it
  unsupported    // legal, not modelled here
};

struct Diagnostic {
  Severity severity = Severity::kernel_error;
  std::string rule;         // a short stable name: "start-partition"
  std::string instruction;  // "tensor_tensor", or "" for a declaration
  std::string operand;      // "data1", or ""
  std::string message;      // the rule, the limit and the value that breaks it
  std::string where;        // "attention.cc:41", or ""

  // "attention.cc:41: tensor_tensor, data1: ... [start-partition]"
  std::string text() const;
};

// Where rules report to. Stopping at the first, `report` throws KernelError or Unsupported; collecting, it
// keeps them all. Warnings never throw. What is said again, as in each round of a loop, is kept once.
class Diagnostics {
 public:
  enum class Mode { stop, collect };
  explicit Diagnostics(Mode mode = Mode::stop) : mode_(mode) {}
  // From now on these rules only warn: what a more lenient machine would let pass.
  void tolerate(std::set<std::string> rules) { tolerated_ = std::move(rules); }
  bool tolerates(const std::string& rule) const { return tolerated_.contains(rule); }
  void report(Diagnostic diagnostic);
  const std::vector<Diagnostic>& all() const { return all_; }
  // How many aren't warnings.
  std::size_t errors() const { return errors_; }
  bool collecting() const { return mode_ == Mode::collect; }

 private:
  Mode mode_;
  std::set<std::string> tolerated_;
  std::vector<Diagnostic> all_;
  std::unordered_set<std::string> said_;  // what tells reports from each other
  std::size_t errors_ = 0;
};

}  // namespace headway::chip
