"""Enumerations of instructions' parameters, and which NeuronCore a kernel is for. Numbers are NKI's."""

from __future__ import annotations

from enum import IntEnum

from headway.nki.errors import KernelError


class engine(IntEnum):
    """The engine that an instruction asks for; ``unknown`` leaves the choice open."""

    unknown = 0
    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6


class reduce_cmd(IntEnum):
    """What an instruction does with its engine's accumulators: one float32 a lane, on Scalar and on Vector.

    ``reset`` sets them to the neutral element; ``reduce`` takes the row in; ``reset_reduce`` does both;
    ``load_reduce`` starts from a value that the instruction is given; ``idle`` leaves them alone.
    """

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(IntEnum):
    """Who writes the descriptors of a DMA: GpSimd while the kernel runs (``swdge``), hardware that the Scalar
    and Sync engines drive (``hwdge``), the host beforehand (``none``), or whoever the compiler takes
    (``unknown``)."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(IntEnum):
    """What becomes of an index that is out of bounds: an ``error``, or the element is left out (``skip``)."""

    error = 0
    skip = 1


class matmul_perf_mode(IntEnum):
    """``double_row``: a processing element holds two rows of fp8 and contracts both in the time of one."""

    none = 0
    double_row = 1
    double_row_gen3 = 1  # its name until NKI 0.1


class nc_version(IntEnum):
    """Generations of NeuronCores: of Trainium1 (``gen2``), Trainium2 (``gen3``), Trainium3 (``gen4``)."""

    gen2 = 2
    gen3 = 3
    gen4 = 4


class dma_engine(IntEnum):
    """What moves the data of a ``sendrecv``: the DMA engines, or GpSimd's own."""

    dma = 1
    gpsimd_dma = 2


# Names that NKI still has for the members of `engine`.
unknown_engine = engine.unknown
tensor_engine = engine.tensor
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
vector_engine = engine.vector
sync_engine = engine.sync

NkiValidationError = KernelError


def get_nc_version() -> nc_version:
    """Which NeuronCore the kernel is for: ``NEURON_PLATFORM_TARGET_OVERRIDE``, by default that of trn2."""
    from headway.nki import target

    return nc_version(target.spec().generation)


def get_nc_sub_version() -> int:
    """The revision of the silicon; chip files know none, so 0."""
    return 0
