"""Instructions of the DMA engines."""

from __future__ import annotations

from headway.neuronxcc.nki import assign
from headway.neuronxcc.nki.compute import emit, in_sbuf, no_mask, result_dtype, run
from headway.neuronxcc.nki.isa import constants
from headway.neuronxcc.nki.isa.constants import oob_mode
from headway.neuronxcc.nki.tile import Tile, new_tile
from headway.nki import buffers, dtypes
from headway.nki import isa as _isa
from headway.nki.errors import KernelError


def dma_copy(
    *, dst, src, mask=None, dst_rmw_op=None, oob_mode=oob_mode.error, dge_mode=None, unique_indices=True
):
    """dst = src through DMA; with dst_rmw_op: dst op= src."""
    for tile in (dst, src):
        if isinstance(tile, Tile) and buffers.is_psum(tile.buffer):
            tile_in_sbuf = in_sbuf(src)
            if tile is dst:
                raise KernelError("dma_copy into PSUM: DMA doesn't reach it [buffer]")
            src = tile_in_sbuf
    if isinstance(dst_rmw_op, type(None)):
        mode = dge_mode if dge_mode is not None else constants.dge_mode.unknown
        run(lambda d, s: _isa.dma_copy(d, s, oob_mode=oob_mode, dge_mode=mode), [dst, src], mask, src.shape)
    else:
        run(
            lambda d, s: _isa.dma_copy(
                d, s, oob_mode=oob_mode, dst_rmw_op=dst_rmw_op, unique_indices=unique_indices
            ),
            [dst, src],
            mask,
            src.shape,
        )


def dma_transpose(src, *, axes=None, mask=None, dtype=None, dge_mode=None, oob_mode=oob_mode.error):
    """src with its axes permuted, in SBUF."""
    no_mask("nisa.dma_transpose", mask)
    order = tuple(axes) if axes is not None else {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}[src.ndim]
    out = new_tile(tuple(src.shape[a] for a in order), src.dtype, buffers.sbuf)
    native = src.native_as_shaped()
    _isa.dma_transpose(
        out.native_as_shaped(),
        native,
        axes=order,
        dge_mode=dge_mode if dge_mode is not None else constants.dge_mode.unknown,
        oob_mode=oob_mode,
    )
    if dtype is not None and dtypes.dtype_of(dtype) is not out.dtype:
        return emit(_isa.tensor_copy, out.shape, result_dtype(dtype, out), [out])
    return assign.fresh(out, None)
