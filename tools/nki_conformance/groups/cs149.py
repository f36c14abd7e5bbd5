"""CS149 assignment 4: the course's two harnesses, as each student's repository holds them."""

from __future__ import annotations

import re

import numpy as np

from nki_conformance import source


def run(row, checkout, options) -> None:
    # The seed that the convolution harness itself uses.
    np.random.seed(42)
    folder = (checkout / row.path).parent
    if folder.name == "part2":
        _convolution(row, checkout / row.path)
    elif row.entry == "matrix_transpose":
        matrix = np.random.rand(256, 256).astype(np.float32)
        harness = source.load(folder / "run_benchmark.py")
        harness.benchmark_kernel(getattr(harness, row.entry), matrix)
    else:
        width = int(re.search(r"(\d+) fp32", row.arguments).group(1))
        a, b = (np.random.rand(width).astype(np.float32) for _ in range(2))
        if "vec_add.py" in row.reference:
            harness = source.load(folder / "vec_add.py")
            direct = row.entry == "vector_add_direct_allocation"
            harness.benchmark_vector_add(getattr(harness, row.entry), a, b, row.entry, None, direct)
        else:
            harness = source.load(folder / "run_benchmark.py")
            harness.benchmark_kernel(getattr(harness, row.entry), a, b)


def _convolution(row, file) -> None:
    harness = source.load(file.parent / "test_harness.py", "convolution_harness")
    kernel = harness.conv2d if file.name == "conv2d.py" else getattr(source.load(file), row.entry)
    pooled = "pool_size=2" in row.arguments
    if not harness.test_correctness_conv2d_kernel(kernel, use_bias=pooled, use_maxpool=pooled):
        raise AssertionError("the harness found a mismatch beyond numpy.allclose's own tolerance")
