"""Copies, arithmetic and reductions: on the Vector engine, some of them on Scalar and GpSimd too."""

from __future__ import annotations

from headway import _chip
from headway.nki.isa.constants import engine as _engine
from headway.nki.isa.constants import reduce_cmd as _reduce_cmd
from headway.nki.isa.instruction import NkiInstruction

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
_OPEN = _engine.unknown
_IDLE = _reduce_cmd.idle
_RESET_REDUCE = _reduce_cmd.reset_reduce


def tensor_copy(dst, src, engine=_OPEN, name=None, dtype=None):
    """dst = src: bit for bit where the dtypes are the same, otherwise converted through float32.
    ``dtype`` is NKI 0.2's and changes nothing: dst has its own.

    Shapes: as many partitions, and as many elements a partition; free extents may differ.
    Buffers: SBUF or PSUM on either side; on GpSimd SBUF only.
    Dtypes: any; packed ones and float8_e8m0fnu only to themselves.
    Limits: either side may have a scalar dynamic offset.
    Engines: Vector, Scalar (from NeuronCore-v3 on) or GpSimd; ``engine`` asks for one.
    Cost: Vector max(64, N / r) cycles, Scalar max(64, N), GpSimd 150 + N / 4 for each byte of an element;
        with a dynamic offset at least 600. r is 4 for 16-bit elements that are neighbours in SBUF, 2 for
        other neighbours in SBUF, other 16-bit elements in SBUF and 16-bit neighbours with one side in PSUM,
        else 1.
    Rules: buffer, free-size, dtype, partitions, shape, generation, gpsimd-psum, engine.
    """
    return NkiInstruction(_record(_TENSOR_COPY, None if engine is _OPEN else engine, name, dst, src))


def tensor_copy_predicated(dst, src, predicate, reverse_pred=False, name=None):
    """dst = src where predicate isn't 0; elsewhere dst keeps what it has. ``reverse_pred``: where predicate
    is 0.

    Shapes: dst, predicate and src have as many partitions and elements a partition; src may be a number.
    Buffers: SBUF or PSUM; src and predicate not both in PSUM.
    Dtypes: predicate uint8, uint16 or uint32; a tensor src has dst's.
    Limits: none of its own.
    Engines: Vector.
    Cost: max(64, N) cycles with src or predicate in PSUM or a number as src, otherwise max(64, 2N).
    Rules: buffer, free-size, dtype, partitions, shape, both-psum.
    """
    return NkiInstruction(_record(_TENSOR_COPY_PREDICATED, None, name, dst, src, predicate, reverse_pred))


def tensor_tensor(dst, data1, data2, op, engine=_OPEN, name=None):
    """dst = data1 op data2, element by element.

    Arithmetic, comparisons and logic are float32's; comparisons and logic give 1 or 0. Where all three
    operands are int32 or uint32 in SBUF and Vector isn't asked for, GpSimd computes exactly, modulo 2^32.
    Operators on bits take integers as they are.

    Shapes: dst, data1 and data2 have as many partitions and elements a partition.
    Buffers: SBUF or PSUM; data1 and data2 not both in PSUM; on GpSimd SBUF only.
    Dtypes: all but packed ones and float8_e8m0fnu; operators on bits: integers of one width.
    Limits: nl.power runs on GpSimd; nl.abs_max and nl.abs_min exist from NeuronCore-v4 on.
    Engines: Vector or GpSimd; ``engine`` asks for one.
    Cost: Vector max(64, N) cycles with an input in PSUM or where all elements have 16 bits, otherwise max(64,
        2N); GpSimd 150 cycles and N / 4 for each byte of both inputs' elements, 150 + 4N for nl.power.
    Rules: buffer, free-size, dtype, partitions, shape, both-psum, op, bit-width, gpsimd-psum, generation,
        engine.
    """
    return NkiInstruction(_record(_TENSOR_TENSOR, engine, name, dst, data1, data2, op))


def tensor_scalar(
    dst,
    data,
    op0,
    operand0=None,
    reverse0=False,
    op1=None,
    operand1=None,
    reverse1=False,
    engine=_OPEN,
    name=None,
):
    """dst = (data op0 operand0) op1 operand1, in float32; ``reverse0`` and ``reverse1`` put the operand
    first.

    An operand is a number or has one value a partition. Unary operators (nl.abs, rsqrt, reciprocal ...) take
    operand0 None or 0. With int32 or uint32 data and operand tensors, add, subtract and multiply are address
    arithmetic: exact, on GpSimd.

    Shapes: dst and data have as many partitions P and elements a partition; operand tensors are [P, 1].
    Buffers: SBUF or PSUM; on GpSimd SBUF only.
    Dtypes: all but packed ones and float8_e8m0fnu; operand tensors float32 (addresses apart); operators on
        bits: integers of one width.
    Limits: both operators work on bits or both are arithmetic. nl.square and nl.relu exist here from
        NeuronCore-v4 on.
    Engines: Vector; Scalar for multiply and add in this order, or one of them (from NeuronCore-v3 on); GpSimd
        for rsqrt, power and addresses. ``engine`` asks for one.
    Cost: Vector max(64, N / r) cycles with r as for tensor_copy, Scalar max(64, N), GpSimd 150 + 4N for rsqrt
        and power; operand tensors take a little more.
    Rules: buffer, free-size, dtype, partitions, shape, scalar-dtype, op, op-mix, operand, unary-operand,
        bit-width, bit-immediate, gpsimd-psum, generation, engine.
    """
    return NkiInstruction(
        _record(
            _TENSOR_SCALAR,
            engine,
            name,
            dst,
            data,
            op0,
            0.0 if operand0 is None else operand0,
            reverse0,
            op1,
            0.0 if operand1 is None and op1 is not None else operand1,
            reverse1,
        )
    )


def scalar_tensor_tensor(dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, name=None):
    """dst = (data op0 operand0) op1 operand1, in float32, where operand1 is as large as data.

    ``reverse0`` puts operand0 before data, ``reverse1`` operand1 before what comes of that.

    Shapes: dst, data and operand1 have as many partitions P and elements a partition; operand0 is a number or
        [P, 1].
    Buffers: SBUF or PSUM; data and operand1 not both in PSUM.
    Dtypes: all but packed ones and float8_e8m0fnu.
    Limits: binary operators of arithmetic, without nl.power.
    Engines: Vector.
    Cost: 2N cycles; N for bfloat16 inputs with nl.subtract, then nl.multiply, and an even N; at least 64.
    Rules: buffer, free-size, dtype, partitions, shape, both-psum, op, generation.
    """
    return NkiInstruction(
        _record(
            _SCALAR_TENSOR_TENSOR, None, name, dst, data, op0, operand0, op1, operand1, reverse0, reverse1
        )
    )


def tensor_scalar_reduce(
    dst,
    data,
    op0,
    operand0,
    reduce_op,
    reduce_res=None,
    reverse0=False,
    reduce_cmd=_RESET_REDUCE,
    reduce_init=None,
    reduce_res_negate=False,
    name=None,
):
    """dst = data op0 operand0, and its rows reduced into the Vector engine's accumulators; reduce_res gets
    them.

    ``reduce_cmd``: reset_reduce starts anew (0 for add, 1 for multiply, -infinity for maximum, infinity for
    minimum), reduce goes on, load_reduce starts from ``reduce_init``. ``reduce_res_negate`` hands out the
    negative. Rows are reduced before they are converted to dst.

    Shapes: dst and data have as many partitions P and elements a partition; operand0 and reduce_init are
        numbers or [P, 1]; reduce_res [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: all but packed ones and float8_e8m0fnu; operand0 and reduce_init tensors float32.
    Limits: reduce_op is add, multiply, maximum or minimum; reduce_init goes with load_reduce and only with
        it; reverse0 doesn't exist in hardware.
    Engines: Vector.
    Cost: max(64, N) + 64 cycles.
    Rules: buffer, free-size, dtype, partitions, shape, scalar-dtype, op, unary-operand, reverse0, reduce-cmd,
        reduce-init, generation.
    """
    return NkiInstruction(
        _record(
            _TENSOR_SCALAR_REDUCE,
            None,
            name,
            dst,
            data,
            op0,
            0.0 if operand0 is None else operand0,
            reduce_op,
            reduce_res,
            reverse0,
            reduce_cmd,
            reduce_init,
            reduce_res_negate,
        )
    )


def tensor_scalar_cumulative(dst, src, op0, op1, imm0, imm1=None, reduce_cmd=_RESET_REDUCE, name=None):
    """Along each row acc = op1(src[i] op0 imm0, acc) and dst[i] = acc; acc is the Vector engine's
    accumulator, float32.

    ``reduce_cmd``: reset_reduce starts from op1's neutral element, reduce from what the accumulator holds,
    load_reduce from imm1.

    Shapes: dst and src have as many partitions P and elements a partition; imm0 and imm1 are numbers or [P,
        1].
    Buffers: SBUF or PSUM.
    Dtypes: floats up to 32 bits and integers up to 16; imm0 and imm1 tensors float32.
    Limits: op0 is a binary operator of arithmetic, op1 add, subtract, multiply, maximum or minimum; imm1 goes
        with load_reduce and only with it.
    Engines: Vector.
    Cost: not published; taken as max(64, N) cycles.
    Rules: buffer, free-size, dtype, partitions, shape, scalar-dtype, op, reduce-cmd, reduce-init, generation.
    """
    return NkiInstruction(
        _record(_TENSOR_SCALAR_CUMULATIVE, None, name, dst, src, op0, op1, imm0, imm1, reduce_cmd)
    )


def tensor_reduce(dst, op, data, axis, negate=False, keepdims=False, name=None):
    """dst = data reduced over ``axis``, an int or a tuple: the last extents of data, by their numbers in its
    shape.

    ``negate`` multiplies the result by -1. ``keepdims`` leaves extents of 1 in dst's shape, which makes no
    difference to what is computed. nl.subtract gives the first element minus the sum of the others.

    Shapes: dst has data's partitions and as many elements in each as the other extents make.
    Buffers: SBUF or PSUM.
    Dtypes: all but packed ones and float8_e8m0fnu; operators on bits: integers of one width.
    Limits: op is add, subtract, multiply, maximum, minimum, logical_and, logical_or, logical_xor,
        bitwise_and, bitwise_or or bitwise_xor; axis is never 0; operators on bits can't be negated.
    Engines: Vector.
    Cost: N cycles, N / 2 for bfloat16 add and maximum to bfloat16, at least 64; N counts data.
    Rules: buffer, free-size, dtype, partitions, shape, op, axis, negate, bit-width.
    """
    return NkiInstruction(_record(_TENSOR_REDUCE, None, name, dst, op, data, axis, negate, keepdims))


def tensor_tensor_scan(dst, data0, data1, initial, op0, op1, reverse0=False, reverse1=False, name=None):
    """Along each row dst[i] = (data0[i] op0 dst[i-1]) op1 data1[i], where dst[-1] is ``initial``; what goes
    on is float32.

    ``reverse0`` and ``reverse1`` exchange the sides of op0 and op1.

    Shapes: dst, data0 and data1 have as many partitions P and elements a partition; initial is a number or
        [P, 1].
    Buffers: SBUF or PSUM; data0 and data1 not both in PSUM.
    Dtypes: all but packed ones and float8_e8m0fnu.
    Limits: binary operators of arithmetic, without nl.power.
    Engines: Vector.
    Cost: max(64, 2N) cycles.
    Rules: buffer, free-size, dtype, partitions, shape, both-psum, op, generation.
    """
    return NkiInstruction(
        _record(_TENSOR_TENSOR_SCAN, None, name, dst, data0, data1, initial, op0, op1, reverse0, reverse1)
    )


def reciprocal(dst, data, name=None):
    """dst = 1 / data, in float32.

    Shapes: dst and data have as many partitions and elements a partition.
    Buffers: SBUF or PSUM.
    Dtypes: all but packed ones and float8_e8m0fnu.
    Limits: none of its own.
    Engines: Vector; activation has nl.reciprocal on Scalar.
    Cost: 8N cycles by the reference of SDK 2.26, 5.5N as measured on Trainium2; at least 64.
    Rules: buffer, free-size, dtype, partitions, shape.
    """
    return NkiInstruction(_record(_RECIPROCAL, None, name, dst, data))


def exponential(dst, src, max_value=0.0, reduce_res=None, reduce_cmd=_IDLE, reduce_init=0.0, name=None):
    """dst = exp(src - max_value), and the sum of rows. NeuronCore-v4 (trn3) has it; it isn't modelled.

    ``reduce_cmd`` and ``reduce_init`` are those of tensor_scalar_reduce.

    Shapes: dst and src have as many partitions P and elements a partition; max_value is a number or [P, 1];
        reduce_res [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: all but packed ones and float8_e8m0fnu.
    Limits: refused on trn1 and trn2, unsupported on trn3.
    Engines: Vector.
    Cost: not modelled.
    Rules: generation, not-modelled.
    """
    return NkiInstruction(
        _record(_EXPONENTIAL, None, name, (dst,) if reduce_res is None else (dst, reduce_res), (src,))
    )


def memset(dst, value, engine=_OPEN, name=None):
    """dst = value everywhere.

    Shapes: any dst.
    Buffers: SBUF; PSUM on Vector only.
    Dtypes: any.
    Limits: an integer dtype takes a whole number that it can hold, packed dtypes and float8_e8m0fnu take 0.
    Engines: Vector or GpSimd; ``engine`` asks for one.
    Cost: Vector max(64, N / r) cycles with r as for tensor_copy, and 2 or more for zeros of 16 bits; GpSimd
        150 + N / 4 for each byte of an element.
    Rules: buffer, free-size, memset-value, gpsimd-psum, engine.
    """
    if type(value) is float and value.is_integer() and _is_integer(dst):
        value = int(value)  # 0.0 for integers, as kernels before NKI 0.3 wrote it
    return NkiInstruction(_record(_MEMSET, engine, name, dst, value))


def _is_integer(dst) -> bool:
    # What isn't a tensor is refused when it is recorded, with a message that says so.
    return isinstance(dst, _chip.Tensor) and dst.stored_dtype.dtype.kind in "iu"


def tensor_copy_dynamic_src(*_, **__):
    """Removed in NKI 0.4; raises a KernelError that says what takes its place."""
    _removed("tensor_copy_dynamic_src", "tensor_copy(dst, src.ap(pattern, scalar_offset=...))")


def tensor_copy_dynamic_dst(*_, **__):
    """Removed in NKI 0.4; raises a KernelError that says what takes its place."""
    _removed("tensor_copy_dynamic_dst", "tensor_copy(dst.ap(pattern, scalar_offset=...), src)")


def _removed(name: str, instead: str):
    from headway.nki.errors import KernelError

    raise KernelError(f"{name}: NKI 0.4 removed it; use {instead} [removed]")
