"""Softmax over rows: a kernel, what it gives, and where its time goes.

Run it with any Python that has headway: ``./run python examples/nki/softmax.py``.
"""

import headway.as_nki  # noqa: F401  (from here on `import nki` is answered)
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def softmax(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for row in nl.affine_range(x.shape[0] // 128):
        tile = nl.load(x[nl.ds(row * 128, 128)])
        low = nl.ndarray((128, 1), nl.float32)
        total = nl.ndarray((128, 1), nl.float32)
        nisa.tensor_reduce(low, nl.maximum, tile, axis=1, negate=True)
        nisa.activation_reduce(tile, nl.exp, tile, nl.add, total, bias=low)
        nisa.reciprocal(total, total)
        nisa.tensor_scalar(tile, tile, nl.multiply, total)
        nl.store(out[nl.ds(row * 128, 128)], tile)
    return out


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal((1024, 2048)).astype(np.float32)
    e = np.exp(x - x.max(1, keepdims=True))
    print("largest error", abs(softmax(x) - e / e.sum(1, keepdims=True)).max())
    print(nki.profile(softmax)(x))
