"""Products and transposes of the Tensor engine."""

from __future__ import annotations

from headway.neuronxcc.nki import assign
from headway.neuronxcc.nki.compute import emit, in_sbuf, result_dtype
from headway.neuronxcc.nki.index import Mask
from headway.neuronxcc.nki.isa.constants import engine, matmul_perf_mode
from headway.neuronxcc.nki.pieces import pieces, region_in
from headway.neuronxcc.nki.tile import new_tile
from headway.nki import buffers, dtypes
from headway.nki import isa as _isa
from headway.nki.errors import KernelError, Unsupported

_engine = engine


def nc_matmul(
    stationary,
    moving,
    *,
    is_stationary_onezero=False,
    is_moving_onezero=False,
    is_transpose=False,
    tile_position=(),
    tile_size=(),
    perf_mode=None,
    mask=None,
    dtype=None,
    is_moving_zero=None,
):
    """stationary [K, M]^T moving [K, N] in PSUM, float32."""
    if perf_mode in ("double_row_gen3", "double_row"):
        perf_mode = matmul_perf_mode.double_row
    double = perf_mode == matmul_perf_mode.double_row
    columns, rows = stationary.size // stationary.partitions, moving.size // moving.partitions
    free = moving.shape[2:] if double else moving.shape[1:] if moving.dims[0].partition else (rows,)
    if double:
        columns, rows = columns // 2, rows // 2
    shape = (columns, *free) if free else (columns, rows)
    kind = stationary.dtype if is_transpose else dtypes.float32
    out = new_tile(shape, kind, buffers.psum)
    written = None
    stationary, moving, box = _clipped_operands(stationary, moving, mask, len(free) or 1)
    if box is not None and box != tuple((0, n) for n in out.shape):
        written = [box]
    target = out if written is None else out.clipped(written[0])

    def native(tile):
        if not double:
            return tile.native()
        whole = tile.native()
        return (
            whole
            if whole.ndim >= 3
            else whole.reshape((whole.shape[0], 2, whole.size // whole.shape[0] // 2))
        )

    if box is None or all(first < end for first, end in box):
        _isa.nc_matmul(
            target.native(),
            native(stationary),
            native(moving),
            is_stationary_onezero,
            is_moving_onezero if is_moving_zero is None else is_moving_zero,
            is_transpose,
            None,
            tile_position or None,
            tile_size or None,
            perf_mode or matmul_perf_mode.none,
        )
    else:
        written = []
    product = assign.fresh(out, written, product=not is_transpose)
    if dtype is not None and dtypes.dtype_of(dtype) is not out.dtype:
        return _converted(product, dtype)
    return product


def _clipped_operands(stationary, moving, mask, free: int) -> tuple:
    """Both operands of a product where masks hold, and the box of the result that is written (None: all of
    it).

    A mask that was given as mask= is over the moving operand's extents, or, where it only fits that, over the
    stationary one's. Of the contraction both are cut.
    """
    ranges = {}
    for name, tile in (("stationary", stationary), ("moving", moving)):
        if tile.mask is not None:
            ranges[name] = _box(tile.mask, tile.shape)
    stationary, moving = stationary.masked(None), moving.masked(None)
    if mask is not None and mask is not True:
        name = _masked_operand(mask, stationary, moving)
        found = _box(mask, {"stationary": stationary, "moving": moving}[name].shape)
        known = ranges.get(name)
        ranges[name] = (
            found if known is None else tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(found, known))
        )
    if not ranges:
        return stationary, moving, None
    of_stationary = ranges.get("stationary") or tuple((0, n) for n in stationary.shape)
    of_moving = ranges.get("moving") or tuple((0, n) for n in moving.shape)
    contraction = (max(of_stationary[0][0], of_moving[0][0]), min(of_stationary[0][1], of_moving[0][1]))
    of_stationary, of_moving = (contraction, *of_stationary[1:]), (contraction, *of_moving[1:])
    if len(of_stationary) != 2 and of_stationary[1:] != tuple((0, n) for n in stationary.shape[1:]):
        raise Unsupported("nc_matmul with a mask over a stationary operand of several free extents [mask]")
    rows = of_stationary[1] if len(of_stationary) == 2 else (0, stationary.size // stationary.partitions)
    box = (rows, *of_moving[-free:])
    if any(first >= end for first, end in (contraction, *box)):
        return stationary, moving, ((0, 0),) * len(box)
    return stationary.clipped(of_stationary), moving.clipped(of_moving), box


def _box(mask, shape) -> tuple:
    region = region_in(mask, shape)
    if region is None:
        return ((0, 0),) * len(shape)
    if region.rest:
        raise Unsupported(
            "nc_matmul with a mask over several extents at once: mask its result with "
            "nisa.affine_select [mask]"
        )
    return region.ranges


def _masked_operand(mask, stationary, moving) -> str:
    if not isinstance(mask, Mask):
        return "moving"

    def fits(tile) -> bool:
        try:
            mask.region(tile.shape)
        except KernelError:
            return False
        return True

    of_moving, of_stationary = fits(moving), fits(stationary)
    on_rows_only = all(not any(c.index.coeffs[1:]) for c in mask.conditions)
    if of_moving and of_stationary and not on_rows_only and stationary.shape[1:] == moving.shape[1:]:
        raise Unsupported(
            "nc_matmul: mask= fits both operands' free extents: index the operand that is meant "
            "with it, tile[i_p, i_f][mask] [mask]"
        )
    if not of_moving and not of_stationary:
        raise KernelError(
            f"nc_matmul: mask= fits neither the stationary operand {stationary.shape} nor the "
            f"moving one {moving.shape} [mask]"
        )
    return "moving" if of_moving else "stationary"


def nc_transpose(data, *, mask=None, dtype=None, engine=None):
    """data^T: in PSUM by the Tensor engine, in SBUF by the Vector engine."""
    columns = data.size // data.partitions
    if engine in (None, _engine.unknown):
        engine = (
            _engine.vector
            if data.partitions <= 32 and columns <= 32 and buffers.is_psum(data.buffer)
            else _engine.tensor
        )
    if engine == _engine.tensor and buffers.is_psum(data.buffer):
        data = in_sbuf(data)
    out = new_tile(
        (columns, data.partitions), data.dtype, buffers.psum if engine == _engine.tensor else buffers.sbuf
    )
    if mask is not None and data.ndim != 2:
        raise Unsupported(
            f"nc_transpose with a mask over {data.ndim} extents: reshape the tile to two [mask]"
        )
    found = pieces(mask, data.shape)
    for piece in found if found is not None else [None]:
        into, part = (out, data) if piece is None else (out.clipped(piece[::-1]), data.clipped(piece))
        _isa.nc_transpose(into.native(), part.native(), engine=engine)
    written = None if found is None else [piece[::-1] for piece in found]
    if dtype is not None and dtypes.dtype_of(dtype) is not out.dtype:
        return _converted(assign.fresh(out, written), dtype=dtype)
    return assign.fresh(out, written)


def _converted(tile, dtype):
    return emit(_isa.tensor_copy, tile.shape, result_dtype(dtype, tile), [tile])
