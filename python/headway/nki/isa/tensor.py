"""Instructions of the Tensor engine."""

from __future__ import annotations

from headway import _chip
from headway.nki.isa.constants import matmul_perf_mode

_record = _chip.record
_NC_MATMUL = _chip.kind("nc_matmul")
_NC_TRANSPOSE = _chip.kind("nc_transpose")
_NC_MATMUL_MX = _chip.kind("nc_matmul_mx")
_NO_PERF = matmul_perf_mode.none


def nc_matmul(dst, stationary, moving, is_stationary_onezero=False, is_moving_onezero=False, is_transpose=False,
              accumulate=None, tile_position=None, tile_size=None, perf_mode=_NO_PERF, name=None, is_moving_zero=None):
    """dst [M, N] (+)= stationary [K, M]^T moving [K, N], summed in float32.

    Shapes: stationary [K, M], moving [K, N], dst [M, N]; free extents beyond the second are flattened. With
        perf_mode=double_row operands are [K, 2, ...] and the sum runs over 2K.
    Buffers: operands in SBUF, dst in PSUM.
    Dtypes: float8 e4m3/e5m2, bfloat16, float16, tfloat32, float32; 32-bit operands pair only with 32-bit ones. dst float32, or the
        operand's type for is_transpose. double_row: float8 only.
    Limits: K <= 128, M <= 128, N <= 512 [matmul-shape]. tile_position and tile_size: both or none, multiples of 32, on the
        array's grid [tile].
    Accumulation: accumulate=False overwrites; True adds to what a matmul wrote; None (default) overwrites an element at its first
        product since the tensor was declared and adds afterwards.
    Engines: Tensor.
    Cost: max(N, 64) cycles of the array at its clock; float32 takes four times as long; loading the stationary operand comes
        before and can overlap the product that runs.
    """
    if is_moving_zero is not None:  # the name until NKI 0.1
        is_moving_onezero = is_moving_zero
    return _record(_NC_MATMUL, None, name, dst, stationary, moving, is_stationary_onezero, is_moving_onezero, is_transpose,
                   accumulate, tile_position, tile_size, perf_mode)


def nc_transpose(dst, data, engine=None, name=None):
    """dst [F, P] = data [P, F], bit for bit.

    Shapes: data [P, F], dst [F, P]; free extents are flattened. Up to 128 x 128 on the Tensor engine, 32 x 32 on the Vector engine.
    Buffers: Tensor: SBUF to PSUM. Vector: SBUF or PSUM on either side.
    Dtypes: any; dst has data's.
    Limits: [transpose-shape] for the sizes, [buffer] for the places.
    Engines: Tensor or Vector; chosen by size and place where ``engine`` leaves it open.
    Cost: Tensor max(P, min(64, F)) cycles back to back; Vector max(64, F).
    """
    return _record(_NC_TRANSPOSE, engine, name, dst, data)


def nc_matmul_mx(dst, stationary, moving, stationary_scale, moving_scale, tile_position=None, tile_size=None, accumulate=None,
                 name=None):
    """A product of MX blocks; from NeuronCore-v4 (trn3) on, and not modelled.

    Shapes: stationary [P, M], moving [P, N] of packed elements, dst [M, N].
    Buffers: operands and scales in SBUF, dst in PSUM.
    Dtypes: float8_e4m3fn_x4, float8_e5m2_x4, float4_e2m1fn_x4; scales uint8 or float8_e8m0fnu.
    Limits: refused on trn1 and trn2 [generation].
    Engines: Tensor.
    Cost: none known.
    """
    return _record(_NC_MATMUL_MX, None, name, (dst,), (stationary, moving, stationary_scale, moving_scale))
