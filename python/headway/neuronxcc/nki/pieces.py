"""The rectangles of a tile in which a mask holds: what an instruction is recorded for."""

from __future__ import annotations

from headway.neuronxcc.nki.index import boxes, region_of


def pieces(mask, shape: tuple) -> list[tuple] | None:
    """((start, stop), ...) an extent, of each rectangle; None for all of the tile, [] for nothing of it."""
    if mask is not None and not hasattr(mask, "region"):
        mask = bool(mask)
    region = region_of(mask, tuple(shape))
    if region is None:
        return []
    if region.is_all_of(tuple(shape)):
        return None
    return [tuple(box) for box in boxes(region)]
