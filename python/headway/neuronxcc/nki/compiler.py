"""neuronxcc.nki.compiler: options for the vendor's compiler, which have no effect here, and allocations, of
which the place in memory
counts but not the address: tiles are as apart from each other as the kernel's author meant them to be."""

from __future__ import annotations

from headway.nki import buffers
from headway.nki.errors import Unsupported


def _no_effect(function=None, **_options):
    return (lambda f: f) if function is None else function


skip_middle_end_transformations = _no_effect
enable_stack_allocator = _no_effect
force_auto_alloc = _no_effect
allocation_scope = _no_effect


def multi_buffer(*_args, **_kwargs):
    return None


class no_reorder:
    """As a context or a directive."""

    def __init__(self, *_args):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class Allocation:
    """A buffer with an address that is left to the lowering."""

    def __init__(self, buffer):
        self.buffer = buffer


class _Allocator:
    def __init__(self, buffer):
        self.buffer = buffer

    def alloc(self, func=None, **_options) -> Allocation:
        return Allocation(self.buffer)

    def mod_alloc(self, **_options) -> Allocation:
        return Allocation(self.buffer)

    def auto_alloc(self, **_options) -> Allocation:
        return Allocation(self.buffer)


sbuf = _Allocator(buffers.sbuf)
psum = _Allocator(buffers.psum)


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)

    def needs_the_compiler(*_args, **_kwargs):
        raise Unsupported(f"nki.compiler.{name} needs the vendor's compiler")

    return needs_the_compiler
