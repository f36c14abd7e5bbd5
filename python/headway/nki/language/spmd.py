"""Programs of a launch, and sizes of the machine."""

from __future__ import annotations

import os

from headway.nki import target
from headway.nki.errors import KernelError
from headway.nki.trace import active, session


def _check_axis(axis) -> None:
    if axis not in (0, None, (0,), [0]):
        raise KernelError(
            f"axis {axis} of the grid: it has one, 0, along the cores of the logical core [grid]"
        )


def program_id(axis=0) -> int:
    """The number of this core in its logical core, from 0."""
    _check_axis(axis)
    return session().program_id


def num_programs(axes=0) -> int:
    """The cores of the logical core: what ``kernel[lnc]`` says. Outside a kernel 1."""
    _check_axis(axes)
    s = active()
    return 1 if s is None else s.num_programs


def program_ndim() -> int:
    """Extents of the grid: always 1."""
    return 1


class _TileSize:
    """Limits of the machine that the kernel is recorded for."""

    @property
    def pmax(self) -> int:
        """Partitions."""
        return target.spec().partitions

    @property
    def psum_fmax(self) -> int:
        """float32 elements of a PSUM bank in a partition."""
        return target.spec().psum_bank_bytes // 4

    psum_bank_fmax = psum_fmax

    @property
    def psum_bank_fmax_bytes(self) -> int:
        """Bytes of a PSUM bank in a partition."""
        return target.spec().psum_bank_bytes

    @property
    def psum_num_banks(self) -> int:
        """Banks that kernels may use; one less where DMA transposes go through the Tensor engine."""
        reserved = os.environ.get("NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE", "").lower() in ("1", "true")
        return target.spec().psum_banks - reserved

    @property
    def gemm_stationary_fmax(self) -> int:
        """Columns of nc_matmul's stationary operand."""
        return target.spec().stationary_columns

    @property
    def gemm_moving_fmax(self) -> int:
        """Columns of nc_matmul's moving operand."""
        return target.spec().moving_columns

    @property
    def bn_stats_fmax(self) -> int:
        """Elements of a partition that bn_stats takes."""
        return target.spec().bn_stats_elements

    @property
    def sbuf_size_bytes(self) -> int:
        """Of all partitions."""
        return target.spec().sbuf_bytes * target.spec().partitions

    @property
    def sbuf_fmax_bytes(self) -> int:
        """Bytes of a partition that kernels may use."""
        return target.spec().sbuf_usable_bytes

    total_available_sbuf_size = sbuf_fmax_bytes

    @property
    def sbuf_fmax(self) -> int:
        """The same in float32 elements."""
        return target.spec().sbuf_usable_bytes // 4

    # Alignment of addresses; the vendor publishes none, these are what the chip's rules ask for.
    sbuf_min_align = 4

    @property
    def psum_min_align(self) -> int:
        """Bytes: an address in PSUM is a bank's start."""
        return target.spec().psum_bank_bytes


tile_size = _TileSize()
