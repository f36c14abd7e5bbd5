// Measured kernels in Python files beside the same kernels in C++: what their authors wrote, recorded by the
// worker (cli/python_kernel.h) and timed like every other program. Nothing is fitted to them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "chip/timing.h"
#include "cli/validation.h"

namespace headway::cli {

// A line of python.csv of chips/measured: id, where ("project" or "checkouts"), file, function, arguments
// (separated by spaces).
struct MeasuredPython {
  const kernels::MeasuredRow* row = nullptr;  // what it was measured as
  bool published = false;  // in a checkout of its own repository; otherwise in this one, below home()
  std::string file;        // of a published kernel: "owner+name/path"
  std::string function;
  std::vector<std::string> arguments;  // as --arg takes them

  // "owner/name" of a published kernel.
  std::string repository() const;
  // The function's name; of files whose function is only called "kernel", the file's.
  std::string title() const;
};
// Throws InputError naming file and line.
std::vector<MeasuredPython> read_measured_python(const std::filesystem::path& file);

struct PythonRow {
  MeasuredPython kernel;
  KernelRow twin;  // the kernel in C++
  // Seconds, with the launch that was fitted to the kernels in C++.
  double predicted = 0;
  KernelTime time;
  std::string failure;  // why there is no prediction: "could not be recorded: ..."; empty where there is one

  double error() const { return twin.error(predicted); }
  double difference() const { return predicted / twin.predicted - 1; }  // from the kernel in C++
};

struct PythonValidation {
  std::vector<PythonRow> rows;
  std::size_t recorded() const;
  // Of those that were recorded, absolute.
  double mean_error() const;
  double mean_twin_error() const;
};

// Why no kernel in Python can be recorded here: no interpreter, or none that has the package. Empty where one
// can.
std::string python_missing();

// Figures that the kernels in C++ need to be compared with these: theirs, and those of the rows that a launch
// is fitted to together with them.
std::vector<Figure> figures_of(const std::vector<MeasuredPython>& kernels,
                               const std::vector<Figure>& figures);

// Records and times `kernels`, those of the chip of `timing`. `chip` is that chip's name or file, as the
// worker loads it; `checkouts` the folder that published kernels are below; twins and launches come from
// `in_cpp`. Throws InputError where a kernel has no twin there. Progress on stderr.
PythonValidation validate_python(const std::vector<MeasuredPython>& kernels,
                                 const std::vector<const KernelValidation*>& in_cpp,
                                 const chip::Timing& timing, const std::string& chip,
                                 const std::filesystem::path& checkouts);

}  // namespace headway::cli
