"""``t[...] = value`` and ``t[...] += value``: where an instruction's result was made only to be put somewhere, it is written there at once."""

from __future__ import annotations

from headway.nki import buffers, isa
from headway.nki.errors import KernelError
from headway.nki.trace import session
from headway.neuronxcc.nki.tile import Tile, new_tile


class LoopReduction:
    """What ``nl.loop_reduce`` gives: a value that is taken over in the loops' first round and combined with the target in others."""

    def __init__(self, value: Tile, op: str, first: bool, pieces):
        self.value = value
        self.op = op
        self.first = first
        self.pieces = pieces


def fresh(tile: Tile, pieces, product: bool = False) -> Tile:
    """A result that the last instruction made, of which ``pieces`` were written (None: all)."""
    tile.recorded = (session().trace.instructions, pieces, product)
    return tile


def _is_last(value: Tile) -> bool:
    return value.recorded is not None and value.recorded[0] == session().trace.instructions


def put(target: Tile, value) -> None:
    """target = value: a tile, a number, a loop reduction; or the result of += on the same place, which is there already."""
    if isinstance(value, LoopReduction):
        _put_reduction(target, value)
        return
    if not isinstance(value, Tile):
        if not buffers.is_on_chip(target.buffer):
            from headway.nki.language.memory import fill

            fill(target.native(), value)
        else:
            isa.memset(target.native(), float(value) if target.dtype.dtype.kind not in "iu" else int(value))
        return
    if same_place(target, value):
        return
    if target.size != value.size:
        value = fitted(value, target)
    pieces = value.recorded[1] if value.recorded else None
    if pieces is None:
        _put_piece(target, value, value, True)
        return
    shaped = target if target.ndim == value.ndim else target.reshape(value.shape)
    for piece in pieces:
        _put_piece(shaped.clipped(piece), value.clipped(piece), value, len(pieces) == 1)


def same_place(a: Tile, b: Tile) -> bool:
    return (
        a.storage is b.storage
        and (a.block, a.partition, a.element) == (b.block, b.partition, b.element)
        and [d for d in a.dims if d.size > 1] == [d for d in b.dims if d.size > 1]
    )


def fitted(value: Tile, target: Tile) -> Tile:
    """One value a partition, repeated to another tile's size."""
    if value.per_partition and value.partitions == target.partitions and target.dims and target.dims[0].partition:
        return value.reshape((value.partitions,) + (1,) * (target.ndim - 1)).repeated(target.shape)
    if value.ndim <= target.ndim:
        return value.repeated(target.shape)
    raise KernelError(f"{value!r} and {target!r} don't go together [shape]")


def _put_piece(target: Tile, part: Tile, value: Tile, whole: bool) -> None:
    storage = target.storage
    if whole and _is_last(value) and value.dtype is target.dtype and storage is not value.storage and target.rows is None:
        product = value.recorded[2]
        destination = target.native(settle=False)
        if session().trace.retarget(part.native(settle=False), destination, False if product else None):
            if target.block in storage.unfilled:
                storage.unfilled.discard(target.block)
            storage.products = product
            return
    if buffers.is_on_chip(target.buffer) and buffers.is_on_chip(value.buffer):
        isa.tensor_copy(target.native(), part.native())
        storage.products = False
    else:
        isa.dma_copy(target.native(), part.native())


def _put_reduction(target: Tile, reduction: LoopReduction) -> None:
    value = reduction.value
    for piece in reduction.pieces if reduction.pieces is not None else [None]:
        into = target if piece is None else target.clipped(piece)
        part = value if piece is None else value.clipped(piece)
        if reduction.first:
            isa.tensor_copy(into.native(), part.native())
        else:
            isa.tensor_tensor(into.native(), into.native(), part.native(), reduction.op)


def add_in_place(target: Tile, other) -> Tile:
    """target += other. A product just made accumulates in a PSUM tile that only products have written (or that is all zeros)."""
    if not isinstance(other, Tile):
        into = target.native()
        isa.tensor_scalar(into, into, "add", float(other))
        return target
    if _accumulated(target, other):
        return target
    if other.size != target.size:
        other = fitted(other, target)
    into, operand = target.native(), other.native()
    if buffers.is_psum(other.buffer) and buffers.is_psum(target.buffer):
        copy = new_tile(other.shape, other.dtype, buffers.sbuf)
        isa.tensor_copy(copy.native(), operand)
        operand = copy.native()
    isa.tensor_tensor(into, into, operand, "add")
    return target


def _accumulated(target: Tile, other: Tile) -> bool:
    if not (buffers.is_psum(target.buffer) and _is_last(other) and other.recorded[2] and other.size == target.size):
        return False
    pieces = other.recorded[1]
    if pieces is not None and len(pieces) != 1:
        return False
    storage = target.storage
    part, into = (other, target) if pieces is None else (other.clipped(pieces[0]), target.clipped(pieces[0]))
    destination = into.native(settle=False)
    untouched = target.block in storage.unfilled
    # By default the first product of an element overwrites what is there, and later ones add.
    by_default = untouched or storage.products
    if not session().trace.retarget(part.native(settle=False), destination, None if by_default else True):
        return False
    storage.unfilled.discard(target.block)
    if by_default:
        storage.products = True
    return True
