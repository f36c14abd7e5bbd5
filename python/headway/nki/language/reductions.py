"""Reductions over free extents, and what is made of them: softmax, rms_norm."""

from __future__ import annotations

from headway.nki import dtypes, isa, operators
from headway.nki.errors import KernelError
from headway.nki.language.math import Tensor, binary, divide, floating
from headway.nki.language.memory import broadcast_to, ndarray

_EXP = operators.operator_named("exp")
_RSQRT = operators.operator_named("rsqrt")
_SQUARE = operators.operator_named("square")


def _axes(x, axis) -> list[int]:
    if not isinstance(x, Tensor):
        raise TypeError(f"a tensor is reduced, not {type(x).__name__}")
    asked = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    axes = sorted(a + x.ndim if a < 0 else a for a in asked)
    if not axes or axes[0] < 1 or axes[-1] >= x.ndim or len(set(axes)) < len(axes):
        raise KernelError(
            f"axis {axis} of a tile of {x.ndim} extents: free extents, 1 to {x.ndim - 1}, are "
            "reduced; over partitions "
            "nisa.tensor_partition_reduce or a product with ones does it [axis]"
        )
    return axes


def _elements_in(x, axis) -> int:
    count = 1
    for a in _axes(x, axis):
        count *= x.shape[a]
    return count


def reduction(op: str, x, axis, dtype=None, keepdims=False, negate=False):
    """x reduced with op over free extents ``axis``, an int or several (Vector: tensor_reduce).

    Without ``keepdims`` the extents go; at least [P, 1] stays.
    """
    axes = _axes(x, axis)
    kept = [d for d in range(1, x.ndim) if d not in axes]
    order = (0, *kept, *axes)
    view = x.permute(order) if order != tuple(range(x.ndim)) else x
    shape = (
        [1 if d in axes else x.shape[d] for d in range(x.ndim)]
        if keepdims
        else [x.shape[0]] + [x.shape[d] for d in kept]
    )
    if len(shape) == 1:
        shape.append(1)
    out = ndarray(tuple(shape), dtype if dtype is not None else x.dtype)
    isa.tensor_reduce(out, op, view, tuple(range(x.ndim - len(axes), x.ndim)), negate=negate)
    return out


def sum(x, axis, dtype=None, keepdims=False):
    """The sum over free extents, in float32. Shapes as for every reduction: see ``nl.max``."""
    return reduction("add", x, axis, dtype, keepdims)


def max(x, axis, dtype=None, keepdims=False):
    """The largest over free extents.

    ``axis``: one or several of x's extents, not 0. Without ``keepdims`` they go, but for a last [P, 1]; with
    it they become 1.
    """
    return reduction("maximum", x, axis, dtype, keepdims)


def min(x, axis, dtype=None, keepdims=False):
    """The smallest over free extents. Shapes: see ``nl.max``."""
    return reduction("minimum", x, axis, dtype, keepdims)


def prod(x, axis, dtype=None, keepdims=False):
    """The product over free extents, in float32. Shapes: see ``nl.max``."""
    return reduction("multiply", x, axis, dtype, keepdims)


def mean(x, axis, dtype=None, keepdims=False):
    """The mean over free extents; without dtype of x's type, float32 for integers. Shapes: see ``nl.max``."""
    total = reduction("add", x, axis, dtypes.float32, keepdims)
    return binary("multiply", total, 1.0 / _elements_in(x, axis), floating(x, dtype))


def var(x, axis, dtype=None, keepdims=False):
    """The variance over free extents (of all elements, not of a sample); without dtype of x's type, float32
    for integers.
    """
    away = binary("subtract", x, mean(x, axis, dtypes.float32, True), dtypes.float32)
    isa.activation(away, _SQUARE, away)
    return mean(away, axis, floating(x, dtype), keepdims)


def all(x, axis, dtype=None, keepdims=False):
    """1 where no element over free extents is 0, else 0, as bool where dtype isn't given."""
    return reduction(
        "minimum",
        binary("not_equal", x, 0.0, dtypes.float32),
        axis,
        dtype if dtype is not None else dtypes.bool_,
        keepdims,
    )


def softmax(x, axis=-1, dtype=None, compute_dtype=None):
    """exp(x - max) over its sum, along free extents ``axis``.

    Along all free extents it takes 4 instructions: the maximum (Vector), exp with its sum (Scalar:
    activation_reduce), the reciprocal and the product (Vector). ``compute_dtype`` is what exp's values are
    kept in, float32 where not given.
    """
    kept = dtypes.float32 if compute_dtype is None else dtypes.dtype_of(compute_dtype)
    raised = ndarray(x.shape, kept)
    if len(_axes(x, axis)) == x.ndim - 1:
        low = reduction("maximum", x, axis, dtypes.float32, negate=True).reshape((x.shape[0], 1))
        total = ndarray((x.shape[0], 1), dtypes.float32)
        isa.activation_reduce(raised, _EXP, x, "add", total, bias=low)
    else:
        largest = reduction("maximum", x, axis, dtypes.float32, True)
        isa.activation(raised, _EXP, binary("subtract", x, largest, dtypes.float32))
        total = reduction("add", raised, axis, dtypes.float32, True)
    return divide(raised, total, floating(x, dtype))


def rms_norm(x, w, axis, n=None, epsilon=1e-6, dtype=None):
    """x / sqrt(mean(x^2) + epsilon) * w; the mean is over ``axis``, free extents, of n elements where given.

    w has x's shape, or a partition only, which is repeated; None for no factor.
    """
    squares = ndarray(x.shape, dtypes.float32)
    isa.activation(squares, _SQUARE, x)
    total = reduction("add", squares, axis, dtypes.float32, True)
    scale = ndarray(total.shape, dtypes.float32)
    isa.tensor_scalar(
        scale,
        total,
        "multiply",
        1.0 / (n if n is not None else _elements_in(x, axis)),
        op1="add",
        operand1=float(epsilon),
    )
    isa.activation(scale, _RSQRT, scale)
    if w is None:
        return binary("multiply", x, scale, floating(x, dtype))
    normed = binary("multiply", x, scale, dtypes.float32)
    if isinstance(w, Tensor) and w.shape[0] == 1 != x.shape[0]:
        w = broadcast_to(w, (x.shape[0], *w.shape[1:]))
    return binary("multiply", normed, w, floating(x, dtype))
