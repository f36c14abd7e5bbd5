"""Instructions of the Tensor engine: an array of 128 x 128 processing elements."""

from __future__ import annotations

from headway import _chip
from headway.nki.isa.constants import engine as _engine
from headway.nki.isa.constants import matmul_perf_mode
from headway.nki.isa.instruction import NkiInstruction

_record = _chip.record
_NC_MATMUL = _chip.kind("nc_matmul")
_NC_TRANSPOSE = _chip.kind("nc_transpose")
_NC_MATMUL_MX = _chip.kind("nc_matmul_mx")
_NO_PERF = matmul_perf_mode.none
_OPEN = _engine.unknown


def nc_matmul(
    dst,
    stationary,
    moving,
    is_stationary_onezero=False,
    is_moving_onezero=False,
    is_transpose=False,
    accumulate=None,
    tile_position=None,
    tile_size=None,
    perf_mode=_NO_PERF,
    name=None,
    is_moving_zero=None,
):
    """dst [M, N] = or += stationary [K, M] transposed times moving [K, N], summed in float32.

    ``accumulate``: False overwrites, True adds to what a product left in dst, None overwrites an element at
    the first product that reaches it since dst was declared and adds from then on. ``is_stationary_onezero``
    and ``is_moving_onezero`` promise that a float32 operand has nothing but 0 and 1, which takes one pass
    instead of two. ``is_transpose`` passes the bits of stationary through where moving is an identity.
    ``tile_position`` and ``tile_size``, (row, column) each, use a part of the array, so that products of
    small operands run side by side. ``perf_mode=double_row`` contracts 2K rows of fp8 in the time of K.
    ``is_moving_zero`` is the older name of ``is_moving_onezero``.

    Shapes: stationary [K, M], moving [K, N], dst [M, N]; operands with more extents are flattened to that.
        double_row: stationary [K, 2, M], moving [K, 2, N].
    Buffers: stationary and moving in SBUF, dst in PSUM.
    Dtypes: float32, tfloat32, bfloat16, float16, float8_e4m3, float8_e5m2 (float8_e4m3fn from NeuronCore-v4
        on); the two 32-bit ones pair only with each other. dst is float32; for is_transpose it is as wide as
        stationary, 16 bits for 8.
    Limits: K <= 128, M <= 128, N <= 512; dst stays within one PSUM bank (2 KiB a partition) and isn't
        dynamic. Tiles have 32, 64 or 128 rows and columns and start at a multiple of their size. Adding to
        what no product started is undefined (a warning).
    Engines: Tensor.
    Cost: max(N, min(M, 64)) cycles of the array, four times that for float32 (twice with a onezero promise or
        for is_transpose); the stationary operand of the next product loads meanwhile. After idling the
        array's clock is half as fast. A tile takes its share of the array.
    Rules: buffer, dtype, partitions, shape, matmul-size, psum-bank, array-tile, double-row, dynamic-offset,
        accumulate, transpose-identity, onezero, generation.
    """
    if is_moving_zero is not None:  # its name until NKI 0.1
        is_moving_onezero = is_moving_zero
    if perf_mode is not _NO_PERF:
        perf_mode = _perf(perf_mode)
    return NkiInstruction(
        _record(
            _NC_MATMUL,
            None,
            name,
            dst,
            stationary,
            moving,
            is_stationary_onezero,
            is_moving_onezero,
            is_transpose,
            accumulate,
            tile_position,
            tile_size,
            perf_mode,
        )
    )


def _perf(mode):
    if mode is None:
        return _NO_PERF
    return matmul_perf_mode.double_row if mode == "double_row_gen3" else mode


def nc_transpose(dst, data, engine=_OPEN, name=None):
    """dst [F, P] = data [P, F] transposed, bit for bit.

    Shapes: data [P, F], dst [F, P]; free extents are flattened.
    Buffers: on the Tensor engine data in SBUF and dst in PSUM; on Vector either in SBUF or PSUM.
    Dtypes: any; dst has data's.
    Limits: up to 128 x 128 on the Tensor engine, 32 x 32 on Vector.
    Engines: Tensor or Vector, by size and place; ``engine`` asks for one.
    Cost: Tensor max(P, min(F, 64)) cycles, twice that for 4-byte elements; Vector max(64, F) cycles.
    Rules: buffer, dtype, shape, transpose-size, engine.
    """
    return NkiInstruction(_record(_NC_TRANSPOSE, engine, name, dst, data))


def nc_matmul_mx(
    dst,
    stationary,
    moving,
    stationary_scale,
    moving_scale,
    tile_position=None,
    tile_size=None,
    accumulate=None,
    name=None,
):
    """A product of MX blocks: packed elements with a shared power of two. NeuronCore-v4 (trn3) has it; it
    isn't modelled.

    ``accumulate``, ``tile_position`` and ``tile_size`` are those of nc_matmul.

    Shapes: stationary [P, M] and moving [P, N] of four packed elements each, dst [M, N]; stationary_scale and
        moving_scale have one for 8 partitions.
    Buffers: operands and scales in SBUF, dst in PSUM.
    Dtypes: float8_e4m3fn_x4, float8_e5m2_x4, float4_e2m1fn_x4; scales uint8 or float8_e8m0fnu; dst float32 or
        bfloat16.
    Limits: refused on trn1 and trn2, unsupported on trn3.
    Engines: Tensor.
    Cost: not modelled.
    Rules: generation, not-modelled.
    """
    return NkiInstruction(
        _record(_NC_MATMUL_MX, None, name, (dst,), (stationary, moving, stationary_scale, moving_scale))
    )
