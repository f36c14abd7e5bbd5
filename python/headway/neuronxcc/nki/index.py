"""Index expressions of the older dialect: affine forms over positions, and the masks that comparing them
makes.

``nl.arange(128)[:, None]`` is an array of 128 x 1 whose element at position (i, j) is i. Everything that
kernels do with such arrays (adding loop variables, multiplying by numbers, adding two of them) keeps the form
``const + sum(coefficient * position)``, so that is what an Index stores.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headway.nki.errors import KernelError, Unsupported

_WHOLE = (int, np.integer)


def broadcast(a: tuple, b: tuple) -> tuple:
    """The shape that two shapes broadcast to, by NumPy's rule. KernelError where they don't."""
    if a == b:
        return a
    rank = max(len(a), len(b))
    a = (1,) * (rank - len(a)) + a
    b = (1,) * (rank - len(b)) + b
    shape = []
    for x, y in zip(a, b):
        if x != y and x != 1 and y != 1:
            raise KernelError(f"index expressions of shapes {a} and {b} don't go together [index]")
        shape.append(y if x == 1 else x)
    return tuple(shape)


class Index:
    """``const + sum(coeffs[k] * position k)`` over positions of ``shape``."""

    __slots__ = ("shape", "const", "coeffs")
    __array_ufunc__ = None  # NumPy numbers leave the arithmetic to us

    def __init__(self, shape: tuple, const: int, coeffs: tuple):
        self.shape = shape
        self.const = const
        self.coeffs = coeffs

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        terms = [f"{c}*i{k}" for k, c in enumerate(self.coeffs) if c]
        return f"<index {' + '.join([str(self.const), *terms])} over {list(self.shape)}>"

    def values(self) -> np.ndarray:
        """All its elements."""
        result = np.full(self.shape, self.const, np.int64)
        for k, (extent, coefficient) in enumerate(zip(self.shape, self.coeffs)):
            along = [1] * self.ndim
            along[k] = extent
            result += (np.arange(extent) * coefficient).reshape(along)
        return result

    def __getitem__(self, key) -> Index:
        if not isinstance(key, tuple):
            key = (key,)
        given = sum(entry is not None and entry is not Ellipsis for entry in key)
        shape, coeffs, const, at = [], [], self.const, 0
        for entry in key:
            if entry is None:
                shape.append(1)
                coeffs.append(0)
            elif entry is Ellipsis:
                for _ in range(self.ndim - given):
                    shape.append(self.shape[at])
                    coeffs.append(self.coeffs[at])
                    at += 1
            elif isinstance(entry, slice):
                first, stop, step = entry.indices(self.shape[at])
                shape.append(len(range(first, stop, step)))
                coeffs.append(self.coeffs[at] * step)
                const += self.coeffs[at] * first
                at += 1
            elif isinstance(entry, _WHOLE):
                const += self.coeffs[at] * (int(entry) % self.shape[at])
                at += 1
            else:
                raise KernelError(
                    f"an index expression is indexed with slices and None, not {entry!r} [index]"
                )
        shape += self.shape[at:]
        coeffs += self.coeffs[at:]
        return Index(tuple(shape), const, tuple(coeffs))

    def __add__(self, other):
        if isinstance(other, _WHOLE):
            return Index(self.shape, self.const + int(other), self.coeffs)
        if not isinstance(other, Index):
            return NotImplemented
        shape = broadcast(self.shape, other.shape)
        mine = (0,) * (len(shape) - self.ndim) + self.coeffs
        others = (0,) * (len(shape) - other.ndim) + other.coeffs
        # Along an extent of 1 that is repeated the value stays.
        own = (1,) * (len(shape) - self.ndim) + self.shape
        its = (1,) * (len(shape) - other.ndim) + other.shape
        coeffs = tuple(
            (a if x != 1 else 0) + (b if y != 1 else 0) for a, b, x, y in zip(mine, others, own, its)
        )
        return Index(shape, self.const + other.const, coeffs)

    __radd__ = __add__

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other):
        return self + -other if isinstance(other, (Index, *_WHOLE)) else NotImplemented

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        if isinstance(other, _WHOLE):
            return Index(self.shape, self.const * int(other), tuple(c * int(other) for c in self.coeffs))
        if isinstance(other, Index):
            raise Unsupported(
                "the product of two index expressions isn't affine: write an index as a sum of "
                "multiples of aranges [index]"
            )
        return NotImplemented

    __rmul__ = __mul__

    def _not_affine(self, other):
        raise Unsupported(
            "//, % and / of an index expression aren't affine: reshape the tile, or use one "
            "arange for each part of the index [index]"
        )

    __floordiv__ = __mod__ = __truediv__ = _not_affine

    def __bool__(self) -> bool:
        raise KernelError(
            "control flow depends on nl.arange, whose elements are all indices at once; use "
            "mask= [index-control-flow]"
        )

    def _compared(self, other, at_least: bool, extra: int):
        if not isinstance(other, (Index, *_WHOLE)):
            return NotImplemented
        difference = self - other if at_least else other - self
        return Mask((Condition(difference - extra if extra else difference, "greater_equal"),))

    def __ge__(self, other):
        return self._compared(other, True, 0)

    def __gt__(self, other):
        return self._compared(other, True, 1)

    def __le__(self, other):
        return self._compared(other, False, 0)

    def __lt__(self, other):
        return self._compared(other, False, 1)

    def __eq__(self, other):
        if not isinstance(other, (Index, *_WHOLE)):
            return NotImplemented
        return Mask((Condition(self - other, "equal"),))

    def __ne__(self, other):
        if not isinstance(other, (Index, *_WHOLE)):
            return NotImplemented
        return Mask((Condition(self - other, "not_equal"),))

    __hash__ = object.__hash__


def arange(*bounds) -> Index:
    """``nl.arange(stop)`` or ``nl.arange(start, stop[, step])``: used as an index with new axes, ``[:,
    None]``.
    """
    steps = range(*(int(b) for b in bounds))
    return Index((len(steps),), steps.start, (steps.step,))


class Grid(tuple):
    """What ``nl.mgrid`` gives: an Index a dimension, also called p, x, y, z, w."""

    p = property(lambda self: self[0])
    x = property(lambda self: self[1])
    y = property(lambda self: self[2])
    z = property(lambda self: self[3])
    w = property(lambda self: self[4])


class _Mgrid:
    """``nl.mgrid[0:128, 0:512]``: an Index for each dimension, of as many dimensions as there are slices."""

    def __getitem__(self, key) -> Grid:
        key = key if isinstance(key, tuple) else (key,)
        grid = []
        for k, part in enumerate(key):
            if not isinstance(part, slice) or part.stop is None:
                raise KernelError(f"nl.mgrid takes slices with an end, not {part!r} [index]")
            axis = arange(int(part.start or 0), int(part.stop), int(part.step or 1))
            grid.append(axis[(None,) * k + (slice(None),) + (None,) * (len(key) - k - 1)])
        return Grid(grid)


mgrid = _Mgrid()


@dataclass(frozen=True)
class Condition:
    """``index compare 0``; compare is greater_equal, equal or not_equal."""

    index: Index
    compare: str


@dataclass(frozen=True)
class Region:
    """Where a mask holds, within a shape: ``ranges``, (first, end) a dimension, and there ``rest``,
    conditions over several dimensions.
    """

    ranges: tuple
    rest: tuple = field(default=())

    @property
    def shape(self) -> tuple:
        return tuple(end - first for first, end in self.ranges)

    def is_all_of(self, shape: tuple) -> bool:
        return not self.rest and all(
            first == 0 and end == extent for (first, end), extent in zip(self.ranges, shape)
        )


class Mask:
    """Conditions that must all hold."""

    __slots__ = ("conditions",)

    def __init__(self, conditions: tuple):
        self.conditions = conditions

    def __and__(self, other):
        if isinstance(other, Mask):
            return Mask(self.conditions + other.conditions)
        if isinstance(other, (bool, np.bool_)):
            return self if other else False
        return NotImplemented

    __rand__ = __and__

    def __bool__(self) -> bool:
        # Masks are joined with ``and`` here and there, which leaves the second one: that is what NKI did too.
        return True

    def __or__(self, other):
        raise Unsupported(
            "a mask joined with | isn't one piece: split the call in two, each with a mask "
            "joined with & [mask]"
        )

    def __repr__(self) -> str:
        return "<mask " + " & ".join(f"({c.index} {c.compare} 0)" for c in self.conditions) + ">"

    def region(self, shape: tuple) -> Region | None:
        """Where it holds within ``shape``; None where nowhere."""
        ranges = [(0, extent) for extent in shape]
        rest = []
        for condition in self.conditions:
            if condition.compare == "not_equal":
                raise Unsupported(
                    "a mask with != isn't one piece: split the call in two, with < and > [mask]"
                )
            coeffs = aligned(condition.index, shape)
            const = condition.index.const
            rest.append((const, coeffs))
            if condition.compare == "equal":
                rest.append((-const, tuple(-c for c in coeffs)))
        return narrowed(ranges, rest)


def aligned(index: Index, shape: tuple) -> tuple:
    """The coefficients of an index over the dimensions of a tile of ``shape``.

    Of fewer dimensions, its first one is the tile's first, the others are the tile's last; where it has an
    extent it must be the tile's.
    """
    dims, coeffs = list(index.shape), list(index.coeffs)
    while len(dims) > len(shape) and dims[0] == 1 and len(dims) > 1:
        dims.pop(0)
        coeffs.pop(0)
    if len(dims) > len(shape):
        extra = [k for k, extent in enumerate(dims) if extent == 1]
        for k in reversed(extra[len(extra) - (len(dims) - len(shape)) :]):
            dims.pop(k)
            coeffs.pop(k)
    if len(dims) < len(shape):
        missing = len(shape) - len(dims)
        dims[1:1] = [1] * missing
        coeffs[1:1] = [0] * missing
    for extent, coefficient, wanted in zip(dims, coeffs, shape):
        if coefficient and extent not in (1, wanted) and wanted != 1:
            raise KernelError(
                f"a mask over {list(index.shape)} doesn't fit a tile of {list(shape)}: compare "
                "the index expressions of the tile's own index [mask]"
            )
    return (
        tuple(c if extent != 1 else 0 for c, extent in zip(coeffs, dims))
        if len(dims) == len(shape)
        else _misfit(index, shape)
    )


def _misfit(index: Index, shape: tuple):
    raise KernelError(f"a mask over {list(index.shape)} doesn't fit a tile of {list(shape)} [mask]")


def narrowed(ranges: list, conditions: list) -> Region | None:
    """The smallest box that holds all of ``const + sum(coefficient * position) >= 0``, and the conditions
    that the box doesn't imply.
    """
    ranges = list(ranges)
    changed = True
    while changed:
        changed = False
        for const, coeffs in conditions:
            greatest = const + sum(
                c * (end - 1 if c > 0 else first) for c, (first, end) in zip(coeffs, ranges)
            )
            if greatest < 0:
                return None
            for k, c in enumerate(coeffs):
                if c == 0:
                    continue
                first, end = ranges[k]
                # The best that the others can do leaves c * position >= -(greatest - own best).
                others = greatest - c * (end - 1 if c > 0 else first)
                new = (max(first, -(others // c)), end) if c > 0 else (first, min(end, others // -c + 1))
                if new[0] >= new[1]:
                    return None
                if new != ranges[k]:
                    ranges[k] = new
                    changed = True
                    greatest = others + c * (new[1] - 1 if c > 0 else new[0])
    rest = []
    for const, coeffs in conditions:
        least = const + sum(c * (first if c > 0 else end - 1) for c, (first, end) in zip(coeffs, ranges))
        if least < 0:
            rest.append((const, coeffs))
    return Region(tuple(ranges), tuple(rest))


def boxes(region: Region):
    """Boxes (ranges a dimension) that cover the region exactly and don't overlap."""
    if not region.rest:
        yield region.ranges
        return
    involved = {
        k
        for _, coeffs in region.rest
        for k, c in enumerate(coeffs)
        if c and region.ranges[k][1] - region.ranges[k][0] > 1
    }
    # Slices of the shortest dimension make the fewest pieces; partitions, the first one, are best left
    # together.
    axis = min(involved, key=lambda k: (k == 0, region.ranges[k][1] - region.ranges[k][0]))
    first, end = region.ranges[axis]
    for at in range(first, end):
        ranges = list(region.ranges)
        ranges[axis] = (at, at + 1)
        piece = narrowed(ranges, list(region.rest))
        if piece is not None:
            yield from boxes(piece)


def region_of(mask, shape: tuple) -> Region | None:
    """Where ``mask`` (a Mask, True, False or None for everywhere) holds in ``shape``; None where nowhere."""
    if mask is None or mask is True:
        return Region(tuple((0, extent) for extent in shape))
    if isinstance(mask, Mask):
        return mask.region(shape)
    if isinstance(mask, (bool, np.bool_)):
        return Region(tuple((0, extent) for extent in shape)) if mask else None
    raise KernelError(
        f"mask= takes comparisons of index expressions joined with &, not {type(mask).__name__} [mask]"
    )


def both(a, b):
    """The mask where both hold."""
    if a is None or a is True:
        return b
    if b is None or b is True:
        return a
    return a & b
