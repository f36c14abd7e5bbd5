"""Loops: Python's, which unroll, and the hardware's, whose body is recorded once."""

from __future__ import annotations

from headway import _chip
from headway.nki.errors import InputError, KernelError
from headway.nki.trace import session

_record = _chip.record
_FORI_BEGIN = _chip.kind("fori_begin")
_FORI_END = _chip.kind("fori_end")
_WHILE_BEGIN = _chip.kind("while_begin")
_WHILE_END = _chip.kind("while_end")
Register = _chip.Register


def affine_range(*bounds, **ignored):
    """range(*bounds): unrolled. Says that rounds don't depend on each other."""
    return range(*(int(b) for b in bounds))


def sequential_range(*bounds, **ignored):
    """range(*bounds): unrolled."""
    return range(*(int(b) for b in bounds))


def static_range(*bounds, **ignored):
    """range(*bounds): unrolled."""
    return range(*(int(b) for b in bounds))


def _check_step(step) -> int:
    if isinstance(step, Register) or int(step) < 1:
        raise InputError(f"a register loop's step is a positive number that is known when the kernel is recorded, not {step!r}")
    return int(step)


def dynamic_range(start, stop=None, step=1):
    """A loop of the hardware: ``for i in nl.dynamic_range(0, n, 4)``; bounds are numbers or registers, ``i`` is a register that can't
    be written. The body is recorded once."""
    if stop is None:
        start, stop = 0, start
    i = session().trace.register(frozen=True)
    _record(_FORI_BEGIN, None, None, i, start, stop, _check_step(step))
    yield i
    _record(_FORI_END, None, None)


def fori_loop(lower, upper, body_fun, step=1) -> None:
    """body_fun(i) for i from lower up to upper: a loop of the hardware. ``i`` is a register that can't be written; what the body
    keeps lies in SBUF or HBM."""
    i = session().trace.register(frozen=True)
    _record(_FORI_BEGIN, None, None, i, lower, upper, _check_step(step))
    result = body_fun(i)
    if result is not None:
        raise KernelError(f"the body of a fori_loop returns None, not {type(result).__name__}: its state lies in tensors [loop-body]")
    _record(_FORI_END, None, None)


def while_loop(init_reg, body_fun):
    """body_fun(r) -> register, again and again while the register isn't 0: a loop of the hardware. Returns the register."""
    if not isinstance(init_reg, Register):
        raise KernelError(f"while_loop starts from a register, not {type(init_reg).__name__} [loop-body]")
    _record(_WHILE_BEGIN, None, None, init_reg)
    result = body_fun(init_reg)
    if not isinstance(result, Register):
        raise KernelError(f"the body of a while_loop returns a register, not {type(result).__name__} [loop-body]")
    _record(_WHILE_END, None, None, result)
    return init_reg


class _NoReorder:
    """with nl.no_reorder(): each instruction recorded inside waits for the one before it."""

    def __init__(self):
        self._from: list[tuple] = []

    def __call__(self):
        return _NoReorder()

    def __enter__(self):
        s = session()
        self._from.append((s, s.trace.instructions))
        return self

    def __exit__(self, kind, value, traceback):
        s, first = self._from.pop()
        if kind is None:
            for instruction in range(first + 1, s.trace.instructions):
                s.trace.edge(instruction - 1, instruction)
        return False


no_reorder = _NoReorder()
