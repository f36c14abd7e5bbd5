// The C++ side of what Python sees: recordings, the tensors and registers of a recording, and how tokens
// (dtypes, buffers) and errors of the two languages correspond.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "chip/diagnostics.h"
#include "chip/recorder.h"
#include "chip/spec.h"

namespace headway::python {

namespace nb = nanobind;

// One core's recording. Tensors and registers of it keep it alive.
struct Trace {
  Trace(std::string kernel, std::shared_ptr<const chip::Spec> spec, int program_id, int num_programs);

  std::shared_ptr<const chip::Spec> spec;
  chip::Diagnostics diagnostics;
  chip::Recorder recorder;
  // Instructions that may be recorded; a kernel that doesn't end is stopped there.
  std::uint64_t max_instructions = std::uint64_t{1} << 62;

  // The line of the kernel that is calling: of the innermost Python frame outside this package.
  chip::SourceId caller();

 private:
  struct Site {
    PyCodeObject* code;
    int instruction;
    bool operator==(const Site&) const = default;
  };
  struct SiteHash {
    std::size_t operator()(const Site& site) const {
      return std::hash<const void*>()(site.code) * 31 + static_cast<std::size_t>(site.instruction);
    }
  };
  std::unordered_map<Site, chip::SourceId, SiteHash> sites_;
};

// A view of a tensor: NKI's NkiTensor.
struct Tensor {
  std::shared_ptr<Trace> trace;
  chip::View view;
  // The shape that `ap` counts rows of: the tensor's, or that of the last reshape of all of it.
  std::shared_ptr<const Shape> base;
  // What the kernel declared; memory may be wider (float32 in place of all floats, NKI_PRECISE_FP=0).
  DType reported = DType::f32;
  // The dimension that has no elements: what a core gets that has nothing to do. Such a view can be made and asked for its
  // shape; no instruction takes it. `view` then has an extent of 1 there.
  int empty = -1;

  const chip::Program& program() const { return trace->recorder.program(); }
  const chip::Tensor& tensor() const { return program().tensors[view.tensor]; }
  bool on_chip() const { return chip::is_on_chip(tensor().buffer); }
};

struct Register {
  std::shared_ptr<Trace> trace;
  chip::Register reg;
  bool frozen = false;  // the variable of a loop
};

// The recording that instructions go to, of this thread; null outside a kernel.
Trace* current();

// Python's objects for dtypes and buffers, which headway.nki registers.
nb::object dtype_object(DType dtype);
DType dtype_of(nb::handle object);  // TypeError for what is none
nb::object buffer_object(chip::Buffer buffer);
chip::Buffer buffer_of(nb::handle object);

// The instance inside a Python object, or null where it is of another type. No conversions.
const Tensor* as_tensor(PyObject* object);
const Register* as_register(PyObject* object);

// "numpy.ndarray [128, 512]": what was given, for messages.
std::string described(nb::handle object);

// Whether the code is of this package rather than of a kernel.
bool is_ours(PyCodeObject* code);

// record(kind, engine, name, *fields): the instruction's number. A plain C function, as it is called once for
// each instruction of a kernel.
PyObject* record(PyObject* self, PyObject* const* args, Py_ssize_t count);

// Sets the Python error that stands for the C++ exception being handled.
void set_python_error();

void bind_tensor(nb::module_& m);
void bind_trace(nb::module_& m);
void bind_launch(nb::module_& m);
void bind_profile(nb::module_& m);

}  // namespace headway::python
