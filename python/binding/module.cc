// headway._chip: the simulated chip for Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/home.h"
#include "chip/instruction.h"
#include "objects.h"

namespace headway::python {

namespace {

// Python's tokens and exception classes. They live as long as the interpreter.
struct Registered {
  std::vector<nb::object> dtypes, buffers;
  nb::object kernel_error, unsupported, input_error, system_error, bug;
  std::string package;  // folder of this package's sources, with a slash at its end
};
Registered& registered() {
  static Registered* all = new Registered;  // never destroyed: the interpreter is gone first
  return *all;
}

nb::object error_class(const std::exception& error) {
  const Registered& all = registered();
  if (dynamic_cast<const KernelError*>(&error)) return all.kernel_error;
  if (dynamic_cast<const Unsupported*>(&error)) return all.unsupported;
  if (dynamic_cast<const InputError*>(&error)) return all.input_error;
  if (dynamic_cast<const SystemError*>(&error)) return all.system_error;
  return all.bug;
}

void raise(const Error& error) {
  const nb::object type = error_class(error);
  PyErr_SetString(type.is_valid() ? type.ptr() : PyExc_RuntimeError, error.what());
}

}  // namespace

void set_python_error() {
  try {
    throw;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (nb::builtin_exception& error) {
    PyErr_SetString(error.type() == nb::exception_type::type_error    ? PyExc_TypeError
                    : error.type() == nb::exception_type::index_error ? PyExc_IndexError
                                                                      : PyExc_ValueError,
                    error.what());
  } catch (const Error& error) {
    raise(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

nb::object dtype_object(DType dtype) {
  const auto& all = registered().dtypes;
  const auto code = static_cast<std::size_t>(dtype);
  return code < all.size() ? all[code] : nb::none();
}

DType dtype_of(nb::handle object) {
  const auto& all = registered().dtypes;
  for (std::size_t code = 0; code < all.size(); ++code)
    if (all[code].ptr() == object.ptr()) return static_cast<DType>(code);
  throw nb::type_error(("a dtype is wanted (nl.float32 ...), not " + described(object)).c_str());
}

nb::object buffer_object(chip::Buffer buffer) {
  return registered().buffers.at(static_cast<std::size_t>(buffer));
}

chip::Buffer buffer_of(nb::handle object) {
  const auto& all = registered().buffers;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].ptr() == object.ptr()) return static_cast<chip::Buffer>(i);
  throw nb::type_error(
      ("a buffer is wanted (nl.sbuf, nl.psum, nl.shared_hbm ...), not " + described(object)).c_str());
}

std::string described(nb::handle object) {
  if (const Tensor* tensor = as_tensor(object.ptr()))
    return "the tensor " + to_string(tensor->view, tensor->tensor());
  std::string text = Py_TYPE(object.ptr())->tp_name;
  if (nb::hasattr(object, "shape"))
    text += " of shape " + std::string(nb::str(nb::getattr(object, "shape")).c_str());
  else if (PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()) || PyUnicode_Check(object.ptr()))
    text += " " + std::string(nb::str(nb::repr(object)).c_str());
  return text;
}

bool is_ours(PyCodeObject* code) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  const std::string& package = registered().package;
  return file && !package.empty() && std::strncmp(file, package.c_str(), package.size()) == 0;
}

namespace {

PyMethodDef kRecord = {
    "record", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(record)), METH_FASTCALL,
    "record(kind, engine, name, *fields) -> int\n\nRecords an instruction into the current trace. "
    "Fields are in the order of the C++ instruction's `visit`."};

int kind(const std::string& name) {
  const auto kinds = chip::instruction_set();
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i].name == name) return static_cast<int>(i);
  throw nb::value_error(("no instruction is named " + name).c_str());
}

}  // namespace

}  // namespace headway::python

NB_MODULE(_chip, m) {
  using namespace headway::python;
  nb::register_exception_translator(
      [](const std::exception_ptr& pointer, void*) {
        try {
          std::rethrow_exception(pointer);
        } catch (const headway::Error& error) {
          raise(error);
        }
      },
      nullptr);
  m.def("register_dtypes", [](nb::list objects) {
    registered().dtypes.clear();
    for (nb::handle object : objects) registered().dtypes.push_back(nb::borrow(object));
  });
  m.def("register_buffers", [](nb::list objects) {
    registered().buffers.clear();
    for (nb::handle object : objects) registered().buffers.push_back(nb::borrow(object));
  });
  m.def("register_errors",
        [](nb::object kernel, nb::object unsupported, nb::object input, nb::object system, nb::object bug) {
          Registered& all = registered();
          all.kernel_error = kernel;
          all.unsupported = unsupported;
          all.input_error = input;
          all.system_error = system;
          all.bug = bug;
        });
  m.def("set_home", [](const std::string& folder) { headway::set_home(folder); });
  m.def("register_package", [](const std::string& folder) { registered().package = folder; });
  m.def("dtype_names", [] {
    std::vector<std::string> names;
    for (int code = 0; code < headway::kDTypes; ++code)
      names.emplace_back(headway::name_of(static_cast<headway::DType>(code)));
    return names;
  });
  m.def("dtype_size", [](int code) { return headway::size_of(static_cast<headway::DType>(code)); });
  m.def("kind", &kind, nb::arg("name"));
  m.def("kinds", [] {
    std::vector<std::string> names;
    for (const headway::chip::Kind& kind : headway::chip::instruction_set()) names.emplace_back(kind.name);
    return names;
  });
  PyObject* function = PyCFunction_NewEx(&kRecord, nullptr, nullptr);
  m.attr("record") = nb::steal(function);
  bind_tensor(m);
  bind_trace(m);
  bind_launch(m);
  bind_profile(m);
}
