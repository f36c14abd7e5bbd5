"""Comparisons: those that a source states, and those for sources that state none."""

from __future__ import annotations

import numpy as np


class Mismatch(AssertionError):
    """The kernel's numbers aren't the reference's."""


def array(value) -> np.ndarray:
    """A NumPy array of what a kernel returned; torch's bfloat16 as float32, which holds it exactly."""
    if hasattr(value, "detach"):
        import torch

        value = value.detach()
        return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    return np.asarray(value)


def _same_shape(got: np.ndarray, want: np.ndarray) -> None:
    if got.shape != want.shape:
        raise Mismatch(f"the shape is {got.shape}, the reference's {want.shape}")


def equal(got, want) -> None:
    """Every element is the reference's: for kernels that only move, select or take maxima."""
    got, want = array(got), array(want)
    _same_shape(got, want)
    wrong = ~(got == want)
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        count = f"{int(wrong.sum())} of {wrong.size}"
        raise Mismatch(f"{count} elements differ; at {place}: {got[place]}, reference {want[place]}")


def close(got, want, atol: float, rtol: float) -> None:
    """numpy.allclose with the tolerance that the source states."""
    got, want = array(got).astype(np.float64), array(want).astype(np.float64)
    _same_shape(got, want)
    wrong = ~(np.abs(got - want) <= atol + rtol * np.abs(want))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise Mismatch(
            f"{int(wrong.sum())} of {wrong.size} elements are off by more than "
            f"{atol:g} + {rtol:g} of the reference; "
            f"at {place}: {got[place]:.9g}, reference {want[place]:.9g}"
        )


def rounded_once(got, exact, mantissa_bits: int, smallest_exponent: int) -> None:
    """Each element is the exact value (float64) rounded once to a type with so many bits behind the point.

    A 256th of a unit beyond the half is allowed: the arithmetic itself is float32's.
    """
    got, exact = array(got).astype(np.float64), np.asarray(exact, np.float64)
    _same_shape(got, exact)
    _, exponent = np.frexp(exact)
    unit = np.ldexp(1.0, np.maximum(exponent - 1, smallest_exponent) - mantissa_bits)
    wrong = ~(np.abs(got - exact) <= unit * (0.5 + 1 / 256))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise Mismatch(
            f"{int(wrong.sum())} of {wrong.size} elements are more than one rounding away; "
            f"at {place}: {got[place]:.9g}, exactly {exact[place]:.12g}"
        )


FLOAT16 = {"mantissa_bits": 10, "smallest_exponent": -14}
BFLOAT16 = {"mantissa_bits": 7, "smallest_exponent": -126}
