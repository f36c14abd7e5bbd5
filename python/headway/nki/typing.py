"""Annotations of kernels' parameters: ``nt.tensor``, ``nt.tensor[128, 512]``, ``nt.mutable_tensor``. They say
what is meant; nothing depends on them.
"""

from __future__ import annotations


class _Annotation:
    def __init__(self, name: str, shape: tuple | None = None):
        self.name = name
        self.shape = shape

    def __getitem__(self, shape) -> _Annotation:
        return _Annotation(self.name, shape if isinstance(shape, tuple) else (shape,))

    def __call__(self, *shape) -> _Annotation:
        return self[shape] if shape else self

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __repr__(self) -> str:
        return f"nt.{self.name}" + (f"{list(self.shape)}" if self.shape is not None else "")


tensor = _Annotation("tensor")
mutable_tensor = _Annotation("mutable_tensor")
scalar = _Annotation("scalar")
Tensor = tensor
