// The four ways Headway fails. Each names whose fault it is; nothing else is thrown on purpose.
#pragma once

#include <stdexcept>
#include <string>

namespace headway {

// What every error has in common: a message that a person can act on and an exit code for the command line.
class Error : public std::runtime_error {
 public:
  Error(const std::string& message, int exit_code) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// The user's input is wrong. `where` names the file and place ("recipe.toml:12"), `rule` what is wrong there,
// `remedy` what to do about it (may be empty). Exit code 2.
class InputError : public Error {
 public:
  InputError(const std::string& where, const std::string& rule, const std::string& remedy = "");
};

// A kernel does what the hardware doesn't allow. Exit code 3.
class KernelError : public Error {
 public:
  explicit KernelError(const std::string& message);
};

// Legal, but not modelled here. Exit code 4.
class Unsupported : public Error {
 public:
  explicit Unsupported(const std::string& message);
};

// The machine let us down: disk full, file vanished, out of memory. Exit code 5.
class SystemError : public Error {
 public:
  SystemError(const std::string& where, const std::string& what, const std::string& remedy = "");
};

// Ours. Exit code 70.
class Bug : public Error {
 public:
  explicit Bug(const std::string& message);
};

// Throws Bug naming the place when `condition` is false: for what must hold whatever the user does.
#define HEADWAY_CHECK(condition)                                                                      \
  do {                                                                                                \
    if (!(condition))                                                                                 \
      throw ::headway::Bug(std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": " #condition); \
  } while (false)

}  // namespace headway
