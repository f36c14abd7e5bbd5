"""Matrix product, second version: every tile is loaded once and kept in SBUF.

Run: ./run python -m headway examples/nki/matmul_2_kept.py
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def matmul(lhsT, rhs):
    """lhsT [K, M], rhs [K, N] -> lhsT.T @ rhs [M, N]. K and M are multiples of 128, N of 512.

    Both operands fit into SBUF.
    """
    K, M = lhsT.shape
    _, N = rhs.shape
    result = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    left, right = {}, {}
    for k in nl.affine_range(K // 128):
        for m in nl.affine_range(M // 128):
            left[k, m] = nl.ndarray((128, 128), dtype=lhsT.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=left[k, m], src=lhsT[nl.ds(k * 128, 128), nl.ds(m * 128, 128)])
        for n in nl.affine_range(N // 512):
            right[k, n] = nl.ndarray((128, 512), dtype=rhs.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=right[k, n], src=rhs[nl.ds(k * 128, 128), nl.ds(n * 512, 512)])
    for m in nl.affine_range(M // 128):
        for n in nl.affine_range(N // 512):
            sums = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(K // 128):
                nisa.nc_matmul(dst=sums, stationary=left[k, m], moving=right[k, n])
            rounded = nl.ndarray((128, 512), dtype=lhsT.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=rounded, src=sums)
            nisa.dma_copy(dst=result[nl.ds(m * 128, 128), nl.ds(n * 512, 512)], src=rounded)
    return result


def main():
    import ml_dtypes

    rng = np.random.default_rng(0)
    lhsT, rhs = (rng.standard_normal((2048, 2048)).astype(ml_dtypes.bfloat16) for _ in range(2))
    product = lhsT.T.astype(np.float32) @ rhs.astype(np.float32)
    error = np.abs(matmul(lhsT, rhs).astype(np.float32) - product).max() / np.abs(product).max()
    print(f"largest error {error:.1e} of the largest element\n")
    print(nki.profile(matmul)(lhsT, rhs))


if __name__ == "__main__":
    main()
