#include "cli/validate_python.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <tuple>

#include "base/csv.h"
#include "base/error.h"
#include "base/files.h"
#include "base/home.h"
#include "base/progress.h"
#include "chip/diagnostics.h"
#include "cli/kernel_arguments.h"
#include "cli/python_kernel.h"
#include "cli/python_process.h"

namespace headway::cli {
namespace {

namespace fs = std::filesystem;
using chip::Timing;

// Imports what the worker is made of and says what went wrong with that, without a traceback.
constexpr const char* kProbe =
    "import sys\n"
    "try:\n"
    "    import headway.nki.worker\n"
    "except Exception as error:\n"
    "    print(error)\n"
    "    sys.exit(1)\n";

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> all;
  for (std::string word; stream >> word;) all.push_back(word);
  return all;
}

const KernelRow& twin_of(const MeasuredPython& kernel, const std::vector<const KernelValidation*>& in_cpp) {
  for (const KernelValidation* validation : in_cpp)
    for (const KernelRow& row : validation->rows)
      if (row.row == kernel.row) return row;
  throw InputError("python.csv", fmt::format("{} has no figure", kernel.row->id),
                   "Its id must be one of kernels.csv or documented.csv");
}

double launch_of(const KernelRow& twin) { return twin.predicted - twin.time.device; }

fs::path place_of(const MeasuredPython& kernel, const fs::path& checkouts) {
  const fs::path path = (kernel.published ? checkouts : home()) / kernel.file;
  if (fs::exists(path)) return path;
  if (!kernel.published) throw InputError(path.string(), "there is no such file");
  throw InputError(path.string(), "there is no such file",
                   fmt::format("Clone https://github.com/{} into {}", kernel.repository(),
                               (checkouts / *fs::path(kernel.file).begin()).string()));
}

std::vector<chip::Program> record(const MeasuredPython& kernel, const Timing& timing, const std::string& chip,
                                  const fs::path& checkouts) {
  chip::Diagnostics diagnostics;
  diagnostics.tolerate({"unwritten"});  // as in a call from Python
  const PythonCall call = {
      place_of(kernel, checkouts).string() + ":" + kernel.function, kernel.arguments, chip, {}};
  PythonRecording recording = record_python(call, timing.spec, diagnostics);
  if (recording.programs.size() != 1)
    throw InputError(call.name, fmt::format("runs on {} cores", recording.programs.size()),
                     "Figures are of one core");
  return std::move(recording.programs);
}

template <class Error>
double mean_absolute(const std::vector<PythonRow>& rows, Error&& error) {
  double sum = 0;
  std::size_t count = 0;
  for (const PythonRow& row : rows) {
    if (!row.failure.empty()) continue;
    sum += std::abs(error(row));
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace

std::string MeasuredPython::repository() const {
  std::string folder = fs::path(file).begin()->string();
  const std::size_t plus = folder.find('+');
  if (plus != std::string::npos) folder[plus] = '/';
  return folder;
}

std::string MeasuredPython::title() const {
  return function == "kernel" ? fs::path(file).stem().string() : function;
}

std::vector<MeasuredPython> read_measured_python(const fs::path& file) {
  const std::string text = read_file(file);
  CsvReader table(text, file.string(), {"id", "where", "file", "function", "arguments"});
  std::vector<MeasuredPython> kernels;
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  while (table.next()) {
    MeasuredPython kernel;
    kernel.row = &kernels::find_measured_row(table.cell("id"));
    if (kernel.row->launches.size() != 1)
      table.refuse(fmt::format("{} is the sum of {} kernels; one line of this table is one kernel",
                               table.cell("id"), kernel.row->launches.size()));
    const std::string& where = table.cell("where");
    if (where != "project" && where != "checkouts")
      table.refuse(fmt::format("where is '{}'", where), "It is project or checkouts");
    kernel.published = where == "checkouts";
    kernel.file = table.cell("file");
    kernel.function = table.cell("function");
    if (!kernel.file.ends_with(".py") || fs::path(kernel.file).is_absolute() || kernel.function.empty())
      table.refuse("file and function must be a relative path of a Python file and a name in it");
    if (kernel.published && kernel.file.substr(0, kernel.file.find('/')).find('+') == std::string::npos)
      table.refuse(fmt::format("'{}' is in no checkout", kernel.file), "It begins with OWNER+NAME/");
    kernel.arguments = words(table.cell("arguments"));
    for (const std::string& argument : kernel.arguments) try {
        parse_argument(argument);
      } catch (const InputError& error) {
        table.refuse(error.what());
      }
    if (!seen.insert({table.cell("id"), kernel.file, kernel.function}).second)
      table.refuse(fmt::format("'{}' of {} is there twice", kernel.function, table.cell("id")));
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

std::size_t PythonValidation::recorded() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(rows, [](const PythonRow& row) { return row.failure.empty(); }));
}
double PythonValidation::mean_error() const {
  return mean_absolute(rows, [](const PythonRow& row) { return row.error(); });
}
double PythonValidation::mean_twin_error() const {
  return mean_absolute(rows, [](const PythonRow& row) { return row.twin.error(row.twin.predicted); });
}

std::string python_missing() {
  try {
    const PythonAnswer answer = run_python({"-c", kProbe}, "");
    if (answer.code == 0) return "";
    std::string reason = answer.output.substr(0, answer.output.find('\n'));
    if (reason.empty()) reason = fmt::format("ended with code {}", answer.code);
    return fmt::format(
        "{}: {}. Set HEADWAY_PYTHON to a Python that has the package headway-nki, or build it here: "
        "./run python -V",
        python_program(), reason);
  } catch (const InputError& error) {
    return error.what();
  }
}

std::vector<Figure> figures_of(const std::vector<MeasuredPython>& kernels,
                               const std::vector<Figure>& figures) {
  std::set<std::string_view> ids, launched;  // launched: sources
  for (const MeasuredPython& kernel : kernels) {
    ids.insert(kernel.row->id);
    if (kernel.row->clock == kernels::Clock::runtime) launched.insert(kernel.row->source);
  }
  std::vector<Figure> wanted;
  std::ranges::copy_if(figures, std::back_inserter(wanted), [&](const Figure& figure) {
    return ids.contains(figure.id) || launched.contains(kernels::find_measured_row(figure.id).source);
  });
  return wanted;
}

PythonValidation validate_python(const std::vector<MeasuredPython>& kernels,
                                 const std::vector<const KernelValidation*>& in_cpp, const Timing& timing,
                                 const std::string& chip, const fs::path& checkouts) {
  PythonValidation result;
  for (const MeasuredPython& kernel : kernels)
    if (kernel.row->chip == timing.spec.name) {
      PythonRow& row = result.rows.emplace_back();
      row.kernel = kernel;
      row.twin = twin_of(kernel, in_cpp);
    }
  Progress progress("recording", static_cast<std::int64_t>(result.rows.size()));
  std::int64_t done = 0;
  for (PythonRow& row : result.rows) {
    progress.update(done++, row.kernel.title());
    const char* step = "recorded";
    try {
      const std::vector<chip::Program> programs = record(row.kernel, timing, chip, checkouts);
      step = "timed";
      row.time = time_of(*row.kernel.row, programs, timing);
      row.predicted = row.time.device + launch_of(row.twin);
    } catch (const Bug&) {
      throw;
    } catch (const Error& error) {
      row.failure = fmt::format("could not be {}: {}", step, error.what());
    }
  }
  progress.finish();
  return result;
}

}  // namespace headway::cli
