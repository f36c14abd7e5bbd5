"""nl's functions of elements, as functions, as tokens of instructions and as Python's operators, against
NumPy.
"""

import copy
import math
import pickle

import ml_dtypes
import numpy as np
import pytest
from isa_kernels import BF16, F16, F32, numbers, rounded, tile

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl
from headway.nki import operators
from headway.nki.errors import KernelError
from headway.nki.kernel import tensors_of


def computed(body, *arrays, buffer=nl.sbuf, simulate=False):
    """What ``body(*tiles)`` returns."""

    def kernel(*given):
        result = body(*(tile(a, buffer) for a in given))
        outs = []
        for t in tensors_of(result):
            out = nl.ndarray(t.shape, t.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(out, nl.copy(t) if t.buffer == nl.psum else t)
            outs.append(out)
        return outs[0] if len(outs) == 1 else tuple(outs)

    kernel = nki.simulate(kernel) if simulate else nki.jit(kernel)
    return kernel(*arrays)


def close(got, wanted, relative=2e-6, absolute=2e-6):
    assert got.shape == wanted.shape, (got.shape, wanted.shape)
    np.testing.assert_allclose(
        got.astype(np.float64), wanted.astype(np.float64), rtol=relative, atol=absolute
    )


def same(got, wanted):
    assert got.shape == wanted.shape, (got.shape, wanted.shape)
    np.testing.assert_array_equal(got.astype(np.float64), np.asarray(wanted).astype(np.float64))


# --- Two operands ---

ARITHMETIC = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
TRUTH = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
BITS = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
}
MIXED = [
    (F32, F32),
    (BF16, BF16),
    (BF16, F16),
    (F32, np.int32),
    (np.uint8, np.int8),
    (F16, np.uint8),
    (np.int16, np.int16),
]
# By the rules of NKI 0.1.
RESULTS = [F32, BF16, F32, F32, np.int16, F16, np.int16]


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("types, kind", list(zip(MIXED, RESULTS)), ids=str)
def test_arithmetic_of_tiles(rng, op, types, kind):
    x, y = numbers(rng, (64, 30), types[0]), numbers(rng, (64, 30), types[1])
    got = computed(getattr(nl, op), x, y)
    assert got.dtype == kind
    same(got, rounded(ARITHMETIC[op](x.astype(F32), y.astype(F32)), kind))


@pytest.mark.parametrize("op", TRUTH)
@pytest.mark.parametrize("dtype", [F32, np.int32])
def test_truth_of_tiles(rng, op, dtype):
    x, y = rng.integers(-2, 3, (16, 20)).astype(dtype), rng.integers(-2, 3, (16, 20)).astype(dtype)
    got = computed(getattr(nl, op), x, y)
    assert got.dtype == np.bool_
    same(got, TRUTH[op](x, y))
    got = computed(lambda x: getattr(nl, op)(x, 1, dtype=nl.float32), x)
    assert got.dtype == F32
    same(got, TRUTH[op](x, 1))


@pytest.mark.parametrize("op", BITS)
@pytest.mark.parametrize("dtype", [np.uint32, np.int16, np.uint8], ids=str)
def test_bits(rng, op, dtype):
    x = rng.integers(0, 100, (16, 20)).astype(dtype)
    y = rng.integers(0, 7, (16, 20)).astype(dtype)
    tiles, number = computed(lambda x, y: (getattr(nl, op)(x, y), getattr(nl, op)(x, 3)), x, y)
    same(tiles, BITS[op](x, y))
    same(number, BITS[op](x, dtype(3)))


@pytest.mark.parametrize("op", ["add", "subtract", "multiply"])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32], ids=str)
def test_integers_are_exact(rng, op, dtype):
    x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (32, 8)).astype(dtype)
    y = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (32, 8)).astype(dtype)
    whole, column = computed(lambda x, y: (getattr(nl, op)(x, y), getattr(nl, op)(x, y[:, 0:1])), x, y)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(whole, ARITHMETIC[op](x, y))
        np.testing.assert_array_equal(column, ARITHMETIC[op](x, y[:, 0:1]))


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "maximum", "divide", "greater", "power"])
@pytest.mark.parametrize("buffer", [nl.sbuf, nl.psum], ids=str)
def test_columns_and_extents_of_one(rng, op, buffer):
    x = rng.uniform(0.5, 2, (32, 6, 10)).astype(F32)
    c, r = rng.uniform(0.5, 2, (32, 1)).astype(F32), rng.uniform(0.5, 2, (32, 6, 1)).astype(F32)
    if op == "power" and buffer is nl.psum:  # GpSimd, which computes it, doesn't reach PSUM
        with pytest.raises(KernelError, match="psum"):
            computed(lambda x: nl.power(x, 2.0), x, buffer=buffer)
        return
    f = getattr(nl, op)

    def body(x, c, r):
        flat = x.reshape((32, 60))
        return f(flat, c), f(c, flat), f(x, r), f(r, x), f(x, x[:, 0:1])

    got = computed(body, x, c, r, buffer=buffer)
    g = {"divide": np.divide, "greater": np.greater, "power": np.power, **ARITHMETIC}[op]
    x, c, r = x.astype(np.float64), c.astype(np.float64), r.astype(np.float64)
    wanted = [g(x.reshape(32, 60), c), g(c, x.reshape(32, 60)), g(x, r), g(r, x), g(x, x[:, 0:1])]
    for a, b in zip(got, wanted):
        close(a, b, 1e-6)


def test_numbers_on_both_sides(rng):
    x = rng.uniform(0.5, 2, (16, 12)).astype(F32)
    got = computed(
        lambda x: (
            nl.subtract(3, x),
            nl.subtract(x, 3.5),
            nl.divide(1.0, x),
            nl.divide(x, 4),
            nl.power(x, 3),
            nl.maximum(1.0, x),
        ),
        x,
    )
    wanted = 3 - x, x - F32(3.5), 1 / x, x / 4, x**3, np.maximum(1, x)
    for a, b in zip(got, wanted):
        close(a, b)


def test_numbers_and_integers(rng):
    x = rng.integers(-50, 50, (16, 12)).astype(np.int32)
    whole, half, npy, typed = computed(
        lambda x: (x * 3, x * 0.5, x + np.float32(0.25), nl.add(x, 0.5, dtype=nl.bfloat16)), x
    )
    assert (whole.dtype, half.dtype, npy.dtype, typed.dtype) == (np.int32, F32, F32, BF16)
    same(whole, x * 3)
    same(half, x * 0.5)
    same(npy, x + 0.25)
    same(typed, (x + 0.5).astype(BF16))


def test_both_in_psum(rng):
    x, y = numbers(rng, (64, 20)), numbers(rng, (64, 20))
    product, chosen = computed(lambda x, y: (x * y, nl.where(x > y, x, y)), x, y, buffer=nl.psum)
    same(product, x * y)
    same(chosen, np.maximum(x, y))


def test_divide_takes_two_roundings(rng):
    x, y = rng.uniform(1, 2, (128, 200)).astype(F32), rng.uniform(1, 2, (128, 200)).astype(F32)
    got = computed(nl.divide, x, y)
    error = np.abs(got.astype(np.float64) * y - x) / x
    assert 0 < error.max() < 2 * 2.0**-24 * 1.01


@pytest.mark.parametrize("name, reference", [("mod", np.mod), ("fmod", np.fmod)])
def test_remainders(rng, name, reference):
    x = rng.integers(-1000, 1000, (128, 60)).astype(F32) / 4
    y = (rng.integers(1, 60, (128, 60)) * rng.choice([-1, 1], (128, 60))).astype(F32) / 4
    f = getattr(nl, name)
    got = computed(lambda x, y: (f(x, y), f(x, 3), f(x, -0.75), f(100.5, y)), x, y)
    for a, b in zip(got, (reference(x, y), reference(x, 3), reference(x, -0.75), reference(100.5, y))):
        same(np.abs(a), np.abs(b))  # the sign of zero is open
        same(a, b)


# --- One operand ---


def gelu(x):
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu_dx(x):
    return sigmoid(x) * (1 + x * (1 - sigmoid(x)))


erf = np.vectorize(math.erf)

FUNCTIONS = {
    "exp": (np.exp, -10, 10),
    "log": (np.log, 0.01, 100),
    "sqrt": (np.sqrt, 0.01, 100),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.01, 100),
    "reciprocal": (lambda x: 1 / x, 0.1, 100),
    "sin": (np.sin, -60, 60),
    "cos": (np.cos, -60, 60),
    "tan": (np.tan, -1.4, 1.4),
    "tanh": (np.tanh, -4, 4),
    "arctan": (np.arctan, -1.5, 1.5),
    "sigmoid": (sigmoid, -8, 8),
    "silu": (lambda x: x * sigmoid(x), -8, 8),
    "silu_dx": (silu_dx, -8, 8),
    "gelu": (gelu, -5, 5),
    "gelu_dx": (
        lambda x: 0.5 * (1 + erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi),
        -5,
        5,
    ),
    "gelu_apprx_tanh": (
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        -5,
        5,
    ),
    "gelu_apprx_sigmoid": (lambda x: x * sigmoid(1.702 * x), -5, 5),
    "gelu_apprx_sigmoid_dx": (
        lambda x: sigmoid(1.702 * x) * (1 + 1.702 * x * (1 - sigmoid(1.702 * x))),
        -5,
        5,
    ),
    "mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), -8, 8),
    "softplus": (lambda x: np.log1p(np.exp(x)), -8, 8),
    "erf": (erf, -3, 3),
    "erf_dx": (lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x), -3, 3),
    "abs": (np.abs, -5, 5),
    "square": (np.square, -5, 5),
    "relu": (lambda x: np.maximum(x, 0), -5, 5),
    "sign": (np.sign, -5, 5),
    "negative": (np.negative, -5, 5),
    "floor": (np.floor, -900, 900),
    "ceil": (np.ceil, -900, 900),
    "trunc": (np.trunc, -900, 900),
    "logical_not": (np.logical_not, -5, 5),
    "copy": (lambda x: x, -5, 5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_functions(rng, name, dtype):
    reference, low, high = FUNCTIONS[name]
    x = numbers(rng, (64, 3, 25), dtype, low, high)
    x[0, 0, :4] = np.array([max(low, 0.5), 1, max(low, -1), max(low, 0.25)], dtype)
    got = computed(getattr(nl, name), x)
    assert got.dtype == (np.bool_ if name == "logical_not" else dtype)
    wanted = reference(x.astype(np.float64))
    if dtype == F32:
        close(got, wanted, 4e-6, 4e-6 if name in ("sin", "cos") else 1e-6)
    else:
        close(got, wanted.astype(dtype), 2.0**-8 * 1.01, 1e-5)


def test_all_functions_are_tested():
    functions = {name for name in operators.UNARY if getattr(nl, name).function is not None}
    assert functions == {*FUNCTIONS, "invert"}
    binary = {name for name in operators.BINARY if getattr(nl, name).function is not None}
    assert binary == {*ARITHMETIC, *TRUTH, *BITS, "divide", "power", "mod", "fmod", "abs_max", "abs_min"}


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc"])
def test_whole_numbers(name):
    x = np.array(
        [[-2.5, -2, -1.5, -0.5, -0.25, 0, 0.25, 0.5, 1.5, 2, 2.5, 1e6 + 0.5, -(2.0**30), 2.0**23 + 1]], F32
    )
    got, integers = computed(
        lambda x, i: (getattr(nl, name)(x), getattr(nl, name)(i)), x, np.array([[2**30 + 1, -7]], np.int32)
    )
    same(got, getattr(np, name)(x))
    np.testing.assert_array_equal(integers, np.array([[2**30 + 1, -7]]))


@pytest.mark.parametrize("far", [10, 300, 1e4, 1e5])
def test_sine_far_out(rng, far):
    x = rng.uniform(-far, far, (128, 500)).astype(F32)
    sin, cos = computed(lambda x: (nl.sin(x), nl.cos(x)), x)
    # At worst x is taken for its neighbour among float32 numbers; mostly it is taken as it is.
    for got, wanted in ((sin, np.sin(x.astype(np.float64))), (cos, np.cos(x.astype(np.float64)))):
        close(got, wanted, 0, 3e-7 + 1e-7 * far)
        assert np.median(np.abs(got - wanted)) < 1e-6


def test_invert(rng):
    x = rng.integers(0, 2**16, (8, 8)).astype(np.uint16)
    same(computed(nl.invert, x), ~x)
    same(computed(lambda x: ~x, x), ~x)


@pytest.mark.parametrize(
    "name", ["abs", "relu", "square", "sign", "negative", "exp", "sqrt", "sin", "reciprocal", "rsqrt"]
)
def test_functions_of_integers(rng, name):
    reference, low, _ = FUNCTIONS[name]
    x = rng.integers(1 if low > 0 else -10, 11, (16, 12)).astype(np.int32)
    got = computed(getattr(nl, name), x)
    assert got.dtype == (np.int32 if name in ("abs", "relu", "square", "sign", "negative") else F32)
    close(got, reference(x.astype(np.float64)), 4e-6, 4e-6)


def test_dtype_of_the_result(rng):
    x = numbers(rng, (16, 12))
    for name in ("exp", "floor", "reciprocal", "sin", "copy", "negative", "square"):
        got = computed(lambda x: getattr(nl, name)(nl.abs(x), dtype=nl.bfloat16), x)  # noqa: B023
        assert got.dtype == BF16
        close(got, FUNCTIONS[name][0](np.abs(x).astype(np.float64)), 2.0**-8, 1e-6)


@pytest.mark.parametrize("dtype", [F32, BF16, np.int32, np.uint8], ids=str)
@pytest.mark.parametrize("mask", [np.uint8, F32, np.bool_, np.int16], ids=str)
def test_where(rng, dtype, mask):
    c = rng.integers(0, 2, (32, 20)).astype(mask)
    x, y = numbers(rng, (32, 20), dtype), numbers(rng, (32, 20), dtype)
    tiles, left, right = computed(
        lambda c, x, y: (nl.where(c, x, y), nl.where(c, 3, y), nl.where(c, x, 2)), c, x, y
    )
    assert tiles.dtype == left.dtype == right.dtype == dtype
    same(tiles, np.where(c, x, y))
    same(left, np.where(c, np.array(3, dtype), y))
    same(right, np.where(c, x, np.array(2, dtype)))


def test_where_of_mixed_types(rng):
    c = rng.integers(0, 2, (32, 20)).astype(F32)
    x, y = numbers(rng, (32, 20), np.int32), numbers(rng, (32, 20), BF16)
    mixed, halves, whole, fraction = computed(
        lambda c, x, y: (nl.where(c, x, y), nl.where(c, 0.5, -1), nl.where(c, 1, 0), nl.where(c, x, 0.5)),
        c,
        x,
        y,
    )
    assert (mixed.dtype, halves.dtype, whole.dtype, fraction.dtype) == (BF16, F32, np.int32, F32)
    same(mixed, np.where(c, x.astype(BF16), y))
    same(halves, np.where(c, 0.5, -1))
    same(whole, np.where(c, 1, 0))
    same(fraction, np.where(c, x, 0.5))


# --- Python's operators ---


def test_python_operators(rng):
    x, y = rng.uniform(0.5, 2, (16, 12)).astype(F32), rng.uniform(0.5, 2, (16, 12)).astype(F32)
    expressions = [
        lambda x, y: x + y,
        lambda x, y: x - y * 2.0,
        lambda x, y: 1.0 - x,
        lambda x, y: 2 * x / y,
        lambda x, y: 1 / x,
        lambda x, y: -x + abs(-y),
        lambda x, y: x**2 + y**0.5,
        lambda x, y: (x > y) + (x <= 1.0) * 2.0,
        lambda x, y: (1.5 < x) * y,
        lambda x, y: x % 0.25,
        lambda x, y: +x,
        lambda x, y: np.float32(2) * x + np.float64(0.5),
    ]
    got = computed(lambda x, y: tuple(e(x, y) for e in expressions), x, y)
    for value, expression in zip(got, expressions):
        close(value, np.asarray(expression(x.astype(np.float64), y.astype(np.float64)), np.float64), 4e-6)


def test_python_operators_on_bits(rng):
    x, y = rng.integers(0, 2**20, (16, 12), np.uint32), rng.integers(0, 2**20, (16, 12), np.uint32)
    expressions = [
        lambda x, y: (x & y) | (x ^ 0xFF),
        lambda x, y: (x << 3) ^ (y >> 2),
        lambda x, y: ~x & 0xFFFF,
    ]
    got = computed(lambda x, y: tuple(e(x, y) for e in expressions), x, y)
    for value, expression in zip(got, expressions):
        same(value, expression(x, y))


def test_in_place(rng):
    x, y = rng.uniform(0.5, 2, (16, 12)).astype(F32), rng.uniform(0.5, 2, (16, 12)).astype(F32)

    def body(x, y):
        before = x
        x += y
        x *= 2
        x -= y[:, 0:1]
        x /= y
        x /= 2.0
        x[:, 2:5] += 1.0
        x[:, 5:8] %= 0.5
        assert before is x
        return before

    def reference(x, y):
        x = x.astype(np.float64)
        x = ((x + y) * 2 - y[:, 0:1]) / y / 2.0
        x[:, 2:5] += 1.0
        x[:, 5:8] %= 0.5
        return x

    got, wanted = computed(body, x, y), reference(x, y)
    # A remainder jumps where the quotient is near a whole number.
    safe = np.abs((wanted - 0.25) % 0.5) < 0.49
    close(got[safe], wanted[safe], 1e-5, 1e-5)


def test_in_place_keeps_the_dtype(rng):
    x = numbers(rng, (16, 12), BF16)

    def body(x):
        x += 1.0
        x *= nl.copy(x, nl.float32)
        return x

    got = computed(body, x)
    assert got.dtype == BF16
    once = (x.astype(F32) + 1).astype(BF16).astype(F32)
    same(got, (once * once).astype(BF16))


def test_in_place_in_a_register_loop(rng):
    x = numbers(rng, (16, 12))

    def body(x):
        total = nl.zeros(x.shape, nl.float32)
        for _ in nl.dynamic_range(0, 5):
            total += x
        return total

    close(computed(body, x), 5 * x.astype(np.float64))


def test_equality_is_identity():
    def body(x):
        assert x == x and not (x == x[:, 0:2]) and x != nl.copy(x) and x in {x}
        return x

    computed(body, np.ones((4, 4), F32))


@pytest.mark.parametrize(
    "body, text",
    [
        (lambda x: x + "a", "unsupported operand"),
        (lambda x: [1] * x, "unsupported operand|multiply sequence|can't multiply"),
        (lambda x: nl.add(x, None), "nl.add wants"),
        (lambda x: nl.exp(2.0), "nl.exp wants a tensor"),
        (lambda x: nl.bypass(x), "no function"),
        (lambda x: nl.add(x, x, mask=None), "mask"),
        (lambda x: nl.bitwise_and(nl.copy(x, nl.int32), 1.5), "bits"),
        (lambda x: nl.where(True, x, x), "condition"),
        (lambda x: nl.floor(1.5), "tensor"),
    ],
)
def test_mistyped(body, text):
    with pytest.raises(TypeError, match=text):
        computed(body, np.ones((4, 4), F32))


@pytest.mark.parametrize(
    "body, rule",
    [
        (lambda x: x + x[:, 0:3], "shape"),
        (lambda x: x + x[0:2], "shape"),
        (lambda x: nl.divide(x, 0), "division"),
        (lambda x: nl.bitwise_and(x, 1), "dtype|bit-width|op"),
        (lambda x: nl.rsqrt(nl.transpose(x)), "buffer"),
        (lambda x: nl.abs_max(x, x), "generation"),
    ],
)
def test_refused(body, rule):
    with pytest.raises(KernelError, match=rf"test_operators.py:\d+|\[({rule})\]") as caught:
        computed(body, np.ones((4, 4), F32))
    assert any(f"[{r}]" in str(caught.value) for r in rule.split("|")), str(caught.value)


# --- Tokens ---


def test_operators_are_one_object():
    assert nl.add is operators.add is operators.operator_named("add") and nl.add != nl.subtract
    assert pickle.loads(pickle.dumps(nl.exp)) is nl.exp and copy.deepcopy(nl.gelu) is nl.gelu
    assert {nl.add: 1, nl.exp: 2}[nl.exp] == 2
    assert (nl.add.name, nl.add.__name__, repr(nl.add)) == ("add", "add", "nl.add")
    assert "x + y" in nl.add.__doc__ and "Scalar" in nl.exp.__doc__ and nl.bypass.__doc__


def test_every_operator_has_a_text():
    for name in (*operators.BINARY, *operators.UNARY, *operators.OTHER):
        assert getattr(nl, name) is operators.operator_named(name)
        assert len(getattr(nl, name).__doc__) > 8


def test_operators_as_tokens(rng):
    x, y = numbers(rng, (16, 12)), numbers(rng, (16, 12))

    def body(x, y):
        outs = [nl.ndarray(x.shape, nl.float32) for _ in range(3)]
        nisa.tensor_tensor(outs[0], x, y, op=nl.add)
        nisa.tensor_tensor(outs[1], x, y, op=np.add)
        nisa.activation(outs[2], nl.exp, x)
        return tuple(outs)

    added, numpys, raised = computed(body, x, y)
    same(added, x + y)
    same(numpys, x + y)
    close(raised, np.exp(x.astype(np.float64)))


def test_functions_outside_a_kernel():
    with pytest.raises(KernelError, match=r"\[outside\]"):
        nl.zeros((4, 4), nl.float32)
    with pytest.raises(TypeError):
        nl.add(1, 2)


def test_ml_dtypes_by_value(rng):
    x = numbers(rng, (8, 8), ml_dtypes.float8_e4m3)
    assert computed(lambda x: x * 2.0, x).dtype == ml_dtypes.float8_e4m3
    same(computed(lambda x: nl.multiply(x, 2.0, dtype=nl.float32), x), x.astype(F32) * 2)
