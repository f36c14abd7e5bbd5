"""Tiles of the older dialect: tensors with block dimensions, index expressions, values that instructions return.

A tile knows where each of its elements lies by strides of its own; ``native`` is the same as a tensor of the recorder.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from headway import _chip
from headway.nki import buffers, dtypes, isa
from headway.nki.errors import KernelError, Unsupported
from headway.nki.trace import session
from headway.neuronxcc.nki.index import Grid, Index, broadcast

Native = _chip.Tensor


class ParDim(int):
    """``nl.par_dim(n)``: the extent that lies on partitions; those before it count blocks."""


@dataclass(slots=True)
class Dim:
    """An extent: what one step moves in blocks, in partitions and in elements of a partition (or of HBM)."""

    size: int
    block: int = 0
    partition: int = 0
    element: int = 0


class Storage:
    """Blocks of memory that a tile looks into; a block's tensor is declared when it is first used."""

    def __init__(self, blocks: int, partitions: int, row: int, dtype, buffer, name: str = "", fill=None, tensor=None):
        self.blocks = blocks
        self.partitions = partitions
        self.row = row  # elements of a partition, or of all HBM
        self.dtype = dtype
        self.buffer = buffer
        self.name = name
        self.fill = fill  # what new blocks hold; None: nothing
        self.tensors: dict[int, Native] = {} if tensor is None else {0: tensor}
        self.unfilled: set[int] = set()  # PSUM blocks whose zeros are not written yet
        self.products = False  # only products have written to it
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

    def settle(self, block: int) -> None:
        """Writes zeros that were put off."""
        if block in self.unfilled:
            self.unfilled.discard(block)
            isa.memset(self.tensors[block], 0.0 if self.dtype.dtype.kind not in "iu" else 0)


class Tile:
    """A view of storage: dims, and where its first element lies."""

    def __init__(self, storage: Storage, dims: list[Dim], block: int = 0, partition: int = 0, element: int = 0, dtype=None, rows=None):
        self.storage = storage
        self.dims = dims
        self.block = block
        self.partition = partition
        self.element = element
        self.dtype = dtype or storage.dtype
        self.rows = rows  # (tile of row numbers, elements a row): the first dim's rows are given by an index
        # Of a fresh result: the number of instructions when it was done, the pieces that were written, whether by a product.
        self.recorded = None

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
    def per_partition(self) -> bool:
        """One value a partition."""
        return self.on_chip and self.size == self.partitions

    def __repr__(self) -> str:
        return f"<tile {self.dtype}{list(self.shape)} in {self.buffer}>"

    def __len__(self) -> int:
        return self.dims[0].size

    def __bool__(self) -> bool:
        raise TypeError("a tile has no truth value while a kernel is recorded: its elements are known only when it runs")

    def __iter__(self):
        raise TypeError("a tile can't be iterated over")

    # --- Views ---

    def _with(self, dims: list[Dim], block: int, partition: int, element: int) -> Tile:
        return Tile(self.storage, dims, block, partition, element, self.dtype, self.rows)

    def __getitem__(self, key) -> Tile:
        key = _expanded(key, self.ndim)
        if any(isinstance(k, (Index, Tile)) for k in key):
            return self._advanced(key)
        block, partition, element = self.block, self.partition, self.element
        dims: list[Dim] = []
        d = 0
        for k in key:
            if k is None:
                dims.append(Dim(1))
                continue
            dim = self.dims[d]
            start, count, step = _range(k, dim.size, d, self)
            block += dim.block * start
            partition += dim.partition * start
            element += dim.element * start
            if count is not None:
                dims.append(Dim(count, dim.block * step, dim.partition * step, dim.element * step))
            d += 1
        return self._with(dims, block, partition, element)

    def _advanced(self, key: list) -> Tile:
        key = [k for k in key if k is not None]
        exprs = [k for k in key if isinstance(k, Index)]
        tiles = [k for k in key if isinstance(k, Tile)]
        if len(tiles) > 1:
            raise Unsupported("indices given by tiles in two dimensions")
        rank = max([e.ndim for e in exprs] + [2 if tiles else 1])
        # Slices among index expressions take positions of their own behind the others.
        ranges = [(i, k) for i, k in enumerate(key) if isinstance(k, slice) or (hasattr(k, "size") and not isinstance(k, (Index, Tile)))]
        shapes = [(1,) * (rank - e.ndim) + e.shape for e in exprs]
        if tiles:
            shapes.append(tuple([tiles[0].size] + [1] * (rank - 1)))
        shape = list(functools.reduce(broadcast, shapes))
        full = rank + len(ranges)
        sizes = shape + [0] * len(ranges)
        block, partition, element = self.block, self.partition, self.element
        steps = [[0, 0, 0] for _ in range(full)]
        rows = None
        for d, k in enumerate(key):
            dim = self.dims[d]
            if isinstance(k, Tile):
                if self.on_chip or dim.element == 0:
                    raise Unsupported("an index given by a tile works along one dimension of HBM")
                rows = (k, dim.element, dim.size)
                continue
            if isinstance(k, Index):
                # What lies outside the extent may be left out by a mask; what is used is checked by the recorder.
                terms = list(enumerate((0,) * (rank - k.ndim) + k.coeffs))
                const = k.const
            elif any(i == d for i, _ in ranges):
                place = rank + [i for i, _ in ranges].index(d)
                const, count, step = _range(k, dim.size, d, self)
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
            for place, coeff in terms:
                steps[place][0] += dim.block * coeff
                steps[place][1] += dim.partition * coeff
                steps[place][2] += dim.element * coeff
        dims = [Dim(n, *s) for n, s in zip(sizes, steps)]
        result = self._with(dims, block, partition, element)
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
        if self.rows is not None:
            index, step, limit = self.rows
            result = self._with(dims, block, partition, element)
            result.rows = (index.clipped((piece[0],) + ((0, 1),) * (index.ndim - 1)), step, limit)
            return result
        return self._with(dims, block, partition, element)

    def permuted(self, order) -> Tile:
        return self._with([self.dims[d] for d in order], self.block, self.partition, self.element)

    def repeated(self, shape: tuple) -> Tile:
        """Extents of 1 (or missing in front) repeated; partitions can't be."""
        dims = [Dim(1)] * (len(shape) - self.ndim) + self.dims
        result = []
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
                raise KernelError(f"{self!r}: reshaping keeps the partitions, {self.dims[0].size}, not {new[0]} [view]")
            dims = [self.dims[0]] + _split(self.dims[1:], new[1:], self)
        else:
            dims = _split(self.dims, new, self)
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
        """The same elements as a tensor: partitions first, then the other extents in order, joined where they continue each other."""
        storage = self.storage
        if any(d.block for d in self.dims if d.size > 1):
            raise Unsupported(f"{self!r} spans blocks: an instruction works on one block, index the block dimensions")
        if not 0 <= self.block < storage.blocks:
            raise KernelError(f"block {self.block} of {self!r}: there are {storage.blocks} [index]")
        tensor = storage.tensor(self.block)
        if settle:
            storage.settle(self.block)
        rows = [d for d in self.dims if d.partition and d.size > 1]
        if len(rows) > 1:
            raise KernelError(f"{self!r}: two of its extents lie on partitions [index]")
        free = [(d.element, d.size) for d in self.dims if not (d.partition and d.size > 1) and d.size > 1]
        if not storage.on_chip and self.rows is not None:
            return self._gathered(tensor)
        free = _joined(free)
        if storage.on_chip:
            if rows and rows[0].partition != 1:
                raise KernelError(f"{self!r}: partitions are taken one after another, not by {rows[0].partition} [view]")
            pattern = [[storage.row, rows[0].size if rows else 1]] + [[step, n] for step, n in free or [(1, 1)]]
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
        pattern = [[self.storage.row if d.partition or (i == 0 and self.on_chip) else d.element, d.size] for i, d in enumerate(self.dims)]
        return whole.ap(pattern, offset=offset)

    def native_of_groups(self, first: int) -> tuple[Native, int]:
        """The same, with the extents from ``first`` on apart from those before; and how many they are in the tensor."""
        whole = self.native()
        kept = _joined([(d.element, d.size) for d in self.dims[:first] if not (d.partition and d.size > 1) and d.size > 1])
        rest = _joined([(d.element, d.size) for d in self.dims[first:] if d.size > 1]) or [(1, 1)]
        rows = [d for d in self.dims[:first] if d.partition and d.size > 1]
        pattern = [[self.storage.row, rows[0].size if rows else 1]] + [[s, n] for s, n in kept + rest]
        offset = self.partition * self.storage.row + self.element
        return whole.ap(pattern, offset=offset), len(rest)

    def _gathered(self, tensor: Native) -> Native:
        index, step, _ = self.rows
        column = index.native()
        free = _joined([(d.element, d.size) for d in self.dims[1:] if d.size > 1]) or [(1, 1)]
        flat = tensor.reshape((self.storage.row // step, step)) if self.storage.row % step == 0 else tensor
        return flat.ap([[step, self.dims[0].size]] + [[s, n] for s, n in free], offset=self.element, vector_offset=column, indirect_dim=0)

    # --- Assignment (assign.py) ---

    def __setitem__(self, key, value) -> None:
        from headway.neuronxcc.nki import assign

        assign.put(self[key], value)

    def __iadd__(self, other):
        from headway.neuronxcc.nki import assign

        return assign.add_in_place(self, other)


def _expanded(key, ndim: int) -> list:
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


def _range(k, extent: int, d: int, tile: Tile) -> tuple:
    """(start, count, step) that an entry takes of an extent; count None: one element, whose extent goes."""
    if isinstance(k, slice):
        start = 0 if k.start is None else int(k.start)
        stop = extent if k.stop is None else int(k.stop)
        step = 1 if k.step is None else int(k.step)
        start = start + extent if start < 0 else start
        stop = stop + extent if stop < 0 else stop
        if step < 1 or start < 0 or stop > extent or start >= stop:
            raise IndexError(f"{start}:{stop}:{step} is not a part of extent {d} of {tile!r}")
        return start, len(range(start, stop, step)), step
    if hasattr(k, "start") and hasattr(k, "size"):  # nl.ds
        start, size = int(k.start), int(k.size)
        if start < 0 or start + size > extent:
            raise IndexError(f"ds({start}, {size}) is not a part of extent {d} of {tile!r}")
        return start, size, 1
    at = int(k)
    at = at + extent if at < 0 else at
    if not 0 <= at < extent:
        raise IndexError(f"index {int(k)} is out of bounds for axis {d} with size {extent}")
    return at, None, 1


def _joined(free: list) -> list:
    """Extents that continue each other become one."""
    result: list = []
    for step, n in free:
        if result and result[-1][0] == step * n:
            result[-1] = (step, result[-1][1] * n)
        else:
            result.append((step, n))
    return result


def _split(dims: list[Dim], shape: list, tile: Tile) -> list[Dim]:
    """Dims of new extents over the elements of old ones, which must continue each other where they are joined."""
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
            if (d.block, d.partition, d.element) != (inner.block * count, inner.partition * count, inner.element * count):
                raise KernelError(f"{tile!r}: extents that are merged don't continue each other [view]")
            count *= d.size
        scale = 1
        parts: list[Dim] = []
        for n in reversed(group):
            parts.append(Dim(n, inner.block * scale, inner.partition * scale, inner.element * scale))
            scale *= n
        result.extend(reversed(parts))
    return result


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
    """A new tile. On chip the extent marked with par_dim, or else the first, lies on partitions; those before it are blocks."""
    shape = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
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
    for n in reversed(shape[at + 1:]):
        free.insert(0, Dim(int(n), element=row))
        row *= int(n)
    partitions = int(shape[at])
    limit = session().spec.partitions
    if partitions > limit:
        raise KernelError(f"a tile of {partitions} partitions; there are {limit} [partitions]")
    storage = Storage(blocks, partitions, row, dtype, buffer, name, fill)
    return Tile(storage, dims + [Dim(partitions, partition=1)] + free)
