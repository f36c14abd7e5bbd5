"""nki.language: reductions, softmax, norms, products: what of shapes, dtypes and axes test_language.py
leaves.
"""

import itertools

import numpy as np
import pytest
from isa_kernels import BF16, F16, F32, numbers, tile

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl
from headway.nki.errors import KernelError


def computed(body, *arrays, buffer=nl.sbuf):
    @nki.jit
    def kernel(*given):
        result = body(*(tile(a, buffer) for a in given))
        if result.buffer == nl.psum:
            result = nl.copy(result)
        out = nl.ndarray(result.shape, result.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, result)
        return out

    return kernel(*arrays)


AXES = [axes for count in (1, 2, 3) for axes in itertools.combinations((1, 2, 3), count)]


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "max", "mean", "var"])
def test_any_free_extents(rng, axes, keepdims, name):
    x = numbers(rng, (9, 3, 4, 5))
    given = axes if len(axes) > 1 else axes[0] - (4 if keepdims else 0)
    got = computed(lambda t: getattr(nl, name)(t, given, keepdims=keepdims), x)
    wanted = getattr(np, name)(x.astype(np.float64), axis=axes, keepdims=keepdims)
    if wanted.ndim == 1:
        wanted = wanted[:, None]  # a tile has two extents
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("dtype", [BF16, F16, np.int32, np.uint8], ids=str)
@pytest.mark.parametrize("name", ["sum", "max", "min", "mean", "var"])
@pytest.mark.parametrize("buffer", [nl.sbuf, nl.psum], ids=str)
def test_dtypes_of_reductions(rng, dtype, name, buffer):
    x = numbers(rng, (16, 12), dtype, 0, 20)
    function = getattr(nl, name)
    got, wide = (
        computed(lambda t, kw=kw: function(t, 1, **kw), x, buffer=buffer)
        for kw in ({}, {"dtype": nl.float32})
    )
    whole = np.dtype(dtype).kind in "iu"
    assert got.dtype == (F32 if whole and name in ("mean", "var") else dtype) and wide.dtype == F32
    wanted = getattr(np, name)(x.astype(np.float64), axis=1)[:, None]
    np.testing.assert_allclose(wide, wanted, rtol=2e-6)
    if whole and name == "sum":
        wanted = np.clip(wanted, np.iinfo(dtype).min, np.iinfo(dtype).max)
    np.testing.assert_allclose(
        got.astype(np.float64), wanted, rtol={BF16: 2.0**-8, F16: 2.0**-11}.get(dtype, 1e-6)
    )


def test_all_of_several(rng):
    x = rng.integers(0, 4, (16, 3, 2)).astype(np.int32)
    got = computed(lambda t: nl.all(t, (1, 2)), x)
    assert got.dtype == np.bool_
    np.testing.assert_array_equal(got[:, 0], x.all(axis=(1, 2)))


@pytest.mark.parametrize("axis", [0, 3, -3, (1, 1), (), (0, 1)], ids=str)
def test_axes_that_are_none(axis):
    with pytest.raises(KernelError, match=r"test_language_reductions.py:\d+.*\[axis\]|\[axis\]"):
        computed(lambda t: nl.sum(t, axis), np.zeros((4, 3, 2), F32))


@pytest.mark.parametrize("axis", [1, 2, (1, 2), -1], ids=str)
@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("buffer", [nl.sbuf, nl.psum], ids=str)
def test_softmax_along_any(rng, axis, dtype, buffer):
    x = numbers(rng, (16, 5, 6), dtype, -20, 20)
    got = computed(lambda t: nl.softmax(t, axis), x, buffer=buffer)
    assert got.dtype == dtype
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis, keepdims=True))
    wanted = e / e.sum(axis, keepdims=True)
    np.testing.assert_allclose(
        got.astype(np.float64), wanted, rtol=4e-6 if dtype == F32 else 2.0**-8, atol=1e-9
    )


def test_softmax_takes_four_instructions(rng):
    x = numbers(rng, (16, 30))

    def instructions(function):
        @nki.jit
        def kernel(x):
            t = tile(x)
            function(t)
            return x

        return kernel.record(x).sessions[0].trace.instructions

    assert instructions(nl.softmax) - instructions(lambda t: None) == 4


@pytest.mark.parametrize("rows", ["all", "one", "none"])
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_rms_norm(rng, rows, dtype):
    x = numbers(rng, (16, 40), dtype)
    w = numbers(rng, (16 if rows == "all" else 1, 40), dtype)
    got = computed(lambda t, w: nl.rms_norm(t, None if rows == "none" else w, axis=1, epsilon=0.1), x, w)
    assert got.dtype == dtype
    x, w = x.astype(np.float64), (1 if rows == "none" else w.astype(np.float64))
    wanted = x / np.sqrt(np.square(x).mean(1, keepdims=True) + 0.1) * w
    np.testing.assert_allclose(
        got.astype(np.float64), wanted, rtol=4e-6 if dtype == F32 else 2.0**-8, atol=1e-6
    )


def test_rms_norm_of_padded_rows(rng):
    x = numbers(rng, (16, 40))
    x[:, 30:] = 0
    got = computed(lambda t: nl.rms_norm(t, None, axis=1, n=30), x)
    wanted = x / np.sqrt(np.square(x[:, :30].astype(np.float64)).mean(1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(got, wanted, rtol=4e-6)


# --- Matrices ---


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("buffer", [nl.sbuf, nl.psum], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_matmul(rng, dtype, buffer, transposed):
    x, y = numbers(rng, (48, 96), dtype, -1, 1), numbers(rng, (96, 200), dtype, -1, 1)
    given = np.ascontiguousarray(x.T) if transposed else x
    got = computed(lambda a, b: nl.matmul(a, b, transpose_x=transposed), given, y, buffer=buffer)
    assert got.dtype == F32
    wanted = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(got, wanted, atol=2e-5)


@pytest.mark.parametrize(
    "body, rule",
    [
        (lambda a, b: nl.matmul(a, b), "shape"),
        (lambda a, b: nl.matmul(a.reshape((8, 2, 3)), b), "shape"),
        (lambda a, b: nl.transpose(b.reshape((4, 1, 5))), "shape"),
    ],
)
def test_matrices_that_do_not_go_together(body, rule):
    with pytest.raises(KernelError, match=rf"\[{rule}\]"):
        computed(body, np.zeros((8, 6), F32), np.zeros((4, 5), F32))


@pytest.mark.parametrize("dtype", [F32, BF16, np.int32, np.uint8], ids=str)
@pytest.mark.parametrize("buffer", [nl.sbuf, nl.psum], ids=str)
@pytest.mark.parametrize("shape", [(128, 128), (20, 12)], ids=str)
def test_transpose(rng, dtype, buffer, shape):
    x = numbers(rng, shape, dtype)
    got = computed(nl.transpose, x, buffer=buffer)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, x.T)
    assert computed(lambda t: nl.transpose(t, dtype=nl.float32), x, buffer=buffer).dtype == F32
