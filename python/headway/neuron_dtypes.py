"""Element types for host code: what public test suites import as ``neuron_dtypes``. All functions take and give NumPy arrays."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from headway.nki import dtypes
from headway.nki.dtypes import float4_e2m1fn_x4, float8_e4m3fn_x4, float8_e5m2_x4  # noqa: F401

bfloat16 = ml_dtypes.bfloat16
float8_e4m3 = ml_dtypes.float8_e4m3
float8_e4m3fn = ml_dtypes.float8_e4m3fn
float8_e5m2 = ml_dtypes.float8_e5m2
float8_e8m0fnu = ml_dtypes.float8_e8m0fnu


def _numpy(dtype) -> np.dtype:
    try:
        return dtypes.dtype_of(dtype).dtype
    except TypeError:
        return np.dtype(dtype)


def static_cast(array, dtype):
    """The array (or number) converted to dtype, rounding to the nearest."""
    values = np.asarray(array)
    return values.astype(_numpy(dtype))


def sizeinbytes(dtype) -> int:
    """Bytes of an element."""
    try:
        return dtypes.dtype_of(dtype).itemsize
    except TypeError:
        return np.dtype(dtype).itemsize


def is_float_type(dtype) -> bool:
    """Whether elements are floating-point numbers, the narrow ones included."""
    found = _numpy(dtype)
    return found.kind == "f" or found.name.startswith(("bfloat", "float"))


def finfo(dtype):
    """Limits of a floating-point type: ``max``, ``min``, ``eps`` ..."""
    return ml_dtypes.finfo(_numpy(dtype))
