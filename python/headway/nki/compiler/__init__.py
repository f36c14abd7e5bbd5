"""nki.compiler: options for the vendor's compiler. There is none here: what only steers it has no effect;
what would need it says so.
"""

from __future__ import annotations

import importlib

from headway.nki.errors import Unsupported


def _no_effect(function=None, **_options):
    """A decorator that leaves the kernel as it is."""
    return (lambda f: f) if function is None else function


skip_middle_end_transformations = _no_effect
enable_stack_allocator = _no_effect
force_auto_alloc = _no_effect


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)

    def needs_the_compiler(*_args, **_kwargs):
        raise Unsupported(
            f"nki.compiler.{name} needs the vendor's compiler; Headway executes and times what kernels record"
        )

    needs_the_compiler.__name__ = name
    return needs_the_compiler


# `from nki.compiler import ncc_driver` means the module; __getattr__ would be asked for it before it is
# looked for.
for _name in ("backends", "driver", "frontend", "kernel_builder", "ncc_driver", "target"):
    importlib.import_module(f"{__name__}.{_name}")
