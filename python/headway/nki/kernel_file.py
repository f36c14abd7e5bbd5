"""Kernels in files, as the command line and the worker name them: ``FILE.py:kernel``, ``FILE.py:Class.method``, or ``FILE.py`` with one kernel."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from difflib import get_close_matches
from types import ModuleType

from headway.nki.errors import InputError
from headway.nki.kernel import Kernel

# Modules by file, with what the file was when it was loaded.
_loaded: dict[str, tuple[tuple, ModuleType]] = {}


def split(name: str) -> tuple[str, str]:
    """``FILE.py:kernel`` as (file, kernel); the kernel is "" where none is named. InputError for what isn't a Python file."""
    file, _, wanted = name.partition(".py:")
    if wanted or name.endswith(".py:"):
        return file + ".py", wanted
    if not name.endswith(".py"):
        raise InputError(f"'{name}' is no kernel of a file; give FILE.py:KERNEL")
    return name, ""


def load(file: str) -> ModuleType:
    """The module that a file is, with the names ``nki`` and ``neuronxcc`` answered. Loaded again when the file has changed.

    A file in a package (a folder with ``__init__.py``) is imported as that package's module, so that its relative imports work; for any
    other its folder is the first place where modules are looked for, as for a script.
    """
    import headway.as_nki  # noqa: F401

    path = os.path.realpath(file)
    if not os.path.isfile(path):
        raise InputError(f"{file}: there is no such file")
    state = os.stat(path)
    version = (state.st_mtime_ns, state.st_size)
    known = _loaded.get(path)
    if known is not None and known[0] == version:
        return known[1]
    folder, base = os.path.split(path)
    stem = base[: -len(".py")]
    parts = [stem]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    if len(parts) > 1:
        name = ".".join(parts)
        if known is not None:
            sys.modules.pop(name, None)
        module = importlib.import_module(name)
    else:
        module = _of_file(stem if known or stem not in sys.modules else f"kernel_file_{stem}", path)
    _loaded[path] = (version, module)
    return module


def _of_file(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses and pickles look there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise
    return module


def function(name: str):
    """What ``FILE.py:name`` names, whatever it is. InputError where it isn't there or isn't callable."""
    file, wanted = split(name)
    module = load(file)
    if not wanted:
        raise InputError(f"{file}: name a function, as in {file}:NAME")
    found = module
    for part in wanted.split("."):
        if not hasattr(found, part):
            close = get_close_matches(part, [n for n, value in vars(found).items() if callable(value)], 1)
            raise InputError(f"{file} has no '{wanted}'" + (f"; did you mean '{close[0]}'?" if close else ""))
        found = getattr(found, part)
    if not callable(found):
        raise InputError(f"{file}:{wanted} is a {type(found).__name__}, not a kernel")
    return found


def kernel(name: str) -> Kernel:
    """The kernel that ``name`` names; a function without nki.jit is taken for one. InputError where it isn't there or isn't one."""
    file, wanted = split(name)
    if wanted:
        found = function(name)
        return found if isinstance(found, Kernel) else Kernel(found)
    module = load(file)
    own = {n: value for n, value in vars(module).items()
           if isinstance(value, Kernel) and getattr(value.func, "__module__", None) == module.__name__}
    if len(own) == 1:
        return next(iter(own.values()))
    if not own:
        raise InputError(f"{file} has no function with nki.jit; name one, as in {file}:NAME")
    raise InputError(f"{file} has {len(own)} kernels; name one: " + ", ".join(f"{file}:{n}" for n in sorted(own)))


def signature_text(of) -> str:
    """"softmax(x, scale=1.0)"."""
    target = getattr(of, "func", of)
    return f"{getattr(target, '__name__', 'kernel')}{inspect.signature(target)}"


def bind(of, named: dict) -> None:
    """InputError naming the parameter where ``named`` doesn't fit the signature."""
    target = getattr(of, "func", of)
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    for name in named:
        if name not in signature.parameters and not takes_any:
            close = get_close_matches(name, list(signature.parameters), 1)
            raise InputError(f"{signature_text(of)} has no parameter '{name}'" + (f"; did you mean '{close[0]}'?" if close else ""))
    try:
        signature.bind(**named)
    except TypeError as error:
        raise InputError(f"{signature_text(of)}: {error}; tensors are given as NAME=DTYPE[EXTENT,...], all else as NAME=VALUE") from None


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def is_ours(file: str) -> bool:
    """Whether a code object's file is one of this package, or none at all."""
    return file.startswith((_PACKAGE, "<"))


def place(error: BaseException) -> tuple[str, int]:
    """File and line of the innermost frame that isn't of this package; ("", 0) where there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno or 0
    found = ("", 0)
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not is_ours(file):
            found = (file, trace.tb_lineno)
        trace = trace.tb_next
    return found
