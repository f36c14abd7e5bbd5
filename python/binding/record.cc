// record(): Python values become the fields of an instruction.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "objects.h"

namespace headway::python {
namespace {

using chip::Access;
using chip::Scalar;
using chip::View;

// The position of a token in a list of names: of an Enum member or an operator by its `name`, of a string, of
// a function (np.add) by its `__name__`.
class Tokens {
 public:
  // -1 where no name fits.
  int position(PyObject* token, std::span<const std::string_view> names) {
    const auto known = known_.find({token, names.data()});
    if (known != known_.end()) return known->second;
    int position = -1;
    if (PyUnicode_Check(token)) return find(text(token), names);  // strings come and go
    for (const char* attribute : {"name", "__name__"}) {
      PyObject* name = PyObject_GetAttrString(token, attribute);
      if (!name) {
        PyErr_Clear();
        continue;
      }
      position = PyUnicode_Check(name) ? find(text(name), names) : -1;
      Py_DECREF(name);
      if (position >= 0) break;
    }
    if (position >= 0) {
      Py_INCREF(token);  // its address is the key
      known_.emplace(Key{token, names.data()}, position);
    }
    return position;
  }

 private:
  static std::string_view text(PyObject* string) {
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(string, &size);
    return data ? std::string_view(data, static_cast<std::size_t>(size)) : std::string_view();
  }
  static int find(std::string_view name, std::span<const std::string_view> names) {
    // NumPy's names for the same functions.
    if (name == "absolute") name = "abs";
    if (name == "bitwise_not" || name == "bitwise_invert") name = "invert";
    if (name == "max" || name == "amax") name = "maximum";
    if (name == "min" || name == "amin") name = "minimum";
    if (name == "sum") name = "add";
    if (name == "prod") name = "multiply";
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return static_cast<int>(i);
    return -1;
  }
  struct Key {
    PyObject* token;
    const std::string_view* names;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.token) ^ (std::hash<const void*>()(key.names) << 1);
    }
  };
  std::unordered_map<Key, int, Hash> known_;
};

Tokens& tokens() {
  static auto* all = new Tokens;  // under the interpreter lock
  return *all;
}

class Arguments : public chip::Fields {
 public:
  Arguments(const Trace& trace, std::string_view instruction, PyObject* const* values, Py_ssize_t count)
      : trace_(trace), instruction_(instruction), values_(values), count_(count) {}

  bool done() const { return next_ == count_; }

  void view(std::string_view name, View& view, Access) override { view = tensor(name, take(name)); }
  void views(std::string_view name, std::vector<View>& views, Access) override {
    PyObject* value = take(name);
    views.clear();
    if (value == Py_None) return;
    if (as_tensor(value)) {
      views.push_back(tensor(name, value));
      return;
    }
    if (!PyList_Check(value) && !PyTuple_Check(value)) wrong(name, "a list of tensors", value);
    for (nb::handle item : nb::iter(nb::handle(value))) views.push_back(tensor(name, item.ptr()));
  }
  void optional_view(std::string_view name, std::optional<View>& view, Access) override {
    PyObject* value = take(name);
    if (value == Py_None)
      view.reset();
    else
      view = tensor(name, value);
  }
  void scalar(std::string_view name, Scalar& scalar) override {
    PyObject* value = take(name);
    if (PyFloat_CheckExact(value)) {
      scalar = Scalar(PyFloat_AS_DOUBLE(value));
    } else if (as_tensor(value)) {
      scalar = Scalar(tensor(name, value));
    } else if (PyLong_Check(value) || (PyIndex_Check(value) && !nb::hasattr(value, "__len__"))) {
      scalar = Scalar(bits32(name, value));
    } else if (PyNumber_Check(value) && !nb::hasattr(value, "__len__")) {
      scalar = Scalar(real(name, value));
    } else {
      wrong(name, "a number or a tensor [P, 1]", value);
    }
  }
  void reg(std::string_view name, chip::Register& reg, Access access) override {
    PyObject* value = take(name);
    const Register* given = as_register(value);
    if (!given) wrong(name, "a register (nisa.register_alloc)", value);
    if (given->trace.get() != &trace_) foreign(name, "register");
    if (access != Access::read && given->frozen && instruction_.starts_with("register_"))
      throw KernelError(fmt::format("{}, {}: the variable of a loop can't be written [frozen-register]",
                                    instruction_, name));
    reg = given->reg;
  }
  void register_or(std::string_view name, chip::RegisterOr& value) override {
    PyObject* given = take(name);
    if (const Register* r = as_register(given)) {
      if (r->trace.get() != &trace_) foreign(name, "register");
      value = r->reg;
    } else {
      value = static_cast<std::int32_t>(whole(name, given));
    }
  }
  void integer(std::string_view name, std::int64_t& value) override { value = whole(name, take(name)); }
  void integers(std::string_view name, std::vector<std::int64_t>& values) override {
    PyObject* value = take(name);
    values.clear();
    if (value != Py_None) flatten(name, value, [&](PyObject* item) { values.push_back(whole(name, item)); });
  }
  void number(std::string_view name, float& value) override {
    value = static_cast<float>(real(name, take(name)));
  }
  void numbers(std::string_view name, std::vector<float>& values) override {
    PyObject* value = take(name);
    values.clear();
    if (value != Py_None)
      flatten(name, value, [&](PyObject* item) { values.push_back(static_cast<float>(real(name, item))); });
  }
  void flag(std::string_view name, bool& value) override {
    PyObject* given = take(name);
    if (given == Py_True || given == Py_False) {
      value = given == Py_True;
      return;
    }
    if (as_tensor(given) || as_register(given)) wrong(name, "True or False", given);
    const int truth = PyObject_IsTrue(given);
    if (truth < 0) throw nb::python_error();
    value = truth != 0;
  }
  bool present(std::string_view, bool) override {
    if (next_ < count_ && values_[next_] != Py_None) return true;
    ++next_;
    return false;
  }
  void optional_flag(std::string_view name, std::optional<bool>& value) override {
    if (!present(name, false)) {
      value.reset();
      return;
    }
    bool on = false;
    flag(name, on);
    value = on;
  }
  void chosen(std::string_view name, int& value, std::span<const std::string_view> names) override {
    value = choice(name, take(name), names);
  }

  int choice(std::string_view name, PyObject* given, std::span<const std::string_view> names) {
    if (PyLong_CheckExact(given)) {
      const std::int64_t position = whole(name, given);
      if (position < 0 || position >= static_cast<std::int64_t>(names.size()))
        wrong(name, fmt::format("one of {}", fmt::join(names, ", ")), given);
      return static_cast<int>(position);
    }
    const int position = tokens().position(given, names);
    if (position < 0) wrong(name, fmt::format("one of {}", fmt::join(names, ", ")), given);
    return position;
  }

 private:
  PyObject* take(std::string_view name) {
    if (next_ >= count_) throw Bug(fmt::format("{}: no value for {}", instruction_, name));
    return values_[next_++];
  }

  [[noreturn]] void wrong(std::string_view name, std::string_view wanted, PyObject* given) const {
    std::string text = described(given);
    if (nb::hasattr(given, "name") && !as_tensor(given))
      text += " '" + std::string(nb::str(nb::getattr(given, "name")).c_str()) + "'";
    throw nb::type_error(
        fmt::format("{}, {}: {} is wanted, not {}", instruction_, name, wanted, text).c_str());
  }
  [[noreturn]] void foreign(std::string_view name, std::string_view what) const {
    throw KernelError(fmt::format("{}, {}: the {} belongs to another call of a kernel [foreign]",
                                  instruction_, name, what));
  }

  const View& tensor(std::string_view name, PyObject* value) const {
    const Tensor* given = as_tensor(value);
    if (!given) wrong(name, "a tensor", value);
    if (given->trace.get() != &trace_) foreign(name, "tensor");
    if (given->empty >= 0)
      throw KernelError(fmt::format("{}, {}: extent {} of the view is empty; instructions work on at least one element [view]",
                                    instruction_, name, given->empty));
    return given->view;
  }
  std::int64_t whole(std::string_view name, PyObject* value) const {
    if (PyLong_CheckExact(value)) {
      const long long number = PyLong_AsLongLong(value);
      if (number == -1 && PyErr_Occurred()) throw nb::python_error();
      return number;
    }
    if (!PyIndex_Check(value) || as_tensor(value)) {
      // 2.0 is a whole number too.
      if (PyFloat_Check(value) && PyFloat_AS_DOUBLE(value) == static_cast<double>(static_cast<std::int64_t>(
                                                                  PyFloat_AS_DOUBLE(value))))
        return static_cast<std::int64_t>(PyFloat_AS_DOUBLE(value));
      wrong(name, "a whole number", value);
    }
    const Py_ssize_t number = PyNumber_AsSsize_t(value, PyExc_OverflowError);
    if (number == -1 && PyErr_Occurred()) throw nb::python_error();
    return number;
  }
  // An immediate of an instruction: 32 bits, signed or not.
  std::int32_t bits32(std::string_view name, PyObject* value) const {
    const std::int64_t number = whole(name, value);
    if (number < INT32_MIN || number > UINT32_MAX) wrong(name, "a number of 32 bits", value);
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(number));
  }
  double real(std::string_view name, PyObject* value) const {
    if (as_tensor(value)) wrong(name, "a number", value);
    const double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) {
      PyErr_Clear();
      wrong(name, "a number", value);
    }
    return number;
  }
  template <class F>
  void flatten(std::string_view name, PyObject* value, const F& item) const {
    if (PyList_Check(value) || PyTuple_Check(value)) {
      for (nb::handle inner : nb::iter(nb::handle(value))) flatten(name, inner.ptr(), item);
    } else {
      item(value);
    }
  }

  const Trace& trace_;
  std::string_view instruction_;
  PyObject* const* values_;
  Py_ssize_t count_, next_ = 0;
};

}  // namespace

PyObject* record(PyObject*, PyObject* const* args, Py_ssize_t count) {
  try {
    Trace* trace = current();
    if (!trace)
      throw KernelError(
          "instructions can only be called inside a kernel: a function decorated with nki.jit [outside]");
    if (count < 3) throw nb::type_error("record(kind, engine, name, *fields)");
    const long number = PyLong_AsLong(args[0]);
    const auto kinds = chip::instruction_set();
    if (number < 0 || number >= static_cast<long>(kinds.size()))
      throw nb::value_error("no such kind of instruction");
    std::unique_ptr<chip::Instruction> instruction = kinds[static_cast<std::size_t>(number)].make();
    const std::size_t recorded = trace->recorder.program().instructions.size();
    if (recorded >= trace->max_instructions)
      throw KernelError(
          fmt::format("the kernel has recorded {} instructions, which is the limit; does it end? "
                      "HEADWAY_MAX_INSTRUCTIONS sets another one [endless]",
                      recorded));
    Arguments arguments(*trace, instruction->name(), args + 3, count - 3);
    instruction->visit(arguments);
    if (!arguments.done()) throw Bug(fmt::format("{}: more values than fields", instruction->name()));
    if (args[1] != Py_None)
      instruction->engine =
          static_cast<chip::Engine>(arguments.choice("engine", args[1], names_of(chip::Engine{})));
    trace->recorder.record(std::move(instruction), trace->caller());
    if (args[2] != Py_None) {
      const char* label = PyUnicode_AsUTF8(args[2]);
      if (!label) throw nb::python_error();
      if (*label) trace->recorder.label(label);
    }
    return PyLong_FromSize_t(recorded);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

}  // namespace headway::python
