"""Kernels: Python functions that record a program for each core of a launch, which the simulated chip executes."""

from __future__ import annotations

import contextlib
import contextvars
import copy
import dataclasses
import functools
import inspect
import os
import warnings
import weakref
from collections.abc import Callable, Iterable

import numpy as np

from headway import _chip
from headway.nki import arrays, buffers, dtypes, target, trace
from headway.nki.errors import Bug, InputError, KernelError, KernelWarning, Unsupported
from headway.nki.nki_object import NKIObject
from headway.nki.tensor import Register, Tensor

# Read before it was written: the elements are NaN or 4, and a warning says so.
_LENIENT = ["unwritten"]
# The vendor's simulator knows no sizes of memory and no races either.
_SIMULATOR = ["unwritten", "capacity", "race"]
_DEFAULT_MAX_INSTRUCTIONS = 20_000_000
# What `kernel check` takes for an error, however lenient the dialect is.
_ALWAYS_MEANT = ("unwritten", "race")
_strictness: contextvars.ContextVar[bool] = contextvars.ContextVar("strictness", default=False)


@contextlib.contextmanager
def strictly():
    """Calls inside: memory that is read before it was written, and races, are errors instead of warnings."""
    token = _strictness.set(True)
    try:
        yield
    finally:
        _strictness.reset(token)


def max_instructions() -> int:
    """``HEADWAY_MAX_INSTRUCTIONS``, or 20 million: what a call may record, and execute beyond that a thousand times as many."""
    asked = os.environ.get("HEADWAY_MAX_INSTRUCTIONS", "")
    if not asked:
        return _DEFAULT_MAX_INSTRUCTIONS
    if not asked.isdigit() or int(asked) == 0:
        raise InputError(f"HEADWAY_MAX_INSTRUCTIONS is '{asked}'; a whole number above 0 is wanted")
    return int(asked)


def threads() -> int:
    """``HEADWAY_THREADS``, or 0: as many as there are processors."""
    asked = os.environ.get("HEADWAY_THREADS", "0")
    if not asked.isdigit():
        raise InputError(f"HEADWAY_THREADS is '{asked}'; a whole number is wanted")
    return int(asked)


class Recording:
    """What a call recorded: a trace a core, the arguments, and what the function returned on each core."""

    def __init__(self, name: str, spec, lnc: int, *, simulating: bool, strict: bool = False, limit: int | None = None):
        self.name = name
        self.spec = spec
        self.lnc = lnc
        self.simulating = simulating
        self.tolerated = [] if strict else (_SIMULATOR if simulating else _LENIENT)
        if _strictness.get():
            self.tolerated = [rule for rule in self.tolerated if rule not in _ALWAYS_MEANT]
        self.limit = max_instructions() if limit is None else limit
        self.arguments: list[arrays.Argument] = []
        self.sessions: list[trace.Session] = []
        self.returned: list = []
        self._by_array: dict[int, int] = {}  # id of an array: its place in arguments
        self._launch = None

    # --- Recording ---

    def record(self, function: Callable, args: tuple, kwargs: dict, schedule: list | None = None) -> None:
        precise = os.environ.get("NKI_PRECISE_FP", "1") != "0"
        names = _parameter_names(function, len(args))
        # Weak: a cycle would keep the chip's memory of each call until the next collection of garbage, and the next call would
        # have to be given fresh pages.
        value = weakref.WeakMethod(self._value)
        for core in range(self.lnc):
            made = _chip.Trace(self.name, self.spec, core, self.lnc, self.limit, self.tolerated)
            session = trace.Session(made, self.spec, precise=precise, simulating=self.simulating, data=True,
                                    value=lambda asking, what: value()(asking, what))
            self.sessions.append(session)
            inputs: dict[int, Tensor] = {}
            with trace.recording(session):
                given = [self._argument(session, inputs, value, name) for value, name in zip(args, names)]
                named = {name: self._argument(session, inputs, value, name) for name, value in kwargs.items()}
                result = function(*given, **named)
            if session.open_loops:
                raise _left_loop(*session.open_loops[-1])
            self.returned.append(result)
            if schedule:
                _add_schedule(made, schedule)
        for session in self.sessions:
            self._warn(session.trace)
        self._mark_outputs()

    def _argument(self, session, inputs: dict, value, name: str):
        """``value`` with the arrays in it declared as inputs."""
        kind = type(value)
        if kind in (int, float, str, bool) or value is None:
            return value
        if arrays.is_array(value):
            return self._input(session, inputs, value, name)
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
            return value.item() if value.dtype.kind in "biuf" else value
        if kind in (list, tuple):
            items = [self._argument(session, inputs, item, f"{name}_{i}") for i, item in enumerate(value)]
            return kind(items)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return kind(*(self._argument(session, inputs, item, f"{name}_{field}") for field, item in zip(value._fields, value)))
        if kind is dict:
            return {key: self._argument(session, inputs, item, f"{name}_{key}") for key, item in value.items()}
        if _holds_arrays(value):
            changed = copy.copy(value)
            for field, item in vars(value).items():
                object.__setattr__(changed, field, self._argument(session, inputs, item, f"{name}_{field}"))
            return changed
        return value

    def _input(self, session, inputs: dict, value, name: str):
        place = self._by_array.get(id(value))
        if place is None:
            place = len(self.arguments)
            self.arguments.append(arrays.argument(value, name))
            self._by_array[id(value)] = place
        if place not in inputs:
            given = self.arguments[place]
            if place != len(inputs):
                raise Bug("inputs are declared in another order on the second core")
            # A view has five extents at most; the older dialect's tiles know more by themselves.
            shape = given.shape if len(given.shape) <= 5 else (given.size,)
            inputs[place] = session.declare(shape, given.dtype, buffers.shared_hbm, given.name, role="input")
        return self._wrapped(inputs[place], self.arguments[place])

    # A dialect's own objects for tensors: of an argument, and the tensors in a result.
    def _wrapped(self, tensor: Tensor, given: arrays.Argument):
        return tensor

    def _tensors(self, returned) -> Iterable[Tensor]:
        return tensors_of(returned)

    def _mark_outputs(self) -> None:
        for session, returned in zip(self.sessions, self.returned):
            for tensor in self._tensors(returned):
                if tensor.trace is not session.trace:
                    raise KernelError(f"kernel '{self.name}' returns a tensor of another call [foreign]")
                if not buffers.is_hbm(tensor.buffer):
                    raise KernelError(
                        f"kernel '{self.name}' returns {tensor!r}; results lie in HBM: copy them to a tensor in nl.shared_hbm [output-buffer]"
                    )
                if tensor.role == 0:
                    session.trace.set_role(tensor, "output")

    # --- Executing ---

    def _started(self):
        if self._launch is None:
            launch = _chip.Launch([session.trace for session in self.sessions], threads(), self.limit * 1000, self.tolerated)
            launch.bind([self._stored(given) for given in self.arguments])
            self._launch = launch
        return self._launch

    def _stored(self, given: arrays.Argument) -> np.ndarray:
        if given.host is None:
            raise Unsupported(f"argument '{given.name}' has no data; this kernel can be recorded and timed, not executed")
        return arrays.bytes_of(given.host.astype(np.float32) if self._widened(given) else given.host)

    def _run(self, keep: bool) -> None:
        launch = self._started()
        try:
            launch.run(keep)
        except (KernelError, Unsupported) as error:
            raise self._placed(error, launch) from None
        finally:
            self._warn(launch)

    def _placed(self, error: Exception, launch) -> Exception:
        """The error as if the kernel's own line had raised it."""
        text = str(error)
        for file, line in launch.positions():
            if file and text.startswith(f"{os.path.basename(file)}:{line}:"):
                return raised_at(error, file, line)
        return error

    def _warn(self, source) -> None:
        """Shows the warnings of a trace or a launch that weren't shown yet."""
        for severity, where, text in source.reports():
            if severity == 0 and (where, text) not in self._warned:
                self._warned.add((where, text))
                file, _, line = where.rpartition(":")
                warnings.warn_explicit(text, KernelWarning, file or "kernel", int(line) if line.isdigit() else 0)

    @functools.cached_property
    def _warned(self) -> set:
        return set()

    def _value(self, session, what):
        if self.lnc != 1:
            raise Unsupported("a value is read while one of two cores is recorded; only kernels of one core can do that")
        self._run(keep=True)
        launch = self._launch
        if isinstance(what, Register):
            return launch.register_value(0, what.id)
        found = self.read(0, what)
        if found.size != 1:
            raise KernelError(f"the value of {what!r} is asked for, which has {found.size} elements [value]")
        return found.reshape(-1)[0].item()

    def read(self, core: int, tensor: Tensor) -> np.ndarray:
        """What is in a tensor (or a view of one) now."""
        whole = tensor.whole()
        stored = whole.stored_dtype
        out = np.empty(whole.size, stored.dtype)
        self._launch.read(core, whole.id, arrays.bytes_of(out))
        self._warn(self._launch)
        if tensor.is_dynamic:
            raise Unsupported(f"{tensor!r} has an offset that is known only on the chip; its values can't be read back")
        if tensor.same_view(whole):
            result = out.reshape(tensor.shape)
        else:
            result = _viewed(out, tensor)
        return result if stored is tensor.dtype else result.astype(tensor.dtype.dtype)

    def execute(self):
        """Executes what is left, writes arguments back, and returns what the kernel returned, as arrays."""
        self._run(keep=self._launch is not None)
        for session in self.sessions:
            for finish in session.finishers:
                finish(self)
        torch = any(arrays.is_torch(given.source) for given in self.arguments)
        written = [session.trace.written() for session in self.sessions]
        ids = self._input_ids
        fresh: dict[int, np.ndarray] = {}  # number of a tensor: its values, read once for the argument and the result
        for place, given in enumerate(self.arguments):
            if any(flags[ids[place]] for flags in written):
                values = np.empty(given.shape, dtypes.float32.dtype if self._widened(given) else given.dtype.dtype)
                self._launch.read(0, ids[place], arrays.bytes_of(values))
                values = values.astype(given.dtype.dtype, copy=False)
                given.write_back(values)
                fresh[ids[place]] = values
        self._warn(self._launch)
        return self._arrays(self.returned[0], torch, fresh)

    def _widened(self, given: arrays.Argument) -> bool:
        return not self.sessions[0].precise and given.dtype.name in trace._NARROW

    @functools.cached_property
    def _input_ids(self) -> list[int]:
        # Inputs are declared in the order of the arguments.
        return self.sessions[0].trace.with_role("input")

    def _arrays(self, returned, torch: bool, fresh: dict):
        if isinstance(returned, Tensor):
            values = fresh.pop(returned.id, None)
            if values is None or values.shape != returned.shape or not returned.same_view(returned.whole()):
                values = self.read(0, returned)
            return arrays.to_torch(values, returned.dtype) if torch else values
        if isinstance(returned, (list, tuple)) and not hasattr(returned, "_fields"):
            return type(returned)(self._arrays(item, torch, fresh) for item in returned)
        if isinstance(returned, dict):
            return {key: self._arrays(item, torch, fresh) for key, item in returned.items()}
        return returned

    # --- Timing ---

    def profile(self):
        """The profile of what was recorded. Nothing is executed."""
        from headway.nki.profiling import Profile

        texts = [f"{given.name}={given.dtype}[{', '.join(map(str, given.shape))}]" for given in self.arguments]
        return Profile(_chip.profile([session.trace for session in self.sessions], texts))


def _viewed(flat: np.ndarray, tensor: Tensor) -> np.ndarray:
    """The elements of a view, out of its tensor's memory."""
    memory = flat.view(tensor.stored_dtype.dtype)
    step = memory.dtype.itemsize
    return np.lib.stride_tricks.as_strided(
        memory[tensor.offset:], tensor.shape, [stride * step for stride in tensor.strides], writeable=False
    ).copy()


def raised_at(error: Exception, file: str, line: int) -> Exception:
    """The same error with a traceback that ends at that line of that file."""
    try:
        exec(compile("\n" * (line - 1) + "raise error", file, "exec"), {"error": error.with_traceback(None)})
    except type(error) as placed:
        return placed.with_traceback(placed.__traceback__.tb_next)
    return error


def _left_loop(file: str, line: int) -> Exception:
    error = KernelError(
        f"{os.path.basename(file)}:{line}: the register loop that begins here is left by break, return or an exception; its body is "
        "recorded once, for all rounds, and has to be gone through to its end [loop-nesting]"
    )
    return raised_at(error, file, line) if file else error


def tensors_of(value) -> Iterable[Tensor]:
    """The tensors in a result."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_of(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_of(item)


def _holds_arrays(value) -> bool:
    if not (dataclasses.is_dataclass(value) or isinstance(value, NKIObject)):
        return False
    if isinstance(value, type) or not hasattr(value, "__dict__"):
        return False
    return any(arrays.is_array(item) or isinstance(item, (list, tuple, dict)) or _holds_arrays(item) for item in vars(value).values())


@functools.lru_cache(maxsize=512)
def _signature(function: Callable) -> tuple:
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ()


def named_like(function: Callable, model: Callable) -> Callable:
    """``function`` with the parameters' names of ``model``."""
    return functools.wraps(model)(function)


def _parameter_names(function: Callable, count: int) -> list[str]:
    names = []
    for parameter in _signature(function):
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    return (names + [f"arg{i}" for i in range(len(names), count)])[:count]


def _add_schedule(made, edges: list) -> None:
    """Edges of (consumer, producer or [producers]) between instructions that have names."""
    labels: dict[str, list[int]] = {}
    for number, name in made.labels().items():
        labels.setdefault(name, []).append(number)

    def numbers(name: str) -> list[int]:
        if name not in labels:
            raise InputError(f"with_schedule names '{name}', but no instruction has that name; there are {', '.join(sorted(labels)) or 'none'}")
        return labels[name]

    for consumer, producers in edges:
        for producer in [producers] if isinstance(producers, str) else producers:
            for after in numbers(consumer):
                for before in numbers(producer):
                    if before == after:
                        raise InputError(f"with_schedule: '{consumer}' can't wait for itself")
                    made.edge(before, after)


def lnc_of(grid, spec) -> int:
    """The cores of a logical core that ``kernel[grid]`` asks for. InputError where the chip has none such."""
    if isinstance(grid, (tuple, list)) and len(grid) == 1:
        grid = grid[0]
    try:
        lnc = int(grid)
    except (TypeError, ValueError):
        raise InputError(f"kernel[{grid!r}]: the grid is the number of cores of a logical core, 1 to {spec.largest_lnc}") from None
    if lnc < 1 or lnc > spec.largest_lnc:
        raise InputError(f"kernel[{lnc}]: a logical core of {spec.name} has 1 to {spec.largest_lnc} cores")
    return lnc


class Kernel:
    """A kernel: call it with arrays, or inside another kernel with tensors.

    ``kernel[2](...)`` runs it on the two cores of a logical core. ``func`` is the function. Results are NumPy arrays (bfloat16 and
    fp8 as ml_dtypes'), or PyTorch tensors where an argument was one; arguments that the kernel writes to are updated in place.
    """

    def __init__(self, function: Callable, *, grid=1, simulating: bool = False, platform: str | None = None, schedule: list | None = None):
        if not callable(function):
            raise TypeError(f"nki.jit decorates functions, not {type(function).__name__}")
        self.func = function
        self.grid = grid
        self.simulating = simulating
        self.platform = platform
        self.schedule = schedule
        functools.update_wrapper(self, function)

    def _with(self, **changes) -> Kernel:
        own = {"grid": self.grid, "simulating": self.simulating, "platform": self.platform, "schedule": self.schedule}
        return type(self)(self.func, **{**own, **changes})

    def __getitem__(self, grid) -> Kernel:
        return self._with(grid=grid)

    def with_schedule(self, edges: list) -> Kernel:
        """The kernel with extra order: (consumer, producer or [producers]) of instructions' names."""
        return self._with(schedule=(self.schedule or []) + list(edges))

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<nki kernel {getattr(self.func, '__qualname__', self.func)}>"

    def spec(self):
        return target.load(self.platform or target.name())

    def record(self, *args, **kwargs) -> Recording:
        """Records a call without executing it. Arrays may be ``ArraySpec``."""
        spec = self.spec()
        name = getattr(self.func, "__name__", type(self.func).__name__)
        simulating = self.simulating or os.environ.get("NKI_SIMULATOR", "0") not in ("", "0")
        recording = Recording(name, spec, lnc_of(self.grid, spec), simulating=simulating)
        recording.record(self.func, args, kwargs, self.schedule)
        return recording

    def __call__(self, *args, **kwargs):
        if trace.active() is not None:
            return self.func(*args, **kwargs)  # part of the kernel that calls it
        return self.record(*args, **kwargs).execute()


def jit(function: Callable | None = None, **options):
    """Makes a function a kernel: ``@nki.jit`` or ``@nki.jit(...)``.

    ``platform_target`` chooses the chip (until NKI 0.2; later NEURON_PLATFORM_TARGET_OVERRIDE does). ``mode`` and the compiler's options
    have no effect here.
    """
    known = {"mode", "platform_target", "debug_kernel", "show_compiler_tb", "experimental_flags", "kernel_return", "enable_cache",
             "debug", "opt_level", "compiler_flags", "additional_compile_opt", "lnc", "grid", "artifacts_dir"}
    unknown = sorted(set(options) - known)
    if unknown:
        raise TypeError(f"nki.jit has no option {unknown[0]!r}; there are {', '.join(sorted(known))}")
    if function is None:
        return lambda f: jit(f, **options)
    if isinstance(function, Kernel):
        return function
    platform = options.get("platform_target")
    if platform is not None:
        platform = {"inf2": "trn1", "gen2": "trn1", "gen3": "trn2", "gen4": "trn3"}.get(platform, platform)
    return Kernel(function, platform=platform, grid=options.get("lnc", options.get("grid", 1)))


def simulate(kernel) -> Kernel:
    """The kernel as the vendor's simulator runs it: like a call, but without limits of memory."""
    if not isinstance(kernel, Kernel):
        kernel = Kernel(kernel)
    return kernel._with(simulating=True)
