"""Functions on tiles. Each records the instructions that the hardware would take for it; results are new tiles in SBUF."""

from __future__ import annotations

import math as _math

from headway import _chip
from headway.nki import buffers, dtypes, isa, operators
from headway.nki.errors import KernelError
from headway.nki.language.memory import copy as _copy
from headway.nki.language.memory import ndarray

Tensor = _chip.Tensor
_FLOATS = ("float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2")


def promoted(a, b) -> dtypes.DType:
    """The type of a result of elements of two types: float before int; of two 16-bit floats float32; fp8 gives way; the wider integer."""
    a, b = dtypes.dtype_of(a), dtypes.dtype_of(b)
    if a is b:
        return a
    a_float, b_float = a.name in _FLOATS, b.name in _FLOATS
    if a_float != b_float:
        return a if a_float else b
    if a_float:
        if a.itemsize != b.itemsize:
            return a if a.itemsize > b.itemsize else b
        return {1: dtypes.bfloat16, 2: dtypes.float32}.get(a.itemsize, dtypes.float32)
    if a.name == "bool":
        return b
    if b.name == "bool":
        return a
    signed = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32}
    if (a.name[0] == "u") == (b.name[0] == "u"):
        return a if a.itemsize > b.itemsize else b
    unsigned, other = (a, b) if a.name[0] == "u" else (b, a)
    width = max(other.itemsize, 2 * unsigned.itemsize)
    return signed.get(width, dtypes.float32)


def _result(x, dtype, shape=None):
    return ndarray(shape or x.shape, dtype if dtype is not None else x.dtype)


def _is_column(t, x) -> bool:
    """One value a partition, where x has more."""
    return t.shape[0] == x.shape[0] and t.size == t.shape[0] and x.size != x.shape[0]


def _as_operand(t):
    """A column as the arithmetic units take it: float32."""
    if t.stored_dtype.name == "float32":
        return t
    return _copy(t, dtypes.float32)


_BITWISE = {"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert"}
_TRUTH = {"equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_xor"}


def _broadcast_pair(x, y):
    """Both with the same shape, where one has extents of 1 the other hasn't (free extents only)."""
    if x.shape == y.shape:
        return x, y
    if x.ndim != y.ndim or x.shape[0] != y.shape[0]:
        if x.size == y.size and x.shape[0] == y.shape[0]:
            return x, y
        raise KernelError(f"tiles of shapes {x.shape} and {y.shape} don't go together: there is no broadcasting of partitions [shape]")
    for dim in range(1, x.ndim):
        if x.shape[dim] != y.shape[dim]:
            if x.shape[dim] == 1:
                x = x.broadcast(dim, y.shape[dim])
            elif y.shape[dim] == 1:
                y = y.broadcast(dim, x.shape[dim])
            else:
                raise KernelError(f"tiles of shapes {x.shape} and {y.shape} don't go together [shape]")
    return x, y


def binary(op: str, x, y, dtype=None, out=None, engine=None):
    """out = x op y; at least one of them a tile, the other a tile, a column [P, 1] or a number."""
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        kind = dtypes.bool_ if op in _TRUTH else promoted(x.dtype, y.dtype)
        on_bits = op in _BITWISE
        if _is_column(y, x) and op != "power":
            out = out if out is not None else _result(x, dtype or kind)
            isa.tensor_scalar(out, x, op, y if on_bits else _as_operand(y), engine=engine)
            return out
        if _is_column(x, y) and op != "power":
            out = out if out is not None else _result(y, dtype or kind)
            isa.tensor_scalar(out, y, op, x if on_bits else _as_operand(x), reverse0=True, engine=engine)
            return out
        x, y = _broadcast_pair(x, y)
        if buffers.is_psum(x.buffer) and buffers.is_psum(y.buffer):
            y = _copy(y)
        out = out if out is not None else _result(x, dtype or kind)
        isa.tensor_tensor(out, x, y, op, engine=engine)
        return out
    tile, number, reverse = (x, y, False) if isinstance(x, Tensor) else (y, x, True)
    if not isinstance(tile, Tensor):
        raise TypeError(f"nl.{op} wants a tensor, not {type(x).__name__} and {type(y).__name__}")
    kind = dtypes.bool_ if op in _TRUTH else tile.dtype
    if isinstance(number, float) and kind.name not in _FLOATS and op not in _TRUTH:
        kind = dtypes.float32
    out = out if out is not None else _result(tile, dtype or kind)
    isa.tensor_scalar(out, tile, op, int(number) if op in _BITWISE else float(number), reverse0=reverse, engine=engine)
    return out


def _binary_function(op: str):
    def function(x, y, dtype=None, **ignored):
        return binary(op, x, y, dtype)

    function.__name__ = op
    function.__doc__ = f"x {op} y, element by element: tiles of one size, or a tile and a number or a column [P, 1]."
    return function


def _activation_function(op: str):
    def function(x, dtype=None, **ignored):
        out = _result(x, dtype if dtype is not None else (x.dtype if x.dtype.name in _FLOATS else dtypes.float32))
        isa.activation(out, operators.operator_named(op), x)
        return out

    function.__name__ = op
    function.__doc__ = f"{op}(x), element by element, on the Scalar engine."
    return function


def divide(x, y, dtype=None, **ignored):
    """x / y: by the reciprocal of y, as the arithmetic units have no division."""
    if not isinstance(y, Tensor):
        return binary("multiply", x, 1.0 / float(y), dtype or (x.dtype if x.dtype.name in _FLOATS else dtypes.float32))
    inverse = ndarray(y.shape, dtypes.float32)
    isa.reciprocal(inverse, y)
    kind = dtype or (promoted(x.dtype, y.dtype) if isinstance(x, Tensor) else y.dtype)
    if dtypes.dtype_of(kind).name not in _FLOATS:
        kind = dtypes.float32
    return binary("multiply", x, inverse, kind)


def _floored(x, quotient_sign: bool):
    """floor(x) (or trunc(x)) as float32: converted to int32 and back, which rounds to even, and put right where that went up."""
    whole = ndarray(x.shape, dtypes.int32)
    isa.tensor_copy(whole, x)
    near = ndarray(x.shape, dtypes.float32)
    isa.tensor_copy(near, whole)
    over = ndarray(x.shape, dtypes.float32)
    isa.tensor_tensor(over, near, x, "greater")
    isa.tensor_tensor(near, near, over, "subtract")
    return near


def floor(x, dtype=None, **ignored):
    """The largest whole numbers not above x, for |x| < 2^31."""
    return _copy(_floored(x, False), dtype or x.dtype)


def ceil(x, dtype=None, **ignored):
    """The smallest whole numbers not below x, for |x| < 2^31."""
    low = _floored(binary("multiply", x, -1.0, dtypes.float32), False)
    return binary("multiply", low, -1.0, dtype or x.dtype)


def trunc(x, dtype=None, **ignored):
    """x without its fraction, for |x| < 2^31."""
    magnitude = ndarray(x.shape, dtypes.float32)
    isa.activation(magnitude, operators.operator_named("abs"), x)
    sign = ndarray(x.shape, dtypes.float32)
    isa.activation(sign, operators.operator_named("sign"), x)
    return binary("multiply", _floored(magnitude, False), sign, dtype or x.dtype)


def mod(x, y, dtype=None, **ignored):
    """x - y floor(x / y): the sign is y's."""
    whole = floor(divide(x, y, dtypes.float32), dtypes.float32)
    product = binary("multiply", whole, y, dtypes.float32)
    return binary("subtract", x, product, dtype or (x.dtype if isinstance(x, Tensor) else y.dtype))


def fmod(x, y, dtype=None, **ignored):
    """x - y trunc(x / y): the sign is x's."""
    whole = trunc(divide(x, y, dtypes.float32), dtypes.float32)
    product = binary("multiply", whole, y, dtypes.float32)
    return binary("subtract", x, product, dtype or (x.dtype if isinstance(x, Tensor) else y.dtype))


def _turned(x, shift: float):
    """x + shift brought into [-pi, pi]."""
    turns = ndarray(x.shape, dtypes.int32)
    isa.tensor_scalar(turns, x, "add", shift, op1="multiply", operand1=1.0 / (2 * _math.pi))
    whole = ndarray(x.shape, dtypes.float32)
    isa.tensor_copy(whole, turns)
    rest = ndarray(x.shape, dtypes.float32)
    isa.scalar_tensor_tensor(rest, whole, "multiply", -2 * _math.pi, "add", x)
    isa.tensor_scalar(rest, rest, "add", shift, op1="minimum", operand1=3.1415925)
    isa.tensor_scalar(rest, rest, "maximum", -3.1415925)
    return rest


def sin(x, dtype=None, **ignored):
    """sin(x); x is brought into [-pi, pi] first."""
    out = _result(x, dtype)
    isa.activation(out, operators.operator_named("sin"), _turned(x, 0.0))
    return out


def cos(x, dtype=None, **ignored):
    """cos(x) = sin(x + pi / 2)."""
    out = _result(x, dtype)
    isa.activation(out, operators.operator_named("sin"), _turned(x, _math.pi / 2))
    return out


def tan(x, dtype=None, **ignored):
    """sin(x) / cos(x)."""
    return divide(sin(x, dtypes.float32), cos(x, dtypes.float32), dtype or x.dtype)


def negative(x, dtype=None, **ignored):
    """-x."""
    return binary("multiply", x, -1.0 if x.dtype.name in _FLOATS else -1, dtype or x.dtype)


def rsqrt(x, dtype=None, **ignored):
    """1 / sqrt(x), on GpSimd."""
    if buffers.is_psum(x.buffer):
        raise KernelError("nl.rsqrt runs on GpSimd, which doesn't reach PSUM; nl.copy the tile to SBUF first [buffer]")
    out = _result(x, dtype)
    isa.tensor_scalar(out, x, "rsqrt", 0.0, engine=isa.gpsimd_engine)
    return out


def reciprocal(x, dtype=None, **ignored):
    """1 / x."""
    out = _result(x, dtype)
    isa.reciprocal(out, x)
    return out


def logical_not(x, dtype=None, **ignored):
    """1 where x is 0, else 0."""
    return binary("equal", x, 0.0, dtype)


def invert(x, dtype=None, **ignored):
    """The bits of x turned over."""
    out = _result(x, dtype)
    isa.tensor_scalar(out, x, "invert", 0)
    return out


def square(x, dtype=None, **ignored):
    """x * x."""
    out = _result(x, dtype)
    isa.activation(out, operators.operator_named("square"), x)
    return out


# --- Reductions ---


def _axes(x, axis) -> list[int]:
    axes = [axis] if isinstance(axis, int) else list(axis)
    axes = sorted(a + x.ndim if a < 0 else a for a in axes)
    if not axes or axes[0] < 1 or axes[-1] >= x.ndim:
        raise KernelError(f"axis {axis} of a tile of {x.ndim} extents: free extents 1 to {x.ndim - 1} can be reduced, partitions can't [axis]")
    return axes


def reduction(op: str, x, axis, dtype=None, keepdims=False, negate=False):
    """x reduced with op over free extents. Without keepdims they go; at least [P, 1] stays."""
    axes = _axes(x, axis)
    kept = [d for d in range(1, x.ndim) if d not in axes]
    view = x.permute((0, *kept, *axes)) if kept + axes != list(range(1, x.ndim)) else x
    shape = [1 if d in axes else x.shape[d] for d in range(x.ndim)] if keepdims else [x.shape[0]] + [x.shape[d] for d in kept]
    if len(shape) == 1:
        shape.append(1)
    out = ndarray(tuple(shape), dtype or x.dtype)
    isa.tensor_reduce(out, op, view, tuple(range(x.ndim - len(axes), x.ndim)), negate=negate)
    return out


def sum(x, axis, dtype=None, keepdims=False, **ignored):
    """The sum over free extents."""
    return reduction("add", x, axis, dtype, keepdims)


def max(x, axis, dtype=None, keepdims=False, **ignored):
    """The largest over free extents."""
    return reduction("maximum", x, axis, dtype, keepdims)


def min(x, axis, dtype=None, keepdims=False, **ignored):
    """The smallest over free extents."""
    return reduction("minimum", x, axis, dtype, keepdims)


def prod(x, axis, dtype=None, keepdims=False, **ignored):
    """The product over free extents."""
    return reduction("multiply", x, axis, dtype, keepdims)


def _count(x, axis) -> int:
    count = 1
    for a in _axes(x, axis):
        count *= x.shape[a]
    return count


def mean(x, axis, dtype=None, keepdims=False, **ignored):
    """The mean over free extents."""
    total = reduction("add", x, axis, dtypes.float32, keepdims)
    return binary("multiply", total, 1.0 / _count(x, axis), dtype or x.dtype)


def var(x, axis, dtype=None, keepdims=False, **ignored):
    """The variance over free extents (of all elements, not of a sample)."""
    centre = mean(x, axis, dtypes.float32, True)
    away = binary("subtract", x, centre, dtypes.float32)
    return mean(square(away), axis, dtype or x.dtype, keepdims)


def all(x, axis, dtype=None, keepdims=False, **ignored):
    """1 where no element over free extents is 0."""
    return reduction("minimum", binary("not_equal", x, 0.0, dtypes.float32), axis, dtype or dtypes.bool_, keepdims)


def softmax(x, axis=-1, dtype=None, compute_dtype=None, **ignored):
    """exp(x - max) over its sum along the last extent."""
    if _axes(x, axis) != list(range(x.ndim - len(_axes(x, axis)), x.ndim)) or len(_axes(x, axis)) != x.ndim - 1:
        largest = reduction("maximum", x, axis, dtypes.float32, True)
        raised = _exp_of(binary("subtract", x, largest, dtypes.float32))
        return divide(raised, reduction("add", raised, axis, dtypes.float32, True), dtype or x.dtype)
    low = reduction("maximum", x, axis, dtypes.float32, negate=True).reshape((x.shape[0], 1))
    raised = ndarray(x.shape, dtypes.float32)
    total = ndarray((x.shape[0], 1), dtypes.float32)
    isa.activation_reduce(raised, operators.operator_named("exp"), x, "add", total, bias=low)
    inverse = ndarray((x.shape[0], 1), dtypes.float32)
    isa.reciprocal(inverse, total)
    out = _result(x, dtype)
    isa.tensor_scalar(out, raised, "multiply", inverse)
    return out


def _exp_of(x):
    out = ndarray(x.shape, dtypes.float32)
    isa.activation(out, operators.operator_named("exp"), x)
    return out


def rms_norm(x, w, axis, n=None, epsilon=1e-6, dtype=None, **ignored):
    """x / sqrt(mean(x^2) + epsilon) * w; the mean is over ``axis``, of n elements where given."""
    total = reduction("add", square(x, dtypes.float32), axis, dtypes.float32, True)
    scale = ndarray(total.shape, dtypes.float32)
    isa.tensor_scalar(scale, total, "multiply", 1.0 / (n or _count(x, axis)), op1="add", operand1=float(epsilon))
    inverse = ndarray(total.shape, dtypes.float32)
    isa.activation(inverse, operators.operator_named("rsqrt"), scale)
    normed = binary("multiply", x, inverse, dtypes.float32)
    return binary("multiply", normed, w, dtype or x.dtype)


def dropout(x, rate, dtype=None, **ignored):
    """x with elements set to 0 with probability rate."""
    out = _result(x, dtype)
    isa.dropout(out, x, rate)
    return out


def where(condition, x, y, dtype=None, **ignored):
    """x where condition isn't 0, else y; tiles or numbers."""
    model = x if isinstance(x, Tensor) else y if isinstance(y, Tensor) else condition
    kind = dtypes.dtype_of(dtype) if dtype is not None else (
        promoted(x.dtype, y.dtype) if isinstance(x, Tensor) and isinstance(y, Tensor) else model.dtype)
    out = ndarray(condition.shape, kind)
    if isinstance(y, Tensor):
        isa.tensor_copy(out, y)
    else:
        isa.memset(out, float(y) if kind.name in _FLOATS else int(y))
    chosen = condition
    if condition.dtype.name == "bool":
        chosen = condition.view(dtypes.uint8)
    elif condition.dtype.name not in ("uint8", "uint16", "uint32"):
        chosen = binary("not_equal", condition, 0.0, dtypes.uint8)
    source = x
    if isinstance(x, Tensor) and x.stored_dtype is not out.stored_dtype:
        source = _copy(x, kind)
    isa.tensor_copy_predicated(out, source if isinstance(source, Tensor) else float(source), chosen)
    return out


# --- Matrices ---


def matmul(x, y, transpose_x=False, **ignored):
    """x @ y (or x^T @ y with transpose_x) in PSUM, float32. x [P, F] with P <= 128 and F <= 128, y [K, N] with N <= 512."""
    stationary = x
    if not transpose_x:
        turned = ndarray((x.shape[1], x.shape[0]), x.dtype, buffers.psum)
        isa.nc_transpose(turned, x)
        stationary = _copy(turned)
    if buffers.is_psum(y.buffer):
        y = _copy(y)
    out = ndarray((stationary.shape[1], y.shape[1]), dtypes.float32, buffers.psum)
    isa.nc_matmul(out, stationary, y)
    return out


def transpose(x, dtype=None, **ignored):
    """x^T in PSUM."""
    out = ndarray((x.shape[1], x.shape[0]), dtype or x.dtype, buffers.psum)
    isa.nc_transpose(out, x)
    return out


for _name in ("add", "subtract", "multiply", "maximum", "minimum", "power", "abs_max", "abs_min", *sorted(_TRUTH), "bitwise_and", "bitwise_or",
              "bitwise_xor", "left_shift", "right_shift"):
    operators.operator_named(_name).function = _binary_function(_name)
for _name in ("abs", "relu", "sign", "sqrt", "exp", "log", "tanh", "arctan", "sigmoid", "silu", "silu_dx", "gelu", "gelu_dx", "gelu_apprx_tanh",
              "gelu_apprx_sigmoid", "gelu_apprx_sigmoid_dx", "mish", "softplus", "erf", "erf_dx"):
    operators.operator_named(_name).function = _activation_function(_name)
for _function in (divide, floor, ceil, trunc, mod, fmod, sin, cos, tan, negative, rsqrt, reciprocal, logical_not, invert, square):
    operators.operator_named(_function.__name__).function = _function
operators.operator_named("copy").function = _copy


# --- Python's operators on tensors ---


def _method(op: str, reverse: bool = False):
    function = divide if op == "divide" else mod if op == "mod" else None

    def method(self, other):
        if not isinstance(other, (Tensor, int, float)) and not hasattr(other, "__float__"):
            return NotImplemented
        x, y = (other, self) if reverse else (self, other)
        return function(x, y) if function else binary(op, x, y)

    return method


for _name, _op in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide"), ("mod", "mod"), ("pow", "power"),
                   ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"), ("lshift", "left_shift"), ("rshift", "right_shift")):
    setattr(Tensor, f"__{_name}__", _method(_op))
    setattr(Tensor, f"__r{_name}__", _method(_op, True))
for _name, _op in (("gt", "greater"), ("ge", "greater_equal"), ("lt", "less"), ("le", "less_equal")):
    setattr(Tensor, f"__{_name}__", _method(_op))
Tensor.__neg__ = lambda self: negative(self)
Tensor.__invert__ = lambda self: invert(self)
