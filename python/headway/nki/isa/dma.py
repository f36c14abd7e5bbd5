"""Instructions of the DMA engines."""

from __future__ import annotations

from headway import _chip
from headway.nki.isa.constants import dge_mode as _dge_mode
from headway.nki.isa.constants import dma_engine as _dma_engine
from headway.nki.isa.constants import oob_mode as _oob_mode
from headway.nki.operators import Operator as _Operator
from headway.nki.operators import add as _add

_record = _chip.record
_kind = _chip.kind
_DMA_COPY = _kind("dma_copy")
_DMA_TRANSPOSE = _kind("dma_transpose")
_DMA_COMPUTE = _kind("dma_compute")
_SENDRECV = _kind("sendrecv")
_ERROR = _oob_mode.error
_UNKNOWN = _dge_mode.unknown
_DMA = _dma_engine.dma


def dma_copy(dst, src, priority=None, oob_mode=_ERROR, dge_mode=_UNKNOWN, engine=None, name=None, dst_rmw_op=None, unique_indices=True):
    """dst = src; elements in row-major order of the views; different dtypes are converted through float32.

    Shapes: as many elements in both.
    Buffers: HBM or SBUF on either side.
    Dtypes: any; with hwdge the same on both sides.
    Limits: rows by index (``ap(vector_offset=)``) on one side: a (P, 1) tensor in SBUF, not with hwdge; oob_mode=skip leaves out rows
        whose index is out of bounds. priority 0 to 3 exists from NeuronCore-v4 on.
    Engines: DMA; ``engine`` scalar or sync says who triggers it, with hwdge.
    Cost: 2 us or more until the data arrive; descriptors of 512 bytes and more for bandwidth.
    """
    if dst_rmw_op is not None:  # until NKI 0.2; then dma_compute's
        return _record(_DMA_COMPUTE, None, name, dst, (dst, src), dst_rmw_op, None, unique_indices, oob_mode)
    return _record(_DMA_COPY, engine, name, dst, src, -1 if priority is None else priority, oob_mode, dge_mode)


def dma_transpose(dst, src, axes=None, priority=None, dge_mode=_UNKNOWN, oob_mode=_ERROR, engine=None, name=None):
    """dst = src with its axes permuted.

    Shapes: (1, 0) of 2 extents, (2, 1, 0) of 3, (3, 1, 2, 0) of 4; dst has the shape that makes.
    Buffers: src in HBM or SBUF, dst in SBUF.
    Dtypes: 2 or 4 bytes, the same on both sides.
    Limits: hwdge: 2 bytes, last extent <= 128, the first one of 16 (2 extents) or 1, 2, 4, 8, 16 [dma-transpose].
    Engines: DMA.
    Cost: element by element where the hardware's transpose doesn't apply.
    """
    return _record(_DMA_TRANSPOSE, engine, name, dst, src, axes, -1 if priority is None else priority, dge_mode, oob_mode)


def dma_compute(dst, srcs, reduce_op=_add, scales=None, unique_indices=True, oob_mode=_ERROR, name=None):
    """dst = the sum of srcs (times scales), added in float32 on the way; with rows by index: read, modify, write.

    Shapes: dst and all srcs have as many elements; at most 16 srcs.
    Buffers: HBM or SBUF.
    Dtypes: any that can be computed with.
    Limits: reduce_op nl.add; scales are all 1. By index: two srcs, one of them dst.
    Engines: DMA.
    Cost: as dma_copy of all its operands.
    """
    if not isinstance(reduce_op, _Operator) and isinstance(scales, _Operator):
        reduce_op, scales = scales, reduce_op  # the order of NKI 0.2
    return _record(_DMA_COMPUTE, None, name, dst, srcs, reduce_op, scales, unique_indices, oob_mode)


def sendrecv(src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine=_DMA, name=None, use_gpsimd_dma=None):
    """Sends src to a core of the logical core and receives dst from one.

    Shapes: the same.
    Buffers: SBUF.
    Dtypes: the same.
    Limits: LNC 2; ranks 0 and 1; calls with one pipe_id meet. gpsimd_dma: at most 1024 bytes a partition of 32-bit elements, 512 of
        16-bit, 256 of 8-bit ones.
    Engines: DMA, or GpSimd's own.
    Cost: a DMA between the cores.
    """
    if use_gpsimd_dma is not None:  # until NKI 0.2
        dma_engine = _dma_engine.gpsimd_dma if use_gpsimd_dma else _dma_engine.dma
    return _record(_SENDRECV, None, name, src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine)
