"""Instructions of GpSimd: eight cores of 16 partitions each, which work on SBUF only."""

from __future__ import annotations

from headway import _chip
from headway.nki.isa.instruction import NkiInstruction
from headway.nki.operators import equal as _equal

_record = _chip.record
_kind = _chip.kind
_IOTA = _kind("iota")
_AFFINE_SELECT = _kind("affine_select")
_TENSOR_PARTITION_REDUCE = _kind("tensor_partition_reduce")
_LOCAL_GATHER = _kind("local_gather")
_NC_N_GATHER = _kind("nc_n_gather")
_SEQUENCE_BOUNDS = _kind("sequence_bounds")
_NONZERO_WITH_COUNT = _kind("nonzero_with_count")
_TOPK = _kind("topk")
_LANES = 16  # partitions of a GpSimd core


def iota(dst, pattern, offset=0, channel_multiplier=0, name=None):
    """dst = offset + partition * channel_multiplier + the sum of index * step over ``pattern``, as int32,
    converted to dst's dtype.

    ``partition`` counts from dst's first one. Integers wrap around at 32 bits.

    Shapes: dst of any shape; pattern is [[step, count], ...], outermost first, of 1 to 4 pairs that make as
        many elements as dst has a partition.
    Buffers: SBUF.
    Dtypes: all but packed ones and float8_e8m0fnu.
    Limits: offset is a number or a register; all numbers fit into int32.
    Engines: GpSimd.
    Cost: 150 + N cycles.
    Rules: buffer, dtype, affine-pattern, int32, register.
    """
    return NkiInstruction(_record(_IOTA, None, name, dst, pattern, offset, channel_multiplier))


def affine_select(
    dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op=_equal, offset=0, name=None
):
    """dst = on_true_tile where (offset + partition * channel_multiplier + the sum of index * step) cmp_op 0,
    else on_false_value.

    Integers are compared, of 32 bits that wrap around. The positional order of NKI 0.2 (dst, pattern, offset,
    channel_multiplier, on_true_tile, on_false_value, cmp_op) is told by where the tensor is.

    Shapes: dst and on_true_tile have as many partitions and elements a partition; pattern is [[step, count],
        ...], outermost first, of 1 to 4 pairs that make as many elements as dst has a partition.
    Buffers: SBUF.
    Dtypes: all but packed ones and float8_e8m0fnu; on_false_value is a number, converted to dst's dtype.
    Limits: cmp_op is nl.equal, not_equal, greater, greater_equal, less or less_equal; offset is a number or a
        register; all numbers of the pattern fit into int32.
    Engines: GpSimd.
    Cost: 150 + N cycles.
    Rules: buffer, dtype, partitions, shape, affine-pattern, int32, op, register.
    """
    if type(on_true_tile) is int:
        channel_multiplier, on_true_tile, on_false_value, cmp_op, offset = (
            on_true_tile,
            on_false_value,
            cmp_op,
            offset if offset != 0 else _equal,
            channel_multiplier,
        )
    return NkiInstruction(
        _record(
            _AFFINE_SELECT,
            None,
            name,
            dst,
            pattern,
            channel_multiplier,
            on_true_tile,
            on_false_value,
            cmp_op,
            offset,
        )
    )


def tensor_partition_reduce(dst, op, data, name=None):
    """dst [1, N] = data [P, N] reduced over partitions; nl.average divides the sum by P.

    Shapes: dst has one partition and as many elements in it as each of data's.
    Buffers: SBUF.
    Dtypes: all but packed ones and float8_e8m0fnu; 32-bit integers to the same dtype are reduced exactly
        (without nl.average); operators on bits: integers, dst has data's dtype.
    Limits: op is nl.add, average, maximum, bitwise_and or bitwise_or.
    Engines: GpSimd.
    Cost: not published; taken as 150 + 9N cycles.
    Rules: buffer, dtype, partitions, shape, op.
    """
    return NkiInstruction(_record(_TENSOR_PARTITION_REDUCE, None, name, dst, op, data))


def local_gather(dst, src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, name=None):
    """Each GpSimd core gathers, in each of its 16 partitions, elements of src_buffer by the indices in all of
    them.

    The indices of a core's 16 partitions are taken column by column. An index counts elements: for groups of
    num_elem_per_idx it is the place of the first. ``num_valid_indices`` of a core are used, all by default.

    Shapes: index [P, K] and src_buffer have as many partitions as dst, which has num_valid_indices *
        num_elem_per_idx elements in each.
    Buffers: SBUF.
    Dtypes: index uint16; dst has src_buffer's dtype, any.
    Limits: P is a multiple of 16; num_elem_per_idx is 1, 2, 4, 8, 16 or 32; at most 4096 indices a core; none
        out of bounds.
    Engines: GpSimd.
    Cost: 150 + n (7 + e) / min(4 / b, e) cycles for n indices of e elements of b bytes.
    Rules: buffer, dtype, partitions, partitions-of-16, shape, elements-per-index, index-count, out-of-bounds.
    """
    if num_valid_indices is None:
        num_valid_indices = _all_indices(index)
    return NkiInstruction(
        _record(_LOCAL_GATHER, None, name, dst, src_buffer, index, num_elem_per_idx, num_valid_indices)
    )


def _all_indices(index) -> int:
    # What isn't a tensor is refused when it is recorded, with a message that says so.
    return index.size // index.shape[0] * _LANES if isinstance(index, _chip.Tensor) else 0


def nc_n_gather(dst, data, indices, name=None):
    """dst[p, i] = data[p, indices[p, i]], where both rows are flattened.

    Shapes: dst and indices have as many partitions and elements a partition; data has as many partitions.
    Buffers: SBUF.
    Dtypes: indices uint32; dst has data's dtype, any.
    Limits: no index is out of bounds.
    Engines: GpSimd.
    Cost: not published; taken as 150 cycles for each 512 elements and 8N.
    Rules: buffer, dtype, partitions, shape, out-of-bounds.
    """
    return NkiInstruction(_record(_NC_N_GATHER, None, name, dst, data, indices))


def sequence_bounds(dst, segment_ids, name=None):
    """For each element of segment_ids where its run of equal ids begins, and the place after its end; for id
    0 N and -1.

    Shapes: segment_ids [1, N], dst [1, 2, N]: begins, then ends.
    Buffers: SBUF.
    Dtypes: float32 or int32 on either side.
    Limits: ids are whole numbers of at least 0.
    Engines: GpSimd.
    Cost: not published; taken as 150 + 2N cycles.
    Rules: buffer, dtype, partitions, shape, segment-id.
    """
    return NkiInstruction(_record(_SEQUENCE_BOUNDS, None, name, dst, segment_ids))


def nonzero_with_count(dst, src, index_offset=0, padding_val=-1, name=None):
    """dst = index_offset + the places of src's elements that aren't 0, then ``padding_val``, and their count
    in the last column.

    Only partitions 0, 16, 32 ... are looked at and written.

    Shapes: src [P, T], dst [P, T + 1].
    Buffers: SBUF.
    Dtypes: src float32 or int32, dst int32.
    Limits: index_offset and padding_val fit into int32. From NeuronCore-v3 on.
    Engines: GpSimd.
    Cost: not published; taken as 150 + T cycles.
    Rules: buffer, dtype, partitions, shape, int32, generation.
    """
    return NkiInstruction(_record(_NONZERO_WITH_COUNT, None, name, dst, src, index_offset, padding_val))


def topk(val_dst, idx_dst, src, n, name=None):
    """val_dst, idx_dst = the K largest of each GpSimd core's ``n`` elements, ascending, and their places.

    A core's elements lie across its 16 partitions: element e in partition e % 16, column e // 16. Results lie
    the same way.

    Shapes: src [P, C] with 16 C >= n, val_dst and idx_dst [P, K].
    Buffers: SBUF.
    Dtypes: src and val_dst bfloat16, idx_dst uint32.
    Limits: P is a multiple of 16; 8 <= n <= 65535; K <= n and K <= 32767; val_dst and idx_dst are apart. From
        NeuronCore-v3 on.
    Engines: GpSimd.
    Cost: 150 + 4n + K cycles.
    Rules: buffer, dtype, partitions, partitions-of-16, shape, topk-n, topk-k, overlap, generation.
    """
    return NkiInstruction(_record(_TOPK, None, name, val_dst, idx_dst, src, n))
