"""Functions of elements: tiles in, a new tile in SBUF out. Each records the instructions that compute it on
the hardware.

What all of them share: tiles lie in SBUF or PSUM (on GpSimd only SBUF), [P, ...] with up to 128 partitions;
``dtype`` is the result's type. Arithmetic is float32's, converted to the result's type at the end; int32 and
uint32 tiles are added, subtracted and multiplied exactly, modulo 2^32.
"""

from __future__ import annotations

import math as _math
import numbers as _numbers

from headway import _chip
from headway.nki import buffers, dtypes, isa, operators
from headway.nki.errors import KernelError
from headway.nki.language.memory import copy as _copy
from headway.nki.language.memory import ndarray

Tensor = _chip.Tensor
FLOATS = frozenset(
    ("float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2")
)


def promoted(a, b) -> dtypes.DType:
    """The type of a result of elements of two types: float before int; of two 16-bit floats float32; fp8
    gives way; the wider integer.
    """
    a, b = dtypes.dtype_of(a), dtypes.dtype_of(b)
    if a is b:
        return a
    a_float, b_float = a.name in FLOATS, b.name in FLOATS
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


def is_number(value) -> bool:
    """A number that is known while the kernel is recorded: Python's or NumPy's."""
    return isinstance(value, _numbers.Real) or (
        hasattr(value, "__float__") and getattr(value, "shape", None) == ()
    )


def tile_like(x, dtype=None, name: str = "this function"):
    """A new tile of x's shape. TypeError where x is no tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"nl.{name} wants a tensor, not {type(x).__name__}")
    return ndarray(x.shape, dtype if dtype is not None else x.dtype)


def floating(x, dtype=None) -> dtypes.DType:
    """The result's type of a function whose values are no whole numbers: ``dtype``, or x's, or float32 for
    integers.
    """
    if dtype is not None:
        return dtypes.dtype_of(dtype)
    return x.dtype if x.dtype.name in FLOATS else dtypes.float32


# --- Two operands ---

_BITWISE = {"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert"}
_COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
_TRUTH = {*_COMPARISONS, "logical_and", "logical_or", "logical_xor"}


def _is_column(t, x) -> bool:
    """One value a partition, where x has more."""
    return t.shape[0] == x.shape[0] and t.size == t.shape[0] and x.size != x.shape[0]


def _as_operand(t, on_bits: bool):
    """A column as tensor_scalar takes it: [P, 1], float32 unless bits are meant."""
    if t.ndim != 2:
        t = t.reshape((t.shape[0], 1))
    return t if on_bits or t.stored_dtype.name == "float32" else _copy(t, dtypes.float32)


def _paired(x, y):
    """Both with the same shape, where one has extents of 1 that the other hasn't (free extents only)."""
    if x.shape == y.shape:
        return x, y
    if x.ndim != y.ndim or x.shape[0] != y.shape[0]:
        if x.size == y.size and x.shape[0] == y.shape[0]:
            return x, y
        raise KernelError(
            f"tiles of shapes {x.shape} and {y.shape} don't go together: an engine's operands have "
            "the same partitions, and as many "
            "elements in each; nl.broadcast_to repeats partitions [shape]"
        )
    for dim in range(1, x.ndim):
        if x.shape[dim] != y.shape[dim]:
            if x.shape[dim] == 1:
                x = x.broadcast(dim, y.shape[dim])
            elif y.shape[dim] == 1:
                y = y.broadcast(dim, x.shape[dim])
            else:
                raise KernelError(
                    f"tiles of shapes {x.shape} and {y.shape} don't go together: extent {dim} differs [shape]"
                )
    return x, y


def binary(op: str, x, y, dtype=None, out=None):
    """out = x op y; at least one of them a tile, the other a tile, a column [P, 1] or a number. Without
    ``out`` a new tile.

    Two tiles: tensor_tensor. A tile and a column or number: tensor_scalar. The instruction takes one operand
    from PSUM at most: of two, the second is copied to SBUF first.
    """
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        kind = dtype if dtype is not None else dtypes.bool_ if op in _TRUTH else promoted(x.dtype, y.dtype)
        on_bits = op in _BITWISE
        if op != "power":
            # Exact integer arithmetic is tensor_tensor's; a column would be converted to float32.
            exact = (
                op in ("add", "subtract", "multiply")
                and x.dtype.name == y.dtype.name
                and x.dtype.name in ("int32", "uint32")
            )
            for tile, column, reverse in ((x, y, False), (y, x, True)):
                if _is_column(column, tile) and not exact:
                    out = out if out is not None else tile_like(tile, kind)
                    isa.tensor_scalar(out, tile, op, _as_operand(column, on_bits), reverse0=reverse)
                    return out
        x, y = _paired(x, y)
        if buffers.is_psum(x.buffer) and buffers.is_psum(y.buffer):
            y = _copy(y)
        out = out if out is not None else tile_like(x, kind)
        isa.tensor_tensor(out, x, y, op)
        return out
    tile, number, reverse = (x, y, False) if isinstance(x, Tensor) else (y, x, True)
    if not isinstance(tile, Tensor) or not is_number(number):
        raise TypeError(
            f"nl.{op} wants two tensors, or a tensor and a number, not {type(x).__name__} and "
            f"{type(y).__name__}"
        )
    if out is None:
        kind = dtype if dtype is not None else dtypes.bool_ if op in _TRUTH else tile.dtype
        whole = isinstance(number, _numbers.Integral) or getattr(
            getattr(number, "dtype", None), "kind", ""
        ) in ("i", "u", "b")
        if dtype is None and not whole and tile.dtype.name not in FLOATS and op not in _TRUTH:
            kind = dtypes.float32
        out = tile_like(tile, kind)
    if op in _BITWISE:
        if int(number) != number:
            raise TypeError(f"nl.{op} works on bits: {number} is no whole number")
        number = int(number)
    else:
        number = float(number)
    isa.tensor_scalar(out, tile, op, number, reverse0=reverse)
    return out


_SHOWN = {
    "add": "x + y",
    "subtract": "x - y",
    "multiply": "x * y",
    "maximum": "the larger of x and y",
    "minimum": "the smaller of x and y",
    "power": "x to the power of y",
    "abs_max": "that of x and y whose magnitude is larger, with its sign (NeuronCore-v4)",
    "abs_min": "that of x and y whose magnitude is smaller, with its sign (NeuronCore-v4)",
    "bitwise_and": "x & y",
    "bitwise_or": "x | y",
    "bitwise_xor": "x ^ y",
    "left_shift": "x << y",
    "right_shift": "x >> y, without sign",
    "equal": "x == y",
    "not_equal": "x != y",
    "greater": "x > y",
    "greater_equal": "x >= y",
    "less": "x < y",
    "less_equal": "x <= y",
    "logical_and": "x and y",
    "logical_or": "x or y",
    "logical_xor": "x or y, not both",
}


def _binary_function(op: str):
    def function(x, y, dtype=None):
        return binary(op, x, y, dtype)

    function.__name__ = function.__qualname__ = op
    of_what = (
        "1 or 0, as bool" if op in _TRUTH else "integers" if op in _BITWISE else "x's and y's type, promoted"
    )
    where = "GpSimd" if op == "power" else "Vector"
    function.__doc__ = (
        f"{_SHOWN[op]}, element by element ({where}).\n\n"
        "x and y are tiles with the same partitions and elements; one may be a column [P, 1], have "
        "free extents of 1, or be a number.\n"
        f"Without dtype the result is of {of_what}."
    )
    return function


def divide(x, y, dtype=None):
    """x / y: x times the reciprocal of y (Vector), as the arithmetic units have no division. Two roundings of
    float32 instead of one.

    x and y as for nl.add. Without dtype the result has the promoted type, float32 for integers.
    """
    if not isinstance(y, Tensor):
        if not isinstance(x, Tensor) or not is_number(y):
            raise TypeError(
                f"nl.divide wants two tensors, or a tensor and a number, not {type(x).__name__} and "
                f"{type(y).__name__}"
            )
        if float(y) == 0:
            raise KernelError("nl.divide by the number 0 [division]")
        return binary("multiply", x, 1.0 / float(y), floating(x, dtype))
    inverse = ndarray(y.shape, dtypes.float32)
    isa.reciprocal(inverse, y)
    if dtype is None:
        dtype = promoted(x.dtype, y.dtype) if isinstance(x, Tensor) else y.dtype
        dtype = dtype if dtype.name in FLOATS else dtypes.float32
    return binary("multiply", x, inverse, dtype)


def _remainder_type(x, y, dtype):
    if dtype is not None:
        return dtypes.dtype_of(dtype)
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        return promoted(x.dtype, y.dtype)
    tile, number = (x, y) if isinstance(x, Tensor) else (y, x)
    return tile.dtype if isinstance(number, _numbers.Integral) else floating(tile)


def mod(x, y, dtype=None):
    """x - y floor(x / y): the sign is y's. For quotients up to 2^24; exact where y's multiples up to x are
    float32 numbers.
    """
    rest = _multiple_taken(x, y, floor)
    # The quotient came by way of a reciprocal and may be one off: then the rest is below 0, or not below y.
    signed = binary("multiply", rest, y, dtypes.float32)
    rest = binary(
        "add",
        rest,
        binary("multiply", binary("less", signed, 0.0, dtypes.float32), y, dtypes.float32),
        dtypes.float32,
    )
    high = binary("greater_equal", _magnitude(rest), _magnitude(y), dtypes.float32)
    return binary("subtract", rest, binary("multiply", high, y, dtypes.float32), _remainder_type(x, y, dtype))


def fmod(x, y, dtype=None):
    """x - y trunc(x / y): the sign is x's. For quotients up to 2^24; exact where y's multiples up to x are
    float32 numbers.
    """
    rest = mod(_magnitude(x), _magnitude(y), dtypes.float32)
    if isinstance(x, Tensor):
        return binary("multiply", rest, _signs(x), _remainder_type(x, y, dtype))
    return binary("multiply", rest, -1.0 if x < 0 else 1.0, _remainder_type(x, y, dtype))


def _multiple_taken(x, y, rounding):
    whole = rounding(divide(x, y, dtypes.float32), dtypes.float32)
    return binary("subtract", x, binary("multiply", whole, y, dtypes.float32), dtypes.float32)


# --- One operand ---

_ACTIVATIONS = {
    "exp": "e to the power of x",
    "log": "the natural logarithm of x, for 2^-64 to 2^64",
    "sqrt": "the square root of x, for 2^-116 to 2^118",
    "tanh": "the hyperbolic tangent of x",
    "arctan": "the arc tangent of x, for -pi/2 to pi/2",
    "sigmoid": "1 / (1 + exp(-x))",
    "silu": "x sigmoid(x)",
    "silu_dx": "the derivative of silu",
    "gelu": "x times the normal distribution's integral up to x",
    "gelu_dx": "the derivative of gelu",
    "gelu_apprx_tanh": "gelu by its approximation with tanh",
    "gelu_apprx_sigmoid": "gelu by x sigmoid(1.702 x)",
    "gelu_apprx_sigmoid_dx": "the derivative of gelu_apprx_sigmoid",
    "mish": "x tanh(softplus(x))",
    "softplus": "log(1 + exp(x))",
    "erf": "the error function of x",
    "erf_dx": "the derivative of erf",
}
# Their values are whole numbers where x's are.
_WHOLE_ACTIVATIONS = {
    "abs": "the magnitude of x",
    "relu": "the larger of x and 0",
    "sign": "-1, 0 or 1",
    "square": "x times x",
}


def _activated(op: str, x, dtype):
    out = tile_like(x, dtype, op)
    isa.activation(out, operators.operator_named(op), x)
    return out


def _activation_function(op: str):
    whole = op in _WHOLE_ACTIVATIONS

    def function(x, dtype=None):
        if not isinstance(x, Tensor):
            raise TypeError(f"nl.{op} wants a tensor, not {type(x).__name__}")
        return _activated(op, x, dtype if whole else floating(x, dtype))

    function.__name__ = function.__qualname__ = op
    function.__doc__ = (
        f"{(_WHOLE_ACTIVATIONS if whole else _ACTIVATIONS)[op]}, element by element (Scalar).\n\n"
        f"Without dtype the result is of x's type{'' if whole else ', float32 for integers'}."
    )
    return function


def _magnitude(x):
    if not isinstance(x, Tensor):
        return abs(float(x))
    return _activated("abs", x, dtypes.float32)


def _signs(x):
    return _activated("sign", x, dtypes.float32)


def negative(x, dtype=None):
    """-x, element by element (Vector)."""
    return binary("multiply", x, -1, dtype)


def reciprocal(x, dtype=None):
    """1 / x, element by element (Vector). Without dtype the result is of x's type, float32 for integers."""
    out = tile_like(x, floating(x, dtype) if isinstance(x, Tensor) else dtype, "reciprocal")
    isa.reciprocal(out, x)
    return out


def rsqrt(x, dtype=None):
    """1 / sqrt(x), element by element (GpSimd, so x lies in SBUF). Without dtype the result is of x's type,
    float32 for integers.
    """
    if isinstance(x, Tensor) and buffers.is_psum(x.buffer):
        raise KernelError(
            "nl.rsqrt runs on GpSimd, which doesn't reach PSUM; nl.copy the tile to SBUF first [buffer]"
        )
    out = tile_like(x, floating(x, dtype) if isinstance(x, Tensor) else dtype, "rsqrt")
    isa.tensor_scalar(out, x, "rsqrt", 0.0, engine=isa.gpsimd_engine)
    return out


def logical_not(x, dtype=None):
    """1 where x is 0, else 0, as bool where dtype isn't given (Vector)."""
    return binary("equal", x, 0.0, dtype)


def invert(x, dtype=None):
    """The bits of integers x turned over (Vector)."""
    out = tile_like(x, dtype, "invert")
    isa.tensor_scalar(out, x, "invert", 0)
    return out


# --- Whole numbers: by conversion to int32, which rounds to even, put right where that went up ---


def _floored(x):
    """floor(x) as float32."""
    whole = ndarray(x.shape, dtypes.int32)
    isa.tensor_copy(whole, x)
    near = ndarray(x.shape, dtypes.float32)
    isa.tensor_copy(near, whole)
    over = ndarray(x.shape, dtypes.float32)
    isa.tensor_tensor(over, near, x if buffers.is_sbuf(x.buffer) else _copy(x), "greater")
    isa.tensor_tensor(near, near, over, "subtract")
    return near


def _is_whole(x) -> bool:
    if not isinstance(x, Tensor):
        raise TypeError(f"a tensor is wanted, not {type(x).__name__}")
    return x.dtype.name not in FLOATS


def floor(x, dtype=None):
    """The largest whole numbers not above x, for |x| < 2^31 (Vector, 4 to 5 instructions)."""
    return _copy(x if _is_whole(x) else _floored(x), dtype if dtype is not None else x.dtype)


def ceil(x, dtype=None):
    """The smallest whole numbers not below x, for |x| < 2^31 (Vector)."""
    if _is_whole(x):
        return _copy(x, dtype)
    return binary(
        "multiply",
        _floored(binary("multiply", x, -1.0, dtypes.float32)),
        -1.0,
        dtype if dtype is not None else x.dtype,
    )


def trunc(x, dtype=None):
    """x without its fraction, for |x| < 2^31 (Vector and Scalar)."""
    if _is_whole(x):
        return _copy(x, dtype)
    return binary("multiply", _floored(_magnitude(x)), _signs(x), dtype if dtype is not None else x.dtype)


# --- Angles. The Scalar engine's sine is right from -pi to pi only ---

# 2 pi in two parts; the first has so few bits that its multiples up to 2^16 turns are float32 numbers.
_TURN_HIGH = 6.28125
_TURN_LOW = 2 * _math.pi - _TURN_HIGH
_PI = 3.1415925  # the largest float32 number that isn't above pi


def _turned(x, shift: float):
    """x + shift brought into [-pi, pi], for |x| up to about 4 10^5.

    Near the ends the number of turns may be rounded the other way, by float32's last bit of x; what lies
    beyond is cut off. So the error is up to 10^-7 |x| there, as if x were its neighbour, and 3 10^-7
    elsewhere.
    """
    turns = ndarray(x.shape, dtypes.int32)
    isa.tensor_scalar(turns, x, "add", shift, op1="multiply", operand1=1.0 / (2 * _math.pi))
    whole = ndarray(x.shape, dtypes.float32)
    isa.tensor_copy(whole, turns)
    rest = ndarray(x.shape, dtypes.float32)
    isa.scalar_tensor_tensor(rest, whole, "multiply", -_TURN_HIGH, "add", x)
    isa.scalar_tensor_tensor(rest, whole, "multiply", -_TURN_LOW, "add", rest)
    isa.tensor_scalar(rest, rest, "add", shift, op1="minimum", operand1=_PI)
    isa.tensor_scalar(rest, rest, "maximum", -_PI)
    return rest


def _sine(x, shift: float, dtype, name: str):
    if not isinstance(x, Tensor):
        raise TypeError(f"nl.{name} wants a tensor, not {type(x).__name__}")
    return _activated("sin", _turned(x, shift), floating(x, dtype))


def sin(x, dtype=None):
    """The sine of x, brought into [-pi, pi] first (Vector, 6 instructions) and then looked up (Scalar)."""
    return _sine(x, 0.0, dtype, "sin")


def cos(x, dtype=None):
    """The cosine of x: sin(x + pi / 2)."""
    return _sine(x, _math.pi / 2, dtype, "cos")


def tan(x, dtype=None):
    """The tangent of x: sin(x) / cos(x)."""
    return divide(sin(x, dtypes.float32), cos(x, dtypes.float32), floating(x, dtype))


# --- Choices ---


def where(condition, x, y, dtype=None):
    """x where condition isn't 0, else y (Vector: tensor_copy_predicated over a copy of y).

    condition is a tile of any type; x and y are tiles of as many partitions and elements, or numbers. Without
    dtype the result has the type of the tiles among x and y, promoted; of two numbers float32, or int32 where
    both are whole.
    """
    if not isinstance(condition, Tensor):
        raise TypeError(
            f"nl.where: the condition is a tensor, not {type(condition).__name__}; of a Python bool, "
            "say `x if c else y`"
        )
    if dtype is not None:
        kind = dtypes.dtype_of(dtype)
    elif isinstance(x, Tensor) or isinstance(y, Tensor):
        tiles = [t.dtype for t in (x, y) if isinstance(t, Tensor)]
        kind = promoted(tiles[0], tiles[-1])
        if (
            any(is_number(n) and not isinstance(n, _numbers.Integral) for n in (x, y))
            and kind.name not in FLOATS
        ):
            kind = dtypes.float32
    else:
        kind = (
            dtypes.int32
            if isinstance(x, _numbers.Integral) and isinstance(y, _numbers.Integral)
            else dtypes.float32
        )
    shape = next((t.shape for t in (x, y) if isinstance(t, Tensor)), condition.shape)
    out = ndarray(shape, kind)
    if isinstance(y, Tensor):
        isa.tensor_copy(out, y)
    else:
        isa.memset(out, float(y) if kind.name in FLOATS else int(y))
    chosen = condition
    if condition.dtype.name == "bool":
        chosen = condition.view(dtypes.uint8)
    elif condition.dtype.name not in ("uint8", "uint16", "uint32"):
        chosen = binary("not_equal", condition, 0.0, dtypes.uint8)
    source = x
    if isinstance(x, Tensor):
        if x.stored_dtype is not out.stored_dtype or (
            buffers.is_psum(x.buffer) and buffers.is_psum(chosen.buffer)
        ):
            source = _copy(x, kind)
    else:
        source = float(x) if kind.name in FLOATS else int(x)
    isa.tensor_copy_predicated(out, source, chosen)
    return out


for _name in _SHOWN:
    operators.operator_named(_name).function = _binary_function(_name)
for _name in (*_ACTIVATIONS, *_WHOLE_ACTIVATIONS):
    operators.operator_named(_name).function = _activation_function(_name)
for _function in (
    divide,
    floor,
    ceil,
    trunc,
    mod,
    fmod,
    sin,
    cos,
    tan,
    negative,
    rsqrt,
    reciprocal,
    logical_not,
    invert,
):
    operators.operator_named(_function.__name__).function = _function
operators.operator_named("copy").function = _copy
