"""Instructions of the Scalar engine: functions by table."""

from __future__ import annotations

from headway import _chip
from headway.nki.isa.constants import reduce_cmd as _reduce_cmd

_record = _chip.record
_ACTIVATION = _chip.kind("activation")
_ACTIVATION_REDUCE = _chip.kind("activation_reduce")
_ACTIVATE2 = _chip.kind("activate2")
_IDLE = _reduce_cmd.idle
_NO_BIAS = -0.0  # x + -0 is x for every x


def activation(dst, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=_IDLE, name=None):
    """dst = op(data * scale + bias), in float32.

    Shapes: dst and data have as many partitions and elements a partition; bias and scale are numbers or [P, 1]; reduce_res [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: any that can be computed with; a scale tensor is float32, a bias tensor anything but tfloat32.
    Limits: op is one of the activation functions (nl.exp, nl.gelu ...); outside a function's valid range the result is undefined, which
        a warning says [activation-range]. reduce_op is nl.add.
    Accumulators: reduce_cmd reset, reduce or reset_reduce adds rows of the result to the engine's; reduce_res gets them.
    Engines: Scalar.
    Cost: max(64, N) cycles, 64 more with reduce_res; a first use of a function's table loads it.
    """
    return _record(_ACTIVATION, None, name, dst, op, data, _NO_BIAS if bias is None else bias, scale, reduce_op, reduce_res, reduce_cmd)


def activation_reduce(dst, op, data, reduce_op, reduce_res, bias=None, scale=1.0, name=None):
    """``activation`` whose rows are summed into reduce_res [P, 1]: accumulators are reset before and read after.

    Shapes: as activation.
    Buffers: SBUF or PSUM.
    Dtypes: as activation.
    Limits: reduce_op is nl.add.
    Engines: Scalar.
    Cost: max(64, N) + 64 cycles.
    """
    return _record(_ACTIVATION_REDUCE, None, name, dst, op, data, reduce_op, reduce_res, _NO_BIAS if bias is None else bias, scale)


def activate2(dst, op, data, imm0=0.0, imm1=0.0, op0=None, op1=None, relu_param=0.0, reverse0=False, reverse1=False, reduce_op=None,
              reduce_res=None, reduce_cmd=_IDLE, name=None):
    """op((data op0 imm0) op1 imm1); from NeuronCore-v4 (trn3) on, and not modelled.

    Shapes: as activation.
    Buffers: SBUF or PSUM.
    Dtypes: as activation.
    Limits: refused on trn1 and trn2 [generation].
    Engines: Scalar.
    Cost: none known.
    """
    return _record(_ACTIVATE2, None, name, (dst,) if reduce_res is None else (dst, reduce_res), (data,))
