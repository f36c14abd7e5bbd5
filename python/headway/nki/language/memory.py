"""Tensors: making them, moving them between HBM and the chip, constants."""

from __future__ import annotations

import os

import numpy as np

from headway import _chip
from headway.nki import buffers, dtypes, isa
from headway.nki.errors import InputError, KernelError
from headway.nki.trace import session

Tensor = _chip.Tensor


class ds:
    """``ds(start, size)``: the elements from start on; start may be a register or a [1, 1] tensor in SBUF."""

    __slots__ = ("start", "size")

    def __init__(self, start, size):
        self.start = start
        self.size = size

    def __repr__(self) -> str:
        return f"nl.ds({self.start}, {self.size})"


def ndarray(shape, dtype, buffer=buffers.sbuf, name="", address=None, **ignored):
    """A new tensor; what is in it is undefined.

    ``shape``: on chip its first extent counts partitions. ``address``: (first partition, byte of each partition), for a place of one's
    own choice on chip. KernelError where the chip has no room for it.
    """
    return session().declare(shape, dtype, buffer, name, address)


def zeros(shape, dtype, buffer=buffers.sbuf, name="", **ignored):
    """A new tensor of zeros."""
    return full(shape, 0, dtype, buffer, name)


def ones(shape, dtype, buffer=buffers.sbuf, name="", **ignored):
    """A new tensor of ones."""
    return full(shape, 1, dtype, buffer, name)


def full(shape, fill_value, dtype, buffer=buffers.sbuf, name="", **ignored):
    """A new tensor with fill_value everywhere."""
    tensor = ndarray(shape, dtype, buffer, name)
    fill(tensor, fill_value)
    return tensor


def zeros_like(x, dtype=None, buffer=None, name=""):
    """Zeros of x's shape; dtype and buffer are x's where not given."""
    return zeros(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def empty_like(x, dtype=None, buffer=None, name=""):
    """A new tensor of x's shape; dtype and buffer are x's where not given."""
    return ndarray(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def fill(tensor, value) -> None:
    """memset; HBM by way of a tile."""
    if tensor.stored_dtype.dtype.kind in "iu" or tensor.stored_dtype.name == "bool":
        value = int(value)
    else:
        value = float(value)
    if buffers.is_on_chip(tensor.buffer):
        isa.memset(tensor, value)
        return
    size = tensor.size
    rows = next(p for p in range(min(128, size), 0, -1) if size % p == 0)
    columns = size // rows
    width = max(w for w in range(1, min(columns, 8192) + 1) if columns % w == 0)
    tile = session().declare((rows, width), tensor.stored_dtype, buffers.sbuf)
    isa.memset(tile, value)
    flat = tensor.reshape((rows, columns // width, width))
    for i in range(columns // width):
        isa.dma_copy(flat[:, i], tile)


def load(src, dtype=None, **ignored):
    """A tile in SBUF with what is in src (HBM), converted to dtype where given. src's first extent becomes the partitions."""
    shape = src.shape if src.ndim > 1 else (src.shape[0], 1)
    tile = ndarray(shape, dtype or src.dtype)
    isa.dma_copy(tile, src)
    return tile


def store(dst, value, **ignored) -> None:
    """dst (HBM) = value, a tile in SBUF or a number."""
    if not isinstance(value, Tensor):
        fill(dst, value)
        return
    if buffers.is_psum(value.buffer):
        raise KernelError("nl.store of a tile in PSUM: DMA doesn't reach it; nl.copy it to SBUF first [buffer]")
    isa.dma_copy(dst, value)


def load_transpose2d(src, dtype=None, **ignored):
    """A tile [F, P] in SBUF with the transpose of src [P, F] (HBM)."""
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


def copy(src, dtype=None, **ignored):
    """A tile in SBUF with what is in src (SBUF or PSUM)."""
    tile = ndarray(src.shape, dtype or src.dtype)
    isa.tensor_copy(tile, src, engine=isa.vector_engine)
    return tile


def shared_constant(constant, dtype=None, **ignored):
    """A constant in shared HBM that is part of the program: a NumPy array, or the path of a .npy file."""
    if isinstance(constant, (str, os.PathLike)):
        try:
            values = np.load(constant, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"nl.shared_constant: {constant}: {error}") from None
    else:
        values = np.asarray(constant)
    if dtype is None:
        dtype = {"float64": "float32", "int64": "int32", "uint64": "uint32"}.get(values.dtype.name, values.dtype)
    wanted = dtypes.dtype_of(dtype)
    values = np.ascontiguousarray(values.astype(wanted.dtype))
    s = session()
    return s.trace.constant(s.unique_name("constant"), wanted, values.shape, values.tobytes())


def shared_identity_matrix(n, dtype=dtypes.uint8, dst=None, **ignored):
    """The identity [n, n] in SBUF; one a dtype and call of the kernel, or written to dst."""
    s = session()
    wanted = dtypes.dtype_of(dtype)
    key = ("identity", wanted.name)
    known = s.memo.get(key)
    if dst is None and known is not None and known.shape[0] >= n:
        return known[0:n, 0:n]
    identity = dst if dst is not None else ndarray((n, n), wanted)
    one = ndarray((n, n), wanted)
    fill(one, 1)
    isa.affine_select(identity, [[-1, n]], 1, one, 0.0)
    if dst is None:
        s.memo[key] = identity
    return identity


def rand(shape, dtype=dtypes.float32, **ignored):
    """A tile in SBUF of uniform random numbers in [0, 1)."""
    bits = ndarray(shape, dtypes.uint32)
    isa.rng(bits)
    isa.tensor_scalar(bits, bits, "right_shift", 8)
    tile = ndarray(shape, dtype)
    isa.tensor_scalar(tile, bits, "multiply", 2.0**-24)
    return tile


def random_seed(seed) -> None:
    """Seeds nl.rand and nl.dropout: a [1, 1] tensor of 32 bits in SBUF or PSUM."""
    isa.set_rng_seed(seed)


def expand_dims(x, axis):
    """x with an extent of 1 at axis."""
    axis = axis + x.ndim + 1 if axis < 0 else axis
    return x.expand_dim(axis)


def broadcast_to(x, shape, **ignored):
    """x with extents of 1 repeated. Free extents are repeated by the view; partitions by way of HBM, into a new tile."""
    shape = tuple(shape)
    while x.ndim < len(shape):
        x = x.expand_dim(1 if buffers.is_on_chip(x.buffer) else 0)
    on_chip = buffers.is_on_chip(x.buffer)
    if on_chip and x.shape[0] == 1 and shape[0] != 1:
        row = ndarray((1, *x.shape[1:]), x.dtype, buffers.private_hbm)
        source = x
        if buffers.is_psum(x.buffer):
            source = copy(x)
        isa.dma_copy(row, source)
        tile = ndarray((shape[0], *x.shape[1:]), x.dtype)
        isa.dma_copy(tile, row.broadcast(0, shape[0]))
        x = tile
    for dim, extent in enumerate(shape):
        if x.shape[dim] != extent:
            x = x.broadcast(dim, extent)
    return x


def gather_flattened(data, indices, axis=0, **ignored):
    """result[p, i] = data[p, indices[p, i]] over the flattened row of data."""
    tile = ndarray(indices.shape, data.dtype)
    isa.nc_n_gather(tile, data, indices)
    return tile


def device_print(prefix, tensor) -> None:
    """Prints a tensor's values when the kernel has run: what it held at this point."""
    s = session()
    source = tensor
    if buffers.is_psum(tensor.buffer):
        source = copy(tensor)
    kept = s.declare(tensor.shape, tensor.dtype, buffers.private_hbm, "printed")
    isa.dma_copy(kept, source)
    s.trace.set_role(kept, "output")  # keeps it to the end
    core = s.program_id

    def show(recording):
        values = recording.read(core, kept)
        where = f" (core {core})" if s.num_programs > 1 else ""
        print(f"{prefix}{where} {tensor.dtype}{list(tensor.shape)}\n{values}")

    s.on_finish(show)
