"""How far a kernel's result is from a reference's, and how far it may be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.nki.dtypes import DType, dtype_of

# Bits of the significand, the hidden one included.
_PRECISION = {"float32": 24, "tfloat32": 11, "float16": 11, "bfloat16": 8, "float8_e4m3": 4, "float8_e4m3fn": 4, "float8_e5m2": 3}
# A result passes through about four roundings to the narrow type (inputs are exact); sums in float32 lose more than that.
_ROUNDINGS = 4
_SMALLEST = 2e-5


def tolerance_of(result: DType, inputs: list[DType]) -> float:
    """The relative error that is allowed of a result: four roundings of the coarsest type among it and the inputs. Whole numbers must
    be exact."""
    if result.name not in _PRECISION:
        return 0.0
    return max(_ROUNDINGS * 2.0 ** -min(_PRECISION[d.name] for d in [result, *inputs] if d.name in _PRECISION), _SMALLEST)


@dataclass
class Comparison:
    """A result beside the reference's. An element is right where |result - expected| <= tolerance x (|expected| + rms(expected))."""

    name: str
    dtype: str
    shape: tuple
    tolerance: float
    error: float = 0.0  # the largest
    bound: float = 0.0  # where that is
    differing: int = 0
    first: str = ""  # what differs first, as a sentence

    @property
    def ok(self) -> bool:
        return not self.first


def compare(name: str, result: np.ndarray, expected, tolerance: float) -> Comparison:
    """``expected``: anything that NumPy makes an array of."""
    expected = np.asarray(expected)
    try:
        dtype = dtype_of(result.dtype).name
    except TypeError:
        dtype = str(result.dtype)
    found = Comparison(name, dtype, result.shape, tolerance)
    if expected.shape != result.shape:
        found.differing = result.size
        found.first = f"{name} has the shape {list(result.shape)}, the reference's {list(expected.shape)}"
        return found
    got = result.astype(np.float64)
    want = expected.astype(np.float64)
    finite = want[np.isfinite(want)]
    rms = float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got - want)
        bound = tolerance * (np.where(np.isfinite(want), np.abs(want), 0.0) + rms)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        wrong = ~same & ~(error <= bound)
    if tolerance == 0:
        wrong = ~same
    error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
    # The worst is that which exceeds its bound most, not the largest number.
    with np.errstate(over="ignore"):
        worst = int(np.argmax(error / np.maximum(bound, np.finfo(np.float64).tiny))) if error.size else 0
    found.error = float(error.reshape(-1)[worst]) if error.size else 0.0
    found.bound = float(bound.reshape(-1)[worst]) if error.size else 0.0
    found.differing = int(np.count_nonzero(wrong))
    if found.differing:
        at = np.unravel_index(int(np.argmax(wrong.reshape(-1))), result.shape)
        place = ", ".join(str(int(i)) for i in at)
        found.first = (f"{name}[{place}] is {got[at]:.9g}, the reference says {want[at]:.9g}: off by {error[at]:.3g}, allowed are "
                       f"{bound[at]:.3g}; {found.differing} of {result.size} elements differ")
    return found
