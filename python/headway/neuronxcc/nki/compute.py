"""How value-returning instructions are recorded: a new tile, the pieces of the mask, operands as the recorder
takes them.
"""

from __future__ import annotations

from collections.abc import Callable

from headway.neuronxcc.nki import assign
from headway.neuronxcc.nki.index import Region, both, boxes, broadcast
from headway.neuronxcc.nki.layout import can_start
from headway.neuronxcc.nki.pieces import pieces, region_in
from headway.neuronxcc.nki.tile import Choice, Tile, new_tile
from headway.nki import buffers, dtypes, isa
from headway.nki.errors import KernelError, Unsupported
from headway.nki.language.memory import repeated_over_partitions
from headway.nki.language.math import promoted

FLOATS = ("float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2")


def result_dtype(dtype, *operands) -> dtypes.DType:
    """The dtype asked for, or what the operands' types are promoted to."""
    if dtype is not None:
        return dtypes.dtype_of(dtype)
    found = None
    for operand in operands:
        if isinstance(operand, Tile):
            found = operand.dtype if found is None else promoted(found, operand.dtype)
    return found or dtypes.float32


def emit(
    record: Callable, shape, dtype, operands: list, mask=None, buffer=buffers.sbuf, by_dma: bool = False
) -> Tile:
    """A new tile, written by ``record(dst, *operands)`` where the mask holds. Operands that aren't tiles are
    passed as they are; those
    with one value a partition are clipped in partitions only.

    A mask over several extents at once: DMA does its rectangles one by one; for other engines, which can't
    start at any partition,
    the result of the box around it is copied by a predicate.
    """
    mask, operands = without_masks(mask, operands)
    out = new_tile(shape, dtype, buffer)
    shape = out.shape
    region = region_in(mask, shape)
    if region is None:
        return assign.fresh(out, [])
    if region.is_all_of(shape):
        record(out.native(), *(o.native() if isinstance(o, Tile) else o for o in operands))
        return assign.fresh(out, None)

    def over(box, into):
        record(into.native(), *(o.clipped(box).native() if isinstance(o, Tile) else o for o in operands))

    if not region.rest and (by_dma or can_start(region.ranges[0][0], region.shape[0])):
        over(region.ranges, out.clipped(region.ranges))
        return assign.fresh(out, [region.ranges])
    exact = list(boxes(region))
    if by_dma:
        for box in exact:
            over(box, out.clipped(box))
        return assign.fresh(out, exact)
    region = _from_partition_0(region)
    box = region.ranges
    everywhere = new_tile(region.shape, out.dtype, buffers.sbuf)
    over(box, everywhere)
    predicate = predicate_of(region)
    isa.tensor_copy_predicated(out.clipped(box).native(), everywhere.native(), predicate.native())
    return assign.fresh(out, exact, choice=Choice(box, everywhere, predicate))


def _from_partition_0(region: Region) -> Region:
    """The same region, in a box that begins at the first partition."""
    first, end = region.ranges[0]
    if first == 0:
        return region
    below = (-first, (1,) + (0,) * (len(region.ranges) - 1))
    return Region(((0, end), *region.ranges[1:]), (*region.rest, below))


def predicate_of(region) -> Tile:
    """A tile over the box around a region: 1 inside the region, 0 elsewhere."""
    shape = region.shape
    predicate = new_tile(shape, dtypes.uint8, buffers.sbuf)
    isa.memset(predicate.native(), 1)
    for const, coeffs in region.rest:
        start = const + sum(c * first for c, (first, _) in zip(coeffs, region.ranges))
        chosen = new_tile(shape, dtypes.uint8, buffers.sbuf)
        isa.affine_select(
            chosen.native(),
            [[c, n] for c, n in zip(coeffs[1:], shape[1:])],
            coeffs[0],
            predicate.native(),
            0.0,
            "greater_equal",
            start,
        )
        predicate = chosen
    return predicate


def no_mask(name: str, mask) -> None:
    """Refuses a mask where a function can't take one."""
    if mask is not None and mask is not True:
        raise Unsupported(f"{name} with mask=: index the part of the tile that is meant [mask]")


def without_masks(mask, operands: list) -> tuple:
    """The mask joined with those that operands were indexed with, and the operands without them."""
    plain = []
    for operand in operands:
        if isinstance(operand, Tile) and operand.mask is not None:
            mask = both(mask, operand.mask)
            operand = operand.masked(None)
        plain.append(operand)
    return mask, plain


def run(record: Callable, tiles: list, mask, shape) -> None:
    ""
    """``record(*tiles)`` for each piece of the mask, on tiles that are there; the first one is written."""
    found = pieces(mask, tuple(shape))
    for piece in found if found is not None else [None]:
        record(
            *(
                (t if piece is None else t.clipped(piece)).native() if isinstance(t, Tile) else t
                for t in tiles
            )
        )
    if isinstance(tiles[0], Tile):
        assign.wrote(tiles[0])


def number(value):
    """A number as the recorder takes it: NumPy's and ml_dtypes' scalars included."""
    if isinstance(value, (int, float, Tile)) or value is None:
        return value
    if hasattr(value, "dtype") and getattr(value, "size", 1) == 1:
        return int(value) if value.dtype.kind in "iub" else float(value)
    return value


def column32(value):
    """A column of one value a partition as float32; anything else as it is."""
    if isinstance(value, Tile) and value.dtype.name != "float32":
        out = new_tile((value.partitions, 1), dtypes.float32, buffers.sbuf)
        isa.tensor_copy(out.native(), value.native())
        return out
    return value


def in_sbuf(tile: Tile) -> Tile:
    """The tile, or a copy of it where it lies in PSUM."""
    if not buffers.is_psum(tile.buffer):
        return tile
    return emit(isa.tensor_copy, tile.shape, tile.dtype, [tile])


def over_partitions(tile: Tile, rows: int) -> Tile:
    """A tile of one partition on so many; others as they are."""
    if not tile.on_chip or tile.partitions == rows:
        return tile
    if tile.partitions != 1:
        raise KernelError(f"{tile!r} can't be repeated on {rows} partitions [shape]")
    many = new_tile((rows, *(tile.shape[1:] or (1,))), tile.dtype, buffers.sbuf)
    many.storage.tensors[0] = repeated_over_partitions(in_sbuf(tile).native().reshape((1, tile.size)), rows)
    return many


def matched(a: Tile, b: Tile) -> tuple[Tile, Tile]:
    """Both with one shape: extents of 1 repeated."""
    if a.shape == b.shape:
        return a, b
    if a.partitions != b.partitions and 1 in (a.partitions, b.partitions):
        rows = max(a.partitions, b.partitions)
        a, b = over_partitions(a, rows), over_partitions(b, rows)
    if a.partitions == b.partitions and [n for n in a.shape if n > 1] == [n for n in b.shape if n > 1]:
        return a, b
    if b.per_partition and b.partitions == a.partitions:
        return a, assign.fitted(b, a)
    if a.per_partition and a.partitions == b.partitions:
        return assign.fitted(a, b), b
    shape = broadcast(a.shape, b.shape)
    return a.repeated(shape) if a.shape != shape else a, b.repeated(shape) if b.shape != shape else b


def binary(op: str, x, y, dtype=None, mask=None, engine=None) -> Tile:
    """x op y: tiles, a tile and a number, or a tile and one value a partition."""
    x, y = number(x), number(y)
    bits = op.startswith("bitwise") or op.endswith("shift")
    truth = op in (
        "equal",
        "not_equal",
        "greater",
        "greater_equal",
        "less",
        "less_equal",
        "logical_and",
        "logical_or",
        "logical_xor",
    )
    kind = dtypes.bool_ if truth and dtype is None else result_dtype(dtype, x, y)
    if isinstance(x, Tile) and isinstance(y, Tile):
        for tile, column, reverse in ((x, y, False), (y, x, True)):
            if (
                column.per_partition
                and not tile.per_partition
                and op != "power"
                and column.partitions == tile.partitions
            ):
                operand = column if bits else column32(column)
                return emit(
                    lambda d, t, c: isa.tensor_scalar(d, t, op, c, reverse0=reverse, engine=engine),
                    tile.shape,
                    kind,
                    [tile, operand],
                    mask,
                )
        if buffers.is_psum(x.buffer) and buffers.is_psum(y.buffer):
            y = in_sbuf(y)
        x, y = matched(x, y)
        shape = x.shape if x.ndim >= y.ndim else y.shape
        return emit(lambda d, a, b: isa.tensor_tensor(d, a, b, op, engine=engine), shape, kind, [x, y], mask)
    tile, value, reverse = (x, y, False) if isinstance(x, Tile) else (y, x, True)
    if dtype is None and not truth and isinstance(value, float) and kind.name not in FLOATS:
        kind = dtypes.float32
    value = int(value) if bits else float(value)
    return emit(
        lambda d, t: isa.tensor_scalar(d, t, op, value, reverse0=reverse, engine=engine),
        tile.shape,
        kind,
        [tile],
        mask,
    )


def reduction(op, data: Tile, axis, dtype=None, mask=None, negate=False, keepdims=False) -> Tile:
    """data reduced over free extents; at least [P, 1] stays."""
    axes = [axis] if hasattr(axis, "__index__") else list(axis)
    axes = sorted(int(a) + data.ndim if a < 0 else int(a) for a in axes)
    kept = [d for d in range(data.ndim) if d not in axes]
    found = pieces(mask, data.shape)
    shape = (
        tuple(1 if d in axes else data.shape[d] for d in range(data.ndim))
        if keepdims
        else tuple(data.shape[d] for d in kept)
    )
    if len(shape) == 1:
        shape += (1,)
    out = new_tile(shape, result_dtype(dtype, data), buffers.sbuf)
    inner = out
    for piece in found if found is not None else [None]:
        part = data if piece is None else data.clipped(piece)
        if piece is not None:
            bounds = (
                [(0, 1) if d in axes else piece[d] for d in range(data.ndim)]
                if keepdims
                else [piece[d] for d in kept]
            )
            bounds += [(0, 1)] * (len(shape) - len(bounds))
            inner = out.clipped(tuple(bounds))
        flat, extents = part.permuted(kept + axes).native_of_groups(len(kept))
        isa.tensor_reduce(
            inner.native(), op, flat, tuple(range(flat.ndim - extents, flat.ndim)), negate=negate
        )
    clipped = (
        None
        if found is None
        else [
            tuple(
                (((0, 1) if d in axes else p[d]) for d in range(data.ndim))
                if keepdims
                else [p[d] for d in kept] + [(0, 1)] * (len(shape) - len(kept))
            )
            for p in found
        ]
    )
    return assign.fresh(out, clipped)
