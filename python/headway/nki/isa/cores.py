"""Instructions at which the two cores of a logical core meet."""

from __future__ import annotations

from headway import _chip
from headway.nki.isa.constants import dma_engine as _dma_engine
from headway.nki.isa.constants import engine as _engine
from headway.nki.isa.instruction import NkiInstruction

_record = _chip.record
_CORE_BARRIER = _chip.kind("core_barrier")
_SENDRECV = _chip.kind("sendrecv")
_DMA = _dma_engine.dma
_GPSIMD = _engine.gpsimd


def core_barrier(data, cores=(0, 1), engine=_GPSIMD, name=None):
    """Waits for the other core of the logical core; what either did to ``data`` before, the other sees after
    it.

    Shapes: any data.
    Buffers: data in shared HBM; in SBUF or private HBM, where no other core sees it, with a warning.
    Dtypes: any.
    Limits: cores are all of the logical core, ascending. From NeuronCore-v3 on.
    Engines: Tensor, Vector, Scalar, GpSimd or Sync, whichever ``engine`` says; it blocks only that one.
    Cost: a write to the other core's semaphore and the check of one's own.
    Rules: buffer, cores, barrier-data, generation, engine, deadlock.
    """
    return NkiInstruction(_record(_CORE_BARRIER, engine, name, data, cores))


def sendrecv(
    src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine=_DMA, name=None, use_gpsimd_dma=None
):
    """Sends src to core ``send_to_rank`` of the logical core and receives dst from ``recv_from_rank``.

    ``use_gpsimd_dma`` is NKI 0.2's ``dma_engine``.

    Shapes: src and dst are the same.
    Buffers: SBUF.
    Dtypes: any, the same.
    Limits: LNC 2; ranks are 0 or 1; calls with one ``pipe_id`` meet, in order, and name each other; elements
        of dst lie apart. dma_engine.gpsimd_dma moves at most 1024 bytes a partition of 32-bit elements, 512
        of 16-bit, 256 of 8-bit ones. From NeuronCore-v3 on.
    Engines: DMA, or GpSimd with its own.
    Cost: a DMA between the cores; with gpsimd_dma 150 cycles and the bytes at its bandwidth.
    Rules: buffer, dtype, shape, lnc, rank, gpsimd-dma-bytes, exchange, repeated-write, generation, deadlock.
    """
    if use_gpsimd_dma is not None:
        dma_engine = _dma_engine.gpsimd_dma if use_gpsimd_dma else _dma_engine.dma
    return NkiInstruction(
        _record(_SENDRECV, None, name, src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine)
    )
