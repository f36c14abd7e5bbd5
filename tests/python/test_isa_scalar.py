"""nki.isa: functions of the Scalar engine."""

import math

import numpy as np
import pytest
from isa_kernels import BF16, F16, F32, close, mistyped, numbers, refused, result, run, same, tile

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl

erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def phi(x):
    return 0.5 * (1 + erf(x / math.sqrt(2)))


def gelu_tanh_inner(x):
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)


# Function, its values in float64, the range of inputs.
FUNCTIONS = {
    "copy": (lambda x: x, (-4, 4)),
    "square": (np.square, (-4, 4)),
    "relu": (lambda x: np.maximum(x, 0), (-4, 4)),
    "prelu": (lambda x: np.maximum(x, 0), (-4, 4)),
    "abs": (np.abs, (-4, 4)),
    "sign": (np.sign, (-4, 4)),
    "exp": (np.exp, (-8, 8)),
    "log": (np.log, (0.01, 100)),
    "sqrt": (np.sqrt, (0.01, 100)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0.01, 100)),
    "reciprocal": (lambda x: 1 / x, (0.01, 100)),
    "sin": (np.sin, (-3.14, 3.14)),
    "arctan": (np.arctan, (-1.5, 1.5)),
    "sigmoid": (sigmoid, (-8, 8)),
    "tanh": (np.tanh, (-4, 4)),
    "silu": (lambda x: x * sigmoid(x), (-8, 8)),
    "silu_dx": (lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x))), (-8, 8)),
    "gelu": (lambda x: x * phi(x), (-4, 4)),
    "gelu_dx": (lambda x: phi(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi), (-4, 4)),
    "gelu_apprx_tanh": (lambda x: x * sigmoid(2 * gelu_tanh_inner(x)), (-4, 4)),
    "gelu_apprx_sigmoid": (lambda x: x * sigmoid(1.702 * x), (-4, 4)),
    "gelu_apprx_sigmoid_dx": (
        lambda x: sigmoid(1.702 * x) * (1 + 1.702 * x * (1 - sigmoid(1.702 * x))),
        (-4, 4),
    ),
    "mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), (-4, 4)),
    "softplus": (lambda x: np.log1p(np.exp(x)), (-4, 4)),
    "erf": (erf, (-4, 4)),
    "erf_dx": (lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x), (-4, 4)),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_activation(rng, function):
    reference, (low, high) = FUNCTIONS[function]
    a = numbers(rng, (128, 70), F32, low, high)
    got = run(lambda dst, x: nisa.activation(dst, getattr(nl, function), x), [((128, 70), nl.float32)], a)
    close(got, reference(a.astype(np.float64)), 3e-6, 3e-7)


@pytest.mark.parametrize(
    "op, reference",
    [(np.exp, np.exp), (np.square, np.square), (np.tanh, np.tanh), ("relu", lambda x: np.maximum(x, 0))],
)
def test_activation_takes_functions_of_numpy_and_names(rng, op, reference):
    a = numbers(rng, (4, 9))
    got = run(lambda dst, x: nisa.activation(dst, op, x), [((4, 9), nl.float32)], a)
    close(got, reference(a.astype(np.float64)), 3e-6, 3e-7)


@pytest.mark.parametrize(
    "dtypes",
    [(F32, F32), (BF16, F32), (F32, BF16), (np.int32, F16)],
    ids=lambda d: f"{np.dtype(d[0])}-{np.dtype(d[1])}",
)
@pytest.mark.parametrize("buffers", [(nl.sbuf, nl.sbuf), (nl.psum, nl.sbuf), (nl.sbuf, nl.psum)], ids=str)
def test_activation_dtypes_and_buffers(rng, dtypes, buffers):
    a = numbers(rng, (64, 33), dtypes[0])
    got = run(
        lambda dst, x: nisa.activation(dst, nl.copy, x, scale=0.5, bias=0.25),
        [((64, 33), dtypes[1])],
        a,
        buffers=[buffers[0]],
        out_buffers=[buffers[1]],
    )
    same(got, (a.astype(F32) * F32(0.5) + F32(0.25)).astype(dtypes[1]))


def test_activation_scale_and_bias_by_partition(rng):
    a, scale, bias = numbers(rng, (32, 50)), numbers(rng, (32, 1)), numbers(rng, (32, 1), BF16)
    got = run(
        lambda dst, x, s, b: nisa.activation(dst, nl.copy, x, b, s), [((32, 50), nl.float32)], a, scale, bias
    )
    same(got, a * scale + bias.astype(F32))


def test_activation_without_bias_keeps_the_sign_of_zero():
    got = run(
        lambda dst, x: nisa.activation(dst, nl.copy, x), [((1, 2), nl.float32)], np.array([[-0.0, 0.0]], F32)
    )
    assert list(np.signbit(got[0])) == [True, False]


@pytest.mark.parametrize("shape", [(1, 1), (128, 512), (96, 3)])
def test_activation_reduce(rng, shape):
    a = numbers(rng, shape)
    out, total = run(
        lambda dst, res, x: nisa.activation_reduce(dst, nl.exp, x, nl.add, res, None, 0.5),
        [(shape, nl.bfloat16), ((shape[0], 1), nl.float32)],
        a,
    )
    wanted = np.exp(0.5 * a.astype(np.float64))
    close(out, wanted, 2**-8)
    close(total, wanted.sum(1, keepdims=True), 2e-6)


def test_activation_accumulates_over_instructions(rng):
    a = numbers(rng, (16, 3, 20))

    @nki.jit
    def kernel(a):
        x = tile(a)
        y = nl.ndarray((16, 20), nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((16, 1), nl.float32, buffer=nl.sbuf)
        nisa.activation(y, nl.copy, x[:, 0], reduce_cmd=nisa.reduce_cmd.reset)
        for i in range(3):
            nisa.activation(
                y,
                nl.square,
                x[:, i],
                reduce_op=nl.add,
                reduce_cmd=nisa.reduce_cmd.reduce,
                reduce_res=total if i == 2 else None,
            )
        return result(total)

    close(kernel(a), (a.astype(np.float64) ** 2).sum((1, 2))[:, None], 2e-6)


def test_activation_warns_outside_a_valid_range():
    with pytest.warns(nki.errors.KernelWarning, match=r"activation, data.*\[activation-range\]"):
        got = run(
            lambda dst, x: nisa.activation(dst, nl.log, x),
            [((1, 2), nl.float32)],
            np.array([[-1.0, 1.0]], F32),
        )
    assert np.isnan(got[0, 0]) and got[0, 1] == 0


def activated(shape, dtype=nl.float32, op=nl.exp, **options):
    return lambda x, *rest: nisa.activation(nl.ndarray(shape, dtype, buffer=nl.sbuf), op, x, **options)


@pytest.mark.parametrize(
    "rule, parameter, body",
    [
        ("shape", "dst", activated((4, 9))),
        ("partitions", "dst", activated((5, 8))),
        ("dtype", "dst", activated((4, 8), nl.float8_e5m2_x4)),
        (
            "reduce-op",
            "reduce_op",
            activated((4, 8), reduce_op=nl.maximum, reduce_cmd=nisa.reduce_cmd.reduce),
        ),
        ("reduce-op", "reduce_op", activated((4, 8), reduce_cmd=nisa.reduce_cmd.reset_reduce)),
        (
            "reduce-cmd",
            "reduce_cmd",
            activated((4, 8), reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.load_reduce),
        ),
    ],
)
def test_activation_refuses(rng, rule, parameter, body):
    refused(nisa.activation, rule, parameter, body, numbers(rng, (4, 8)))


def test_activation_operands_are_checked(rng):
    a, b = numbers(rng, (4, 8)), numbers(rng, (4, 1), BF16)
    with_scale = lambda x, s: nisa.activation(x, nl.exp, x, scale=s)  # noqa: E731
    refused(nisa.activation, "dtype", "scale", with_scale, a, b)
    refused(nisa.activation, "shape", "scale", with_scale, a, numbers(rng, (4, 2)))
    bias = lambda x: nisa.activation(x, nl.exp, x, bias=1.0)  # noqa: E731
    refused(nisa.activation, "bias-vector", "bias", bias, a, platform="trn1")
    refused(
        nisa.activation_reduce,
        "shape",
        "reduce_res",
        lambda x: nisa.activation_reduce(x, nl.exp, x, nl.add, x),
        a,
    )

    def from_hbm(x):
        nisa.activation(x, nl.exp, nl.ndarray((4, 8), nl.float32, buffer=nl.private_hbm))

    refused(nisa.activation, "buffer", "data", from_hbm, a)


def test_activate2_is_of_the_next_generation(rng):
    body = lambda x: nisa.activate2(x, nl.exp, x, 1.0, 0.0, nl.multiply, nl.add)  # noqa: E731
    refused(nisa.activate2, "generation", None, body, numbers(rng, (4, 8)))


def test_wrong_types_name_instruction_parameter_and_what_is_wanted():
    tensor = lambda: nl.ndarray((4, 4), nl.float32, buffer=nl.sbuf)  # noqa: E731
    mistyped(lambda: nisa.activation(tensor(), nl.power, tensor()), "activation", "op", "gelu", "power")
    mistyped(lambda: nisa.activation(tensor(), nl.exp, [1.0]), "activation", "data", "a tensor", "list")
    mistyped(lambda: nisa.activation(tensor(), nl.exp, tensor(), scale="2"), "activation", "scale", "number")
    mistyped(
        lambda: nisa.activation(tensor(), nl.exp, tensor(), bias=np.zeros((4, 1))),
        "activation",
        "bias",
        "number",
        "ndarray",
    )
    mistyped(
        lambda: nisa.activation(nl.float32, nl.exp, tensor()), "activation", "dst", "a tensor", "float32"
    )
