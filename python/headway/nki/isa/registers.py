"""Registers of the engines' sequencers: 32 bits each, for loop bounds and places known only on the chip."""

from __future__ import annotations

from headway import _chip
from headway.nki.errors import KernelError
from headway.nki.isa.instruction import NkiInstruction

_record = _chip.record
_REGISTER_MOVE = _chip.kind("register_move")
_REGISTER_LOAD = _chip.kind("register_load")
_REGISTER_STORE = _chip.kind("register_store")


def register_alloc(x=None):
    """A new register. ``x``, an int, a register or a tensor of one element, is its first value.

    Shapes: a tensor x has one element.
    Buffers: a tensor x in SBUF or HBM.
    Dtypes: a tensor x int8 to int32, uint8 to uint32, bool, float32 or tfloat32 (floats by their bits).
    Limits: the hardware has 64 registers an engine, which isn't checked; no arithmetic, no use as a Python
        number.
    Engines: every sequencer.
    Cost: none; a first value costs a register_move or register_load.
    Rules: outside, buffer, dtype, shape.
    """
    trace = _chip.current()
    if trace is None:
        raise KernelError(
            "register_alloc can only be called inside a kernel: a function decorated with nki.jit [outside]"
        )
    register = trace.register()
    if x is None:
        return register
    if isinstance(x, _chip.Tensor):
        _record(_REGISTER_LOAD, None, None, register, x)
    else:
        _record(_REGISTER_MOVE, None, None, register, x)
    return register


def register_move(dst, src=None, name=None, imm=None):
    """dst = src, an int or a register. ``imm`` is NKI 0.2's name for it.

    Shapes: one number.
    Buffers: none, registers only.
    Dtypes: 32 bits.
    Limits: the variable of a loop can't be written.
    Engines: every sequencer.
    Cost: an instruction of the sequencer.
    Rules: register, frozen-register.
    """
    return NkiInstruction(_record(_REGISTER_MOVE, None, name, dst, imm if src is None else src))


def register_load(dst, src, name=None):
    """dst = the one element of src. Small integers are extended by their sign, or with zeros; floats come as
    their bits.

    Shapes: src has one element.
    Buffers: src in SBUF (partition 0, 32, 64 or 96) or HBM.
    Dtypes: int8 to int32, uint8 to uint32, bool, float32 or tfloat32.
    Limits: the variable of a loop can't be written.
    Engines: every sequencer.
    Cost: a read of memory by the sequencer, ten times a register_move.
    Rules: buffer, dtype, shape, register, frozen-register.
    """
    return NkiInstruction(_record(_REGISTER_LOAD, None, name, dst, src))


def register_store(dst, src, name=None):
    """The one element of dst = the low bits of register src.

    Shapes: dst has one element.
    Buffers: dst in SBUF (partition 0, 32, 64 or 96) or HBM.
    Dtypes: int8 to int32, uint8 to uint32, bool, float32 or tfloat32.
    Limits: none of its own.
    Engines: every sequencer.
    Cost: a write to memory by the sequencer.
    Rules: buffer, dtype, shape, register.
    """
    return NkiInstruction(_record(_REGISTER_STORE, None, name, dst, src))
