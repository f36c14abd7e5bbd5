"""Enumerations of instructions' parameters. Numbers are NKI's."""

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
    # Names of NKI 0.1.
    pe = 1
    pool = 3
    activation = 2
    act = 2


class reduce_cmd(IntEnum):
    """What an instruction does with its engine's accumulators."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(IntEnum):
    """Who writes the descriptors of a DMA."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(IntEnum):
    """What happens at an index that is out of bounds: an error, or the element is left out."""

    error = 0
    skip = 1


class matmul_perf_mode(IntEnum):
    """``double_row``: two rows of fp8 a processing element."""

    none = 0
    double_row = 1
    # Names of earlier releases for the same.
    double_row_gen3 = 1


class nc_version(IntEnum):
    """Generations of NeuronCores; they compare."""

    gen2 = 2
    gen3 = 3
    gen4 = 4
    trn1 = 2
    trn2 = 3
    trn3 = 4


class dma_engine(IntEnum):
    """What moves the data of a ``sendrecv``."""

    dma = 1
    gpsimd_dma = 2


unknown_engine = engine.unknown
tensor_engine = engine.tensor
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
vector_engine = engine.vector
sync_engine = engine.sync

NkiValidationError = KernelError


def get_nc_version() -> nc_version:
    """The generation of the NeuronCore that the kernel is compiled for."""
    from headway.nki import target

    return nc_version(target.spec().generation)


def get_nc_sub_version() -> int:
    """The revision of the silicon; the chip files know none, so 0."""
    return 0
