"""Instructions of the Vector engine that look at rows as a whole, choose elements, or move partitions."""

from __future__ import annotations

from headway import _chip
from headway.nki.isa.constants import reduce_cmd as _reduce_cmd
from headway.nki.isa.instruction import NkiInstruction
from headway.nki.operators import maximum as _maximum

_record = _chip.record
_kind = _chip.kind
_BN_STATS = _kind("bn_stats")
_BN_AGGR = _kind("bn_aggr")
_MAX8 = _kind("max8")
_NC_FIND_INDEX8 = _kind("nc_find_index8")
_NC_MATCH_REPLACE8 = _kind("nc_match_replace8")
_RANGE_SELECT = _kind("range_select")
_SELECT_REDUCE = _kind("select_reduce")
_NC_STREAM_SHUFFLE = _kind("nc_stream_shuffle")
_QUANTIZE_MX = _kind("quantize_mx")
_IDLE = _reduce_cmd.idle
_RESET_REDUCE = _reduce_cmd.reset_reduce
_FP32_MIN = -3.4028234663852886e38


def bn_stats(dst, data, name=None):
    """dst = count, mean and variance * count of each row's elements at even places, then of those at odd
    places; in float32.

    Shapes: data [P, N], dst [P, 6].
    Buffers: SBUF or PSUM.
    Dtypes: all but packed ones and float8_e8m0fnu.
    Limits: 1 <= N <= 512.
    Engines: Vector.
    Cost: max(64, N) cycles.
    Rules: buffer, dtype, shape, row-length.
    """
    return NkiInstruction(_record(_BN_STATS, None, name, dst, data))


def bn_aggr(dst, data, name=None):
    """dst = mean and variance of all elements that the triples of data, as bn_stats makes them, stand for.

    Shapes: data [P, 3k], dst [P, 2].
    Buffers: SBUF or PSUM.
    Dtypes: all but packed ones and float8_e8m0fnu.
    Limits: the row of data is a multiple of 3.
    Engines: Vector.
    Cost: max(64, 13 N / 3) cycles.
    Rules: buffer, dtype, shape, row-length.
    """
    return NkiInstruction(_record(_BN_AGGR, None, name, dst, data))


def max8(dst, src, name=None):
    """dst = the eight largest values of each row, the largest first; NaN is never among them.

    Shapes: src [P, N] or [P, A, B], dst [P, 8].
    Buffers: SBUF or PSUM.
    Dtypes: all but packed ones and float8_e8m0fnu; compared in float32.
    Limits: 8 <= N <= 16384.
    Engines: Vector.
    Cost: max(64, N) cycles.
    Rules: buffer, dtype, shape, rank, row-length.
    """
    return NkiInstruction(_record(_MAX8, None, name, dst, src))


def nc_find_index8(dst, data, vals, name=None):
    """dst = the places in data at which the eight vals of each row come up first.

    Equal vals get successive places, from the first column of vals on; a value that isn't there, or not that
    often, gives all ones.

    Shapes: data [P, N] or [P, A, B], vals and dst [P, 8].
    Buffers: SBUF or PSUM.
    Dtypes: dst uint16 or uint32; data and vals all but packed ones and float8_e8m0fnu, compared in float32.
    Limits: 8 <= N <= 16384.
    Engines: Vector.
    Cost: max(64, N) cycles.
    Rules: buffer, dtype, shape, rank, row-length.
    """
    return NkiInstruction(_record(_NC_FIND_INDEX8, None, name, dst, data, vals))


def nc_match_replace8(dst, data, vals, imm, dst_idx=None, name=None):
    """dst = data with the first occurrence of each of the eight vals of a row replaced by ``imm``; dst_idx
    gets the places.

    vals are taken from the last column to the first, so among equal ones the first occurrence goes to the
    highest column. A value that isn't there gives all ones in dst_idx.

    Shapes: dst and data have as many partitions P and elements a partition; vals and dst_idx [P, 8].
    Buffers: SBUF or PSUM.
    Dtypes: dst_idx uint16 or uint32; the others all but packed ones and float8_e8m0fnu, compared in float32.
    Limits: N <= 16384; imm is a number; dst and dst_idx are apart.
    Engines: Vector.
    Cost: max(64, N) cycles.
    Rules: buffer, dtype, partitions, shape, row-length, overlap.
    """
    return NkiInstruction(_record(_NC_MATCH_REPLACE8, None, name, dst, data, vals, imm, dst_idx))


def range_select(
    dst,
    on_true_tile,
    comp_op0,
    comp_op1,
    bound0,
    bound1,
    reduce_cmd=_RESET_REDUCE,
    reduce_res=None,
    reduce_op=_maximum,
    range_start=0,
    on_false_value=_FP32_MIN,
    name=None,
):
    """dst[i] = on_true_tile[i] where (range_start + i) comp_op0 bound0 and (range_start + i) comp_op1 bound1,
    elsewhere the lowest float32; i counts the elements of a partition.

    The Vector engine's accumulators take in the maximum of each row as ``reduce_cmd`` says; reduce_res gets
    them.

    Shapes: dst and on_true_tile have as many partitions P and elements a partition; bound0, bound1 and
        reduce_res [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: on_true_tile floating point; bounds float32; dst and reduce_res all but packed ones and
        float8_e8m0fnu.
    Limits: comparisons nl.equal, less, less_equal, greater and greater_equal; indices within 2^24;
        on_false_value is the default; reduce_op is nl.maximum; reduce_cmd isn't load_reduce. From
        NeuronCore-v3 on.
    Engines: Vector.
    Cost: max(64, N) cycles.
    Rules: buffer, dtype, partitions, shape, compare-op, range-start, false-value, reduce-op, reduce-cmd,
        generation.
    """
    return NkiInstruction(
        _record(
            _RANGE_SELECT,
            None,
            name,
            dst,
            on_true_tile,
            comp_op0,
            comp_op1,
            bound0,
            bound1,
            reduce_cmd,
            reduce_res,
            reduce_op,
            range_start,
            on_false_value,
        )
    )


def select_reduce(
    dst,
    predicate,
    on_true,
    on_false,
    reduce_res=None,
    reduce_cmd=_IDLE,
    reduce_op=_maximum,
    reverse_pred=False,
    name=None,
):
    """dst = on_true where predicate isn't 0, elsewhere on_false. ``reverse_pred``: on_true where it is 0.

    The Vector engine's accumulators take in the maximum of each row as ``reduce_cmd`` says; reduce_res gets
    them.

    Shapes: dst, predicate and on_true have as many partitions P and elements a partition; on_false is a
        number or [P, 1]; reduce_res [P, 1].
    Buffers: SBUF or PSUM; on_true and predicate not both in PSUM.
    Dtypes: predicate int8, uint8, int16 or uint16; on_true anything but tfloat32, 32-bit integers, packed
        ones and float8_e8m0fnu; reduce_res floating point.
    Limits: reduce_op is nl.maximum; reduce_cmd isn't load_reduce.
    Engines: Vector.
    Cost: not published; taken as max(64, N) cycles with on_true or predicate in PSUM, otherwise max(64, 2N);
        64 more with reduce_res.
    Rules: buffer, dtype, partitions, shape, both-psum, reduce-op, reduce-cmd.
    """
    return NkiInstruction(
        _record(
            _SELECT_REDUCE,
            None,
            name,
            dst,
            predicate,
            on_true,
            on_false,
            reduce_res,
            reduce_cmd,
            reduce_op,
            reverse_pred,
        )
    )


def nc_stream_shuffle(dst, src, shuffle_mask, name=None):
    """Within each 32 partitions, partition i of dst gets partition shuffle_mask[i] of src; 255 leaves it as
    it is.

    Shapes: as many elements a partition; shuffle_mask is a list of 32 numbers, the same for all quadrants.
    Buffers: SBUF or PSUM.
    Dtypes: any, the same on both sides; bits are moved.
    Limits: entries are 0 to 31 or 255 and name partitions that src has. Partitions count in whole quadrants:
        up to 32 start at 0, 32, 64 or 96, up to 64 at 0 or 64, more at 0. src and dst may be the same.
    Engines: Vector.
    Cost: max(64, N) cycles.
    Rules: buffer, dtype, shape, shuffle-mask, start-partition.
    """
    return NkiInstruction(_record(_NC_STREAM_SHUFFLE, None, name, dst, src, shuffle_mask))


def quantize_mx(dst, src, dst_scale, name=None):
    """dst, dst_scale = src as MX blocks: packed elements with a shared power of two. NeuronCore-v4 (trn3) has
    it; it isn't modelled.

    Shapes: src [P, F], dst [P, F / 4] of four packed elements each; a scale belongs to 8 partitions and 4
        elements.
    Buffers: SBUF.
    Dtypes: src bfloat16 or float16; dst float8_e4m3fn_x4 or float8_e5m2_x4; dst_scale uint8.
    Limits: refused on trn1 and trn2, unsupported on trn3.
    Engines: Vector.
    Cost: not modelled.
    Rules: generation, not-modelled.
    """
    return NkiInstruction(_record(_QUANTIZE_MX, None, name, (dst, dst_scale), (src,)))
