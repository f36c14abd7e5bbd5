"""The matrix products of the NKI tutorials, judged as their driver judges them."""

from __future__ import annotations

from nki_conformance import judge

# What the row gives as its smallest arguments: rows of lhs, contraction, columns of rhs.
SHAPES = {
    "nki_matmul_basic_": [(64, 128, 512)],
    "nki_matmul_tiled_": [(128, 128, 512), (256, 384, 1024)],
    "nki_matmul_hoist_load_": [(128, 128, 512), (256, 384, 1024)],
    "nki_matmul_block_free_dimension_": [(256, 128, 1024)],
    "nki_matmul_fully_optimized_": [(4096, 1024, 2048)],
}


def run(kernel, name: str) -> None:
    """torch.matmul of bfloat16 numbers in 0 .. 1, atol 1e-4, rtol 1e-2, on every shape of the kernel."""
    import torch

    for m, k, n in SHAPES[name]:
        lhs = torch.rand((m, k), dtype=torch.bfloat16)
        rhs = torch.rand((k, n), dtype=torch.bfloat16)
        judge.close(kernel(lhs.T, rhs), torch.matmul(lhs, rhs), atol=1e-4, rtol=1e-2)
