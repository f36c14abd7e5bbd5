// Tensors as kernels see them: views of memory and the algebra of views (nki.tensor, NKI 0.5 and later).
#include <fmt/format.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "objects.h"
#include "rearrange.h"

namespace headway::python {
namespace {

using chip::DynamicOffset;
using chip::Pair;
using chip::View;

PyTypeObject* tensor_type = nullptr;
PyTypeObject* register_type = nullptr;

// Runs view algebra; what is refused is said with the view it was asked of and the kernel's line.
template <class Algebra>
View algebra(const Tensor& t, Algebra&& work) {
  try {
    return work(t.view, t.on_chip());
  } catch (const KernelError& error) {
    const std::string where = t.program().where(t.trace->caller());
    throw KernelError(fmt::format("{}{}: {}", where.empty() ? "" : where + ": ",
                                  to_string(t.view, t.tensor()), error.what()));
  }
}

template <class Algebra>
Tensor derived(const Tensor& t, Algebra&& work) {
  if (t.empty >= 0) throw KernelError(fmt::format("extent {} of the view is empty [view]", t.empty));
  return {t.trace, algebra(t, std::forward<Algebra>(work)), t.base, t.reported};
}

int dimension(const Tensor& t, std::int64_t dim) {
  return static_cast<int>(dim < 0 ? dim + t.view.rank : dim);
}

nb::tuple shape_of(const Tensor& t) {
  const View& view = t.view;
  nb::object result = nb::steal(PyTuple_New(view.rank));
  for (int d = 0; d < view.rank; ++d)
    PyTuple_SET_ITEM(result.ptr(), d,
                     PyLong_FromLong(d == t.empty ? 0 : view.pairs[static_cast<std::size_t>(d)].count));
  return nb::borrow<nb::tuple>(result);
}

// Elements of a partition's row of the storage, counted in the view's dtype.
std::int64_t row_of(const Tensor& t) { return t.tensor().row_bytes() / size_of(t.view.dtype); }

std::vector<std::int64_t> strides_of(const Tensor& t) {
  std::vector<std::int64_t> strides;
  for (int d = 0; d < t.view.rank; ++d) {
    const Pair& p = t.view.pairs[static_cast<std::size_t>(d)];
    strides.push_back(d == 0 && t.on_chip() ? row_of(t) : p.step);
  }
  return strides;
}

std::int64_t offset_of(const Tensor& t) {
  return t.view.offset + (t.on_chip() ? t.view.partition * row_of(t) : 0);
}

bool is_contiguous(const Tensor& t) {
  std::int64_t step = 1;
  for (int d = t.view.rank - 1; d >= (t.on_chip() ? 1 : 0); --d) {
    const Pair& p = t.view.pairs[static_cast<std::size_t>(d)];
    if (p.count != 1 && p.step != step) return false;
    step *= p.count;
  }
  return true;
}

bool is_all(const Tensor& t) {
  return t.view.dynamic < 0 && t.view.partition == 0 && t.view.offset == 0 && is_contiguous(t) &&
         t.view.elements() * size_of(t.view.dtype) == t.tensor().row_bytes() * t.tensor().partitions();
}

// --- Dynamic offsets ---

View moved(const Tensor& t, View view, DynamicOffset offset) {
  if (view.dynamic >= 0) throw KernelError("a view has one dynamic offset at most [dynamic-offset]");
  if (offset.kind == DynamicOffset::Kind::from_vector) view.pairs[0].step = chip::kByIndex;
  view.dynamic = t.trace->recorder.add_dynamic(offset);
  return view;
}

// An offset of a register's or a [1, 1] tensor's value times `stride` elements.
DynamicOffset dynamic_by(nb::handle index, std::int64_t stride) {
  if (const Register* reg = as_register(index.ptr()))
    return {DynamicOffset::Kind::from_register, reg->reg, {}, stride};
  if (const Tensor* tensor = as_tensor(index.ptr()))
    return {DynamicOffset::Kind::from_scalar, {}, tensor->view, stride};
  throw nb::type_error(
      ("a dynamic offset is a register or a [1, 1] tensor in SBUF, not " + described(index)).c_str());
}

bool is_dynamic_index(PyObject* object) { return as_register(object) || as_tensor(object); }

// Elements that one step in `dim` of the view moves.
std::int64_t step_of(const View& view, int dim) {
  const Pair& p = view.pairs[static_cast<std::size_t>(dim)];
  // An extent of one has no step of its own; the view's next ones say what it would be.
  if (p.count > 1 || dim + 1 >= view.rank) return p.step;
  const Pair& inner = view.pairs[static_cast<std::size_t>(dim) + 1];
  return static_cast<std::int64_t>(inner.step) * inner.count;
}

// --- t[key] ---

std::int64_t whole_number(PyObject* object) {
  const Py_ssize_t value = PyNumber_AsSsize_t(object, PyExc_OverflowError);
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

// Applies one entry of a key to dimension `dim` of `view`. True where the dimension stays.
bool index(const Tensor& t, View& view, int dim, PyObject* entry, bool on_chip, int* empty = nullptr) {
  const int before = view.rank;
  const std::int64_t extent = view.pairs[static_cast<std::size_t>(dim)].count;
  if (PyLong_CheckExact(entry)) {
    std::int64_t at = whole_number(entry);
    if (at < 0) at += extent;
    view = chip::select(view, dim, at, on_chip);
    return view.rank == before;
  }
  if (PySlice_Check(entry)) {
    auto* slice = reinterpret_cast<PySliceObject*>(entry);
    // A register may stand where a slice starts: t[reg : reg + n] isn't computable, t[ds(reg, n)] is.
    std::int64_t start = 0, stop = extent, step = 1;
    if (slice->start != Py_None) start = whole_number(slice->start);
    if (slice->stop != Py_None) stop = whole_number(slice->stop);
    if (slice->step != Py_None) step = whole_number(slice->step);
    if (start == 0 && stop == extent && step == 1) return true;
    if (start < 0) start += extent;
    if (stop < 0) stop += extent;
    if (start == stop && empty && start >= 0 && start <= extent) {
      *empty = dim;
      start = std::min(start, extent - 1);
      stop = start + 1;
      step = 1;
    }
    view = chip::slice(view, dim, start, stop, step, on_chip);
    return true;
  }
  if (is_dynamic_index(entry)) {
    const std::int64_t step = step_of(view, dim);
    view = chip::select(view, dim, 0, on_chip);
    view = moved(t, view, dynamic_by(entry, step));
    return view.rank == before;
  }
  if (nb::hasattr(entry, "start") && nb::hasattr(entry, "size")) {  // nl.ds
    const nb::object start = nb::getattr(entry, "start"), size = nb::getattr(entry, "size");
    const std::int64_t count = whole_number(size.ptr());
    if (is_dynamic_index(start.ptr())) {
      const std::int64_t step = step_of(view, dim);
      view = chip::slice(view, dim, 0, count, 1, on_chip);
      view = moved(t, view, dynamic_by(start, step));
    } else {
      std::int64_t first = whole_number(start.ptr());
      const bool nothing = count == 0 && empty && first >= 0 && first <= extent;
      if (nothing) {
        *empty = dim;
        first = std::min(first, extent - 1);
      }
      view = chip::slice(view, dim, first, first + (nothing ? 1 : count), 1, on_chip);
    }
    return true;
  }
  if (PyIndex_Check(entry) && !nb::hasattr(entry, "__len__")) {
    std::int64_t at = whole_number(entry);
    if (at < 0) at += extent;
    view = chip::select(view, dim, at, on_chip);
    return view.rank == before;
  }
  throw nb::type_error(
      fmt::format("an index is an int, a slice, nl.ds(start, size), a register, None or ..., not {}",
                  described(entry))
          .c_str());
}

Tensor subscript(const Tensor& t, nb::handle key) {
  PyObject* one[] = {key.ptr()};
  PyObject** entries = one;
  Py_ssize_t count = 1;
  if (PyTuple_Check(key.ptr())) {
    entries = &PyTuple_GET_ITEM(key.ptr(), 0);
    count = PyTuple_GET_SIZE(key.ptr());
  }
  int empty = -1;
  Tensor result = derived(t, [&](View view, bool on_chip) {
    int taken = 0;
    bool rest = false;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (entries[i] == Py_Ellipsis) {
        if (rest) throw KernelError("an index has one ... at most [view]");
        rest = true;
      } else if (entries[i] != Py_None) {
        ++taken;
      }
    }
    if (taken > view.rank)
      throw KernelError(fmt::format("{} indices for a view of {} extents [view]", taken, view.rank));
    const int whole = view.rank - taken;
    int dim = 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (entries[i] == Py_Ellipsis) {
        dim += whole;
      } else if (entries[i] == Py_None) {
        view = chip::expand(view, dim++, on_chip);
      } else if (index(t, view, dim, entries[i], on_chip && dim == 0, &empty)) {
        ++dim;
      }
    }
    // On chip there are partitions and at least one extent more.
    return on_chip && view.rank < 2 ? chip::expand(view, 1, true) : view;
  });
  result.empty = empty;
  return result;
}

// --- Methods ---

Shape numbers(nb::handle sequence) {
  Shape result;
  for (nb::handle item : nb::iter(sequence)) result.push_back(whole_number(item.ptr()));
  return result;
}

// A shape with at most one -1, which stands for what is left of `elements`.
Shape completed(Shape shape, std::int64_t all) {
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (std::int64_t& extent : shape) {
    if (extent == -1 && !open)
      open = &extent;
    else
      known *= extent;
  }
  if (open && known > 0 && all % known == 0) *open = all / known;
  return shape;
}

Tensor reshape(const Tensor& t, nb::args args) {
  Shape shape = nb::len(args) == 1 && !PyLong_Check(args[0].ptr()) ? numbers(args[0]) : numbers(args);
  shape = completed(std::move(shape), t.view.elements());
  Tensor result =
      derived(t, [&](const View& view, bool on_chip) { return chip::reshape(view, shape, on_chip); });
  if (is_all(t)) result.base = std::make_shared<const Shape>(shape);
  return result;
}

Tensor reshape_dim(const Tensor& t, std::int64_t dim, nb::handle extents) {
  Shape shape = t.view.shape();
  const int d = dimension(t, dim);
  if (d < 0 || d >= t.view.rank)
    throw KernelError(fmt::format("a view of {} extents has no extent {} [view]", t.view.rank, dim));
  const Shape parts = completed(numbers(extents), shape[static_cast<std::size_t>(d)]);
  shape.erase(shape.begin() + d);
  shape.insert(shape.begin() + d, parts.begin(), parts.end());
  return derived(t, [&](const View& view, bool on_chip) { return chip::reshape(view, shape, on_chip); });
}

Tensor flatten_dims(const Tensor& t, std::int64_t first, std::int64_t last) {
  const int a = dimension(t, first), b = dimension(t, last);
  if (a < 0 || b < a || b >= t.view.rank)
    throw KernelError(
        fmt::format("extents {} to {} are none of a view of {} extents [view]", first, last, t.view.rank));
  Shape shape = t.view.shape();
  std::int64_t merged = 1;
  for (int d = a; d <= b; ++d) merged *= shape[static_cast<std::size_t>(d)];
  shape.erase(shape.begin() + a, shape.begin() + b + 1);
  shape.insert(shape.begin() + a, merged);
  return derived(t, [&](const View& view, bool on_chip) { return chip::reshape(view, shape, on_chip); });
}

Tensor reinterpret(const Tensor& t, nb::handle dtype) {
  const DType to = dtype_of(dtype);
  Tensor result =
      derived(t, [&](const View& view, bool on_chip) { return chip::reinterpret(view, to, on_chip); });
  result.reported = to;
  if (is_all(t)) result.base = std::make_shared<const Shape>(result.view.shape());
  return result;
}

Tensor select(const Tensor& t, std::int64_t dim, nb::handle at) {
  const int d = dimension(t, dim);
  return derived(t, [&](View view, bool on_chip) {
    if (d < 0 || d >= view.rank) throw KernelError(fmt::format("there is no extent {} [view]", dim));
    index(t, view, d, at.ptr(), on_chip);
    return view;
  });
}

Tensor vector_select(const Tensor& t, std::int64_t dim, const Tensor& offsets) {
  return derived(t, [&](View view, bool on_chip) {
    if (dim != 0 || on_chip)
      throw KernelError("rows are selected by a vector along extent 0 of HBM only [dynamic-offset]");
    const std::int64_t stride = step_of(view, 0);
    view.pairs[0].count = static_cast<std::int32_t>(offsets.view.elements());
    return moved(t, view, {DynamicOffset::Kind::from_vector, {}, offsets.view, stride});
  });
}

// A pattern over the storage, outermost pair first, that ignores the view it is asked of but for its dtype
// and, where no offset is given, its offset.
Tensor ap(const Tensor& t, nb::handle pattern, nb::handle offset, nb::handle scalar_offset,
          nb::handle vector_offset, std::int64_t indirect_dim, nb::handle dtype) {
  std::vector<Pair> pairs;
  for (nb::handle pair : nb::iter(pattern)) {
    const Shape numbers_of_pair = numbers(pair);
    if (numbers_of_pair.size() != 2)
      throw KernelError(fmt::format("a pattern is made of [step, count] pairs, not of {} numbers [view]",
                                    numbers_of_pair.size()));
    pairs.push_back(
        {static_cast<std::int32_t>(numbers_of_pair[0]), static_cast<std::int32_t>(numbers_of_pair[1])});
  }
  const DType to = dtype.is_none() ? t.view.dtype : dtype_of(dtype);
  const std::int64_t first =
      offset.is_none() ? offset_of(t) * size_of(t.view.dtype) / size_of(to) : whole_number(offset.ptr());
  Tensor result = derived(t, [&](const View&, bool) {
    View view = chip::access_pattern(t.tensor(), t.view.tensor, pairs, first, to);
    const auto stride_of = [&](std::int64_t dim) {
      std::int64_t stride = 1;
      for (std::size_t d = static_cast<std::size_t>(dim) + 1; d < t.base->size(); ++d) stride *= (*t.base)[d];
      return stride;
    };
    if (!scalar_offset.is_none() && !vector_offset.is_none())
      throw KernelError("a pattern has a scalar_offset or a vector_offset, not both [dynamic-offset]");
    if (indirect_dim < 0 || indirect_dim >= static_cast<std::int64_t>(t.base->size()))
      throw KernelError(fmt::format("indirect_dim is {}, the tensor has {} extents [dynamic-offset]",
                                    indirect_dim, t.base->size()));
    if (!scalar_offset.is_none()) return moved(t, view, dynamic_by(scalar_offset, stride_of(indirect_dim)));
    if (!vector_offset.is_none()) {
      const Tensor* rows = as_tensor(vector_offset.ptr());
      if (!rows)
        throw nb::type_error(
            ("vector_offset is a tensor [P, 1] in SBUF, not " + described(vector_offset)).c_str());
      if (indirect_dim != 0)
        throw KernelError(
            fmt::format("a vector_offset moves along indirect_dim 0, not {} [dynamic-offset]", indirect_dim));
      return moved(t, view, {DynamicOffset::Kind::from_vector, {}, rows->view, stride_of(0)});
    }
    // The view this was asked of moves on.
    if (offset.is_none() && t.view.dynamic >= 0 && pairs.size() > 0) {
      view.dynamic = t.view.dynamic;
      if (t.view.pairs[0].step == chip::kByIndex) view.pairs[0].step = chip::kByIndex;
    }
    return view;
  });
  if (!dtype.is_none()) result.reported = to;
  return result;
}

std::vector<std::vector<std::int64_t>> get_pattern(const Tensor& t) {
  std::vector<std::vector<std::int64_t>> pattern;
  const std::vector<std::int64_t> strides = strides_of(t);
  for (int d = 0; d < t.view.rank; ++d)
    pattern.push_back(
        {strides[static_cast<std::size_t>(d)], t.view.pairs[static_cast<std::size_t>(d)].count});
  return pattern;
}

Tensor permute(const Tensor& t, nb::args args) {
  const Shape order = nb::len(args) == 1 && !PyLong_Check(args[0].ptr()) ? numbers(args[0]) : numbers(args);
  std::vector<int> dims;
  for (std::int64_t dim : order) dims.push_back(dimension(t, dim));
  return derived(t, [&](const View& view, bool on_chip) { return chip::permute(view, dims, on_chip); });
}

Tensor rearranged(const Tensor& t, nb::handle from, nb::handle to, nb::handle sizes) {
  const Rearrangement r = rearrangement(from, to, sizes, t.view.shape());
  return derived(t, [&](View view, bool on_chip) {
    view = chip::reshape(view, r.split, on_chip);
    view = chip::permute(view, r.order, on_chip);
    return chip::reshape(view, r.merged, on_chip);
  });
}

Tensor whole(const Tensor& t) {
  return {t.trace, chip::whole(t.tensor(), t.view.tensor), std::make_shared<const Shape>(t.tensor().shape),
          t.reported};
}

nb::object address_of(const Tensor& t) {
  if (!t.tensor().address) return nb::none();
  return nb::make_tuple(t.tensor().address->partition, t.tensor().address->byte);
}

}  // namespace

const Tensor* as_tensor(PyObject* object) {
  return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type)
             ? nb::inst_ptr<Tensor>(nb::handle(object))
             : nullptr;
}
const Register* as_register(PyObject* object) {
  return Py_TYPE(object) == register_type ? nb::inst_ptr<Register>(nb::handle(object)) : nullptr;
}

void bind_tensor(nb::module_& m) {
  auto tensor = nb::class_<Tensor>(m, "Tensor", nb::dynamic_attr(),
                                   "A view of a tensor of the kernel that is being recorded.");
  tensor_type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
  tensor.def_prop_ro("shape", [](const Tensor& t) { return shape_of(t); })
      .def_prop_ro("dtype", [](const Tensor& t) { return dtype_object(t.reported); })
      .def_prop_ro("stored_dtype", [](const Tensor& t) { return dtype_object(t.view.dtype); })
      .def_prop_ro("buffer", [](const Tensor& t) { return buffer_object(t.tensor().buffer); })
      .def_prop_ro("name", [](const Tensor& t) { return t.tensor().name; })
      .def_prop_ro("ndim", [](const Tensor& t) { return static_cast<int>(t.view.rank); })
      .def_prop_ro("size", [](const Tensor& t) { return t.empty < 0 ? t.view.elements() : 0; })
      .def_prop_ro("strides", [](const Tensor& t) { return nb::tuple(nb::cast(strides_of(t))); })
      .def_prop_ro("offset", &offset_of)
      .def_prop_ro("address", &address_of)
      .def_prop_ro("id", [](const Tensor& t) { return t.view.tensor; })
      .def_prop_ro("trace", [](const Tensor& t) { return t.trace; })
      .def_prop_ro("role", [](const Tensor& t) { return static_cast<int>(t.tensor().role); })
      .def_prop_ro("is_dynamic", [](const Tensor& t) { return t.view.dynamic >= 0; })
      .def("same_view",
           [](const Tensor& a, const Tensor& b) { return a.trace == b.trace && a.view == b.view; })
      .def("__getitem__", &subscript, nb::arg("key"))
      .def("__len__", [](const Tensor& t) { return t.view.rows(); })
      .def("__repr__",
           [](const Tensor& t) {
             return "<tensor " + to_string(t.view, t.tensor()) + " in " +
                    std::string(chip::name_of(t.tensor().buffer)) + ">";
           })
      .def(
          "slice",
          [](const Tensor& t, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
            return derived(t, [&](const View& view, bool on_chip) {
              return chip::slice(view, dimension(t, dim), start, end, step, on_chip);
            });
          },
          nb::arg("dim"), nb::arg("start"), nb::arg("end"), nb::arg("step") = 1)
      .def("select", &select, nb::arg("dim"), nb::arg("index"))
      .def("vector_select", &vector_select, nb::arg("dim"), nb::arg("offsets"))
      .def("permute", &permute)
      .def(
          "broadcast",
          [](const Tensor& t, std::int64_t dim, std::int64_t size) {
            return derived(t, [&](const View& view, bool on_chip) {
              return chip::broadcast(view, dimension(t, dim), size, on_chip);
            });
          },
          nb::arg("dim"), nb::arg("size"))
      .def(
          "expand_dim",
          [](const Tensor& t, std::int64_t dim) {
            return derived(t, [&](const View& view, bool on_chip) {
              return chip::expand(view, static_cast<int>(dim < 0 ? dim + view.rank + 1 : dim), on_chip);
            });
          },
          nb::arg("dim"))
      .def(
          "squeeze_dim",
          [](const Tensor& t, std::int64_t dim) {
            return derived(t, [&](const View& view, bool on_chip) {
              return chip::squeeze(view, dimension(t, dim), on_chip);
            });
          },
          nb::arg("dim"))
      .def("reshape", &reshape)
      .def("reshape_dim", &reshape_dim, nb::arg("dim"), nb::arg("shape"))
      .def("flatten_dims", &flatten_dims, nb::arg("start_dim"), nb::arg("end_dim"))
      .def("rearrange", &rearranged, nb::arg("src_pattern"), nb::arg("dst_pattern"),
           nb::arg("fixed_sizes") = nb::none())
      .def("view", &reinterpret, nb::arg("dtype"))
      .def("reinterpret_cast", &reinterpret, nb::arg("dtype"))
      .def("ap", &ap, nb::arg("pattern"), nb::arg("offset") = nb::none(),
           nb::arg("scalar_offset") = nb::none(), nb::arg("vector_offset") = nb::none(),
           nb::arg("indirect_dim") = 0, nb::arg("dtype") = nb::none())
      .def("indirect",
           [](const Tensor&, nb::args, nb::kwargs) -> Tensor {
             throw Unsupported(
                 "indirection along the free dimensions exists from NeuronCore-v4 (trn3) on and isn't "
                 "modelled [indirection]");
           })
      .def("get_pattern", &get_pattern)
      .def("is_contiguous", &is_contiguous)
      .def("is_indirect", [](const Tensor& t) { return t.view.dynamic >= 0; })
      .def("whole", &whole);

  auto reg = nb::class_<Register>(
      m, "Register", "A register of the sequencers: 32 bits, its value is known when the kernel runs.");
  register_type = reinterpret_cast<PyTypeObject*>(reg.ptr());
  reg.def_prop_ro("id", [](const Register& r) { return r.reg.id; })
      .def_prop_ro("trace", [](const Register& r) { return r.trace; })
      .def_ro("frozen", &Register::frozen)
      .def("__repr__", [](const Register& r) { return fmt::format("<register {}>", r.reg.id); });
}

}  // namespace headway::python
