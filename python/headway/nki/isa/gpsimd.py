"""Instructions of GpSimd: eight cores of 16 partitions each, which work on SBUF only."""

from __future__ import annotations

from headway import _chip
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
_CORE_BARRIER = _kind("core_barrier")


def iota(dst, pattern, offset=0, channel_multiplier=0, name=None):
    """dst = offset + partition * channel_multiplier + sum(index * step), as int32 converted to dst's dtype.

    Shapes: pattern [[step, count], ...] of at most 4 pairs makes dst's row.
    Buffers: SBUF.
    Dtypes: any that can be computed with.
    Limits: offset may be a register.
    Engines: GpSimd.
    Cost: 150 + N cycles.
    """
    return _record(_IOTA, None, name, dst, pattern, offset, channel_multiplier)


def affine_select(dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op=_equal, offset=0, name=None):
    """dst = on_true_tile where (offset + partition * channel_multiplier + sum(index * step)) cmp_op 0, else on_false_value.

    Shapes: dst and on_true_tile of one size, which pattern [[step, count], ...] makes.
    Buffers: SBUF.
    Dtypes: any that can be computed with; on_false_value is a float32 number.
    Limits: offset may be a register.
    Engines: GpSimd.
    Cost: 150 + N cycles.
    """
    return _record(_AFFINE_SELECT, None, name, dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op, offset)


def tensor_partition_reduce(dst, op, data, name=None):
    """dst [1, N] = data [P, N] reduced over partitions.

    Shapes: dst has one partition and data's row.
    Buffers: SBUF.
    Dtypes: any that can be computed with; bitwise operators: integers.
    Limits: op add, average, maximum, bitwise_or or bitwise_and.
    Engines: GpSimd.
    Cost: none published.
    """
    return _record(_TENSOR_PARTITION_REDUCE, None, name, dst, op, data)


def local_gather(dst, src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, name=None):
    """Each GpSimd core gathers elements of its 16 partitions by the indices in them, flattened column by column.

    Shapes: P a multiple of 16; at most 4096 indices a core.
    Buffers: SBUF.
    Dtypes: index uint16; dst has src_buffer's.
    Limits: num_elem_per_idx 1, 2, 4, 8, 16 or 32.
    Engines: GpSimd.
    Cost: 150 + valid indices * elements / C cycles (docs/chip/gpsimd.md).
    """
    if num_valid_indices is None:
        num_valid_indices = index.size // index.shape[0] * min(index.shape[0], 16)
    return _record(_LOCAL_GATHER, None, name, dst, src_buffer, index, num_elem_per_idx, num_valid_indices)


def nc_n_gather(dst, data, indices, name=None):
    """dst[p, i] = data[p, indices[p, i]] over the flattened row of data.

    Shapes: dst and indices of one size; as many partitions in all three.
    Buffers: SBUF.
    Dtypes: indices uint32; dst has data's.
    Limits: none of its own.
    Engines: GpSimd.
    Cost: groups of 512 elements, no formula published.
    """
    return _record(_NC_N_GATHER, None, name, dst, data, indices)


def sequence_bounds(dst, segment_ids, name=None):
    """For each element the first place of its run of equal ids and the one after its last; of id 0: (n, -1).

    Shapes: segment_ids [1, n], dst [1, 2, n].
    Buffers: SBUF.
    Dtypes: float32 or int32.
    Limits: none of its own.
    Engines: GpSimd.
    Cost: none published.
    """
    return _record(_SEQUENCE_BOUNDS, None, name, dst, segment_ids)


def nonzero_with_count(dst, src, index_offset=0, padding_val=-1, name=None):
    """Places of the elements that aren't 0, then padding, and their count in the last column; on partitions 0, 16, ... only.

    Shapes: src [P, T], dst [P, T + 1].
    Buffers: SBUF.
    Dtypes: dst int32.
    Limits: from NeuronCore-v3 on [generation].
    Engines: GpSimd.
    Cost: none published.
    """
    return _record(_NONZERO_WITH_COUNT, None, name, dst, src, index_offset, padding_val)


def topk(val_dst, idx_dst, src, n, name=None):
    """The K largest of n elements a GpSimd core, ascending, with their places.

    Shapes: element e lies at partition e % 16, column e // 16 of a core's 16 partitions.
    Buffers: SBUF.
    Dtypes: val_dst and src bfloat16, idx_dst uint32.
    Limits: 8 <= n < 65536, K <= n, P a multiple of 16.
    Engines: GpSimd.
    Cost: 4n + K cycles.
    """
    return _record(_TOPK, None, name, val_dst, idx_dst, src, n)


def core_barrier(data, cores=(0, 1), engine=None, name=None):
    """Waits for the other core of a logical core; what was done to ``data`` before is seen after it.

    Shapes: any.
    Buffers: data in shared_hbm.
    Dtypes: any.
    Limits: two cores, from NeuronCore-v3 on.
    Engines: GpSimd by default; it blocks only that engine.
    Cost: a semaphore's way between the cores.
    """
    return _record(_CORE_BARRIER, engine, name, data, cores)
