"""Element types. One object each, which kernels compare, hash, look up by, and hand to NumPy as a dtype."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from headway import _chip

# What NumPy calls them, where that isn't the name.
_NUMPY = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "tfloat32": np.float32,
    # Packed types are moved, never computed with: their bytes will do.
    "float8_e4m3fn_x4": np.uint32,
    "float8_e5m2_x4": np.uint32,
    "float4_e2m1fn_x4": np.uint16,
}


class DType:
    """An element type of the chip.

    ``name`` ("bfloat16"), ``itemsize`` in bytes, ``dtype`` (NumPy's, by which NumPy accepts the object itself). Equal to, and
    hashed as, its name; equal to NumPy's, ml_dtypes' and PyTorch's types of that name.
    """

    __slots__ = ("name", "code", "itemsize", "dtype", "__weakref__")

    def __init__(self, name: str, code: int):
        self.name = name
        self.code = code
        self.itemsize = _chip.dtype_size(code)
        self.dtype = np.dtype(_NUMPY.get(name, name))

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def type(self):
        """NumPy's scalar type."""
        return self.dtype.type

    def __call__(self, value=0):
        """``value`` as a NumPy number of this type."""
        return self.dtype.type(value)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, DType):
            return False
        found = _find(other)
        return found is self or (found is not None and self.dtype == found.dtype and self.name == "tfloat32")

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self):
        return (dtype_of, (self.name,))


_ALL = [DType(name, code) for code, name in enumerate(_chip.dtype_names())]
_BY_NAME = {dtype.name: dtype for dtype in _ALL}
_ALIASES = {"bool_": "bool", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "half": "float16", "float": "float32",
            "int": "int32", "float8e4": "float8_e4m3", "float8e5": "float8_e5m2"}
_chip.register_dtypes(_ALL)
_KNOWN: dict = {}  # NumPy's and PyTorch's type objects that were asked for


def _find(value: object) -> DType | None:
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        return _BY_NAME.get(_ALIASES.get(value, value))
    try:
        known = _KNOWN.get(value)
    except TypeError:
        return None
    if known is not None:
        return known
    name = None
    if isinstance(value, np.dtype):
        name = value.name
    elif isinstance(value, type):
        if value is float:
            name = "float32"
        elif value is int:
            name = "int32"
        elif value is bool:
            name = "bool"
        else:
            try:
                name = np.dtype(value).name
            except TypeError:
                return None
            if name == "object":
                return None
    else:
        text = str(value)
        if text.startswith("torch."):
            name = text[len("torch."):]
        else:
            inner = getattr(value, "dtype", None)
            if isinstance(inner, np.dtype) and not hasattr(value, "shape"):
                name = inner.name
    found = _BY_NAME.get(name) if name else None
    if found is not None:
        _KNOWN[value] = found
    return found


def dtype_of(value: object) -> DType:
    """The element type that ``value`` means: one of these objects, a name, NumPy's, ml_dtypes' or PyTorch's type. TypeError otherwise."""
    found = _find(value)
    if found is None:
        raise TypeError(f"{value!r} is no element type of the chip; there are {', '.join(_BY_NAME)}")
    return found


def all_dtypes() -> list[DType]:
    return [dtype for dtype in _ALL if dtype.name != "float64"]


float32 = _BY_NAME["float32"]
bfloat16 = _BY_NAME["bfloat16"]
float16 = _BY_NAME["float16"]
tfloat32 = _BY_NAME["tfloat32"]
float8_e4m3 = _BY_NAME["float8_e4m3"]
float8_e4m3fn = _BY_NAME["float8_e4m3fn"]
float8_e5m2 = _BY_NAME["float8_e5m2"]
float8_e8m0fnu = _BY_NAME["float8_e8m0fnu"]
float8_e4m3fn_x4 = _BY_NAME["float8_e4m3fn_x4"]
float8_e5m2_x4 = _BY_NAME["float8_e5m2_x4"]
float4_e2m1fn_x4 = _BY_NAME["float4_e2m1fn_x4"]
int8 = _BY_NAME["int8"]
int16 = _BY_NAME["int16"]
int32 = _BY_NAME["int32"]
uint8 = _BY_NAME["uint8"]
uint16 = _BY_NAME["uint16"]
uint32 = _BY_NAME["uint32"]
bool_ = _BY_NAME["bool"]
