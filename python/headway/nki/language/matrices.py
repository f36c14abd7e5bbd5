"""Products and transposes on the Tensor engine."""

from __future__ import annotations

from headway.nki import buffers, dtypes, isa
from headway.nki.errors import KernelError
from headway.nki.language.math import Tensor
from headway.nki.language.memory import copy, ndarray


def _matrix(x, name: str, function: str):
    """x as the Tensor engine reads it: a matrix in SBUF."""
    if not isinstance(x, Tensor):
        raise TypeError(f"nl.{function}: {name} is a tensor, not {type(x).__name__}")
    if x.ndim != 2:
        raise KernelError(
            f"nl.{function}: {name} has {x.ndim} extents, a matrix has 2; flatten_dims or reshape it [shape]"
        )
    return copy(x) if buffers.is_psum(x.buffer) else x


def matmul(x, y, transpose_x=False):
    """x @ y, or x^T @ y with ``transpose_x``, in PSUM, float32.

    x is [M, K] with M and K up to 128 ([K, M] with ``transpose_x``, as the engine wants it; otherwise it is
    transposed first, which takes another pass and a copy), y is [K, N] with N up to 512. What lies in PSUM is
    copied to SBUF first.
    """
    stationary, moving = _matrix(x, "x", "matmul"), _matrix(y, "y", "matmul")
    if not transpose_x:
        stationary = copy(transpose(stationary))
    if stationary.shape[0] != moving.shape[0]:
        raise KernelError(
            f"nl.matmul: {x.shape} and {y.shape} don't go together (transpose_x={bool(transpose_x)}): "
            f"{stationary.shape[0]} and {moving.shape[0]} are summed over [shape]"
        )
    out = ndarray((stationary.shape[1], moving.shape[1]), dtypes.float32, buffers.psum)
    isa.nc_matmul(out, stationary, moving)
    return out


def transpose(x, dtype=None):
    """x [P, F], both up to 128, transposed: [F, P] in PSUM, of x's type. With another ``dtype`` a converted
    copy in SBUF.
    """
    x = _matrix(x, "x", "transpose")
    out = ndarray((x.shape[1], x.shape[0]), x.dtype, buffers.psum)
    isa.nc_transpose(out, x, engine=isa.tensor_engine)
    return out if dtype is None or dtypes.dtype_of(dtype) is x.dtype else copy(out, dtype)
