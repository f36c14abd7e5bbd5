"""Annotations of the older dialect."""

from headway.nki.typing import mutable_tensor, scalar, tensor  # noqa: F401
