"""Extents of tiles: what indices take of them, and how they are split and joined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.neuronxcc.nki.index import Grid
from headway.nki.errors import KernelError


@dataclass(slots=True)
class Dim:
    """An extent: what one step moves in blocks, in partitions and in elements of a partition (or of HBM)."""

    size: int
    block: int = 0
    partition: int = 0
    element: int = 0


def open_boxes(covered: np.ndarray):
    """Boxes (slices of rows and of columns) over what isn't covered."""
    first = 0
    for row in range(1, len(covered) + 1):
        if row < len(covered) and (covered[row] == covered[first]).all():
            continue
        open_ = np.flatnonzero(np.diff(np.concatenate(([False], ~covered[first], [False])).astype(np.int8)))
        for start, stop in zip(open_[::2], open_[1::2]):
            yield slice(first, row), slice(int(start), int(stop))
        first = row


def expanded(key, ndim: int) -> list:
    """The key with one entry an extent (and None for new ones)."""
    if isinstance(key, Grid) or isinstance(key, tuple):
        items = list(key)
    else:
        items = [key]
    items = [sub for item in items for sub in (list(item) if isinstance(item, Grid) else [item])]
    given = sum(1 for k in items if k is not None and k is not Ellipsis)
    if given > ndim:
        raise IndexError(f"{given} indices for a tile of {ndim} extents")
    result: list = []
    for k in items:
        if k is Ellipsis:
            result.extend([slice(None)] * (ndim - given))
            given = ndim
        else:
            result.append(k)
    result.extend([slice(None)] * (ndim - given))
    return result


def taken(k, extent: int, d: int, tile) -> tuple:
    """(start, count, step) that an entry takes of an extent; count None: one element, whose extent goes."""
    if isinstance(k, slice):
        start = 0 if k.start is None else int(k.start)
        stop = extent if k.stop is None else int(k.stop)
        step = 1 if k.step is None else int(k.step)
        start = start + extent if start < 0 else start
        stop = stop + extent if stop < 0 else stop
        if step < 1 or start < 0 or start >= stop:
            raise IndexError(f"{start}:{stop}:{step} is not a part of extent {d} of {tile!r}")
        return start, len(range(start, stop, step)), step
    if hasattr(k, "start") and hasattr(k, "size"):  # nl.ds
        start, size = int(k.start), int(k.size)
        if start < 0 or size < 1:
            raise IndexError(f"ds({start}, {size}) is not a part of extent {d} of {tile!r}")
        return start, size, 1
    at = int(k)
    at = at + extent if at < 0 else at
    if not 0 <= at < extent:
        raise IndexError(f"index {int(k)} is out of bounds for axis {d} with size {extent}")
    return at, None, 1


def joined(free: list) -> list:
    """Extents that continue each other become one."""
    result: list = []
    for step, n in free:
        if result and result[-1][0] == step * n:
            result[-1] = (step, result[-1][1] * n)
        else:
            result.append((step, n))
    return result


def split(dims: list[Dim], shape: list, tile) -> list[Dim]:
    """Dims of new extents over the elements of old ones, which must continue each other where they are
    joined.
    """
    result: list[Dim] = []
    old = [d for d in dims if d.size != 1]
    at = 0
    new = list(shape)
    i = 0
    while i < len(new):
        if new[i] == 1:
            result.append(Dim(1))
            i += 1
            continue
        group = [new[i]]
        i += 1
        have = old[at].size if at < len(old) else 1
        used = [old[at]] if at < len(old) else []
        at += 1
        want = group[0]
        while want != have:
            if want < have:
                if i >= len(new):
                    raise KernelError(f"{tile!r} can't be reshaped to {tuple(shape)} [view]")
                group.append(new[i])
                want *= new[i]
                i += 1
            else:
                if at >= len(old):
                    raise KernelError(f"{tile!r} can't be reshaped to {tuple(shape)} [view]")
                used.append(old[at])
                have *= old[at].size
                at += 1
        inner = used[-1]
        count = inner.size
        for d in reversed(used[:-1]):
            if (d.block, d.partition, d.element) != (
                inner.block * count,
                inner.partition * count,
                inner.element * count,
            ):
                raise KernelError(f"{tile!r}: extents that are merged don't continue each other [view]")
            count *= d.size
        scale = 1
        parts: list[Dim] = []
        for n in reversed(group):
            parts.append(Dim(n, inner.block * scale, inner.partition * scale, inner.element * scale))
            scale *= n
        result.extend(reversed(parts))
    return result


def can_start(first: int, partitions: int) -> bool:
    """Whether an engine's operand of so many partitions may begin at ``first``."""
    return first == 0 or (first % 32 == 0 and partitions <= 32) or (first == 64 and partitions <= 64)
