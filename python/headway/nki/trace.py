"""What is being recorded in this thread: the session of a kernel's call and core."""

from __future__ import annotations

import threading
from collections.abc import Callable

from headway import _chip
from headway.nki import dtypes
from headway.nki.buffers import Buffer, buffer_of
from headway.nki.errors import KernelError, Unsupported

_local = threading.local()


class Session:
    """One core's recording of one call.

    ``trace``: the C++ recording. ``spec``: the chip. ``precise``: floats are stored in their own width (else all as float32).
    ``simulating``: called through ``nki.simulate``.
    """

    def __init__(self, trace, spec, *, precise: bool, simulating: bool, data: bool, value: Callable | None = None):
        self.trace = trace
        self.spec = spec
        self.precise = precise
        self.simulating = simulating
        self.data = data
        self.program_id = trace.program_id
        self.num_programs = trace.num_programs
        self.finishers: list[Callable] = []
        self.open_loops: list[tuple[str, int]] = []  # register loops that are being recorded: where they begin
        self.memo: dict = {}  # what language functions keep for the length of the call
        self._names: dict[str, int] = {}
        self._value = value

    def unique_name(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if count == 0 else self.unique_name(f"{name}_{count}")

    def declare(self, shape, dtype, buffer, name: str = "", address=None, role: str = "internal"):
        """A new tensor, not initialised. ``address``: (first partition, byte of a partition)."""
        if type(buffer) is not Buffer:
            buffer = buffer_of(buffer)
        if type(dtype) is not dtypes.DType:
            dtype = dtypes.dtype_of(dtype)
        reported = dtype
        if not self.precise and dtype.name in _NARROW:
            dtype = dtypes.float32
            address = None  # places are counted in the narrow elements
        if isinstance(shape, int):
            shape = (shape,)
        name = self.unique_name(name) if name else ""
        if address is not None and self.simulating:
            limit = self.spec.sbuf_usable_bytes if buffer.name == "sbuf" else self.spec.psum_bytes
            row = dtype.itemsize
            for extent in shape[1:]:
                row *= extent
            if address[1] + row > limit:
                address = None  # the simulator has no capacity
        return self.trace.declare(name, dtype, shape, buffer, role, None if address is None else tuple(address), reported)

    def value(self, what) -> int:
        """The value of a register or of a tensor of one element, after executing what was recorded so far."""
        if self._value is None:
            raise Unsupported("a value is asked for where a kernel is recorded without data")
        return self._value(self, what)

    def on_finish(self, work: Callable) -> None:
        """``work(launch)`` is called after the execution, before results are returned."""
        self.finishers.append(work)

    def caller(self) -> tuple[str, int]:
        """File and line of the kernel that is calling."""
        return self.trace.caller()


_NARROW = {"bfloat16", "float16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "tfloat32"}


def active() -> Session | None:
    """The session of this thread, or None outside a kernel."""
    stack = getattr(_local, "stack", None)
    return stack[-1] if stack else None


def session() -> Session:
    """The session of this thread. KernelError outside a kernel."""
    found = active()
    if found is None:
        raise KernelError("this can only be called inside a kernel: a function decorated with nki.jit, called or passed to nki.simulate [outside]")
    return found


class recording:
    """with recording(session): instructions of this thread go to the session's trace."""

    def __init__(self, of: Session):
        self.of = of

    def __enter__(self):
        if not hasattr(_local, "stack"):
            _local.stack = []
        _local.stack.append(self.of)
        _chip.enter(self.of.trace)
        return self.of

    def __exit__(self, *_):
        _local.stack.pop()
        _chip.leave()
        return False
