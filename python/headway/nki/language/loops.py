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


def _range(start, stop, step) -> range:
    for bound in (start, stop, step):
        if isinstance(bound, Register):
            raise TypeError(
                "a loop that unrolls has bounds that are known when the kernel is recorded; with a "
                "register it is "
                "nl.fori_loop or nl.dynamic_range [register-control-flow]"
            )
    return range(int(start)) if stop is None else range(int(start), int(stop), int(step))


def affine_range(start, stop=None, step=1):
    """range(start, stop, step), or range(start): unrolled. Says that rounds don't depend on each other, of
    which nothing is made.
    """
    return _range(start, stop, step)


def sequential_range(start, stop=None, step=1):
    """range(start, stop, step), or range(start): unrolled. Says that rounds depend on each other, of which
    nothing is made.
    """
    return _range(start, stop, step)


def static_range(start, stop=None, step=1):
    """range(start, stop, step), or range(start): unrolled."""
    return _range(start, stop, step)


class _Body:
    """with _Body(): a register loop's body is being recorded. Left by break, return or an exception, the loop
    stays open in ``Session.open_loops``, and the call is refused.
    """

    def __enter__(self):
        self._session = session()
        if self._session.memo.get("no_reorder"):
            raise KernelError(
                "a register loop inside nl.no_reorder: its rounds can't be put in order one by one "
                "[no-reorder]"
            )
        self._session.open_loops.append(self._session.caller())

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self._session.open_loops.pop()
        return False


def _check_step(step) -> int:
    if isinstance(step, Register) or int(step) < 1:
        raise InputError(
            "a register loop's step is a positive number that is known when the kernel is recorded, "
            f"not {step!r}"
        )
    return int(step)


def dynamic_range(start, stop=None, step=1):
    """A loop of the hardware: ``for i in nl.dynamic_range(0, n, 4)``; bounds are numbers or registers, ``i``
    is a register that can't be written. The body is recorded once, so it can't be left by ``break``.
    """
    if stop is None:
        start, stop = 0, start
    with _Body():
        i = session().trace.register(frozen=True)
        _record(_FORI_BEGIN, None, None, i, start, stop, _check_step(step))
        yield i
        _record(_FORI_END, None, None)


def fori_loop(lower, upper, body_fun, step=1) -> None:
    """body_fun(i) for i from lower up to upper: a loop of the hardware, whose body is recorded once.

    ``lower`` and ``upper`` are numbers or registers, ``step`` a number above 0. ``i`` is a register that
    can't be written; body_fun returns None: what it keeps lies in tensors.
    """
    with _Body():
        i = session().trace.register(frozen=True)
        _record(_FORI_BEGIN, None, None, i, lower, upper, _check_step(step))
        result = body_fun(i)
        if result is not None:
            raise KernelError(
                f"the body of a fori_loop returns None, not {type(result).__name__}: its state lies "
                "in tensors [loop-body]"
            )
        _record(_FORI_END, None, None)


def while_loop(init_reg, body_fun):
    """body_fun(r) -> register, again and again while the register isn't 0: a loop of the hardware, whose body
    is recorded once.

    The register that body_fun returns is the next round's. Returns the register, which is 0 after the loop.
    """
    if not isinstance(init_reg, Register):
        raise KernelError(f"while_loop starts from a register, not {type(init_reg).__name__} [loop-body]")
    with _Body():
        _record(_WHILE_BEGIN, None, None, init_reg)
        result = body_fun(init_reg)
        if not isinstance(result, Register):
            raise KernelError(
                f"the body of a while_loop returns a register, not {type(result).__name__} [loop-body]"
            )
        _record(_WHILE_END, None, None, result)
    return init_reg


class _NoReorder:
    """with nl.no_reorder(): each instruction recorded inside waits for the one before it. Nothing for
    register loops.
    """

    def __init__(self):
        self._from: list[tuple] = []

    def __call__(self):
        return _NoReorder()

    def __enter__(self):
        s = session()
        s.memo["no_reorder"] = s.memo.get("no_reorder", 0) + 1
        self._from.append((s, s.trace.instructions))
        return self

    def __exit__(self, kind, value, traceback):
        s, first = self._from.pop()
        s.memo["no_reorder"] -= 1
        if kind is None and not s.memo["no_reorder"]:  # an outer block has the edges of the inner one
            for instruction in range(first + 1, s.trace.instructions):
                s.trace.edge(instruction - 1, instruction)
        return False


no_reorder = _NoReorder()
