"""Kernels for tests/cli/python_kernel_test.cc."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def scaled(x, scale=2.0, mode="fast", flag=False, sizes=(1, 2)):
    print("mode", mode, "flag", flag, "sizes", sizes)
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for row in range(0, x.shape[0], 128):
        t = nl.ndarray((128, x.shape[1]), x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(t, x[row : row + 128])
        nisa.tensor_scalar(t, t, nl.multiply, scale)
        nisa.dma_copy(out[row : row + 128], t)
    return out


@nki.jit
def halves(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    rows = x.shape[0] // nl.num_programs(0)
    first = nl.program_id(0) * rows
    t = nl.ndarray((rows, x.shape[1]), x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(t, x[first : first + rows])
    nisa.dma_copy(out[first : first + rows], t)
    return out


@nki.jit
def unwritten(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, x.shape[1]), x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(out, t)
    return out


@nki.jit
def too_large(x):
    nl.ndarray((256, 4), nl.float32, buffer=nl.sbuf)
    return x


@nki.jit
def raises(x):
    return {}["missing"]


def scaled_reference(x, scale=2.0, mode="fast", flag=False, sizes=(1, 2)):
    return scale * x


def wrong_reference(x):
    return 3 * x
