"""neuronxcc.nki.isa: instructions that return their result. Each is recorded as the instruction of the same
name in headway.nki.isa.

``mask`` keeps the part of the result where it holds; ``dtype`` is the result's.
"""

from __future__ import annotations

from headway.neuronxcc.nki import assign
from headway.neuronxcc.nki.compute import (
    column32,
    emit,
    in_sbuf,
    matched,
    no_mask,
    number,
    reduction,
    result_dtype,
    run,
)
from headway.neuronxcc.nki.index import Index, Mask, aligned
from headway.neuronxcc.nki.isa import constants  # noqa: F401
from headway.neuronxcc.nki.isa.constants import (  # noqa: F401
    dge_mode,
    dma_engine,
    engine,
    matmul_perf_mode,
    oob_mode,
    reduce_cmd,
)
from headway.neuronxcc.nki.isa.dma import dma_copy, dma_transpose  # noqa: F401
from headway.neuronxcc.nki.isa.products import nc_matmul, nc_transpose  # noqa: F401
from headway.neuronxcc.nki.pieces import pieces
from headway.neuronxcc.nki.tile import Tile, new_tile
from headway.nki import buffers, dtypes
from headway.nki import isa as _isa
from headway.nki.errors import Unsupported
from headway.nki.isa.constants import (  # noqa: F401
    NkiValidationError,
    get_nc_version,
    gpsimd_engine,
    nc_version,
    scalar_engine,
    sync_engine,
    tensor_engine,
    unknown_engine,
    vector_engine,
)

_engine = engine


def activation(
    op,
    data,
    *,
    bias=None,
    scale=1.0,
    reduce_op=None,
    reduce_res=None,
    reduce_cmd=reduce_cmd.idle,
    mask=None,
    dtype=None,
):
    """op(data * scale + bias)."""
    bias, scale = number(bias), column32(number(scale))

    def record(dst, source, add, times, total):
        _isa.activation(
            dst,
            op,
            source,
            add,
            times if not isinstance(times, int) else float(times),
            reduce_op,
            total,
            reduce_cmd,
        )

    return emit(
        record, data.shape, result_dtype(dtype, data), [data, _column(bias), _column(scale), reduce_res], mask
    )


def _column(value):
    """One value a partition as [P, 1]."""
    if isinstance(value, Tile) and value.per_partition and value.ndim != 2:
        return value.reshape((value.partitions, 1))
    return value


def activation_reduce(
    op, data, *, reduce_op=None, reduce_res=None, bias=None, scale=1.0, mask=None, dtype=None
):
    """op(data * scale + bias), and its rows summed into reduce_res."""
    return activation(
        op,
        data,
        bias=bias,
        scale=scale,
        reduce_op=reduce_op,
        reduce_res=reduce_res,
        reduce_cmd=constants.reduce_cmd.reset_reduce,
        mask=mask,
        dtype=dtype,
    )


def tensor_reduce(op, data, axis, *, mask=None, dtype=None, negate=False, keepdims=False):
    """data reduced over free extents."""
    return reduction(op, data, axis, dtype, mask, negate, keepdims)


def tensor_partition_reduce(op, data, *, mask=None, dtype=None):
    """data reduced over partitions: [1, ...]."""
    data = in_sbuf(data)
    out = new_tile((1, *data.shape[1:]), result_dtype(dtype, data), buffers.sbuf)
    found = pieces(mask, data.shape)
    if found is not None and len(found) != 1:
        raise Unsupported("tensor_partition_reduce with a mask that is no rectangle")
    part = data if found is None else data.clipped(found[0])
    into = out if found is None else out.clipped(((0, 1),) + found[0][1:])
    _isa.tensor_partition_reduce(into.native(), op, part.native())
    return assign.fresh(out, None if found is None else [((0, 1),) + found[0][1:]])


def tensor_tensor(data1, data2, op, *, dtype=None, mask=None, engine=None):
    """data1 op data2."""
    if buffers.is_psum(data1.buffer) and buffers.is_psum(data2.buffer):
        data2 = in_sbuf(data2)
    kind = result_dtype(dtype, data1, data2)
    a, b = matched(data1, data2)
    return emit(
        lambda d, x, y: _isa.tensor_tensor(d, x, y, op, engine=engine),
        a.shape if a.ndim >= b.ndim else b.shape,
        kind,
        [a, b],
        mask,
    )


def tensor_tensor_scan(
    data0, data1, initial, op0, op1, *, reverse0=False, reverse1=False, dtype=None, mask=None
):
    """result[i] = op1(op0(data0[i], result[i - 1]), data1[i])."""
    kind = result_dtype(dtype, data0, data1)
    start = _column(number(initial))
    return emit(
        lambda d, x, y, i: _isa.tensor_tensor_scan(
            d, x, y, float(i) if isinstance(i, int) else i, op0, op1, reverse0, reverse1
        ),
        data0.shape,
        kind,
        [data0, data1, start],
        mask,
    )


def scalar_tensor_tensor(
    *, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, dtype=None, mask=None
):
    """(data op0 operand0) op1 operand1."""
    kind = result_dtype(dtype, data, operand1)
    data, operand1 = matched(data, operand1)
    return emit(
        lambda d, x, s, y: _isa.scalar_tensor_tensor(d, x, op0, s, op1, y, reverse0, reverse1),
        data.shape,
        kind,
        [data, _column(number(operand0)), operand1],
        mask,
    )


def tensor_scalar(
    data,
    op0,
    operand0=0.0,
    reverse0=False,
    op1=None,
    operand1=None,
    reverse1=False,
    *,
    dtype=None,
    mask=None,
    engine=None,
):
    """(data op0 operand0) op1 operand1."""
    bits = getattr(op0, "__name__", str(op0)).startswith("bitwise") or getattr(
        op0, "__name__", str(op0)
    ).endswith("shift")
    first, second = number(operand0), number(operand1)
    if not bits:
        first, second = column32(first), column32(second)
    kind = result_dtype(dtype, data)

    def record(dst, source, a, b):
        _isa.tensor_scalar(dst, source, op0, a, reverse0, op1, b, reverse1, engine)

    return emit(record, data.shape, kind, [data, _column(first), _column(second)], mask)


def tensor_scalar_reduce(
    *, data, op0, operand0, reduce_op, reduce_res, reverse0=False, dtype=None, mask=None, **options
):
    """data op0 operand0, and its rows reduced into reduce_res."""
    operand = _column(column32(number(operand0)))
    return emit(
        lambda d, x, s, r: _isa.tensor_scalar_reduce(d, x, op0, s, reduce_op, r, reverse0),
        data.shape,
        result_dtype(dtype, data),
        [data, operand, reduce_res],
        mask,
    )


def tensor_scalar_cumulative(
    *, src, dst, op0, op1, imm0, imm1=None, reduce_cmd=reduce_cmd.reset_reduce, mask=None, dtype=None
):
    """Running reductions along rows, into dst."""
    if reduce_cmd != constants.reduce_cmd.load_reduce:
        imm1 = None  # nothing is loaded
    run(
        lambda d, s, a, b: _isa.tensor_scalar_cumulative(d, s, op0, op1, a, b, reduce_cmd),
        [dst, src, _column(number(imm0)), _column(number(imm1))],
        mask,
        dst.shape,
    )


def tensor_copy(src, *, mask=None, dtype=None, engine=None):
    """A copy in SBUF."""
    return emit(
        lambda d, s: _isa.tensor_copy(d, s, engine=engine), src.shape, result_dtype(dtype, src), [src], mask
    )


def tensor_copy_predicated(*, src, dst, predicate, mask=None, dtype=None, reverse_pred=False):
    """dst = src where predicate isn't 0."""
    if isinstance(predicate, Tile) and predicate.dtype.name == "bool":
        predicate = predicate.view(dtypes.uint8)
    run(
        lambda d, s, p: _isa.tensor_copy_predicated(d, s, p, reverse_pred),
        [dst, number(src), predicate],
        mask,
        dst.shape,
    )


def reciprocal(data, *, dtype=None, mask=None):
    """1 / data."""
    return emit(_isa.reciprocal, data.shape, result_dtype(dtype, data), [data], mask)


def memset(shape, value, dtype, *, mask=None, engine=None):
    """A tile of value."""
    kind = dtypes.dtype_of(dtype)
    fill = number(value)
    fill = float(fill) if kind.dtype.kind not in "iub" else int(fill)
    return emit(lambda d: _isa.memset(d, fill, engine=engine), tuple(shape), kind, [], mask)


def iota(expr, dtype, *, mask=None):
    """A tile of an index expression's values."""
    if not isinstance(expr, Index):
        raise TypeError(
            f"nisa.iota: an index expression (nl.arange ...) is wanted, not {type(expr).__name__}"
        )
    if expr.ndim < 2:
        expr = expr[None]
    pattern = [[c, n] for c, n in zip(expr.coeffs[1:], expr.shape[1:])]
    return emit(
        lambda d: _isa.iota(d, pattern, expr.const, expr.coeffs[0]),
        expr.shape,
        dtypes.dtype_of(dtype),
        [],
        mask,
    )


def affine_select(pred, on_true_tile, on_false_value, *, mask=None, dtype=None):
    """on_true_tile where the comparison of index expressions holds, else on_false_value."""
    value = float(number(on_false_value))
    if not isinstance(pred, Mask):
        raise TypeError(
            f"nisa.affine_select: a comparison of index expressions is wanted, not {type(pred).__name__}"
        )
    result = in_sbuf(on_true_tile)
    for condition in pred.conditions:
        coeffs = aligned(condition.index, result.shape)
        pattern = [[c, n] for c, n in zip(coeffs[1:], result.shape[1:])]
        result = emit(
            lambda d, t: _isa.affine_select(
                d, pattern, coeffs[0], t, value, condition.compare, condition.index.const
            ),
            result.shape,
            result_dtype(dtype, result),
            [result],
            mask,
        )
    return result


def bn_stats(data, *, mask=None, dtype=None):
    """Count, mean and variance * count of even and odd elements: [P, 6]."""
    return _rows_of(_isa.bn_stats, data, 6, result_dtype(dtype, data), mask)


def bn_aggr(data, *, mask=None, dtype=None):
    """Mean and variance of bn_stats' triples: [P, 2]."""
    return _rows_of(_isa.bn_aggr, data, 2, result_dtype(dtype, data), mask)


def _rows_of(record, data, columns: int, kind, mask) -> Tile:
    """A result of so many numbers a row of data, of which the mask keeps a part."""
    out = new_tile((data.partitions, columns), kind, buffers.sbuf)
    found = pieces(mask, data.shape)
    if found is None:
        record(out.native(), data.native())
        return assign.fresh(out, None)
    if len(found) > 1:
        raise Unsupported(
            "a mask over several extents at once: a row's numbers are made in one instruction [mask]"
        )
    for piece in found:
        record(out.clipped((piece[0], (0, columns))).native(), data.clipped(piece).native())
    return assign.fresh(out, [(piece[0], (0, columns)) for piece in found])


def dropout(data, prob, *, mask=None, dtype=None):
    """data with elements set to 0 with probability prob."""
    return emit(_isa.dropout, data.shape, result_dtype(dtype, data), [data, _column(number(prob))], mask)


def local_gather(src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, *, mask=None):
    """GpSimd's gather within 16 partitions: [P, indices / 16 or more, 16, elements]."""
    no_mask("nisa.local_gather", mask)
    per_core = num_valid_indices or index.size // index.partitions * 16
    out = new_tile(
        (src_buffer.partitions, per_core // 16, 16, num_elem_per_idx), src_buffer.dtype, buffers.sbuf
    )
    _isa.local_gather(out.native(), src_buffer.native(), index.native(), num_elem_per_idx, per_core)
    return assign.fresh(out, None)


def max8(*, src, mask=None, dtype=None):
    """The eight largest of each row: [P, 8]."""
    return _rows_of(_isa.max8, src, 8, result_dtype(dtype, src), mask)


def nc_find_index8(*, data, vals, mask=None, dtype=None):
    """Where in data each of vals is first: [P, 8]."""
    out = new_tile(
        (data.partitions, 8), dtypes.dtype_of(dtype) if dtype is not None else dtypes.uint32, buffers.sbuf
    )
    found = pieces(mask, data.shape)
    for piece in found if found is not None else [None]:
        rows = None if piece is None else (piece[0], (0, 8))
        _isa.nc_find_index8(
            (out if rows is None else out.clipped(rows)).native(),
            (data if piece is None else data.clipped(piece)).native(),
            (vals if rows is None else vals.clipped(rows)).native(),
        )
    return assign.fresh(out, None if found is None else [(p[0], (0, 8)) for p in found])


def nc_match_replace8(*, data, vals, imm, dst_idx=None, mask=None, dtype=None):
    """data with the first occurrence of each of vals replaced by imm; dst_idx gets the places."""
    out = new_tile(data.shape, result_dtype(dtype, data), buffers.sbuf)
    found = pieces(mask, data.shape)
    for piece in found if found is not None else [None]:
        rows = None if piece is None else (piece[0], (0, 8))

        def cut(tile, by):
            return tile if by is None or tile is None else tile.clipped(by)

        index = cut(dst_idx, rows)
        _isa.nc_match_replace8(
            cut(out, piece).native(),
            cut(data, piece).native(),
            cut(vals, rows).native(),
            float(number(imm)),
            None if index is None else index.native(),
        )
    return assign.fresh(out, found)


def nc_stream_shuffle(src, dst, shuffle_mask, *, dtype=None, mask=None):
    """Partitions of src moved within 32, into dst."""
    run(lambda d, s: _isa.nc_stream_shuffle(d, s, shuffle_mask), [dst, src], mask, dst.shape)


def range_select(
    *,
    on_true_tile,
    comp_op0,
    comp_op1,
    bound0,
    bound1,
    reduce_cmd=reduce_cmd.reset_reduce,
    reduce_res=None,
    reduce_op="maximum",
    range_start=0,
    on_false_value=-3.4028234663852886e38,
    mask=None,
    dtype=None,
):
    """on_true_tile where both comparisons of the element's number hold, else the most negative float32."""
    return emit(
        lambda d, t, a, b, r: _isa.range_select(
            d, t, comp_op0, comp_op1, a, b, reduce_cmd, r, reduce_op, range_start, float(on_false_value)
        ),
        on_true_tile.shape,
        result_dtype(dtype, on_true_tile),
        [on_true_tile, _column(column32(bound0)), _column(column32(bound1)), _column(reduce_res)],
        mask,
    )


def select_reduce(
    *,
    dst,
    predicate,
    on_true,
    on_false,
    reduce_res=None,
    reduce_cmd=reduce_cmd.idle,
    reduce_op="maximum",
    reverse_pred=False,
    mask=None,
    dtype=None,
):
    """on_true where predicate isn't 0, else on_false, into dst."""
    if predicate.dtype.name == "bool":
        predicate = predicate.view(dtypes.uint8)
    run(
        lambda d, p, t, f, r: _isa.select_reduce(d, p, t, f, r, reduce_cmd, reduce_op, reverse_pred),
        [dst, predicate, on_true, _column(column32(number(on_false))), _column(reduce_res)],
        mask,
        dst.shape,
    )


def sequence_bounds(*, segment_ids, dtype=None):
    """Bounds of runs of equal ids: [1, 2, n]."""
    out = new_tile(
        (segment_ids.partitions, 2, segment_ids.size // segment_ids.partitions),
        result_dtype(dtype, segment_ids),
        buffers.sbuf,
    )
    _isa.sequence_bounds(out.native(), segment_ids.native())
    return assign.fresh(out, None)


def tensor_copy_dynamic_src(src, *, mask=None, dtype=None, engine=None):
    """tensor_copy of a source whose place is known at run time."""
    return tensor_copy(src, mask=mask, dtype=dtype, engine=engine)


def builtin_custom_op(*_args, **_kwargs):
    raise Unsupported("builtin_custom_op runs a library of the vendor's on GpSimd")
