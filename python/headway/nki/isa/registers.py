"""Registers of the engines' sequencers: 32 bits each, for loop bounds and dynamic offsets."""

from __future__ import annotations

from headway import _chip
from headway.nki.errors import KernelError

_record = _chip.record
_REGISTER_MOVE = _chip.kind("register_move")
_REGISTER_LOAD = _chip.kind("register_load")
_REGISTER_STORE = _chip.kind("register_store")


def register_alloc(x=None):
    """A new register; with ``x`` (an int, a register, or a tensor of one element) it gets that value.

    Shapes: one number.
    Buffers: -
    Dtypes: 32 bits.
    Limits: 64 registers an engine.
    Engines: every sequencer.
    Cost: none; the value a register_move or register_load.
    """
    trace = _chip.current()
    if trace is None:
        raise KernelError("nisa.register_alloc outside a kernel [outside]")
    register = trace.register()
    if x is None:
        return register
    if isinstance(x, _chip.Tensor):
        _record(_REGISTER_LOAD, None, None, register, x)
    else:
        _record(_REGISTER_MOVE, None, None, register, x)
    return register


def register_move(dst, src=None, imm=None, name=None):
    """dst = src, an int or a register.

    Shapes: one number.
    Buffers: -
    Dtypes: 32 bits.
    Limits: the variable of a loop can't be written [frozen-register].
    Engines: every sequencer.
    Cost: an instruction of the sequencer.
    """
    return _record(_REGISTER_MOVE, None, name, dst, imm if src is None else src)  # `imm` until NKI 0.2


def register_load(dst, src, name=None):
    """dst = the one element of src.

    Shapes: [1] or [1, 1].
    Buffers: HBM or SBUF.
    Dtypes: integers by value; float32 by its bits.
    Limits: one element.
    Engines: every sequencer.
    Cost: a read of memory.
    """
    return _record(_REGISTER_LOAD, None, name, dst, src)


def register_store(dst, src, name=None):
    """The one element of dst = the register's low bits.

    Shapes: [1] or [1, 1].
    Buffers: HBM or SBUF.
    Dtypes: integers, float32 by its bits.
    Limits: one element.
    Engines: every sequencer.
    Cost: a write to memory.
    """
    return _record(_REGISTER_STORE, None, name, dst, src)
