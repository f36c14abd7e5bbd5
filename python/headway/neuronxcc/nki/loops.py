"""Loops of the older dialect: unrolled, with variables that know where their loop began."""

from __future__ import annotations


class LoopIndex(int):
    """A loop variable: an int that knows the loop's first value (``nl.loop_reduce`` asks)."""

    first: int

    def __new__(cls, value: int, first: int):
        self = super().__new__(cls, value)
        self.first = first
        return self


class Range:
    """``nl.affine_range``, ``nl.sequential_range``, ``nl.static_range``: range() with LoopIndex values."""

    def __init__(self, *bounds, **_options):
        self.values = range(*(int(b) for b in bounds))

    def __iter__(self):
        first = self.values.start
        return (LoopIndex(v, first) for v in self.values)

    def __len__(self):
        return len(self.values)
