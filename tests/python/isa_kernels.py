"""Kernels around one instruction: arguments to tiles, the instruction, its results back."""

import inspect
import re

import ml_dtypes
import numpy as np
import pytest

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl
from headway.nki.errors import KernelError

BF16, F16, F32 = ml_dtypes.bfloat16, np.float16, np.float32
E4M3, E5M2 = ml_dtypes.float8_e4m3, ml_dtypes.float8_e5m2

# Rules that belong to operands as such, whatever the instruction.
OF_OPERANDS = {
    "out-of-bounds",
    "start-partition",
    "dynamic-offset",
    "pattern",
    "unwritten",
    "outside",
    "foreign",
    "engine",
}


def tile(array, buffer=nl.sbuf):
    """A tile of an argument's shape and dtype that holds it."""
    t = nl.ndarray(array.shape, array.dtype, buffer=nl.sbuf)
    nisa.dma_copy(t, array)
    if buffer is nl.sbuf:
        return t
    other = nl.ndarray(array.shape, array.dtype, buffer=buffer)
    if buffer is nl.psum:
        nisa.tensor_copy(other, t)
    else:
        nisa.dma_copy(other, t)
    return other


def result(t):
    """An output that holds what is in tile ``t``."""
    if t.buffer == nl.psum:
        near = nl.ndarray(t.shape, t.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(near, t)
        t = near
    out = nl.ndarray(t.shape, t.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out, t)
    return out


def run(body, outputs, *arrays, buffers=None, out_buffers=None, lnc=1):
    """What ``body(*destinations, *tiles)`` leaves in its destinations: a tuple of arrays, or one array.

    ``outputs`` are (shape, dtype) of the destinations; ``buffers`` and ``out_buffers`` say where tiles lie,
    SBUF by default.
    """
    buffers = buffers or (nl.sbuf,) * len(arrays)
    out_buffers = out_buffers or (nl.sbuf,) * len(outputs)

    @nki.jit
    def kernel(*given):
        tiles = [tile(array, buffer) for array, buffer in zip(given, buffers)]
        destinations = [
            nl.ndarray(shape, dtype, buffer=buffer) for (shape, dtype), buffer in zip(outputs, out_buffers)
        ]
        body(*destinations, *tiles)
        return tuple(result(t) for t in destinations)

    results = kernel[lnc](*arrays)
    return results[0] if len(results) == 1 else results


def rules_of(function):
    """The rules that a function's documentation names."""
    text = re.search(r"^Rules: (.*)", inspect.getdoc(function), re.S | re.M).group(1)
    return set(re.findall(r"[a-z0-9-]+", text))


def refused(function, rule, parameter, body, *arrays, buffers=None, platform=None, error=KernelError):
    """Asserts that a kernel around ``body(*tiles)`` breaks that rule, instruction and parameter named."""

    @nki.jit(platform_target=platform)
    def kernel(*given):
        body(*(tile(a, b) for a, b in zip(given, buffers or (nl.sbuf,) * len(given))))

    with pytest.raises(error) as caught:
        kernel(*arrays)
    text = str(caught.value)
    assert f"[{rule}]" in text, text
    assert function.__name__ in text, text
    if parameter:
        assert re.search(rf"\b{parameter}\b", text), text
    assert rule in rules_of(function) | OF_OPERANDS, (
        f"{function.__name__} doesn't name {rule} among its rules"
    )


def mistyped(body, *parts):
    """Asserts that a kernel with ``body()`` raises a TypeError whose message has all ``parts``."""

    @nki.jit
    def kernel():
        body()

    with pytest.raises(TypeError) as caught:
        kernel()
    for part in parts:
        assert part in str(caught.value), str(caught.value)


def numbers(rng, shape, dtype=F32, low=-4.0, high=4.0):
    """Random numbers, rounded to ``dtype``."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(max(info.min, -100), min(info.max, 100), size=shape, endpoint=True).astype(dtype)
    return rng.uniform(low, high, size=shape).astype(F32).astype(dtype)


def rounded(values, dtype):
    """float32 values as the chip stores them: to nearest even, integers within their range."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.clip(np.rint(values.astype(np.float64)), info.min, info.max).astype(dtype)
    return values.astype(dtype)


def same(got, wanted):
    """Asserts that two arrays have one dtype, one shape and equal elements."""
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, (
        got.dtype,
        wanted.dtype,
        got.shape,
        wanted.shape,
    )
    np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64))


def close(got, wanted, relative, absolute=0.0):
    """Asserts that float32 results are within the given errors of float64 ones."""
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=relative, atol=absolute)
