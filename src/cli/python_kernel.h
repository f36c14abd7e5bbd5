// Kernels in Python files, `FILE.py:kernel`: a worker process (python -m headway.nki.worker) records them,
// and its programs are checked here like any that come from elsewhere. docs/formats.md has the protocol.
#pragma once

#include <string>
#include <vector>

#include "chip/diagnostics.h"
#include "chip/program.h"
#include "chip/spec.h"

namespace headway::cli {

// Whether a kernel's name is that of a file: "attention.py:forward", "attention.py".
bool is_python_kernel(const std::string& name);

struct PythonCall {
  std::string name;               // FILE.py:kernel, or FILE.py with one kernel
  std::vector<std::string> args;  // as on the command line
  std::string chip = "trn2";      // name or file
  std::vector<int> grid;          // of the launch; empty: as the kernel has it
};

// The request line of the protocol. Throws InputError naming the argument for what isn't
// NAME=DTYPE[EXTENT,...] or NAME=VALUE. VALUE is a number, true, false, none, [NUMBER,...] (a tuple) or a
// text.
std::string python_request(const PythonCall& call);

struct PythonRecording {
  std::vector<chip::Program> programs;  // of the cores, checked
  std::vector<std::string> warnings;
};

// Records. What the kernel prints goes to stderr. Throws InputError for a kernel, an argument or a Python
// that doesn't work out, KernelError and Unsupported as the kernel raised them, and reports to `diagnostics`.
PythonRecording record_python(const PythonCall& call, const chip::Spec& spec, chip::Diagnostics& diagnostics);

}  // namespace headway::cli
