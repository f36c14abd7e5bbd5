"""nki.isa: reductions and scans."""

import numpy as np
import pytest
from isa_kernels import BF16, F32, close, numbers, result, run, same, tile

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl


@pytest.mark.parametrize(
    "shape, axis",
    [
        ((128, 40), 1),
        ((16, 4, 6), (1, 2)),
        ((16, 4, 6), 2),
        ((16, 4, 6), -1),
        ((8, 3, 4, 5), (2, 3)),
        ((8, 3, 4, 5), [1, 2, 3]),
    ],
)
@pytest.mark.parametrize("op", ["add", "maximum", "minimum", "multiply"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_tensor_reduce(rng, shape, axis, op, keepdims):
    a = numbers(rng, shape, low=0.5, high=1.5)
    axes = tuple(axis) if isinstance(axis, list) else axis
    wanted = {"add": np.sum, "maximum": np.max, "minimum": np.min, "multiply": np.prod}[op](
        a.astype(np.float64), axis=axes, keepdims=keepdims
    )
    on_chip = wanted.shape if wanted.ndim > 1 else (*wanted.shape, 1)
    got = run(
        lambda dst, x: nisa.tensor_reduce(dst, getattr(nl, op), x, axis, keepdims=keepdims),
        [(on_chip, nl.float32)],
        a,
    )
    close(got.reshape(wanted.shape), wanted, 1e-5)


def test_tensor_reduce_negates_and_logic_and_bits(rng):
    a = numbers(rng, (8, 20), BF16)
    got = run(
        lambda dst, x: nisa.tensor_reduce(dst, nl.maximum, x, 1, negate=True), [((8, 1), nl.float32)], a
    )
    same(got, -a.astype(F32).max(1, keepdims=True))
    b = rng.integers(0, 256, (8, 20)).astype(np.uint8)
    got = run(lambda dst, x: nisa.tensor_reduce(dst, nl.bitwise_or, x, axis=(1,)), [((8, 1), nl.uint8)], b)
    same(got, np.bitwise_or.reduce(b, axis=1, keepdims=True))


REDUCTIONS = {
    "add": (np.sum, 0.0),
    "multiply": (np.prod, 1.0),
    "maximum": (np.max, -np.inf),
    "minimum": (np.min, np.inf),
}


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_tensor_scalar_reduce(rng, op, dtype):
    a, s = numbers(rng, (64, 24), dtype, 0.5, 1.5), numbers(rng, (64, 1), low=0.5, high=1.5)
    out, total = run(
        lambda dst, res, x, t: nisa.tensor_scalar_reduce(dst, x, nl.multiply, t, getattr(nl, op), res),
        [((64, 24), dtype), ((64, 1), nl.float32)],
        a,
        s,
    )
    product = a.astype(F32) * s
    same(out, product.astype(dtype))
    close(total, REDUCTIONS[op][0](product.astype(np.float64), axis=1, keepdims=True), 1e-5)


def test_tensor_scalar_reduce_commands(rng):
    a, first = numbers(rng, (16, 2, 10)), numbers(rng, (16, 1))

    @nki.jit
    def kernel(a, first):
        x = tile(a)
        out = nl.ndarray((16, 10), nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((16, 1), nl.float32, buffer=nl.sbuf)
        command = nisa.reduce_cmd
        nisa.tensor_scalar_reduce(
            out, x[:, 0], nl.add, 0.0, nl.add, reduce_cmd=command.load_reduce, reduce_init=tile(first)
        )
        nisa.tensor_scalar_reduce(
            out, x[:, 1], nl.add, 0.0, nl.add, total, reduce_cmd=command.reduce, reduce_res_negate=True
        )
        return result(total)

    close(kernel(a, first), -(first[:, 0] + a.astype(np.float64).sum((1, 2)))[:, None], 1e-5, 1e-5)


@pytest.mark.parametrize(
    "op1, reference",
    [
        ("add", np.cumsum),
        ("multiply", np.cumprod),
        ("maximum", np.maximum.accumulate),
        ("minimum", np.minimum.accumulate),
    ],
)
def test_tensor_scalar_cumulative(rng, op1, reference):
    a = numbers(rng, (32, 19), low=0.5, high=1.5)
    got = run(
        lambda dst, x: nisa.tensor_scalar_cumulative(dst, x, nl.add, getattr(nl, op1), 0.25),
        [((32, 19), nl.float32)],
        a,
    )
    close(got, reference((a + F32(0.25)).astype(np.float64), axis=1), 1e-5)
    loads = nisa.reduce_cmd.load_reduce
    got = run(
        lambda dst, x: nisa.tensor_scalar_cumulative(dst, x, nl.multiply, nl.add, 2.0, 10.0, loads),
        [((32, 19), nl.float32)],
        a,
    )
    close(got, 10 + np.cumsum(2 * a.astype(np.float64), axis=1), 1e-5)


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("by_partition", [False, True])
def test_tensor_tensor_scan(rng, dtype, by_partition):
    a, b = numbers(rng, (64, 25), dtype, -1, 1), numbers(rng, (64, 25), dtype)
    s = numbers(rng, (64, 1)) if by_partition else F32(0.5)
    body = lambda dst, x, y, *t: nisa.tensor_tensor_scan(dst, x, y, t[0] if t else 0.5, nl.multiply, nl.add)  # noqa: E731
    got = run(body, [((64, 25), nl.float32)], a, b, *([s] if by_partition else []))
    state, wanted = np.broadcast_to(s, (64, 1))[:, 0].astype(F32), np.empty((64, 25), F32)
    for i in range(25):
        state = a[:, i].astype(F32) * state + b[:, i].astype(F32)
        wanted[:, i] = state
    same(got, wanted)


def test_tensor_tensor_scan_reversed(rng):
    a, b = numbers(rng, (4, 9)), numbers(rng, (4, 9))
    got = run(
        lambda dst, x, y: nisa.tensor_tensor_scan(dst, x, y, 1.0, nl.subtract, nl.subtract, True, True),
        [((4, 9), nl.float32)],
        a,
        b,
    )
    state, wanted = np.ones(4, F32), np.empty((4, 9), F32)
    for i in range(9):
        state = b[:, i] - (state - a[:, i])
        wanted[:, i] = state
    same(got, wanted)
