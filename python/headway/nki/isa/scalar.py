"""Instructions of the Scalar engine: functions by table, and the sum of their results."""

from __future__ import annotations

from headway import _chip
from headway.nki.isa.constants import reduce_cmd as _reduce_cmd
from headway.nki.isa.instruction import NkiInstruction

_record = _chip.record
_ACTIVATION = _chip.kind("activation")
_ACTIVATION_REDUCE = _chip.kind("activation_reduce")
_ACTIVATE2 = _chip.kind("activate2")
_IDLE = _reduce_cmd.idle
_NO_BIAS = -0.0  # x + -0 is x for every x


def activation(
    dst, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=_IDLE, name=None
):
    """dst = op(data * scale + bias), in float32.

    ``op`` is an activation function: nl.copy, square, sqrt, rsqrt, reciprocal, exp, log, sin, arctan,
    sigmoid, tanh, silu, silu_dx, gelu, gelu_dx, gelu_apprx_tanh, gelu_apprx_sigmoid, gelu_apprx_sigmoid_dx,
    mish, softplus, erf, erf_dx, relu, prelu, sign or abs. With ``reduce_cmd`` reset, reduce or reset_reduce
    and ``reduce_op=nl.add`` the engine's accumulators are set to 0, take in the sum of each row, or both;
    ``reduce_res`` gets them.

    Shapes: dst and data have as many partitions P and elements a partition; bias and scale are numbers or [P,
        1]; reduce_res [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: all but packed ones and float8_e8m0fnu; a scale tensor is float32, a bias tensor anything but
        tfloat32.
    Limits: reduce_op is nl.add; reduce_cmd isn't load_reduce. Outside a function's valid range (log 2^-64 to
        2^64, sqrt 2^-116 to 2^118, rsqrt 2^-87 to 2^97, reciprocal +-2^-42 to 2^42, sin -pi to pi, arctan
        -pi/2 to pi/2) the result is undefined, which a warning says. NeuronCore-v2 takes no number but 0 as
        bias.
    Engines: Scalar.
    Cost: max(64, N) cycles, 64 more with reduce_res; another function than before needs its table loaded
        first (copy, square, relu, prelu, sign and abs need none).
    Rules: buffer, dtype, partitions, shape, reduce-op, reduce-cmd, reduce-idle, activation-range,
        bias-vector, reciprocal-bias.
    """
    return NkiInstruction(
        _record(
            _ACTIVATION,
            None,
            name,
            dst,
            op,
            data,
            _NO_BIAS if bias is None else bias,
            scale,
            reduce_op,
            reduce_res,
            reduce_cmd,
        )
    )


def activation_reduce(dst, op, data, reduce_op, reduce_res, bias=None, scale=1.0, name=None):
    """dst = op(data * scale + bias), and reduce_res [P, 1] = the sum of each row of the result before it is
    converted to dst.

    It is ``activation`` with ``reduce_cmd=reset_reduce``.

    Shapes: dst and data have as many partitions P and elements a partition; bias and scale are numbers or [P,
        1]; reduce_res [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: all but packed ones and float8_e8m0fnu; a scale tensor is float32, a bias tensor anything but
        tfloat32.
    Limits: reduce_op is nl.add; valid ranges as for activation.
    Engines: Scalar.
    Cost: max(64, N) + 64 cycles; table loads as for activation.
    Rules: buffer, dtype, partitions, shape, reduce-op, activation-range, bias-vector, reciprocal-bias.
    """
    return NkiInstruction(
        _record(
            _ACTIVATION_REDUCE,
            None,
            name,
            dst,
            op,
            data,
            reduce_op,
            reduce_res,
            _NO_BIAS if bias is None else bias,
            scale,
        )
    )


def activate2(
    dst,
    op,
    data,
    imm0=0.0,
    imm1=0.0,
    op0=None,
    op1=None,
    relu_param=0.0,
    reverse0=False,
    reverse1=False,
    reduce_op=None,
    reduce_res=None,
    reduce_cmd=_IDLE,
    name=None,
):
    """dst = op((data op0 imm0) op1 imm1). NeuronCore-v4 (trn3) has it; it isn't modelled.

    ``reverse0`` and ``reverse1`` put the number first; ``relu_param`` is the slope of nl.prelu. ``reduce_op``
    and ``reduce_cmd`` are those of activation, with nl.maximum and nl.minimum too.

    Shapes: dst and data have as many partitions P and elements a partition; imm0 and imm1 numbers or [P, 1];
        reduce_res [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: all but packed ones and float8_e8m0fnu.
    Limits: refused on trn1 and trn2, unsupported on trn3.
    Engines: Scalar.
    Cost: not modelled.
    Rules: generation, not-modelled.
    """
    return NkiInstruction(
        _record(_ACTIVATE2, None, name, (dst,) if reduce_res is None else (dst, reduce_res), (data,))
    )
