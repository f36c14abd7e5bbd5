// A kernel as the command line names it, recorded: one of C++, or FILE.py:kernel.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "chip/diagnostics.h"
#include "chip/program.h"
#include "chip/spec.h"
#include "kernels/kernel.h"

namespace headway::cli {

struct KernelRecording {
  std::string name;
  std::vector<chip::Program> programs;     // of the cores of one logical core
  std::vector<kernels::Parameter> inputs;  // in the order of declaration
  std::vector<std::string> arguments;      // what it was called with, as text
  std::vector<std::string> warnings;       // of recording
  // Of a kernel of C++ only.
  const kernels::Kernel* kernel = nullptr;
  kernels::Attributes attributes;

  int cores() const { return static_cast<int>(programs.size()); }
  std::vector<const chip::Program*> pointers() const;
};

struct KernelQuestion {
  std::string name, chip = "trn2";
  std::vector<std::string> args;
  std::vector<int> grid;  // of the launch; empty: a C++ kernel's own, else one core
};

// --lnc: cores of a logical core, or (as in older kernels) the extents of the grid, separated by commas.
void add_grid(CLI::App& command, std::vector<int>& grid);

// Throws InputError for names and arguments that don't work out, and what recording throws.
KernelRecording record_kernel(const KernelQuestion& question, const chip::Spec& spec,
                              chip::Diagnostics& diagnostics);

}  // namespace headway::cli
