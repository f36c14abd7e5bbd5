"""Random numbers: a generator a lane, on the Vector engine (a shift register) and on GpSimd (xorwow)."""

from __future__ import annotations

from headway import _chip
from headway.nki.isa.constants import engine as _engine
from headway.nki.isa.instruction import NkiInstruction

_record = _chip.record
_kind = _chip.kind
_DROPOUT = _kind("dropout")
_RNG = _kind("rng")
_SET_RNG_SEED = _kind("set_rng_seed")
_RAND_SET_STATE = _kind("rand_set_state")
_RAND_GET_STATE = _kind("rand_get_state")
_RAND2 = _kind("rand2")
_VECTOR = _engine.vector
_GPSIMD = _engine.gpsimd


def dropout(dst, data, prob, name=None):
    """dst = data with each element set to 0 with probability ``prob``; what stays keeps its bits.

    The numbers come from the Vector engine's generators, one an element.

    Shapes: dst and data have as many partitions P and elements a partition; prob is a number or [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: dst has data's, any but packed ones and float8_e8m0fnu; a prob tensor is floating point, float32
        with integer data.
    Limits: 0 <= prob <= 1.
    Engines: Vector.
    Cost: max(64, N) cycles.
    Rules: buffer, dtype, partitions, shape, probability.
    """
    return NkiInstruction(_record(_DROPOUT, None, name, dst, data, prob))


def rng(dst, engine=_VECTOR, name=None):
    """dst = random bits: the low ones of a 32-bit number for each element.

    Shapes: any dst.
    Buffers: SBUF or PSUM; on GpSimd SBUF.
    Dtypes: int8, int16, int32, uint8, uint16 or uint32.
    Limits: GpSimd from NeuronCore-v3 on. Which numbers come differs from the hardware's on Vector.
    Engines: Vector or GpSimd, each with generators of its own.
    Cost: not published; taken as max(64, N) cycles.
    Rules: buffer, dtype, engine.
    """
    return NkiInstruction(_record(_RNG, engine, name, dst))


def set_rng_seed(src_seeds, name=None):
    """Seeds the Vector engine's random numbers, each lane differently.

    Shapes: src_seeds [1, 1].
    Buffers: SBUF or PSUM.
    Dtypes: int32, uint32 or float32; the 32 bits count.
    Limits: none of its own.
    Engines: Vector.
    Cost: not published; taken as 64 cycles.
    Rules: buffer, dtype, shape.
    """
    return NkiInstruction(_record(_SET_RNG_SEED, None, name, src_seeds))


def rand_set_state(src_seeds, engine=_GPSIMD, name=None):
    """Sets the state of the random numbers: for each lane the five words of xorwow and its counter.

    Shapes: src_seeds [P, 6].
    Buffers: SBUF.
    Dtypes: uint32.
    Limits: from NeuronCore-v3 on; the Vector engine's generators ([P, 24], NeuronCore-v4) aren't modelled.
        Five words of 0 warn.
    Engines: GpSimd.
    Cost: not published; taken as 150 cycles and 1 for each word.
    Rules: buffer, dtype, shape, engine, generation, vector-state, zero-state.
    """
    return NkiInstruction(_record(_RAND_SET_STATE, engine, name, src_seeds))


def rand_get_state(dst, engine=_GPSIMD, name=None):
    """dst = the state of the random numbers: for each lane the five words of xorwow and its counter.

    Shapes: dst [P, 6].
    Buffers: SBUF.
    Dtypes: uint32.
    Limits: from NeuronCore-v3 on; the Vector engine's generators ([P, 24], NeuronCore-v4) aren't modelled.
    Engines: GpSimd.
    Cost: not published; taken as 150 cycles and 1 for each word.
    Rules: buffer, dtype, shape, engine, generation, vector-state.
    """
    return NkiInstruction(_record(_RAND_GET_STATE, engine, name, dst))


def rand2(dst, min=0.0, max=1.0, name=None):
    """dst = uniform random numbers from ``min`` to ``max``. NeuronCore-v4 (trn3) has it; it isn't modelled.

    Shapes: any dst; min and max are numbers or [P, 1].
    Buffers: SBUF or PSUM.
    Dtypes: all but packed ones and float8_e8m0fnu.
    Limits: refused on trn1 and trn2, unsupported on trn3.
    Engines: Vector.
    Cost: not modelled.
    Rules: generation, not-modelled.
    """
    return NkiInstruction(_record(_RAND2, None, name, (dst,), ()))
