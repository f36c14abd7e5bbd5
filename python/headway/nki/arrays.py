"""Arrays of NumPy, PyTorch and JAX as a kernel's arguments and results."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

import numpy as np

from headway.nki import dtypes
from headway.nki.errors import InputError, KernelWarning

# What the frameworks do with the types that the chip doesn't have.
_NARROWED = {"float64": "float32", "int64": "int32", "uint64": "uint32"}


# NumPy's and PyTorch's dtype objects that were seen; asking NumPy for a dtype's name takes long.
_TYPES: dict = {np.dtype(np.float32): dtypes.float32, np.dtype(np.int32): dtypes.int32, np.dtype(np.uint32): dtypes.uint32}


@dataclass(frozen=True)
class ArraySpec:
    """An argument without data: what recording needs to know. ``dtype`` is anything that ``dtype_of`` takes."""

    shape: tuple
    dtype: object


@dataclass
class Argument:
    """An array that a kernel was called with."""

    source: object  # the caller's
    host: np.ndarray | None  # contiguous, of a type of the chip; None where there are no data
    dtype: dtypes.DType
    shape: tuple
    name: str

    @property
    def size(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def write_back(self, values: np.ndarray) -> None:
        """Puts what the kernel left in its argument into the caller's array. InputError where that is read-only."""
        if isinstance(self.source, np.ndarray):
            if not self.source.flags.writeable:
                raise InputError(f"the kernel writes to its argument '{self.name}', but the array is read-only; pass a copy")
            self.source[...] = values.reshape(self.source.shape)
        elif is_torch(self.source):
            import torch

            with torch.no_grad():
                self.source.copy_(to_torch(values, self.dtype).reshape(self.source.shape))


def is_torch(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_jax(value: object) -> bool:
    return type(value).__module__.split(".")[0] in ("jax", "jaxlib") and hasattr(value, "__array__")


def is_array(value: object) -> bool:
    """Whether a kernel sees it as a tensor: arrays of at least one extent."""
    if isinstance(value, np.ndarray) or is_torch(value):
        return value.ndim > 0
    return isinstance(value, ArraySpec) or (_is_jax(value) and value.ndim > 0)


def argument(value: object, name: str) -> Argument:
    """The argument that ``value`` (see ``is_array``) is. InputError for what the chip can't hold."""
    if isinstance(value, ArraySpec):
        return Argument(value, None, dtypes.dtype_of(value.dtype), tuple(value.shape), name)
    dtype = dtype_of_array(value, name)
    if is_torch(value):
        host = from_torch(value)
    else:
        host = np.asarray(value)
        if not host.dtype.isnative:
            host = host.astype(host.dtype.newbyteorder("="))
    if host.size == 0:
        raise InputError(f"argument '{name}' is empty, its shape is {tuple(host.shape)}; a tensor has at least one element")
    if host.dtype.itemsize != dtype.itemsize:
        host = host.astype(dtype.dtype)
    return Argument(value, np.ascontiguousarray(host), dtype, tuple(host.shape), name)


def dtype_of_array(value: object, name: str) -> dtypes.DType:
    """The chip's type for an array's elements. InputError where there is none."""
    known = _TYPES.get(value.dtype)
    if known is not None:
        return known
    text = str(value.dtype)
    if text.startswith("torch."):
        text = text[len("torch."):]
    else:
        text = getattr(value.dtype, "name", text)
    narrowed = text in _NARROWED
    if narrowed:
        warnings.warn(
            f"argument '{name}' is {text}, which the chip doesn't have: converted to {_NARROWED[text]}, as the frameworks do",
            KernelWarning,
            stacklevel=5,
        )
        text = _NARROWED[text]
    found = dtypes._find(text)
    if found is None:
        raise InputError(
            f"argument '{name}' is an array of {text}; the chip has {', '.join(d.name for d in dtypes.all_dtypes())}"
        )
    if not narrowed:
        _TYPES[value.dtype] = found
    return found


def from_torch(tensor) -> np.ndarray:
    """Its values as NumPy's, bit for bit."""
    import torch

    tensor = tensor.detach().cpu().contiguous()
    name = str(tensor.dtype)[len("torch."):]
    try:
        return tensor.numpy()
    except TypeError:
        dtype = dtypes.dtype_of(name)
        flat = tensor.reshape(-1).view(torch.uint8).numpy()
        return flat.view(dtype.dtype).reshape(tuple(tensor.shape))


def to_torch(values: np.ndarray, dtype: dtypes.DType):
    """The same as a PyTorch tensor, bit for bit where PyTorch has the type."""
    import torch

    values = np.ascontiguousarray(values)
    own = getattr(torch, dtype.name, None)
    if dtype.name in ("tfloat32",):
        own = torch.float32
    if own is None or values.dtype.itemsize != dtype.itemsize:
        # uint16 and uint32 before PyTorch 2.3, packed types: the bits in the signed type of that width.
        own = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[values.dtype.itemsize]
    if not values.flags.writeable:
        values = values.copy()
    return torch.from_numpy(values.reshape(-1).view(np.uint8)).view(own).reshape(values.shape)


def bytes_of(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1).view(np.uint8)
