"""Tiles of the older dialect: tensors with block dimensions, index expressions, values that instructions
return.

A tile knows where each of its elements lies by strides of its own; ``native`` is the same as a tensor of the
recorder.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass

from headway.neuronxcc.nki.index import Index, Mask, both, broadcast
from headway.neuronxcc.nki.layout import Dim, can_start, expanded, joined, split, taken
from headway.neuronxcc.nki.storage import Native, Storage
from headway.nki import buffers, dtypes
from headway.nki.errors import KernelError, Unsupported
from headway.nki.trace import session


class ParDim(int):
    """``nl.par_dim(n)``: the extent that lies on partitions; those before it count blocks."""


@dataclass(slots=True)
class Limit:
    """An index of an extent that leaves it: ``const + sum(coeffs * position)`` along ``axis``, which has
    ``extent`` elements.
    """

    const: int
    coeffs: tuple
    extent: int
    axis: int


@dataclass(slots=True)
class Choice:
    """How the elements of a result that a mask over several extents keeps are told from others: inside
    ``box`` they are those of
    ``values`` where ``predicate`` is 1. Both are tiles of the box."""

    box: tuple
    values: object
    predicate: object


@dataclass(slots=True)
class Recorded:
    """Of a result that an instruction has just made: how many instructions there were then, and what of it
    was written.
    """

    instructions: int
    pieces: list | None = None  # boxes; None: all
    product: bool = False  # by nc_matmul
    choice: Choice | None = None


class Tile:
    """A view of storage: dims, and where its first element lies."""

    def __init__(
        self,
        storage: Storage,
        dims: list[Dim],
        block: int = 0,
        partition: int = 0,
        element: int = 0,
        dtype=None,
        rows=None,
    ):
        self.storage = storage
        self.dims = dims
        self.block = block
        self.partition = partition
        self.element = element
        self.dtype = dtype or storage.dtype
        self.rows = rows  # (tile of row numbers, elements a row): the first dim's rows are given by an index
        self.limits: list[Limit] = []  # indices that leave their extent: only a mask can make them legal
        self.mask = None  # of an operand that was indexed with a mask
        self.recorded: Recorded | None = None  # of a result that an instruction has just made
        self.moved = ""  # where its elements went instead of here

    # --- Looks ---

    @property
    def shape(self) -> tuple:
        return tuple(d.size for d in self.dims)

    @property
    def ndim(self) -> int:
        return len(self.dims)

    @property
    def size(self) -> int:
        count = 1
        for d in self.dims:
            count *= d.size
        return count

    @property
    def buffer(self):
        return self.storage.buffer

    @property
    def on_chip(self) -> bool:
        return self.storage.on_chip

    @property
    def partitions(self) -> int:
        return next((d.size for d in self.dims if d.partition), 1)

    @property
    def on_engines(self) -> bool:
        """Whether engines can start at the tile's first partition."""
        return can_start(self.partition, self.partitions)

    @property
    def per_partition(self) -> bool:
        """One value a partition."""
        return self.on_chip and self.size == self.partitions

    def __repr__(self) -> str:
        return f"<tile {self.dtype}{list(self.shape)} in {self.buffer}>"

    def __len__(self) -> int:
        return self.dims[0].size

    def __bool__(self) -> bool:
        if not self.on_chip:
            return True  # an argument that was given: ``if bias:``
        raise TypeError(
            "a tile has no truth value while a kernel is recorded: its elements are known only when it runs"
        )

    def __iter__(self):
        raise TypeError("a tile can't be iterated over")

    # --- Views ---

    def _with(
        self, dims: list[Dim], block: int, partition: int, element: int, limits: list[Limit] | None = None
    ) -> Tile:
        if limits is None:
            self.check_limits()  # they can't be followed through other views
            limits = []
        result = Tile(self.storage, dims, block, partition, element, self.dtype, self.rows)
        result.limits = limits
        result.moved = self.moved
        return result

    def masked(self, mask) -> Tile:
        """The same tile, of which an instruction works on the part where ``mask`` holds."""
        result = self._with(self.dims, self.block, self.partition, self.element, self.limits)
        result.mask = mask
        return result

    def check_limits(self) -> None:
        """KernelError where an index leaves its extent."""
        for limit in self.limits:
            reach = [
                limit.const
                + sum(c * (d.size - 1) for c, d in zip(limit.coeffs, self.dims) if (c > 0) == upper)
                for upper in (False, True)
            ]
            if reach[0] < 0 or reach[1] >= limit.extent:
                wrong = reach[0] if reach[0] < 0 else reach[1]
                raise KernelError(
                    f"index {wrong} is outside extent {limit.axis} of {self.storage!r}, which is "
                    f"{limit.extent}; "
                    "mask= leaves elements out [out-of-bounds]"
                )

    def __getitem__(self, key) -> Tile:
        if isinstance(key, (Mask, bool)):
            return self.masked(both(self.mask, key))
        key = expanded(key, self.ndim)
        if any(isinstance(k, (Index, Tile)) for k in key):
            return self._advanced(key)
        block, partition, element = self.block, self.partition, self.element
        dims: list[Dim] = []
        d = 0
        past: list[tuple] = []  # what reaches past its extent: (place, start, step, extent, axis)
        for k in key:
            if k is None:
                dims.append(Dim(1))
                continue
            dim = self.dims[d]
            start, count, step = taken(k, dim.size, d, self)
            if count is not None and start + (count - 1) * step >= dim.size:
                past.append((len(dims), start, step, dim.size, d))
            block += dim.block * start
            partition += dim.partition * start
            element += dim.element * start
            if count is not None:
                dims.append(Dim(count, dim.block * step, dim.partition * step, dim.element * step))
            d += 1
        limits = [
            Limit(start, tuple(step if k == place else 0 for k in range(len(dims))), extent, axis)
            for place, start, step, extent, axis in past
        ]
        self.check_limits()
        return self._with(dims, block, partition, element, limits)

    def _advanced(self, key: list) -> Tile:
        key = [k for k in key if k is not None]
        exprs = [k for k in key if isinstance(k, Index)]
        tiles = [k for k in key if isinstance(k, Tile)]
        if len(tiles) > 1:
            raise Unsupported("indices given by tiles in two dimensions")
        rank = max([e.ndim for e in exprs] + [2 if tiles else 1])
        # Slices behind the index expressions take positions of their own behind theirs, as in NumPy.
        ranges = [
            (i, k)
            for i, k in enumerate(key)
            if isinstance(k, slice) or (hasattr(k, "size") and not isinstance(k, (Index, Tile)))
        ]
        shapes = [(1,) * (rank - e.ndim) + e.shape for e in exprs]
        if tiles:
            shapes.append(tuple([tiles[0].size] + [1] * (rank - 1)))
        shape = list(functools.reduce(broadcast, shapes))
        if ranges and ranges[0][0] != len(key) - len(ranges):
            raise KernelError(
                f"{self!r}: slices among index expressions: write them as nl.arange too, or last [index]"
            )
        full = rank + len(ranges)
        sizes = shape + [0] * len(ranges)
        block, partition, element = self.block, self.partition, self.element
        steps = [[0, 0, 0] for _ in range(full)]
        rows = None
        limits: list[Limit] = []
        for d, k in enumerate(key):
            dim = self.dims[d]
            if isinstance(k, Tile):
                if self.on_chip or dim.element == 0:
                    raise Unsupported("an index given by a tile works along one dimension of HBM")
                rows = (k, dim.element, dim.size)
                continue
            if isinstance(k, Index):
                # Along an extent of 1 that others repeat the index stays.
                terms = [
                    (rank - k.ndim + place, c)
                    for place, (c, n) in enumerate(zip(k.coeffs, k.shape))
                    if n != 1
                ]
                const = k.const
            elif any(i == d for i, _ in ranges):
                place = rank + [i for i, _ in ranges].index(d)
                const, count, step = taken(k, dim.size, d, self)
                sizes[place] = count
                terms = [(place, step)]
            else:
                const = int(k)
                if const < 0:
                    const += dim.size
                terms = []
            block += dim.block * const
            partition += dim.partition * const
            element += dim.element * const
            coeffs = [0] * full
            for place, coeff in terms:
                coeffs[place] += coeff
            reach = [
                const + sum(c * (n - 1) for c, n in zip(coeffs, sizes) if (c > 0) == upper and c)
                for upper in (False, True)
            ]
            if reach[0] < 0 or reach[1] >= dim.size:
                limits.append(Limit(const, tuple(coeffs), dim.size, d))  # a mask may leave that out
            for place, coeff in terms:
                steps[place][0] += dim.block * coeff
                steps[place][1] += dim.partition * coeff
                steps[place][2] += dim.element * coeff
        # Along an extent of 1 there is no step.
        dims = [Dim(n, *s) if n != 1 else Dim(1) for n, s in zip(sizes, steps)]
        self.check_limits()
        result = self._with(dims, block, partition, element, limits)
        if rows is not None:
            result.rows = rows
        return result

    def clipped(self, piece: tuple) -> Tile:
        """The part that a piece of a mask keeps; extents of 1 stay."""
        if len(piece) != self.ndim:
            if self.per_partition and self.ndim <= 2:
                piece = tuple(piece[:1]) + ((0, 1),) * (self.ndim - 1)
            else:
                raise KernelError(f"a mask over {len(piece)} extents for {self!r} [mask]")
        block, partition, element = self.block, self.partition, self.element
        dims = []
        for dim, (start, stop) in zip(self.dims, piece):
            if dim.size == 1:
                start, stop = 0, 1
            block += dim.block * start
            partition += dim.partition * start
            element += dim.element * start
            dims.append(Dim(stop - start, dim.block, dim.partition, dim.element))
        limits = [
            Limit(
                limit.const
                + sum(
                    c * (0 if d.size == 1 else start)
                    for c, d, (start, _) in zip(limit.coeffs, self.dims, piece)
                ),
                limit.coeffs,
                limit.extent,
                limit.axis,
            )
            for limit in self.limits
        ]
        if self.rows is not None:
            index, step, limit = self.rows
            result = self._with(dims, block, partition, element, limits)
            result.rows = (index.clipped((piece[0],) + ((0, 1),) * (index.ndim - 1)), step, limit)
            return result
        return self._with(dims, block, partition, element, limits)

    def permuted(self, order) -> Tile:
        return self._with([self.dims[d] for d in order], self.block, self.partition, self.element)

    def repeated(self, shape: tuple) -> Tile:
        """Extents of 1 (or missing in front) repeated; partitions can't be."""
        dims = [Dim(1)] * (len(shape) - self.ndim) + self.dims
        result = []
        if self.on_chip and dims and dims[0].size != shape[0]:
            raise KernelError(
                f"{self!r}: a view repeats no partitions; nl.broadcast_to(tile, {shape}) copies [shape]"
            )
        for dim, n in zip(dims, shape):
            if dim.size == n:
                result.append(dim)
            elif dim.size == 1:
                result.append(Dim(n))
            else:
                raise KernelError(f"{self!r} can't be repeated to {shape} [shape]")
        return self._with(result, self.block, self.partition, self.element)

    def reshape(self, *shape) -> Tile:
        """The same elements by other extents; on chip the partitions stay."""
        new = list(shape[0]) if len(shape) == 1 and not hasattr(shape[0], "__index__") else list(shape)
        if -1 in new:
            known = 1
            for n in new:
                known *= n if n != -1 else 1
            new[new.index(-1)] = self.size // known
        if self.on_chip and new and self.dims and self.dims[0].partition:
            if new[0] != self.dims[0].size:
                raise KernelError(
                    f"{self!r}: reshaping keeps the partitions, {self.dims[0].size}, not {new[0]} [view]"
                )
            dims = [self.dims[0]] + split(self.dims[1:], new[1:], self)
        else:
            dims = split(self.dims, new, self)
        return self._with(dims, self.block, self.partition, self.element)

    def view(self, dtype) -> Tile:
        """Other elements of the same bytes."""
        to = dtypes.dtype_of(dtype)
        if to is self.dtype:
            return self
        if to.itemsize != self.dtype.itemsize:
            raise Unsupported(f"a view of {self.dtype} as {to}: elements of another size")
        result = self._with(list(self.dims), self.block, self.partition, self.element)
        result.dtype = to
        return result

    def broadcast_to(self, *shape) -> Tile:
        from headway.neuronxcc.nki.language import broadcast_to

        return broadcast_to(self, shape[0] if len(shape) == 1 else shape)

    def astype(self, dtype) -> Tile:
        from headway.neuronxcc.nki.language import copy

        return copy(self, dtype=dtype)

    def expand_dims(self, axis: int) -> Tile:
        dims = list(self.dims)
        dims.insert(axis if axis >= 0 else axis + self.ndim + 1, Dim(1))
        return self._with(dims, self.block, self.partition, self.element)

    # --- The recorder's tensor ---

    def native(self, settle: bool = True) -> Native:
        """The same elements as a tensor: partitions first, then the other extents in order, joined where they
        continue each other.
        """
        storage = self.storage
        if self.moved:
            raise KernelError(f"{self!r}: {self.moved} [moved]")
        if self.mask is not None:
            raise Unsupported(
                f"{self!r} is indexed with a mask: this function takes it as mask= instead [mask]"
            )
        self.check_limits()
        if any(d.block for d in self.dims if d.size > 1):
            raise Unsupported(
                f"{self!r} spans blocks: an instruction works on one block, index the block dimensions"
            )
        if not 0 <= self.block < storage.blocks:
            raise KernelError(f"block {self.block} of {self!r}: there are {storage.blocks} [index]")
        tensor = storage.tensor(self.block)
        if settle:
            storage.settle(self.block)
        rows = [d for d in self.dims if d.partition and d.size > 1]
        if len(rows) > 1:
            raise KernelError(f"{self!r}: two of its extents lie on partitions [index]")
        if rows and (rows[0].element or next(d for d in self.dims if d.size > 1) is not rows[0]):
            raise KernelError(
                f"{self!r}: partitions are a tile's leading extent and no other: nl.transpose or "
                "nl.load_transpose2d turn it [leading-partition]"
            )
        free = [(d.element, d.size) for d in self.dims if not (d.partition and d.size > 1) and d.size > 1]
        if not storage.on_chip and self.rows is not None:
            return self._gathered(tensor)
        free = joined(free)
        if storage.on_chip:
            if rows and rows[0].partition != 1:
                raise KernelError(
                    f"{self!r}: partitions are taken one after another, not by {rows[0].partition} [view]"
                )
            pattern = [[storage.row, rows[0].size if rows else 1]] + [
                [step, n] for step, n in free or [(1, 1)]
            ]
            offset = self.partition * storage.row + self.element
            if storage.tensors[self.block].trace is not session().trace:
                raise KernelError(f"{self!r} belongs to another call of a kernel [foreign]")
        else:
            pattern = [[step, n] for step, n in free or [(1, 1)]]
            offset = self.element
        return tensor.ap(pattern, offset=offset, dtype=None if self.dtype is storage.dtype else self.dtype)

    def native_as_shaped(self) -> Native:
        """The same with the tile's own extents, none joined."""
        whole = self.native()
        if whole.is_dynamic or whole.shape == self.shape:
            return whole
        offset = self.partition * self.storage.row + self.element if self.on_chip else self.element
        pattern = [
            [self.storage.row if d.partition or (i == 0 and self.on_chip) else d.element, d.size]
            for i, d in enumerate(self.dims)
        ]
        return whole.ap(pattern, offset=offset)

    def native_of_groups(self, first: int) -> tuple[Native, int]:
        """The same, with the extents from ``first`` on apart from those before; and how many they are in the
        tensor.
        """
        whole = self.native()
        kept = joined(
            [
                (d.element, d.size)
                for d in self.dims[:first]
                if not (d.partition and d.size > 1) and d.size > 1
            ]
        )
        rest = joined([(d.element, d.size) for d in self.dims[first:] if d.size > 1]) or [(1, 1)]
        rows = [d for d in self.dims[:first] if d.partition and d.size > 1]
        pattern = [[self.storage.row, rows[0].size if rows else 1]] + [[s, n] for s, n in kept + rest]
        offset = self.partition * self.storage.row + self.element
        return whole.ap(pattern, offset=offset), len(rest)

    def _gathered(self, tensor: Native) -> Native:
        index, step, _ = self.rows
        column = index.native()
        # An error of the chip speaks of bytes, this dialect's of elements.
        session().memo.setdefault("bytes of an element", {})[tensor.name] = self.dtype.itemsize
        free = joined([(d.element, d.size) for d in self.dims[1:] if d.size > 1]) or [(1, 1)]
        flat = tensor.reshape((self.storage.row // step, step)) if self.storage.row % step == 0 else tensor
        return flat.ap(
            [[step, self.dims[0].size]] + [[s, n] for s, n in free],
            offset=self.element,
            vector_offset=column,
            indirect_dim=0,
        )

    # --- Assignment (assign.py) ---

    def __setitem__(self, key, value) -> None:
        temporary = sys.getrefcount(value) <= _TEMPORARY
        from headway.neuronxcc.nki import assign

        assign.put(self[key], value, temporary)

    def __iadd__(self, other):
        from headway.neuronxcc.nki import assign

        return assign.add_in_place(self, other)


def tile_over(tensor: Native, shape) -> Tile:
    """A tile that is all of a tensor (an argument in HBM), by the extents given."""
    size = 1
    for n in shape:
        size *= n
    storage = Storage(1, 1, size, tensor.dtype, tensor.buffer, tensor=tensor)
    return Tile(storage, _dims_of(tuple(shape)))


def _dims_of(shape: tuple) -> list[Dim]:
    dims, step = [], 1
    for n in reversed(shape):
        dims.append(Dim(int(n), element=step))
        step *= int(n)
    return dims[::-1]


def new_tile(shape, dtype, buffer, name: str = "", fill=None) -> Tile:
    """A new tile. On chip the extent marked with par_dim, or else the first, lies on partitions; those before
    it are blocks.
    """
    shape = (tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)) or (1,)
    dtype = dtypes.dtype_of(dtype)
    buffer = buffers.buffer_of(buffer)
    if not buffers.is_on_chip(buffer):
        size = 1
        for n in shape:
            size *= int(n)
        storage = Storage(1, 1, size, dtype, buffer, name, fill)
        tile = Tile(storage, _dims_of(shape))
        storage.tensor(0)
        return tile
    marked = [d for d, n in enumerate(shape) if isinstance(n, ParDim)]
    at = marked[0] if marked else 0
    blocks = 1
    dims: list[Dim] = []
    for n in reversed(shape[:at]):
        dims.insert(0, Dim(int(n), block=blocks))
        blocks *= int(n)
    row = 1
    free: list[Dim] = []
    for n in reversed(shape[at + 1 :]):
        free.insert(0, Dim(int(n), element=row))
        row *= int(n)
    partitions = int(shape[at])
    limit = session().spec.partitions
    if partitions > limit:
        raise KernelError(f"a tile of {partitions} partitions; there are {limit} [partitions]")
    storage = Storage(blocks, partitions, row, dtype, buffer, name, fill)
    return Tile(storage, dims + [Dim(partitions, partition=1)] + free)


class _Counter:
    """How many references __setitem__ sees to a value that nothing else holds, and to one with a name."""

    def __init__(self):
        self.seen: list[int] = []

    def __setitem__(self, key, value) -> None:
        self.seen.append(sys.getrefcount(value))


def _references_of_a_temporary() -> int:
    counter = _Counter()
    counter[0] = object()
    named = object()
    counter[0] = named
    # An interpreter that doesn't count a name's reference can't tell: then no value is taken for a temporary.
    return counter.seen[0] if counter.seen[0] < counter.seen[1] else -1


_TEMPORARY = _references_of_a_temporary()
