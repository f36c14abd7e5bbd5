"""Matrix product, fourth version: the first products start with the first rows, in all banks of PSUM.

Run: ./run python -m headway examples/nki/matmul_4_banks.py
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
    rows = 8 // (N // 512)  # of tiles: their results fill the 8 banks of PSUM
    assert N <= 4096 and M // 128 % rows == 0, f"M is {M}; for N = {N} it is a multiple of {rows * 128}"
    result = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    left, right = [], []
    for k in nl.affine_range(K // 128):
        left.append(nl.ndarray((128, M), dtype=lhsT.dtype, buffer=nl.sbuf))
        nisa.dma_copy(dst=left[k], src=lhsT[nl.ds(k * 128, 128), :])
        right.append(nl.ndarray((128, N), dtype=rhs.dtype, buffer=nl.sbuf))
        nisa.dma_copy(dst=right[k], src=rhs[nl.ds(k * 128, 128), :])
    # With k outside, all tiles of a group need its first rows, then all need its second rows.
    for group in nl.affine_range(M // 128 // rows):
        tiles = [(m, n) for m in range(group * rows, (group + 1) * rows) for n in range(N // 512)]
        sums = [nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum) for _ in tiles]
        for k in nl.affine_range(K // 128):
            for (m, n), bank in zip(tiles, sums):
                stationary = left[k][:, nl.ds(m * 128, 128)]
                nisa.nc_matmul(dst=bank, stationary=stationary, moving=right[k][:, nl.ds(n * 512, 512)])
        rounded = {m: nl.ndarray((128, N), dtype=lhsT.dtype, buffer=nl.sbuf) for m, _ in tiles}
        for (m, n), bank in zip(tiles, sums):
            nisa.tensor_copy(dst=rounded[m][:, nl.ds(n * 512, 512)], src=bank)
        for m in rounded:
            nisa.dma_copy(dst=result[nl.ds(m * 128, 128), :], src=rounded[m])
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
