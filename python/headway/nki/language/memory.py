"""Tensors: making them, moving them between HBM and the chip, constants."""

from __future__ import annotations

import os

import numpy as np

from headway import _chip
from headway.nki import buffers, dtypes, isa
from headway.nki.errors import InputError, KernelError
from headway.nki.trace import session

Tensor = _chip.Tensor
_FILL_ELEMENTS = 8192  # of a partition, in the tile that HBM is filled from
_RANDOM_BITS = {"float32": 24, "tfloat32": 11, "float16": 11, "bfloat16": 8}  # that a number below 1 has


class ds:
    """``ds(start, size)``: the elements from start on; start may be a register or a [1, 1] tensor in SBUF."""

    __slots__ = ("start", "size")

    def __init__(self, start, size):
        self.start = start
        self.size = size

    def __repr__(self) -> str:
        return f"nl.ds({self.start}, {self.size})"


def ndarray(shape, dtype, buffer=buffers.sbuf, name="", address=None):
    """A new tensor; what is in it is undefined.

    ``shape``: on chip its first extent counts partitions. ``address``: (first partition, byte of each
    partition), for a place of one's own choice on chip. KernelError where the chip has no room for it.
    """
    return session().declare(shape, dtype, buffer, name, address)


def zeros(shape, dtype, buffer=buffers.sbuf, name=""):
    """A new tensor of zeros (memset; in HBM by DMA)."""
    return full(shape, 0, dtype, buffer, name)


def ones(shape, dtype, buffer=buffers.sbuf, name=""):
    """A new tensor of ones."""
    return full(shape, 1, dtype, buffer, name)


def full(shape, fill_value, dtype, buffer=buffers.sbuf, name=""):
    """A new tensor with fill_value everywhere."""
    tensor = ndarray(shape, dtype, buffer, name)
    fill(tensor, fill_value)
    return tensor


def zeros_like(x, dtype=None, buffer=None, name=""):
    """Zeros of x's shape; dtype and buffer are x's where not given."""
    return zeros(x.shape, x.dtype if dtype is None else dtype, x.buffer if buffer is None else buffer, name)


def empty_like(x, dtype=None, buffer=None, name=""):
    """A new tensor of x's shape; dtype and buffer are x's where not given."""
    return ndarray(x.shape, x.dtype if dtype is None else dtype, x.buffer if buffer is None else buffer, name)


def fill(tensor, value) -> None:
    """tensor = value everywhere: memset; HBM by DMA from a tile of 128 partitions."""
    kind = tensor.stored_dtype
    value = int(value) if kind.dtype.kind in "iu" or kind.name == "bool" else float(value)
    if buffers.is_on_chip(tensor.buffer):
        isa.memset(tensor, value)
        return
    lanes = session().spec.partitions
    if not tensor.is_contiguous():
        rows = min(tensor.shape[0], lanes)
        tile = session().declare((rows, tensor.size // tensor.shape[0]), kind, buffers.sbuf)
        isa.memset(tile, value)
        for row in range(0, tensor.shape[0], rows):
            count = min(rows, tensor.shape[0] - row)
            isa.dma_copy(tensor[row : row + count], tile[0:count])
        return
    width = min(-(-tensor.size // lanes), _FILL_ELEMENTS)
    tile = session().declare((min(lanes, -(-tensor.size // width)), width), kind, buffers.sbuf)
    isa.memset(tile, value)
    flat = tensor.reshape((tensor.size,))
    start = 0
    while start < tensor.size:
        rows = min(tile.shape[0], (tensor.size - start) // width)
        piece = tile[0:rows] if rows else tile[0:1, 0 : tensor.size - start]
        isa.dma_copy(flat[start : start + piece.size], piece)
        start += piece.size


def _tensor(value, function: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"nl.{function} wants a tensor, not {type(value).__name__}")


def load(src, dtype=None):
    """A tile in SBUF with what is in src (HBM), converted to dtype where given (DMA).

    src's first extent, up to 128, becomes the partitions; of one extent [N] the tile is [N, 1].
    """
    _tensor(src, "load")
    shape = src.shape if src.ndim > 1 else (src.shape[0], 1)
    tile = ndarray(shape, dtype if dtype is not None else src.dtype)
    isa.dma_copy(tile, src)
    return tile


def store(dst, value) -> None:
    """dst (HBM) = value, a tile in SBUF with as many elements, or a number; converted to dst's dtype
    (DMA).
    """
    _tensor(dst, "store")
    if not isinstance(value, Tensor):
        fill(dst, value)
        return
    if buffers.is_psum(value.buffer):
        raise KernelError(
            "nl.store of a tile in PSUM: DMA doesn't reach it; nl.copy it to SBUF first [buffer]"
        )
    isa.dma_copy(dst, value)


def load_transpose2d(src, dtype=None):
    """A tile [F, P] in SBUF with the transpose of src [P, F] (HBM): dma_transpose, or element by element for
    1-byte elements.
    """
    _tensor(src, "load_transpose2d")
    if src.ndim != 2:
        raise KernelError(f"nl.load_transpose2d transposes 2 extents, src has {src.ndim} [shape]")
    rows, columns = src.shape
    to = dtypes.dtype_of(dtype) if dtype is not None else src.dtype
    tile = ndarray((columns, rows), src.dtype)
    if src.dtype.itemsize in (2, 4) and not src.is_dynamic:
        isa.dma_transpose(tile, src)
    else:
        isa.dma_copy(tile, src.permute((1, 0)))
    return tile if to == src.dtype else copy(tile, to)


def copy(src, dtype=None):
    """A tile in SBUF with what is in src (SBUF or PSUM), converted to dtype where given (Vector)."""
    _tensor(src, "copy")
    tile = ndarray(src.shape, dtype if dtype is not None else src.dtype)
    isa.tensor_copy(tile, src, engine=isa.vector_engine)
    return tile


def shared_constant(constant, dtype=None):
    """A constant in shared HBM that is part of the program: a NumPy array, or the path of a .npy file."""
    if isinstance(constant, (str, os.PathLike)):
        try:
            values = np.load(constant, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"nl.shared_constant: {constant}: {error}") from None
    else:
        values = np.asarray(constant)
    if dtype is None:
        dtype = {"float64": "float32", "int64": "int32", "uint64": "uint32"}.get(
            values.dtype.name, values.dtype
        )
    wanted = dtypes.dtype_of(dtype)
    values = np.ascontiguousarray(values.astype(wanted.dtype))
    s = session()
    return s.trace.constant(s.unique_name("constant"), wanted, values.shape, values.tobytes())


def shared_identity_matrix(n, dtype=dtypes.uint8, dst=None):
    """The identity [n, n], n up to 128, in SBUF (memset and affine_select, GpSimd). One a dtype and call of
    the kernel, which nobody should write to; or written to ``dst`` [n, n].
    """
    s = session()
    wanted = dst.dtype if dst is not None else dtypes.dtype_of(dtype)
    key = ("identity", wanted.name)
    known = s.memo.get(key)
    if dst is None and known is not None and known.shape[0] >= n:
        return known[0:n, 0:n]
    identity = dst if dst is not None else ndarray((n, n), wanted)
    one = ndarray((n, n), wanted)
    fill(one, 1)
    isa.affine_select(identity, [[-1, n]], 1, one, 0.0)
    # What a register loop's body makes isn't there after a loop of no rounds.
    if dst is None and not s.open_loops:
        s.memo[key] = identity
    return identity


def rand(shape, dtype=dtypes.float32, buffer=buffers.sbuf, name=""):
    """A tile of uniform random numbers in [0, 1), multiples of 2^-24 in float32, of 2^-11 in float16, of 2^-8
    in bfloat16.

    Bits of the Vector engine's generators (nisa.rng), which ``nl.random_seed`` seeds.
    """
    wanted = dtypes.dtype_of(dtype)
    if wanted.name not in _RANDOM_BITS:
        raise KernelError(f"nl.rand makes {', '.join(_RANDOM_BITS)}, not {wanted} [dtype]")
    bits = ndarray(shape, dtypes.uint32)
    isa.rng(bits)
    isa.tensor_scalar(bits, bits, "right_shift", 32 - _RANDOM_BITS[wanted.name])
    tile = ndarray(shape, wanted, buffer, name)
    isa.tensor_scalar(tile, bits, "multiply", 2.0 ** -_RANDOM_BITS[wanted.name])
    return tile


def random_seed(seed) -> None:
    """Seeds nl.rand and nl.dropout: a [1, 1] tensor of 32 bits in SBUF or PSUM."""
    isa.set_rng_seed(seed)


def dropout(x, rate, dtype=None):
    """x with elements set to 0 with probability ``rate``, a number or a tile [P, 1]; what stays isn't scaled
    (Vector).
    """
    _tensor(x, "dropout")
    tile = ndarray(x.shape, x.dtype)
    isa.dropout(tile, x, rate)
    return tile if dtype is None else copy(tile, dtype)


def expand_dims(x, axis):
    """x with an extent of 1 at axis, which on chip isn't 0: a view."""
    _tensor(x, "expand_dims")
    return x.expand_dim(axis + x.ndim + 1 if axis < 0 else axis)


# What the Tensor engine passes on exactly: each element is one product with 1.
_PRODUCTS = ("float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2")


def repeated_over_partitions(row, partitions):
    """A tile [partitions, ...] in SBUF, each of its partitions a copy of ``row`` [1, ...] (SBUF or PSUM).

    Floats in partition 0 by products with ones, as many columns at a time as the Tensor engine moves, and
    from PSUM to SBUF on Scalar and Vector in turn; anything else by way of HBM (DMA).
    """
    tile = ndarray((partitions, *row.shape[1:]), row.dtype)
    if buffers.is_psum(row.buffer) or not row.is_contiguous():
        row = copy(row)
    in_first = row.offset < row.strides[0]
    if row.stored_dtype.name not in _PRODUCTS or row.is_dynamic or not in_first:
        through = ndarray(row.shape, row.dtype, buffers.private_hbm)
        isa.dma_copy(through, row)
        isa.dma_copy(tile, through.broadcast(0, partitions))
        return tile
    spec = session().spec
    # On NeuronCore-v2 the Scalar engine doesn't copy.
    engines = (isa.scalar_engine, isa.vector_engine) if spec.generation >= 3 else (isa.vector_engine,)
    ones = ndarray((1, partitions), row.dtype)
    isa.memset(ones, 1.0)
    columns = row.size
    flat, out = row.reshape((1, columns)), tile.reshape((partitions, columns))
    for turn, first in enumerate(range(0, columns, spec.moving_columns)):
        part = slice(first, min(first + spec.moving_columns, columns))
        product = ndarray((partitions, part.stop - first), dtypes.float32, buffers.psum)
        isa.nc_matmul(product, ones, flat[:, part])
        isa.tensor_copy(out[:, part], product, engine=engines[turn % len(engines)])
    return tile


def broadcast_to(x, shape):
    """x with extents of 1 repeated. Free extents are repeated by the view; partitions into a new tile in SBUF:
    floats by products with ones (Tensor), anything else by way of HBM (DMA).
    """
    _tensor(x, "broadcast_to")
    shape = tuple(shape)
    on_chip = buffers.is_on_chip(x.buffer)
    if len(shape) < x.ndim or any(
        has not in (1, wanted)
        for has, wanted in zip(reversed(x.shape), reversed(shape))
        if len(shape) == x.ndim
    ):
        raise KernelError(
            f"nl.broadcast_to: {x.shape} doesn't become {shape}: only extents of 1 are repeated [shape]"
        )
    while x.ndim < len(shape):
        x = x.expand_dim(1 if on_chip else 0)
    if on_chip and x.shape[0] == 1 and shape[0] != 1:
        x = repeated_over_partitions(x, shape[0])
    for dim, extent in enumerate(shape):
        if x.shape[dim] != extent:
            x = x.broadcast(dim, extent)
    return x


def gather_flattened(data, indices, axis=0):
    """result[p, i...] = data[p, indices[p, i...]], over the flattened row of data (GpSimd).

    indices are uint32, of data's partitions; the result has their shape and data's dtype. Only axis 0, which
    means that.
    """
    if axis != 0:
        raise KernelError(
            f"nl.gather_flattened gathers along axis 0, each partition's row, not {axis} [axis]"
        )
    tile = ndarray(indices.shape, data.dtype)
    isa.nc_n_gather(tile, data, indices)
    return tile


def device_print(prefix, tensor) -> None:
    """Prints what a tensor (SBUF, PSUM or HBM) holds at this point, when the kernel has run: ``prefix
    dtype[shape]`` and the values.

    In a register loop that is what it held in the last round. Costs a copy to HBM (DMA).
    """
    _tensor(tensor, "device_print")
    s = session()
    source = copy(tensor) if buffers.is_psum(tensor.buffer) else tensor
    kept = s.declare(tensor.shape, tensor.dtype, buffers.private_hbm, "printed")
    isa.dma_copy(kept, source)
    s.trace.set_role(kept, "output")  # keeps it to the end
    core = s.program_id

    def show(recording):
        values = recording.read(core, kept)
        where = f" (core {core})" if s.num_programs > 1 else ""
        print(f"{prefix}{where} {tensor.dtype}{list(tensor.shape)}\n{values}")

    s.on_finish(show)
