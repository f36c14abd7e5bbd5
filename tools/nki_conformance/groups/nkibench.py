"""AccelOpt's NKIBench: its 14 full-size kernels, by the publisher's comparison on the publisher's seeds."""

from __future__ import annotations

import sys

import numpy as np

from nki_conformance import source

SEEDS = (0, 21, 42, 63, 84)


def run(row, checkout, options) -> None:
    sys.path.insert(0, str(checkout / "accelopt"))
    import eval_numpy
    import neuronxcc.nki as nki

    kernel = source.load(checkout / row.path, "nkibench_kernel").kernel
    reference = source.load(checkout / row.reference.split(":")[0], "nkibench_reference")
    for seed in SEEDS[: options["seeds"]]:
        np.random.seed(seed)
        arguments = reference.get_inputs()
        want = reference.forward(*arguments)
        compiled = nki.baremetal(kernel, additional_compile_opt="--disable-dge --logical-nc-config=1")
        got = reference.transform_nki_outputs(compiled(*reference.transform_to_nki_inputs(arguments)), want)
        verdict = eval_numpy.KernelProperties()
        eval_numpy.check_precision_and_correctness(str(checkout / row.path), got, want, verdict, 2e-5)
        if not verdict.correct:
            raise AssertionError(f"seed {seed}: {verdict.metadata.get('correctness_error')}")
