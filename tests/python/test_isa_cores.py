"""nki.isa: the two cores of a logical core."""

import warnings

import numpy as np
import pytest
from isa_kernels import BF16, F32, mistyped, numbers, same, tile

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl
from headway.nki.errors import KernelError


@pytest.mark.parametrize("dtype", [F32, BF16, np.uint8])
@pytest.mark.parametrize(
    "options",
    [{}, {"dma_engine": nisa.dma_engine.gpsimd_dma}, {"use_gpsimd_dma": True}, {"use_gpsimd_dma": False}],
    ids=str,
)
def test_sendrecv(rng, dtype, options):
    a = numbers(rng, (2, 32, 20), dtype)

    @nki.jit
    def kernel(a):
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        me = nl.program_id(0)
        mine, theirs = tile(a[me]), nl.ndarray((32, 20), a.dtype, buffer=nl.sbuf)
        nisa.sendrecv(src=mine, dst=theirs, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0, **options)
        nisa.dma_copy(out[me], theirs)
        return out

    same(kernel[2](a), a[::-1])


def test_sendrecv_swaps_in_place_by_position(rng):
    a = numbers(rng, (2, 8, 4))

    @nki.jit
    def kernel(a):
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        me = nl.program_id(0)
        x = tile(a[me])
        nisa.sendrecv(x, x, 1 - me, 1 - me, 3, nisa.dma_engine.dma)
        nisa.dma_copy(out[me], x)
        return out

    same(kernel[2](a), a[::-1])


@pytest.mark.parametrize(
    "options", [{}, {"cores": (0, 1)}, {"cores": [0, 1], "engine": nisa.engine.vector}], ids=str
)
def test_core_barrier_orders_shared_memory(rng, options):
    a = numbers(rng, (2, 16, 8))

    def kernel(a, ordered):
        middle = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        me = nl.program_id(0)
        nisa.dma_copy(middle[me], a[me])
        if ordered:
            nisa.core_barrier(middle, **options)
        nisa.dma_copy(out[me], middle[1 - me])
        return out

    same(nki.jit(kernel)[2](a, True), a[::-1])
    with pytest.raises(KernelError, match=r"\[race\]"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing is there yet, either
        nki.jit(kernel)[2](a, False)


def launched(function, rule, parameter, body, lnc=2, platform=None):
    @nki.jit(platform_target=platform)
    def kernel():
        body()

    with pytest.raises(KernelError, match=rf"{function.__name__}[^\[]*{parameter}[\s\S]*\[{rule}\]"):
        kernel[lnc]()


def shared(shape=(4, 8), buffer=nl.shared_hbm, dtype=nl.float32):
    return nl.ndarray(shape, dtype, buffer=buffer)


def near(shape=(4, 8), dtype=nl.float32):
    t = nl.ndarray(shape, dtype, buffer=nl.sbuf)
    nisa.memset(t, 0)
    return t


def test_core_barrier_refuses():
    launched(nisa.core_barrier, "cores", "cores", lambda: nisa.core_barrier(shared(), (0,)))
    launched(nisa.core_barrier, "buffer", "data", lambda: nisa.core_barrier(shared(buffer=nl.psum)))
    launched(
        nisa.core_barrier, "generation", "", lambda: nisa.core_barrier(shared(), (0,)), lnc=1, platform="trn1"
    )


def test_sendrecv_refuses():
    me = lambda: nl.program_id(0)  # noqa: E731
    launched(nisa.sendrecv, "lnc", "", lambda: nisa.sendrecv(near(), near(), 0, 0, 0), lnc=1)
    launched(nisa.sendrecv, "rank", "send_to_rank", lambda: nisa.sendrecv(near(), near(), 2, 0, 0))
    launched(nisa.sendrecv, "shape", "dst", lambda: nisa.sendrecv(near(), near((4, 9)), 1, 1, 0))
    launched(nisa.sendrecv, "dtype", "dst", lambda: nisa.sendrecv(near(), near(dtype=nl.bfloat16), 1, 1, 0))
    launched(nisa.sendrecv, "buffer", "src", lambda: nisa.sendrecv(shared(), near(), 1, 1, 0))
    launched(
        nisa.sendrecv,
        "gpsimd-dma-bytes",
        "src",
        lambda: nisa.sendrecv(near((4, 257)), near((4, 257)), 1, 1, 0, nisa.dma_engine.gpsimd_dma),
    )
    launched(
        nisa.sendrecv, "exchange", "send_to_rank", lambda: nisa.sendrecv(near(), near(), 1 - me(), me(), 0)
    )
    launched(nisa.sendrecv, "deadlock", "", lambda: me() or nisa.sendrecv(near(), near(), 1, 1, 0) and None)


def test_wrong_types_name_instruction_parameter_and_what_is_wanted():
    mistyped(lambda: nisa.sendrecv(near(), near(), "a", 0, 0), "sendrecv", "send_to_rank", "whole number")
    mistyped(lambda: nisa.sendrecv(near(), near(), 0, 0, 0, "fast"), "sendrecv", "dma_engine", "gpsimd_dma")
    mistyped(lambda: nisa.core_barrier(3), "core_barrier", "data", "a tensor")


def test_core_barrier_warns_of_memory_that_no_other_core_sees():
    with pytest.warns(nki.errors.KernelWarning, match=r"core_barrier, data.*\[barrier-data\]"):
        nki.jit(lambda: nisa.core_barrier(near()) and None)[2]()
