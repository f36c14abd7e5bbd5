"""neuronxcc.nki.language: the older dialect's nl."""

from __future__ import annotations

import numpy as _np

from headway.neuronxcc.nki import assign as _assign
from headway.neuronxcc.nki.compute import binary as _binary
from headway.neuronxcc.nki.compute import emit as _emit
from headway.neuronxcc.nki.compute import in_sbuf as _in_sbuf
from headway.neuronxcc.nki.compute import no_mask as _no_mask
from headway.neuronxcc.nki.compute import number as _number
from headway.neuronxcc.nki.compute import over_partitions as _over_partitions
from headway.neuronxcc.nki.compute import reduction as _reduction
from headway.neuronxcc.nki.compute import result_dtype as _result_dtype
from headway.neuronxcc.nki.compute import without_masks as _without_masks
from headway.neuronxcc.nki.index import arange, mgrid  # noqa: F401
from headway.neuronxcc.nki.loops import LoopIndex as _LoopIndex
from headway.neuronxcc.nki.loops import Range as _Range
from headway.neuronxcc.nki.pieces import pieces as _pieces
from headway.neuronxcc.nki.tile import ParDim as _ParDim
from headway.neuronxcc.nki.tile import Tile as _Tile
from headway.neuronxcc.nki.tile import new_tile as _new_tile
from headway.neuronxcc.nki.tile import tile_over as _tile_over
from headway.nki import buffers as _buffers
from headway.nki import dtypes as _dtypes
from headway.nki import isa as _isa
from headway.nki import operators as _operators
from headway.nki.buffers import hbm, is_hbm, is_psum, is_sbuf, private_hbm, psum, sbuf, shared_hbm  # noqa: F401
from headway.nki.dtypes import (  # noqa: F401
    bfloat16,
    bool_,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    int8,
    int16,
    int32,
    tfloat32,
    uint8,
    uint16,
    uint32,
)
from headway.nki.errors import KernelError as _KernelError
from headway.nki.errors import Unsupported as _Unsupported
from headway.nki.language import math as _math
from headway.nki.language.loops import no_reorder  # noqa: F401
from headway.nki.language.memory import ds  # noqa: F401
from headway.nki.language.memory import rand as _rand
from headway.nki.language.memory import shared_constant as _shared_constant
from headway.nki.language.spmd import tile_size  # noqa: F401
from headway.nki.operators import Operator as _Operator
from headway.nki.trace import session as _session

par_dim = _ParDim
tensor = _Tile
bfp16 = bfloat16


class fp32:
    """Limits of float32."""

    min = -3.4028234663852886e38
    max = 3.4028234663852886e38


def finfo(dtype):
    """Limits of a floating-point type."""
    import ml_dtypes

    return ml_dtypes.finfo(_dtypes.dtype_of(dtype).dtype)


# --- Loops ---


affine_range = _Range
sequential_range = _Range
static_range = _Range


# --- Programs ---


def program_id(axis=0):
    """This instance's place along an axis of the grid."""
    return _session().memo.get("program", (0,))[axis]


def num_programs(axes=0):
    """Instances along an axis (a tuple of them for several)."""
    grid = _session().memo.get("grid", (1,))
    if isinstance(axes, (tuple, list)):
        return tuple(grid[a] for a in axes)
    return grid[axes]


def program_ndim():
    return len(_session().memo.get("grid", (1,)))


class nc(int):
    """``nl.nc(2)``: instances spread over physical cores. They run one after another here."""


def spmd_dim(*parts):
    """An axis of the grid made of several factors."""
    product = 1
    for part in parts:
        product *= int(part)
    return product


# --- Tensors ---


def ndarray(shape, dtype, *, buffer=None, name="", init_value=None, **_options):
    """A new tile or tensor in HBM."""
    buffer = _place(buffer)
    if _buffers.is_hbm(buffer):
        s = _session()
        number = s.memo.get("hbm", 0)
        s.memo["hbm"] = number + 1
        # What instances of a grid declare at the same place is one tensor.
        kept = s.memo.setdefault("hbm tensors", {})
        if number in kept:
            return kept[number]
        kept[number] = _new_tile(shape, dtype, shared_hbm if buffer is shared_hbm else buffer, name)
        return kept[number]
    return _new_tile(shape, dtype, buffer, name, init_value)


def _place(buffer):
    if buffer is None:
        return sbuf
    inner = getattr(buffer, "buffer", None)  # of nki.compiler's allocations
    return _buffers.buffer_of(inner if inner is not None else buffer)


def zeros(shape, dtype, *, buffer=None, name="", **_options):
    """A new tile of zeros."""
    return full(shape, 0, dtype, buffer=buffer, name=name)


def ones(shape, dtype, *, buffer=None, name="", **_options):
    """A new tile of ones."""
    return full(shape, 1, dtype, buffer=buffer, name=name)


def full(shape, fill_value, dtype, *, buffer=None, name="", **_options):
    """A new tile of fill_value; each block is filled when it is first used."""
    return _new_tile(shape, dtype, _place(buffer), name, _number(fill_value))


def zeros_like(a, dtype=None, *, buffer=None, name="", **_options):
    """Zeros of a's shape."""
    return zeros(a.shape, dtype or a.dtype, buffer=buffer or a.buffer, name=name)


empty_like = zeros_like


def rand(shape, dtype=float32, **_options):
    """Uniform random numbers in [0, 1)."""
    tile = _new_tile(shape, dtype, sbuf)
    _isa.tensor_copy(tile.native(), _rand((int(tile.shape[0]), tile.size // int(tile.shape[0])), float32))
    return tile


def random_seed(seed, **_options):
    """Seeds nl.rand and nl.dropout."""
    if isinstance(seed, _Tile):
        _isa.set_rng_seed(seed.native())
    else:
        tile = _new_tile((1, 1), uint32, sbuf)
        _isa.memset(tile.native(), int(seed))
        _isa.set_rng_seed(tile.native())


def shared_constant(constant, dtype=None, **_options):
    """A NumPy array (or .npy file) as a constant in HBM."""
    values = _np.load(constant) if isinstance(constant, str) else _np.asarray(constant)
    kind = dtype
    native = _shared_constant(values.reshape(-1), kind)
    return _tile_over(native, values.shape)


def shared_identity_matrix(n, dtype=float32, **_options):
    """The identity, in SBUF."""
    return load(shared_constant(_np.eye(n, dtype=_np.float32), dtype))


def static_cast(array, dtype):
    """A host array (or number) converted to dtype."""
    if isinstance(array, _Tile):
        return copy(array, dtype=dtype)
    return _np.asarray(array).astype(_dtypes.dtype_of(dtype).dtype)


# --- Moving ---


def load(src, *, mask=None, dtype=None, **_options):
    """A tile in SBUF with what is in HBM; the first extent becomes the partitions."""
    shape = src.shape if src.ndim else (1, 1)
    return _emit(lambda d, s: _isa.dma_copy(d, s), shape, _result_dtype(dtype, src), [src], mask, by_dma=True)


def store(dst, value, *, mask=None, **_options):
    """HBM = a tile or a number, where the mask holds (and where the tile was written, if a mask made it)."""
    mask, (dst, value) = _without_masks(mask, [dst, value])
    if not isinstance(value, _Tile):
        found = _pieces(mask, dst.shape)
        for piece in found if found is not None else [None]:
            _assign.fill(dst if piece is None else dst.clipped(piece), _number(value))
        return
    recorded, value = value.recorded, _in_sbuf(value)
    found = _pieces(mask, dst.shape)
    if found is None:
        written = recorded.pieces if recorded else None
        if written is None or dst.size != value.size or dst.ndim != value.ndim:
            _isa.dma_copy(
                dst.native(),
                _assign.fitted(value, dst).native() if dst.size != value.size else value.native(),
            )
            return
        found = written  # the rest of the value was masked out
    for piece in found:
        part = value.clipped(piece) if value.ndim == len(piece) else value.reshape(dst.shape).clipped(piece)
        _isa.dma_copy(dst.clipped(piece).native(), part.native())


def load_transpose2d(src, *, mask=None, dtype=None, **_options):
    """A tile with the transpose of src [P, F]."""
    turned = src.permuted((1, 0))
    return _emit(
        lambda d, s: _isa.dma_copy(d, s), turned.shape, _result_dtype(dtype, src), [turned], mask, by_dma=True
    )


def copy(src, *, mask=None, dtype=None, **_options):
    """A copy of a tile in SBUF."""
    if not isinstance(src, _Tile):
        return _np.array(src)
    if _buffers.is_hbm(src.buffer):
        return load(src, mask=mask, dtype=dtype)
    return _emit(lambda d, s: _isa.tensor_copy(d, s), src.shape, _result_dtype(dtype, src), [src], mask)


def broadcast_to(src, shape, **_options):
    """Extents of 1 repeated; partitions by way of HBM."""
    shape = tuple(int(n) for n in shape)
    if src.on_chip and src.ndim < len(shape):
        src = src.reshape((src.shape[0], *(1,) * (len(shape) - src.ndim), *src.shape[1:]))
    return _over_partitions(src, shape[0]).repeated(shape)


def expand_dims(data, axis):
    return data.expand_dims(axis)


def gather_flattened(data, indices, *, mask=None, dtype=None, axis=0, **_options):
    """data[p, indices[p, i]] over the flattened row."""
    return _emit(
        lambda d, x, i: _isa.nc_n_gather(d, x, i),
        indices.shape,
        _result_dtype(dtype, data),
        [data, indices],
        mask,
    )


# --- Functions of one tile ---


def _unary(name: str):
    def function(x, *, dtype=None, mask=None, **_options):
        token = _operators.operator_named(name)
        return _emit(lambda d, s: _isa.activation(d, token, s), x.shape, _result_dtype(dtype, x), [x], mask)

    return function


def _through(function):
    """A function of the current dialect on the whole tile."""

    def applied(x, *, dtype=None, mask=None, **_options):
        kind = _result_dtype(dtype, x)
        return _emit(lambda d, s: _isa.tensor_copy(d, function(s, kind)), x.shape, kind, [x], mask)

    return applied


def _binary_function(name: str):
    def function(x, y, *, dtype=None, mask=None, **_options):
        return _binary(name, x, y, dtype, mask)

    return function


class _Named(_Operator):
    """An operator of the older dialect: the same names, its own functions."""

    __slots__ = ()


def _named(name: str, function) -> _Named:
    operator = _Named(name)
    operator.function = function
    return operator


for _name in (
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "power",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
):
    globals()[_name] = _named(_name, _binary_function(_name))
for _name in (
    "abs",
    "relu",
    "sign",
    "sqrt",
    "exp",
    "log",
    "tanh",
    "arctan",
    "sigmoid",
    "silu",
    "silu_dx",
    "gelu",
    "gelu_dx",
    "gelu_apprx_tanh",
    "gelu_apprx_sigmoid",
    "mish",
    "softplus",
    "erf",
    "erf_dx",
    "square",
    "rsqrt",
):
    globals()[_name] = _named(_name, _unary(_name))
for _name in ("floor", "ceil", "trunc", "sin", "cos", "tan", "reciprocal", "invert"):
    globals()[_name] = _named(_name, _through(getattr(_math, _name)))
for _name in ("bypass", "average", "prelu", "abs_max", "abs_min"):
    globals()[_name] = _operators.operator_named(_name)


def _divide(x, y, *, dtype=None, mask=None, **_options):
    y = _number(y)
    kind = _result_dtype(dtype, x, y)
    if not isinstance(y, _Tile):
        return _binary("multiply", x, 1.0 / float(y), kind, mask)
    inverse = _emit(lambda d, s: _isa.reciprocal(d, s), y.shape, float32, [y])
    return _binary("multiply", x, inverse, kind, mask)


def _negative(x, *, dtype=None, mask=None, **_options):
    return _binary("multiply", x, -1.0, dtype or x.dtype, mask)


def _logical_not(x, *, dtype=None, mask=None, **_options):
    return _binary("equal", x, 0.0, dtype, mask)


divide = _named("divide", _divide)
negative = _named("negative", _negative)
logical_not = _named("logical_not", _logical_not)


# --- Reductions ---


def _reducing(name: str, op: str):
    def function(x, axis, *, dtype=None, mask=None, keepdims=False, **_options):
        return _reduction(op, x, axis, dtype, mask, False, keepdims)

    return _named(op, function)


max = _reducing("max", "maximum")
min = _reducing("min", "minimum")
sum = _reducing("sum", "add")
prod = _reducing("prod", "multiply")


def mean(x, axis, *, dtype=None, mask=None, keepdims=False, **_options):
    _no_mask("nl.mean", mask)
    axes = [axis] if hasattr(axis, "__index__") else list(axis)
    count = 1
    for a in axes:
        count *= x.shape[a]
    total = _reduction("add", x, axis, float32, mask, False, keepdims)
    return _binary("multiply", total, 1.0 / count, dtype or x.dtype)


def var(x, axis, *, dtype=None, mask=None, keepdims=False, **_options):
    _no_mask("nl.var", mask)
    centre = mean(x, axis, dtype=float32, keepdims=True)
    away = _binary("subtract", x, centre, float32)
    return mean(_unary("square")(away), axis, dtype=dtype or x.dtype, keepdims=keepdims)


def all(x, axis, *, dtype=None, mask=None, keepdims=False, **_options):
    return _reduction(
        "minimum", _binary("not_equal", x, 0.0, float32), axis, dtype or bool_, mask, False, keepdims
    )


def softmax(x, axis, *, dtype=None, compute_dtype=None, mask=None, **_options):
    """exp(x - max) over its sum."""
    largest = _reduction("maximum", x, axis, float32, mask, False, True)
    raised = _unary("exp")(_binary("subtract", x, largest, float32, mask), mask=mask)
    total = _reduction("add", raised, axis, float32, mask, False, True)
    return _divide(raised, total, dtype=dtype or x.dtype, mask=mask)


def rms_norm(x, w, axis, n, epsilon=1e-6, *, dtype=None, compute_dtype=None, mask=None, **_options):
    """x / sqrt(mean(x^2) + epsilon) * w."""
    total = _reduction("add", _unary("square")(x, dtype=float32, mask=mask), axis, float32, mask, False, True)
    scale = _emit(
        lambda d, s: _isa.tensor_scalar(d, s, "multiply", 1.0 / n, op1="add", operand1=float(epsilon)),
        total.shape,
        float32,
        [total],
    )
    inverse = _unary("rsqrt")(scale)
    normed = _binary("multiply", x, inverse, float32, mask)
    return _binary("multiply", normed, w, dtype or x.dtype, mask)


def dropout(x, rate, *, dtype=None, mask=None, **_options):
    return _emit(
        lambda d, s, r: _isa.dropout(d, s, r), x.shape, _result_dtype(dtype, x), [x, _number(rate)], mask
    )


def where(condition, x, y, *, dtype=None, mask=None, **_options):
    """x where condition isn't 0, else y."""
    shape = condition.shape
    kind = (
        _result_dtype(dtype, x, y)
        if isinstance(x, _Tile) or isinstance(y, _Tile)
        else _dtypes.dtype_of(dtype or float32)
    )

    def record(d, c, a, b):
        _isa.tensor_copy(d, _math.where(c, a, b, kind))

    return _emit(record, shape, kind, [condition, _number(x), _number(y)], mask)


# --- Matrices ---


def matmul(x, y, *, transpose_x=False, mask=None, **_options):
    """x @ y, or x^T @ y, in PSUM."""
    from headway.neuronxcc.nki import isa

    stationary = _in_sbuf(x)
    if not transpose_x:
        stationary = isa.tensor_copy(isa.nc_transpose(stationary))
    return isa.nc_matmul(stationary, _in_sbuf(y), mask=mask)


def transpose(x, *, dtype=None, mask=None, **_options):
    """x^T, in PSUM."""
    from headway.neuronxcc.nki import isa

    return isa.nc_transpose(x, dtype=dtype, mask=mask)


# --- Across rounds and programs ---


def loop_reduce(x, op, loop_indices, *, dtype=None, mask=None, **_options):
    """x reduced over the rounds of loops; assign it to a tile."""
    token = getattr(op, "name", None) or getattr(op, "__name__", str(op))
    token = {"max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum", "sum": "add"}.get(
        token, token
    )
    first = True
    for index in loop_indices:
        if not isinstance(index, _LoopIndex):
            raise _KernelError(
                f"nl.loop_reduce: {index!r} is no variable of nl.affine_range or its like [loop]"
            )
        first = first and int(index) == index.first
    return _assign.LoopReduction(x, token, first, _pieces(mask, x.shape))


def all_reduce(x, op, program_axes, *, dtype=None, mask=None, parallel_reduce=True, **_options):
    raise _Unsupported("nl.all_reduce between the instances of a grid")


def atomic_rmw(dst, value, op, *, mask=None, **_options):
    """dst (HBM) = dst op value."""
    from headway.neuronxcc.nki import isa

    isa.dma_copy(dst=dst, src=value, dst_rmw_op=op, mask=mask)


def device_print(prefix, x, **_options):
    """Prints a tile's values when the kernel has run."""
    from headway.nki.language.memory import device_print as printed

    printed(prefix, x.native())


# --- Python's operators on tiles ---


def _method(function, reverse: bool = False):
    def method(self, other):
        return function(other, self) if reverse else function(self, other)

    return method


for _name, _function in (
    ("add", globals()["add"]),
    ("sub", globals()["subtract"]),
    ("mul", globals()["multiply"]),
    ("truediv", divide),
    ("pow", globals()["power"]),
    ("and", globals()["bitwise_and"]),
    ("or", globals()["bitwise_or"]),
    ("xor", globals()["bitwise_xor"]),
    ("lshift", globals()["left_shift"]),
    ("rshift", globals()["right_shift"]),
):
    setattr(_Tile, f"__{_name}__", _method(_function))
    setattr(_Tile, f"__r{_name}__", _method(_function, True))
for _name, _op in (("gt", "greater"), ("ge", "greater_equal"), ("lt", "less"), ("le", "less_equal")):
    setattr(_Tile, f"__{_name}__", _method(globals()[_op]))
_Tile.__neg__ = lambda self: _negative(self)
globals()["bool"] = bool_
