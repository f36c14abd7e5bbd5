"""Instructions of the Vector engine (some run on Scalar or GpSimd too)."""

from __future__ import annotations

from headway import _chip
from headway.nki.isa.constants import reduce_cmd as _reduce_cmd
from headway.nki.operators import add as _add
from headway.nki.operators import maximum as _maximum

_record = _chip.record
_kind = _chip.kind
_TENSOR_COPY = _kind("tensor_copy")
_TENSOR_COPY_PREDICATED = _kind("tensor_copy_predicated")
_TENSOR_TENSOR = _kind("tensor_tensor")
_TENSOR_SCALAR = _kind("tensor_scalar")
_SCALAR_TENSOR_TENSOR = _kind("scalar_tensor_tensor")
_TENSOR_SCALAR_REDUCE = _kind("tensor_scalar_reduce")
_TENSOR_SCALAR_CUMULATIVE = _kind("tensor_scalar_cumulative")
_TENSOR_REDUCE = _kind("tensor_reduce")
_TENSOR_TENSOR_SCAN = _kind("tensor_tensor_scan")
_RECIPROCAL = _kind("reciprocal")
_EXPONENTIAL = _kind("exponential")
_MEMSET = _kind("memset")
_BN_STATS = _kind("bn_stats")
_BN_AGGR = _kind("bn_aggr")
_MAX8 = _kind("max8")
_NC_FIND_INDEX8 = _kind("nc_find_index8")
_NC_MATCH_REPLACE8 = _kind("nc_match_replace8")
_RANGE_SELECT = _kind("range_select")
_SELECT_REDUCE = _kind("select_reduce")
_NC_STREAM_SHUFFLE = _kind("nc_stream_shuffle")
_DROPOUT = _kind("dropout")
_RNG = _kind("rng")
_SET_RNG_SEED = _kind("set_rng_seed")
_RAND_SET_STATE = _kind("rand_set_state")
_RAND_GET_STATE = _kind("rand_get_state")
_RAND2 = _kind("rand2")
_QUANTIZE_MX = _kind("quantize_mx")
_IDLE = _reduce_cmd.idle
_RESET_REDUCE = _reduce_cmd.reset_reduce
_FP32_MIN = -3.4028234663852886e38


def tensor_copy(dst, src, engine=None, name=None):
    """dst = src: bits where the dtypes are the same, otherwise converted through float32.

    Shapes: as many partitions, and as many elements a partition; free extents may differ.
    Buffers: SBUF or PSUM; GpSimd doesn't reach PSUM.
    Dtypes: any.
    Limits: either side may have a scalar dynamic offset.
    Engines: Vector, Scalar (from NeuronCore-v3 on), GpSimd.
    Cost: Vector max(64, N) cycles, half or a quarter of that for 16-bit elements in SBUF; with a dynamic offset max(600, N).
    """
    return _record(_TENSOR_COPY, engine, name, dst, src)


def tensor_copy_predicated(dst, src, predicate, reverse_pred=False, name=None):
    """dst = src where predicate isn't 0 (is 0, with reverse_pred); elsewhere dst stays.

    Shapes: all of one size; src may be a number.
    Buffers: SBUF or PSUM; src and predicate not both in PSUM.
    Dtypes: predicate uint8, uint16 or uint32; src has dst's.
    Limits: [both-psum], [dtype].
    Engines: Vector.
    Cost: max(64, N) cycles with an operand in PSUM, otherwise max(64, 2N).
    """
    return _record(_TENSOR_COPY_PREDICATED, None, name, dst, src, predicate, reverse_pred)


def tensor_tensor(dst, data1, data2, op, engine=None, name=None):
    """dst = data1 op data2, element by element, in float32 (bitwise operators on bits, 32-bit integers exactly on GpSimd).

    Shapes: all of one size: as many partitions, as many elements a partition.
    Buffers: SBUF or PSUM; data1 and data2 not both in PSUM; GpSimd: SBUF only.
    Dtypes: any that can be computed with; bitwise operators: integers of one width.
    Limits: [both-psum]; nl.power runs on GpSimd.
    Engines: Vector or GpSimd; operands that are all (u)int32 in SBUF go to GpSimd unless Vector is asked for.
    Cost: max(64, N) cycles with an input in PSUM or with bfloat16 add, subtract, multiply in SBUF; otherwise max(64, 2N).
    """
    return _record(_TENSOR_TENSOR, engine, name, dst, data1, data2, op)


def tensor_scalar(dst, data, op0, operand0=None, reverse0=False, op1=None, operand1=None, reverse1=False, engine=None, name=None):
    """dst = (data op0 operand0) op1 operand1; with reverse0/1 the operand comes first.

    Shapes: dst and data of one size; operands are numbers or [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: any that can be computed with; operand tensors float32 for arithmetic; bitwise operators: integers.
    Limits: both operators are bitwise or both arithmetic [operators]. Unary operators take operand0=None or 0.
    Engines: Vector; Scalar for multiply and add (from NeuronCore-v3 on); GpSimd for rsqrt, power and addresses.
    Cost: max(64, N) cycles, half or a quarter of that for 16-bit elements in SBUF.
    """
    return _record(_TENSOR_SCALAR, engine, name, dst, data, op0, 0.0 if operand0 is None else operand0, reverse0, op1,
                   0.0 if operand1 is None and op1 is not None else operand1, reverse1)


def scalar_tensor_tensor(dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, name=None):
    """dst = (data op0 operand0) op1 operand1 with operand1 a tensor of data's size.

    Shapes: dst, data and operand1 of one size; operand0 a number or [P, 1].
    Buffers: SBUF or PSUM; data and operand1 not both in PSUM.
    Dtypes: any that can be computed with.
    Limits: arithmetic operators only [operators], [both-psum].
    Engines: Vector.
    Cost: 2N cycles; N for bfloat16 with subtract and multiply and an even N.
    """
    return _record(_SCALAR_TENSOR_TENSOR, None, name, dst, data, op0, operand0, op1, operand1, reverse0, reverse1)


def tensor_scalar_reduce(dst, data, op0, operand0, reduce_op, reduce_res=None, reverse0=False, reduce_cmd=_RESET_REDUCE,
                         reduce_init=None, reduce_res_negate=False, name=None):
    """dst = data op0 operand0, and its rows reduced with reduce_op into the Vector engine's accumulators.

    Shapes: dst and data of one size; operand0 a number or [P, 1]; reduce_res [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: any that can be computed with.
    Limits: reduce_op add, multiply, maximum or minimum; reverse0 isn't supported by the hardware.
    Engines: Vector.
    Cost: max(64, N) + 64 cycles.
    """
    return _record(_TENSOR_SCALAR_REDUCE, None, name, dst, data, op0, operand0, reduce_op, reduce_res, reverse0, reduce_cmd,
                   reduce_init, reduce_res_negate)


def tensor_scalar_cumulative(dst, src, op0, op1, imm0, imm1=None, reduce_cmd=_RESET_REDUCE, name=None):
    """Along each row: reg = op1(op0(src, imm0), reg), dst = reg.

    Shapes: dst and src of one size; imm0 and imm1 are numbers or [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: no 32-bit integers.
    Limits: op1 add, subtract, multiply, maximum or minimum; imm1 goes with reduce_cmd load_reduce.
    Engines: Vector.
    Cost: none published.
    """
    return _record(_TENSOR_SCALAR_CUMULATIVE, None, name, dst, src, op0, op1, imm0, imm1, reduce_cmd)


def tensor_reduce(dst, op, data, axis, negate=False, keepdims=False, name=None):
    """dst = data reduced over ``axis``, the last extents of data; -1 times that with negate.

    Shapes: dst has as many elements a partition as the extents that stay; keepdims leaves extents of 1.
    Buffers: SBUF or PSUM.
    Dtypes: any that can be computed with; bitwise operators: integers.
    Limits: axis is an int or a tuple of the last contiguous free extents, never 0 [axis].
    Engines: Vector.
    Cost: N cycles; N / 2 for bfloat16 add and maximum.
    """
    return _record(_TENSOR_REDUCE, None, name, dst, op, data, axis, negate, keepdims)


def tensor_tensor_scan(dst, data0, data1, initial, op0, op1, reverse0=False, reverse1=False, name=None):
    """dst[i] = op1(op0(data0[i], dst[i-1]), data1[i]) along each row, from ``initial``; the state is float32.

    Shapes: dst, data0 and data1 of one size; initial a number or [P, 1].
    Buffers: SBUF or PSUM; data0 and data1 not both in PSUM.
    Dtypes: any that can be computed with.
    Limits: arithmetic operators, [both-psum].
    Engines: Vector.
    Cost: max(64, 2N) cycles.
    """
    return _record(_TENSOR_TENSOR_SCAN, None, name, dst, data0, data1, initial, op0, op1, reverse0, reverse1)


def reciprocal(dst, data, name=None):
    """dst = 1 / data, in float32.

    Shapes: one size.
    Buffers: SBUF or PSUM.
    Dtypes: any that can be computed with.
    Limits: none of its own.
    Engines: Vector.
    Cost: max(64, 8N) cycles.
    """
    return _record(_RECIPROCAL, None, name, dst, data)


def exponential(dst, src, max_value=0.0, reduce_res=None, reduce_cmd=_IDLE, reduce_init=0.0, name=None):
    """exp(src - max_value) with a running sum; from NeuronCore-v4 (trn3) on, and not modelled.

    Shapes: dst and src of one size; reduce_res [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: any that can be computed with.
    Limits: refused on trn1 and trn2 [generation].
    Engines: Vector.
    Cost: none known.
    """
    return _record(_EXPONENTIAL, None, name, (dst,) if reduce_res is None else (dst, reduce_res), (src,))


def memset(dst, value, engine=None, name=None):
    """dst = value everywhere.

    Shapes: any.
    Buffers: SBUF; PSUM on the Vector engine only.
    Dtypes: an integer dtype takes an int; packed x4 types take 0 only.
    Limits: [memset-value].
    Engines: Vector or GpSimd.
    Cost: max(64, N) cycles, max(64, N / 2) for zeros of 16 bits.
    """
    return _record(_MEMSET, engine, name, dst, value)


def bn_stats(dst, data, name=None):
    """dst [P, 6] = count, mean, variance * count of the elements at even places, then at odd places.

    Shapes: data [P, N], N <= 512; dst [P, 6].
    Buffers: SBUF or PSUM.
    Dtypes: computed in float32.
    Limits: [bn-stats-size].
    Engines: Vector.
    Cost: max(64, N) cycles.
    """
    return _record(_BN_STATS, None, name, dst, data)


def bn_aggr(dst, data, name=None):
    """dst [P, 2] = mean and variance of all that bn_stats' triples in data [P, 3k] stand for.

    Shapes: data [P, 3k], dst [P, 2].
    Buffers: SBUF or PSUM.
    Dtypes: computed in float32.
    Limits: the row of data is a multiple of 3.
    Engines: Vector.
    Cost: max(64, 13 N / 3) cycles.
    """
    return _record(_BN_AGGR, None, name, dst, data)


def max8(dst, src, name=None):
    """dst [P, 8] = the eight largest values of each row, descending.

    Shapes: src [P, N] of at most 3 extents, 8 <= N <= 16384; dst [P, 8].
    Buffers: SBUF or PSUM.
    Dtypes: compared in float32.
    Limits: [max8-size].
    Engines: Vector.
    Cost: N cycles.
    """
    return _record(_MAX8, None, name, dst, src)


def nc_find_index8(dst, data, vals, name=None):
    """dst [P, 8] = where in data each of vals [P, 8] is first; equal values get successive places, absent ones all ones.

    Shapes: data [P, N], 8 <= N <= 16384; vals and dst [P, 8].
    Buffers: SBUF or PSUM.
    Dtypes: dst uint16 or uint32.
    Limits: [max8-size].
    Engines: Vector.
    Cost: N cycles.
    """
    return _record(_NC_FIND_INDEX8, None, name, dst, data, vals)


def nc_match_replace8(dst, data, vals, imm, dst_idx=None, name=None):
    """dst = data with the first occurrence of each of vals [P, 8] replaced by imm; dst_idx gets their places.

    Shapes: dst and data of one size, N <= 16384; vals and dst_idx [P, 8].
    Buffers: SBUF or PSUM.
    Dtypes: dst_idx uint16 or uint32.
    Limits: vals are taken from the last to the first, so among equal ones the first match goes to the highest column.
    Engines: Vector.
    Cost: max(64, N) cycles.
    """
    return _record(_NC_MATCH_REPLACE8, None, name, dst, data, vals, imm, dst_idx)


def range_select(dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd=_RESET_REDUCE, reduce_res=None,
                 reduce_op=_maximum, range_start=0, on_false_value=_FP32_MIN, name=None):
    """dst[i] = on_true_tile[i] where (range_start + i) comp_op0 bound0 and (range_start + i) comp_op1 bound1, else the most negative float32.

    Shapes: dst and on_true_tile of one size; bounds and reduce_res [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: on_true_tile floating point; bounds float32.
    Limits: range_start + i < 2^24; on_false_value can only be the default; from NeuronCore-v3 on [generation]; reduce_op nl.maximum.
    Engines: Vector.
    Cost: max(64, N) cycles.
    """
    return _record(_RANGE_SELECT, None, name, dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd, reduce_res, reduce_op,
                   range_start, on_false_value)


def select_reduce(dst, predicate, on_true, on_false, reduce_res=None, reduce_cmd=_IDLE, reduce_op=_maximum, reverse_pred=False,
                  name=None):
    """dst = on_true where predicate isn't 0, else on_false; rows reduced into the accumulators as reduce_cmd says.

    Shapes: dst, predicate and on_true of one size; on_false a number or [P, 1]; reduce_res [P, 1].
    Buffers: SBUF or PSUM; on_true and predicate not both in PSUM.
    Dtypes: predicate (u)int8 or (u)int16; on_true anything but tfloat32 and 32-bit integers.
    Limits: [both-psum]; reduce_op nl.maximum.
    Engines: Vector.
    Cost: none published.
    """
    return _record(_SELECT_REDUCE, None, name, dst, predicate, on_true, on_false, reduce_res, reduce_cmd, reduce_op, reverse_pred)


def nc_stream_shuffle(dst, src, shuffle_mask, name=None):
    """Within each 32 partitions: partition i of dst gets partition shuffle_mask[i] of src; 255 leaves it.

    Shapes: as many elements a partition; shuffle_mask has 32 entries.
    Buffers: SBUF or PSUM.
    Dtypes: any, the same on both sides.
    Limits: starts at partition 0, 32, 64 or 96; src and dst may be one.
    Engines: Vector.
    Cost: max(64, N) cycles.
    """
    return _record(_NC_STREAM_SHUFFLE, None, name, dst, src, shuffle_mask)


def dropout(dst, data, prob, name=None):
    """dst = data with elements set to 0 with probability prob.

    Shapes: dst and data of one size; prob a number or [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: dst has data's.
    Limits: 0 <= prob <= 1.
    Engines: Vector.
    Cost: max(64, N) cycles.
    """
    return _record(_DROPOUT, None, name, dst, data, prob)


def rng(dst, engine=None, name=None):
    """dst = random bits.

    Shapes: any.
    Buffers: SBUF or PSUM.
    Dtypes: integers: the low bits of 32.
    Limits: on GpSimd from NeuronCore-v3 on.
    Engines: Vector (a shift register) or GpSimd (xorwow).
    Cost: none published.
    """
    return _record(_RNG, engine, name, dst)


def set_rng_seed(src_seeds, name=None):
    """Seeds the Vector engine's random numbers.

    Shapes: [1, 1].
    Buffers: SBUF or PSUM.
    Dtypes: 32 bits.
    Limits: none of its own.
    Engines: Vector.
    Cost: none published.
    """
    return _record(_SET_RNG_SEED, None, name, src_seeds)


def rand_set_state(src_seeds, engine=None, name=None):
    """Sets the state of the random numbers, a row a lane.

    Shapes: [P, 6] (GpSimd's xorwow); [P, 24] on the Vector engine of NeuronCore-v4.
    Buffers: SBUF.
    Dtypes: uint32.
    Limits: from NeuronCore-v3 on [generation].
    Engines: GpSimd.
    Cost: none published.
    """
    return _record(_RAND_SET_STATE, engine, name, src_seeds)


def rand_get_state(dst, engine=None, name=None):
    """Reads the state of the random numbers, a row a lane; see rand_set_state.

    Shapes: [P, 6].
    Buffers: SBUF.
    Dtypes: uint32.
    Limits: from NeuronCore-v3 on [generation].
    Engines: GpSimd.
    Cost: none published.
    """
    return _record(_RAND_GET_STATE, engine, name, dst)


def rand2(dst, min=0.0, max=1.0, name=None):
    """Uniform random numbers; from NeuronCore-v4 (trn3) on, and not modelled.

    Shapes: any.
    Buffers: SBUF or PSUM.
    Dtypes: floating point.
    Limits: refused on trn1 and trn2 [generation].
    Engines: Vector.
    Cost: none known.
    """
    return _record(_RAND2, None, name, (dst,), ())


def quantize_mx(dst, src, dst_scale, name=None):
    """To MX blocks: packed elements and a shared power of two; from NeuronCore-v4 (trn3) on, and not modelled.

    Shapes: dst [P, F / 4] packed.
    Buffers: SBUF.
    Dtypes: bfloat16 or float16 to float8 x4 types.
    Limits: refused on trn1 and trn2 [generation].
    Engines: Vector.
    Cost: none known.
    """
    return _record(_QUANTIZE_MX, None, name, (dst, dst_scale), (src,))


def tensor_copy_dynamic_src(*_, **__):
    """Removed in NKI 0.4: use tensor_copy with src.ap(pattern, scalar_offset=...)."""
    from headway.nki.errors import KernelError

    raise KernelError("tensor_copy_dynamic_src was removed in NKI 0.4: use tensor_copy(dst, src.ap(pattern, scalar_offset=...)) [removed]")


def tensor_copy_dynamic_dst(*_, **__):
    """Removed in NKI 0.4: use tensor_copy with dst.ap(pattern, scalar_offset=...)."""
    from headway.nki.errors import KernelError

    raise KernelError("tensor_copy_dynamic_dst was removed in NKI 0.4: use tensor_copy(dst.ap(pattern, scalar_offset=...), src) [removed]")
