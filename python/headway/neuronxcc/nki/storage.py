"""The memory that tiles look into, block by block, and what of it is zero as nobody has written it yet."""

from __future__ import annotations

import numpy as np

from headway import _chip
from headway.neuronxcc.nki.layout import open_boxes
from headway.nki import buffers, isa
from headway.nki.trace import session

Native = _chip.Tensor


class Storage:
    """Blocks of memory that a tile looks into; a block's tensor is declared when it is first used."""

    def __init__(
        self, blocks: int, partitions: int, row: int, dtype, buffer, name: str = "", fill=None, tensor=None
    ):
        self.blocks = blocks
        self.partitions = partitions
        self.row = row  # elements of a partition, or of all HBM
        self.dtype = dtype
        self.buffer = buffer
        self.name = name
        self.fill = fill  # what new blocks hold; None: nothing
        self.tensors: dict[int, Native] = {} if tensor is None else {0: tensor}
        self.unfilled: set[int] = set()  # PSUM blocks whose zeros are not written yet
        self.settled: set[int] = set()  # those whose zeros are written
        self.covered: dict[
            int, np.ndarray
        ] = {}  # of both, the elements that products have written since; absent: none
        self.mixed: set[int] = set()  # blocks that something else than products has written
        self.on_chip = buffers.is_on_chip(buffer)

    def tensor(self, block: int) -> Native:
        found = self.tensors.get(block)
        if found is None:
            shape = (self.partitions, self.row) if self.on_chip else (self.row,)
            found = session().declare(shape, self.dtype, self.buffer, self.name)
            self.tensors[block] = found
            if self.fill is not None:
                if buffers.is_psum(self.buffer) and self.fill == 0:
                    self.unfilled.add(block)  # a product overwrites at its first time
                else:
                    from headway.nki.language.memory import fill

                    fill(found, self.fill)
        return found

    def __repr__(self) -> str:
        return self.name or "a tile"

    def settle(self, block: int) -> None:
        """Writes zeros that were put off, where no product has written since."""
        if block not in self.unfilled:
            return
        self.unfilled.discard(block)
        self.settled.add(block)
        zero = 0.0 if self.dtype.dtype.kind not in "iu" else 0
        covered = self.covered.get(block)
        if covered is None:
            isa.memset(self.tensors[block], zero)
            return
        for rows, columns in open_boxes(covered):
            isa.memset(self.tensors[block][rows.start : rows.stop, columns.start : columns.stop], zero)

    def cover(self, tile) -> None:
        """A product wrote ``tile``, a part of one of the blocks."""
        block = tile.block
        if block not in self.unfilled and block not in self.settled:
            return
        if tile.size < self.partitions * self.row:
            covered = self.covered.setdefault(block, np.zeros((self.partitions, self.row), bool))
            self._part(covered, tile)[...] = True
            if not covered.all():
                return
        self.unfilled.discard(block)
        self.settled.discard(block)
        self.covered.pop(block, None)

    def written_by_products(self, tile) -> bool | None:
        """Of a block whose zeros were written: whether products have written all (None: some, False: none) of
        ``tile`` since.
        """
        covered = self.covered.get(tile.block)
        if covered is None:
            return False
        part = self._part(covered, tile)
        return True if part.all() else None if part.any() else False

    @staticmethod
    def _part(of_block: np.ndarray, tile) -> np.ndarray:
        step = of_block.strides
        return np.lib.stride_tricks.as_strided(
            of_block[tile.partition :, tile.element :],
            tile.shape,
            [d.partition * step[0] + d.element * step[1] for d in tile.dims],
        )
