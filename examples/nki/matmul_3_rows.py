"""Matrix product, third version: whole rows a DMA, in and out.

Run: ./run python -m headway examples/nki/matmul_3_rows.py
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
    left, right = [], []
    for k in nl.affine_range(K // 128):
        left.append(nl.ndarray((128, M), dtype=lhsT.dtype, buffer=nl.sbuf))
        nisa.dma_copy(dst=left[k], src=lhsT[nl.ds(k * 128, 128), :])
        right.append(nl.ndarray((128, N), dtype=rhs.dtype, buffer=nl.sbuf))
        nisa.dma_copy(dst=right[k], src=rhs[nl.ds(k * 128, 128), :])
    for m in nl.affine_range(M // 128):
        rounded = nl.ndarray((128, N), dtype=lhsT.dtype, buffer=nl.sbuf)
        for n in nl.affine_range(N // 512):
            sums = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(K // 128):
                stationary = left[k][:, nl.ds(m * 128, 128)]
                nisa.nc_matmul(dst=sums, stationary=stationary, moving=right[k][:, nl.ds(n * 512, 512)])
            nisa.tensor_copy(dst=rounded[:, nl.ds(n * 512, 512)], src=sums)
        nisa.dma_copy(dst=result[nl.ds(m * 128, 128), :], src=rounded)
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
