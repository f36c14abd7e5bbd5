"""nki.compiler.target: importable; what it would do needs the vendor's compiler."""

from headway.nki.compiler import __getattr__  # noqa: F401
