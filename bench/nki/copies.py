"""A kernel of many small instructions, for what one costs beside its elements."""

import nki.isa as nisa
import nki.language as nl


def copies_kernel(source, result, count):
    """Copies `source` [1, 1] back and forth between two places of SBUF, `count` times, then to `result` [1, 1]."""
    a = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.sbuf)
    b = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=source)
    for _ in nl.affine_range(count // 2):
        nisa.tensor_copy(dst=b, src=a)
        nisa.tensor_copy(dst=a, src=b)
    nisa.dma_copy(dst=result, src=a)
    return result
