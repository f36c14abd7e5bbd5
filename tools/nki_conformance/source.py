"""Loads and runs the files of a checkout as they are."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import pathlib
import runpy
import sys


def load(path, name: str | None = None):
    """The file as a module, whatever its name; its folder is searched for the modules it imports.

    It is registered under its name: pickles, dataclasses and a kernel's source are found that way.
    """
    path = pathlib.Path(path)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    name = name or path.stem.replace(".", "_")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def script(path, *arguments: str, name: str = "__main__") -> str:
    """Runs the file as a script with the arguments; what it printed. A non-zero exit is an AssertionError."""
    path = pathlib.Path(path)
    printed = io.StringIO()
    before = sys.argv
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.parent))
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(path), run_name=name)
    except SystemExit as end:
        if end.code not in (None, 0):
            raise AssertionError(f"{path.name} ended with {end.code!r}") from end
    finally:
        sys.argv = before
        sys.path.remove(str(path.parent))
    sys.stdout.write(printed.getvalue())
    return printed.getvalue()


def must_say(printed: str, wanted: str, unwanted: str) -> None:
    """A driver that only prints its verdict: AssertionError unless it said only the good one."""
    if unwanted in printed or wanted not in printed:
        verdicts = [line for line in printed.splitlines() if wanted in line or unwanted in line]
        raise AssertionError(f"the driver's verdict is not '{wanted}': {verdicts or 'it printed none'}")
