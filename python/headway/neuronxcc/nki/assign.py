"""``t[...] = value`` and ``t[...] += value``: where an instruction's result was made only to be put
somewhere, it is written there at once.
"""

from __future__ import annotations

from headway.neuronxcc.nki.tile import Choice, Recorded, Tile, new_tile
from headway.nki import buffers, isa
from headway.nki.errors import KernelError
from headway.nki.trace import session


class LoopReduction:
    """What ``nl.loop_reduce`` gives: a value that is taken over in the loops' first round and combined with
    the target in others.
    """

    def __init__(self, value: Tile, op: str, first: bool, pieces):
        self.value = value
        self.op = op
        self.first = first
        self.pieces = pieces

    def __getattr__(self, name: str):
        raise KernelError(
            "the result of nl.loop_reduce is known after the loops: assign it to a tile, t[...] "
            "= nl.loop_reduce(...) [loop-reduce]"
        )


def fresh(tile: Tile, pieces, product: bool = False, choice: Choice | None = None) -> Tile:
    """A result that the last instruction made, of which ``pieces`` were written (None: all)."""
    tile.recorded = Recorded(session().trace.instructions, pieces, product, choice)
    return tile


def _is_last(value: Tile) -> bool:
    return value.recorded is not None and value.recorded.instructions == session().trace.instructions


def put(target: Tile, value, temporary: bool = False) -> None:
    """target = value: a tile, a number, a loop reduction; or the result of += on the same place, which is
    there already.

    ``temporary``: nothing else holds the value, so that the instruction that made it may write to the target
    instead.
    """
    if isinstance(value, LoopReduction):
        _put_reduction(target, value)
        return
    if not isinstance(value, Tile):
        fill(target, value)
        return
    if same_place(target, value):
        return
    if target.size != value.size:
        value, temporary = fitted(value, target), False
    recorded = value.recorded
    if recorded is None or recorded.pieces is None:
        _put_piece(target, value, value, temporary)
        return
    shaped = target if target.shape == value.shape else target.reshape(value.shape)
    choice = recorded.choice
    if choice is not None and target.on_chip:
        _put_piece(shaped.clipped(choice.box), value.clipped(choice.box), value, temporary, choice)
        return
    for piece in recorded.pieces:
        _put_piece(
            shaped.clipped(piece), value.clipped(piece), value, temporary and len(recorded.pieces) == 1
        )


def fill(target: Tile, value) -> None:
    """target = a number everywhere."""
    into = target.native()
    if target.on_chip and not target.on_engines and not buffers.is_psum(target.buffer):
        # Engines can't start there, DMA can.
        whole = new_tile(target.shape, target.dtype, buffers.sbuf)
        fill(whole, value)
        isa.dma_copy(into, whole.native())
    elif target.on_chip:
        isa.memset(into, float(value) if target.dtype.dtype.kind not in "iub" else int(value))
        wrote(target)
    else:
        from headway.nki.language.memory import fill as fill_hbm

        fill_hbm(into, value)


def wrote(target: Tile) -> None:
    """Something else than a product wrote to the tile."""
    target.recorded = None
    if buffers.is_psum(target.buffer):
        target.storage.mixed.add(target.block)


def same_place(a: Tile, b: Tile) -> bool:
    return (
        a.storage is b.storage
        and (a.block, a.partition, a.element) == (b.block, b.partition, b.element)
        and [d for d in a.dims if d.size > 1] == [d for d in b.dims if d.size > 1]
    )


def fitted(value: Tile, target: Tile) -> Tile:
    """One value a partition, repeated to another tile's size."""
    if (
        value.per_partition
        and value.partitions == target.partitions
        and target.dims
        and target.dims[0].partition
    ):
        return value.reshape((value.partitions,) + (1,) * (target.ndim - 1)).repeated(target.shape)
    if value.ndim <= target.ndim:
        return value.repeated(target.shape)
    raise KernelError(f"{value!r} and {target!r} don't go together [shape]")


def _put_piece(target: Tile, part: Tile, value: Tile, temporary: bool, choice: Choice | None = None) -> None:
    storage = target.storage
    if (
        temporary
        and _is_last(value)
        and value.dtype is target.dtype
        and storage is not value.storage
        and target.rows is None
    ):
        product = value.recorded.product
        storage.tensor(target.block)  # a block is filled when it is first used
        if not product and target.on_chip and target.size != storage.partitions * storage.row:
            storage.settle(target.block)  # only a part of the zeros is replaced
            if not _is_last(value):
                return _copied(target, part, choice)
        if session().trace.retarget(
            part.native(settle=False), target.native(settle=False), False if product else None
        ):
            value.moved = "its elements were written to the tile that it was assigned to"
            if product:
                storage.cover(target)
            else:
                storage.unfilled.discard(target.block)
                wrote(target)
            return
    _copied(target, part, choice)


def _copied(target: Tile, part: Tile, choice: Choice | None) -> None:
    if choice is not None:
        values = choice.values
        if values.dtype is not target.dtype:
            converted = new_tile(values.shape, target.dtype, buffers.sbuf)
            isa.tensor_copy(converted.native(), values.native())
            values = converted
        isa.tensor_copy_predicated(target.native(), values.native(), choice.predicate.native())
    elif (
        target.on_chip
        and part.on_chip
        and (target.on_engines and part.on_engines or buffers.is_psum(target.buffer))
    ):
        isa.tensor_copy(target.native(), part.native())
    else:
        if buffers.is_psum(part.buffer):
            copy = new_tile(part.shape, part.dtype, buffers.sbuf)
            isa.tensor_copy(copy.native(), part.native())
            part = copy
        isa.dma_copy(target.native(), part.native())
    wrote(target)


def _put_reduction(target: Tile, reduction: LoopReduction) -> None:
    value = reduction.value
    for piece in reduction.pieces if reduction.pieces is not None else [None]:
        into = target if piece is None else target.clipped(piece)
        part = value if piece is None else value.clipped(piece)
        if reduction.first:
            isa.tensor_copy(into.native(), part.native())
        else:
            isa.tensor_tensor(into.native(), into.native(), part.native(), reduction.op)
        wrote(target)


def add_in_place(target: Tile, other) -> Tile:
    """target += other. A product just made accumulates in a PSUM tile that only products have written (or
    that is all zeros).
    """
    if not isinstance(other, Tile):
        into = target.native()
        isa.tensor_scalar(into, into, "add", float(other))
        wrote(target)
        return target
    if not target.on_chip:
        raise KernelError(
            f"{target!r} += ...: instructions don't work on HBM: nl.load it, add, nl.store it [buffer]"
        )
    if _accumulated(target, other):
        return target
    recorded = other.recorded
    if recorded is not None and recorded.choice is not None:
        raise KernelError(
            "+= of a result with a mask over several extents: give the mask to nl.add and "
            "assign its result [mask]"
        )
    for piece in recorded.pieces if recorded is not None and recorded.pieces is not None else [None]:
        into, part = (target, other) if piece is None else (target.clipped(piece), other.clipped(piece))
        if part.size != into.size:
            part = fitted(part, into)
        if buffers.is_psum(part.buffer) and buffers.is_psum(into.buffer):
            copy = new_tile(part.shape, part.dtype, buffers.sbuf)
            isa.tensor_copy(copy.native(), part.native())
            part = copy
        view = into.native()
        isa.tensor_tensor(view, view, part.native(), "add")
        wrote(target)
    return target


def _accumulated(target: Tile, other: Tile) -> bool:
    if not (
        buffers.is_psum(target.buffer)
        and _is_last(other)
        and other.recorded.product
        and other.size == target.size
    ):
        return False
    storage, pieces = target.storage, other.recorded.pieces
    if target.block in storage.mixed or (pieces is not None and len(pieces) != 1):
        return False  # what isn't a product's can't be accumulated on
    part, into = other, target
    if pieces is not None:
        part, into = (
            other.clipped(pieces[0]),
            (target if target.ndim == other.ndim else target.reshape(other.shape)).clipped(pieces[0]),
        )
    # By default an element's first product overwrites what is there, and later ones add; only zeros that
    # were written are no start.
    accumulate = None
    if target.block in storage.settled:
        written = storage.written_by_products(into)
        if written is None:
            return False
        accumulate = None if written else False
    if not session().trace.retarget(part.native(settle=False), into.native(settle=False), accumulate):
        return False
    other.moved = (
        "it was added to another tile as it was computed; compute it once more, or nl.copy it before the +="
    )
    storage.cover(into)
    return True
