"""The state-space kernels of the NKI tutorials against the file that holds their reference."""

from __future__ import annotations

from nki_conformance import judge, source


def run(folder, entry: str, sequence: int) -> None:
    """mamba_torch.py:mamba_layer on random numbers, atol 1e-2, rtol 1e-2.

    Shapes: delta and u are [1, 256, sequence], with 16 states.
    """
    import torch

    kernels = source.load(folder / "mamba_nki_kernels.py")
    reference = source.load(folder / "mamba_torch.py")
    delta, u = torch.rand(1, 256, sequence), torch.rand(1, 256, sequence)
    a = -torch.rand(256, 16)
    b, c = torch.rand(1, 16, sequence), torch.rand(1, 16, sequence)
    judge.close(
        getattr(kernels, entry)(delta, u, a, b, c),
        reference.mamba_layer(delta, a, b, u, c),
        atol=1e-2,
        rtol=1e-2,
    )
