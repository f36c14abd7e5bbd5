"""The rectangles of a tile in which a mask holds: what an instruction is recorded for."""

from __future__ import annotations

from headway.neuronxcc.nki.index import boxes, region_of


def region_in(mask, shape: tuple):
    """Where the mask holds, as a Region; None where nowhere."""
    if mask is not None and not hasattr(mask, "region"):
        mask = bool(mask)
    return region_of(mask, tuple(shape))


def pieces(mask, shape: tuple) -> list[tuple] | None:
    """((start, stop), ...) an extent, of each rectangle; None for all of the tile, [] for nothing of it."""
    found = region_in(mask, shape)
    if found is None:
        return []
    if found.is_all_of(tuple(shape)):
        return None
    return [tuple(box) for box in boxes(found)]
