"""aws-neuron-sdk, nki/examples: files as scripts; kernels by their formula where a file compares nothing."""

from __future__ import annotations

import numpy as np

from nki_conformance import judge, source
from nki_conformance.groups import mamba, matmul


def _sum_of_halves(kernel, shapes) -> None:
    rng = np.random.default_rng(1)
    for shape in shapes:
        a, b = (rng.standard_normal(shape).astype(np.float16) for _ in range(2))
        judge.rounded_once(kernel(a, b), a.astype(np.float64) + b.astype(np.float64), **judge.FLOAT16)


def tensor_add(row, file) -> None:
    _sum_of_halves(getattr(source.load(file), row.entry), ((128, 512), (256, 1024)))


def started_numpy(row, file) -> None:
    source.script(file)
    _sum_of_halves(getattr(source.load(file), row.entry), ((4, 3),))


def started_torch(row, file) -> None:
    import torch

    source.script(file)
    kernel = getattr(source.load(file), row.entry)
    _sum_of_halves(lambda a, b: kernel(torch.from_numpy(a), torch.from_numpy(b)), ((4, 3),))


def started_jax(row, file) -> None:
    # Its main block passes JAX arrays; the row asks for the kernel with NumPy's.
    _sum_of_halves(getattr(source.load(file), row.entry), ((4, 3),))


def script(row, file) -> None:
    source.script(file)


def printed_verdict(row, file) -> None:
    source.must_say(source.script(file), "match", "differ")


def simulate(row, file) -> None:
    # The whole module is the test.
    source.load(file)


def matmul_row(row, file) -> None:
    matmul.run(getattr(source.load(file), row.entry), row.entry)


def mamba_first(row, file) -> None:
    source.script(file.parent / "mamba_torch.py")
    mamba.run(file.parent, row.entry, 512)


def mamba_other(row, file) -> None:
    source.script(file, "--version", row.entry.removeprefix("mamba_"))
    mamba.run(file.parent, row.entry, 2048)


def split(row, file) -> None:
    import torch

    source.script(file)
    kernel = getattr(source.load(file), row.entry)
    for numbers in (torch.arange(20, dtype=torch.bfloat16).reshape(4, 5), torch.rand(4, 5).bfloat16()):
        even, odd = kernel(numbers)
        judge.equal(even, numbers[:, 0::2])
        judge.equal(odd, numbers[:, 1::2])


def maxpool(row, file) -> None:
    import torch

    source.script(file)
    kernel = getattr(source.load(file), row.entry)
    for numbers in (torch.arange(72, dtype=torch.bfloat16).reshape(2, 6, 6), torch.randn(2, 6, 6).bfloat16()):
        judge.equal(kernel(numbers, 2), numbers.reshape(2, 3, 2, 3, 2).amax(dim=(2, 4)))


def exponential(row, file) -> None:
    import torch

    source.script(file)
    numbers = torch.randn(128, 512).bfloat16()
    got = getattr(source.load(file), row.entry)(numbers)
    judge.rounded_once(got, np.exp(numbers.double().numpy()), **judge.BFLOAT16)


ROWS = {
    "sdk-tensor-add": tensor_add,
    "sdk-transpose2d": script,
    "sdk-avgpool": script,
    "sdk-mamba-v1": mamba_first,
    "sdk-mamba-v2": mamba_other,
    "sdk-mamba-v3": mamba_other,
    "sdk-simulate": simulate,
    "sdk-started-numpy": started_numpy,
    "sdk-started-torch": started_torch,
    "sdk-started-jax": started_jax,
    "sdk-index-1": split,
    "sdk-index-3": maxpool,
    "sdk-layout-pass": exponential,
    "sdk-avgpool-torch": printed_verdict,
    "sdk-transpose2d-torch": printed_verdict,
}


def run(row, checkout, options) -> None:
    ROWS.get(row.id, matmul_row)(row, checkout / row.path)
