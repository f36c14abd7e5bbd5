"""Element types and buffers: comparable, hashable, and NumPy's."""

import pickle

import ml_dtypes
import numpy as np
import pytest

import headway.nki  # noqa: F401  (registers dtypes)
import headway.nki.language as nl
from headway.nki import dtypes

NUMPY = {
    "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2, "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32,
}


@pytest.mark.parametrize("name", NUMPY)
def test_a_dtype_is_numpys(name):
    dtype, numpy = getattr(nl, name), NUMPY[name]
    assert dtype == numpy and numpy == dtype and dtype == np.dtype(numpy) and np.dtype(numpy) == dtype and dtype == name
    assert not dtype != numpy
    assert np.dtype(dtype) == np.dtype(numpy)
    assert np.zeros(3, dtype).dtype == np.dtype(numpy) and np.ones(3).astype(dtype).dtype == np.dtype(numpy)
    assert dtype.itemsize == np.dtype(numpy).itemsize
    assert str(dtype) == name and {dtype: 1}[name] == 1 and {name: 1}[dtype] == 1
    assert dtypes.dtype_of(numpy) is dtypes.dtype_of(np.dtype(numpy)) is dtypes.dtype_of(name) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_dtypes_differ():
    every = dtypes.all_dtypes()
    assert len({dtype.name for dtype in every}) == len(every) == 18
    for a in every:
        for b in every:
            assert (a == b) == (a is b)
    assert nl.float32 != "complex64" and nl.float32 != 3 and nl.float32 != None  # noqa: E711
    assert nl.bfloat16 not in (nl.float32, nl.float16) and nl.bfloat16 in [np.float32, ml_dtypes.bfloat16]


def test_torch_dtypes():
    torch = pytest.importorskip("torch")
    for name in ("float32", "bfloat16", "float16", "int32", "uint8", "float8_e4m3fn", "float8_e5m2"):
        assert dtypes.dtype_of(getattr(torch, name)) is getattr(nl, name)
        assert getattr(nl, name) == getattr(torch, name)


@pytest.mark.parametrize("value", [np.complex64, "float12", object, 3, None, np.dtype("U3")])
def test_what_is_no_dtype(value):
    with pytest.raises(TypeError, match="is no element type of the chip"):
        dtypes.dtype_of(value)


def test_buffers_compare_with_their_names():
    assert nl.sbuf == "sbuf" and nl.hbm is nl.private_hbm and nl.hbm == "hbm" and nl.psum != nl.sbuf
    assert nl.is_hbm(nl.shared_hbm) and nl.is_sbuf("sbuf") and not nl.is_psum(nl.sbuf)
    assert len({nl.sbuf, nl.psum, nl.private_hbm, nl.shared_hbm}) == 4
    assert pickle.loads(pickle.dumps(nl.psum)) is nl.psum
