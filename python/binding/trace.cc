// Recording: the current trace of a thread, declarations, and where in the kernel's source a call comes from.
#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "chip/program_file.h"
#include "objects.h"

namespace headway::python {
namespace {

thread_local std::vector<std::shared_ptr<Trace>> traces;

// What is known of a code object. They are kept: their addresses are keys.
struct Code {
  bool ours = false;
  std::string file;
};
const Code& code_of(PyCodeObject* code) {
  static auto* known = new std::unordered_map<PyCodeObject*, Code>;  // under the interpreter lock
  const auto [entry, fresh] = known->try_emplace(code);
  if (fresh) {
    Py_INCREF(reinterpret_cast<PyObject*>(code));
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    entry->second = {is_ours(code), file ? file : ""};
  }
  return entry->second;
}

chip::Role role_named(const std::string& role) {
  if (role == "internal") return chip::Role::internal;
  if (role == "input") return chip::Role::input;
  if (role == "output") return chip::Role::output;
  if (role == "constant") return chip::Role::constant;
  throw nb::value_error(("no role is named " + role).c_str());
}

Shape shape_from(nb::handle sequence) {
  Shape shape;
  for (nb::handle item : nb::iter(sequence)) {
    const Py_ssize_t extent = PyNumber_AsSsize_t(item.ptr(), PyExc_OverflowError);
    if (extent == -1 && PyErr_Occurred()) throw nb::python_error();
    shape.push_back(extent);
  }
  return shape;
}

Tensor wrap(const std::shared_ptr<Trace>& trace, const chip::Tile& tile, DType reported) {
  return {trace, tile.view(),
          std::make_shared<const Shape>(trace->recorder.program().tensors[tile.view().tensor].shape),
          reported};
}

Tensor declare(const std::shared_ptr<Trace>& trace, const std::string& name, nb::handle dtype,
               nb::handle shape, nb::handle buffer, const std::string& role,
               std::optional<std::pair<std::int32_t, std::int64_t>> address, nb::handle reported) {
  chip::Tensor tensor;
  tensor.name = name;
  tensor.shape = shape_from(shape);
  tensor.dtype = dtype_of(dtype);
  tensor.buffer = buffer_of(buffer);
  tensor.role = role_named(role);
  if (address) tensor.address = chip::Address{address->first, address->second};
  tensor.source = trace->caller();
  return wrap(trace, trace->recorder.declare(std::move(tensor)),
              reported.is_none() ? dtype_of(dtype) : dtype_of(reported));
}

Tensor constant(const std::shared_ptr<Trace>& trace, const std::string& name, nb::handle dtype,
                nb::handle shape, nb::bytes bytes) {
  const DType of = dtype_of(dtype);
  return wrap(trace,
              trace->recorder.constant(name, of, shape_from(shape),
                                       {reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()}),
              of);
}

std::pair<std::string, std::uint32_t> place(const Trace& trace, chip::SourceId source) {
  const chip::Program& program = trace.recorder.program();
  if (source == 0) return {"", 0};
  const chip::SourceLine& line = program.sources[source];
  return {program.files[line.file], line.line};
}

}  // namespace

Trace::Trace(std::string kernel, std::shared_ptr<const chip::Spec> spec_of, int program_id, int num_programs)
    : spec(std::move(spec_of)), recorder(std::move(kernel), *spec, &diagnostics, program_id, num_programs) {}

chip::SourceId Trace::caller() {
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(reinterpret_cast<PyObject*>(frame));
  chip::SourceId found = 0;
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Py_DECREF(reinterpret_cast<PyObject*>(code));  // the frame holds it
    const Code& known = code_of(code);
    if (!known.ours) {
#if PY_VERSION_HEX >= 0x030B0000
      const int at = PyFrame_GetLasti(frame);
#else
      const int at = PyFrame_GetLineNumber(frame);
#endif
      const auto [site, fresh] = sites_.try_emplace(Site{code, at});
      if (fresh)
        site->second = recorder.source(known.file, static_cast<std::uint32_t>(PyFrame_GetLineNumber(frame)));
      found = site->second;
      break;
    }
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(reinterpret_cast<PyObject*>(frame));
    frame = back;
  }
  Py_XDECREF(reinterpret_cast<PyObject*>(frame));
  return found;
}

Trace* current() { return traces.empty() ? nullptr : traces.back().get(); }

void bind_trace(nb::module_& m) {
  nb::class_<chip::Spec>(m, "Spec", "A chip file: every number of a machine.")
      .def_static(
          "load",
          [](const std::string& name) { return std::make_shared<chip::Spec>(chip::Spec::load(name)); })
      .def("__getitem__", [](const chip::Spec& spec, const std::string& key) { return spec[key]; })
      .def_ro("name", &chip::Spec::name)
      .def_prop_ro("hash", [](const chip::Spec& spec) { return spec.file().hash(); })
      .def_ro("core_name", &chip::Spec::core_name)
      .def_ro("generation", &chip::Spec::generation)
      .def_ro("partitions", &chip::Spec::partitions)
      .def_ro("sbuf_bytes", &chip::Spec::sbuf_bytes)
      .def_ro("sbuf_usable_bytes", &chip::Spec::sbuf_usable_bytes)
      .def_ro("psum_bytes", &chip::Spec::psum_bytes)
      .def_ro("psum_banks", &chip::Spec::psum_banks)
      .def_ro("psum_bank_bytes", &chip::Spec::psum_bank_bytes)
      .def_ro("stationary_columns", &chip::Spec::stationary_columns)
      .def_ro("moving_columns", &chip::Spec::moving_columns)
      .def_ro("bn_stats_elements", &chip::Spec::bn_stats_elements)
      .def_ro("cores", &chip::Spec::cores)
      .def_ro("largest_lnc", &chip::Spec::largest_lnc)
      .def_ro("default_lnc", &chip::Spec::default_lnc);
  m.def("chip_names", &chip::chip_names);

  nb::class_<Trace>(m, "Trace", "One core's recording.")
      .def(
          "__init__",
          [](Trace* self, const std::string& kernel, std::shared_ptr<chip::Spec> spec, int program_id,
             int num_programs, std::uint64_t max_instructions, const std::vector<std::string>& tolerated) {
            new (self) Trace(kernel, std::move(spec), program_id, num_programs);
            self->max_instructions = max_instructions;
            self->diagnostics.tolerate({tolerated.begin(), tolerated.end()});
          },
          nb::arg("kernel"), nb::arg("spec"), nb::arg("program_id") = 0, nb::arg("num_programs") = 1,
          nb::arg("max_instructions") = std::uint64_t{1} << 62,
          nb::arg("tolerated") = std::vector<std::string>{})
      .def_prop_ro("program_id", [](const Trace& t) { return t.recorder.program_id(); })
      .def_prop_ro("num_programs", [](const Trace& t) { return t.recorder.num_programs(); })
      .def_prop_ro("kernel", [](const Trace& t) { return t.recorder.program().kernel; })
      .def_prop_ro("instructions", [](const Trace& t) { return t.recorder.program().instructions.size(); })
      .def(
          "declare",
          [](const std::shared_ptr<Trace>& trace, const std::string& name, nb::handle dtype, nb::handle shape,
             nb::handle buffer, const std::string& role,
             std::optional<std::pair<std::int32_t, std::int64_t>> address, nb::handle reported) {
            return declare(trace, name, dtype, shape, buffer, role, address, reported);
          },
          nb::arg("name"), nb::arg("dtype"), nb::arg("shape"), nb::arg("buffer"),
          nb::arg("role") = "internal", nb::arg("address") = nb::none(), nb::arg("reported") = nb::none())
      .def("constant", &constant, nb::arg("name"), nb::arg("dtype"), nb::arg("shape"), nb::arg("data"))
      .def(
          "register",
          [](const std::shared_ptr<Trace>& trace, bool frozen) {
            return Register{trace, trace->recorder.new_register(), frozen};
          },
          nb::arg("frozen") = false)
      .def("set_role",
           [](Trace& trace, const Tensor& tensor, const std::string& role) {
             trace.recorder.set_role(tensor.view.tensor, role_named(role));
           })
      .def("edge", [](Trace& trace, std::uint32_t before,
                      std::uint32_t after) { trace.recorder.order(before, after); })
      .def("label", [](Trace& trace, const std::string& name) { trace.recorder.label(name); })
      .def(
          "retarget",
          [](Trace& trace, const Tensor& from, const Tensor& to, std::optional<bool> accumulate) {
            return from.view.dtype == to.view.dtype &&
                   trace.recorder.retarget(from.view, to.view, accumulate);
          },
          nb::arg("old"), nb::arg("new"), nb::arg("accumulate") = nb::none())
      .def("caller", [](Trace& trace) { return place(trace, trace.caller()); })
      .def("last_line",
           [](const Trace& trace) {
             const auto& all = trace.recorder.program().instructions;
             return place(trace, all.empty() ? 0 : all.back()->source);
           })
      .def("with_role",
           [](const Trace& trace, const std::string& role) {
             return trace.recorder.program().with_role(role_named(role));
           })
      .def("labels", [](const Trace& trace) { return trace.recorder.program().labels; })
      .def("reports",
           // Severity (0: warning), where, text of what was reported while it was recorded.
           [](const Trace& trace) {
             std::vector<std::tuple<int, std::string, std::string>> all;
             for (const chip::Diagnostic& d : trace.diagnostics.all())
               all.emplace_back(static_cast<int>(d.severity), d.where, d.text());
             return all;
           })
      .def("written",
           // Numbers of the tensors that some instruction writes.
           [](const Trace& trace) {
             const chip::Program& program = trace.recorder.program();
             std::vector<bool> written(program.tensors.size());
             for (const auto& instruction : program.instructions)
               for (const chip::OperandView& operand : chip::operand_views(*instruction, program))
                 if (operand.access != chip::Access::read) written[operand.view->tensor] = true;
             return written;
           })
      .def("text",
           [](const Trace& trace) {
             std::vector<std::string> lines;
             for (const auto& instruction : trace.recorder.program().instructions)
               lines.push_back(chip::to_string(*instruction, trace.recorder.program()));
             return lines;
           })
      .def("program_bytes", [](const Trace& trace) {
        const std::string bytes = chip::serialise(trace.recorder.program());
        return nb::bytes(bytes.data(), bytes.size());
      });

  m.def("enter", [](const std::shared_ptr<Trace>& trace) { traces.push_back(trace); });
  m.def("leave", [] {
    if (!traces.empty()) traces.pop_back();
  });
  m.def("current", []() -> std::shared_ptr<Trace> { return traces.empty() ? nullptr : traces.back(); });
}

}  // namespace headway::python
