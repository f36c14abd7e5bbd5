"""``python -m headway FILE.py ...`` runs a script whose ``import nki`` is answered by Headway; ``python -m headway kernel check ...``
compares a kernel with a reference."""

from __future__ import annotations

import os
import runpy
import sys

_USAGE = """usage: python -m headway FILE.py [ARGUMENT ...]         run a script with the names nki and neuronxcc.nki answered
       python -m headway -m MODULE [ARGUMENT ...]      the same for a module, as in -m pytest
       python -m headway kernel check FILE.py:KERNEL   compare a kernel with a reference (--help: the options)
       python -m headway --version

`headway kernel run|time|profile FILE.py:KERNEL` are commands of the program headway; in Python, headway.nki.profile(kernel)(arrays)
gives the time of a call."""


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    first, *rest = arguments
    if first == "--version":
        from headway import __version__

        print(__version__)
        return 0
    if first == "kernel":
        return _kernel(rest)
    if first == "-m":
        if not rest:
            return _refuse("-m names no module")
        import headway.as_nki  # noqa: F401

        sys.argv = rest
        sys.path.insert(0, os.getcwd())
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        return 0
    if first.startswith("-"):
        return _refuse(f"{first} is no option")
    if not os.path.isfile(first):
        return _refuse(f"{first}: there is no such file")
    import headway.as_nki  # noqa: F401

    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(first))
    runpy.run_path(first, run_name="__main__")
    return 0


def _kernel(rest: list[str]) -> int:
    if rest and rest[0] == "check":
        from headway.nki import check

        return check.main(rest[1:])
    if rest and rest[0] in ("run", "time", "profile", "list"):
        return _refuse(f"kernel {rest[0]} is a command of the program headway: headway kernel {' '.join(rest)}")
    return _refuse("kernel check is the command there is")


def _refuse(text: str) -> int:
    print(f"headway: {text}\n\n{_USAGE}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
