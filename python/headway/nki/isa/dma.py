"""Instructions of the DMA engines, which reach SBUF and HBM."""

from __future__ import annotations

from headway import _chip
from headway.nki.isa.constants import dge_mode as _dge_mode
from headway.nki.isa.constants import engine as _engine
from headway.nki.isa.constants import oob_mode as _oob_mode
from headway.nki.isa.instruction import NkiInstruction
from headway.nki.operators import add as _add

_record = _chip.record
_kind = _chip.kind
_DMA_COPY = _kind("dma_copy")
_DMA_TRANSPOSE = _kind("dma_transpose")
_DMA_COMPUTE = _kind("dma_compute")
_ERROR = _oob_mode.error
_UNKNOWN = _dge_mode.unknown
_OPEN = _engine.unknown


def dma_copy(
    dst,
    src,
    priority=None,
    oob_mode=_ERROR,
    dge_mode=_UNKNOWN,
    engine=_OPEN,
    name=None,
    dst_rmw_op=None,
    unique_indices=True,
):
    """dst = src, element by element in row-major order of the two views, whatever their shapes.

    Bits where the dtypes are the same, otherwise converted through float32. A view may move by a register or
    a [1, 1] tensor (``ap(scalar_offset=)``), and rows of HBM may be given by an index
    (``ap(vector_offset=)``): a gather on src, a scatter on dst. ``oob_mode=skip`` leaves out what is out of
    bounds; dst keeps what it has there. ``dst_rmw_op`` and ``unique_indices`` are those of NKI 0.2: with
    nl.add it is dma_compute(dst, (dst, src)).

    Shapes: as many elements in both.
    Buffers: HBM or SBUF on either side.
    Dtypes: any; packed ones and float8_e8m0fnu only to themselves; with hwdge the same on both sides.
    Limits: an index is [rows, 1], int32 or uint32 in SBUF, and needs NeuronCore-v3 and swdge or unknown;
        dge_mode none can't follow a moving view; elements of dst lie apart. priority (0 to 3) exists from
        NeuronCore-v4 on.
    Engines: DMA; ``engine`` scalar or sync says who triggers it, with hwdge.
    Cost: about 2 us until the data are there, then for each descriptor (a run that is contiguous on both
        sides) a fixed time and that of its bytes; 16 engines share them. Runs of 512 bytes and more use the
        bandwidth.
    Rules: buffer, dtype, shape, dge-mode, index, priority, engine, repeated-write, generation.
    """
    if priority is not None and type(priority) is not int:  # dst_rmw_op's place in NKI 0.2
        dst_rmw_op, priority = priority, None
    if dst_rmw_op is not None:
        return NkiInstruction(
            _record(_DMA_COMPUTE, None, name, dst, (dst, src), dst_rmw_op, None, unique_indices, oob_mode)
        )
    return NkiInstruction(
        _record(_DMA_COPY, engine, name, dst, src, -1 if priority is None else priority, oob_mode, dge_mode)
    )


def dma_transpose(
    dst, src, axes=None, priority=None, dge_mode=_UNKNOWN, oob_mode=_ERROR, engine=_OPEN, name=None
):
    """dst = src with its axes permuted.

    ``dge_mode=hwdge`` has hardware write the descriptors, within limits. A source may move, or have rows by
    an index, as in dma_copy.

    Shapes: 2 extents by (1, 0), 3 by (2, 1, 0), 4 by (3, 1, 2, 0); dst has the shape that makes, its rank
        included. ``axes`` can only be that.
    Buffers: src in HBM or SBUF, dst in SBUF.
    Dtypes: of 2 or 4 bytes, the same on both sides.
    Limits: hwdge: 2 bytes, a last extent of at most 128, and 16 rows (2 extents) or 1, 2, 4, 8 or 16 (more),
        so that rows times the extent before the last are a multiple of 16. Rows by index: 2 bytes, a last
        extent of at most 128, a multiple of 16 rows; the index is uint32 of 16 to 128 partitions.
        oob_mode=skip needs a moving view. priority (0 to 3) exists from NeuronCore-v4 on.
    Engines: DMA; ``engine`` scalar or sync says who triggers it.
    Cost: as dma_copy with a descriptor for each row of src's last extent, at 0.9 of the bandwidth from HBM
        and half of it from SBUF.
    Rules: buffer, dtype, shape, axes, dge-mode, transpose-rows, transpose-last, transpose-middle, index,
        oob-mode, priority, repeated-write, engine, generation.
    """
    return NkiInstruction(
        _record(
            _DMA_TRANSPOSE,
            engine,
            name,
            dst,
            src,
            axes,
            -1 if priority is None else priority,
            dge_mode,
            oob_mode,
        )
    )


def dma_compute(dst, srcs, reduce_op=_add, scales=None, unique_indices=True, oob_mode=_ERROR, name=None):
    """dst = the sum of ``srcs``, added in float32 on the way.

    With rows by index (``ap(vector_offset=)``) it reads, modifies and writes: srcs are dst itself and another
    one, either dst(HBM)[index] += src(SBUF) or dst(SBUF) += src(HBM)[index]. NKI 0.2's order (dst, srcs,
    scales, reduce_op) is told by types.

    Shapes: dst and all srcs have as many elements.
    Buffers: HBM or SBUF; with rows by index the data in SBUF.
    Dtypes: all but packed ones and float8_e8m0fnu.
    Limits: 1 to 16 srcs, 2 with rows by index; reduce_op is nl.add; scales are all 1; unique_indices is True,
        and no row comes up twice; oob_mode=skip needs rows by index; elements of dst lie apart.
    Engines: DMA.
    Cost: as dma_copy of all that is read and written, at half of the bandwidth.
    Rules: buffer, dtype, shape, sources, reduce-op, scales, unique-indices, dge-mode, index, oob-mode,
        repeated-write, generation.
    """
    if isinstance(reduce_op, (list, tuple)) or reduce_op is None:
        reduce_op, scales = _add if scales is None else scales, reduce_op
    return NkiInstruction(
        _record(_DMA_COMPUTE, None, name, dst, srcs, reduce_op, scales, unique_indices, oob_mode)
    )
