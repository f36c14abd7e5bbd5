// Python beside this program: C++ never embeds it, it starts it. Which one: $HEADWAY_PYTHON, else the virtual
// environment that
// ./run makes (build/venv), else python3. Where the source tree has the extension module built, its package
// is the one that is imported.
#pragma once

#include <string>
#include <vector>

namespace headway::cli {

struct PythonAnswer {
  std::string output;  // of stdout, whole
  int code = 0;        // exit status; 128 + N where signal N ended it
};

// The interpreter and how to choose another: for messages.
std::string python_program();

// Runs `python ARGUMENTS` with `input` as its stdin; stderr is ours. Throws InputError where it can't be
// started.
PythonAnswer run_python(const std::vector<std::string>& arguments, const std::string& input);

// Becomes `python ARGUMENTS`. Throws InputError where it can't be started; doesn't return otherwise.
[[noreturn]] void become_python(const std::vector<std::string>& arguments);

}  // namespace headway::cli
