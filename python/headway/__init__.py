"""Headway for Python: NKI kernels on a simulated Trainium chip.

``import headway.as_nki`` lets unmodified kernels say ``import nki``; ``headway.nki`` is the same package under its own name.
"""

__version__ = "0.1.0"
