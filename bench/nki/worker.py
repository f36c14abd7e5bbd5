#!/usr/bin/env python3
"""One side of the comparison: runs the cases whose names come as lines, one JSON object a line back.

{"seconds": median of the turn's calls, "best": ..., "error": relative error of the first result, "cpu":
processor seconds} or {"failed": why}. The two sides are processes of their own, because both want the name `nki`.
"""

import argparse
import gc
import importlib
import inspect
import json
import pathlib
import statistics
import sys
import time
import types

import numpy as np

import cases

HERE = pathlib.Path(__file__).resolve().parent


def headway():
    """Calls kernels on Headway's chip."""
    import headway.as_nki  # noqa: F401  (from here on `import nki` is Headway's)
    import nki

    def prepared(kernel):
        jitted = nki.jit(kernel)
        return lambda *arguments: jitted(*arguments)

    return prepared


def triton_viz(checkout):
    """Calls kernels in triton-viz's interpreter, without its tracer."""
    sys.path.insert(0, str(HERE / "standin"))
    # The interpreter is a module that needs NumPy and ml_dtypes only; its package's own __init__ would import
    # Triton and PyTorch.
    for name in ("triton_viz", "triton_viz.core", "triton_viz.core.simulation", "triton_viz.utils"):
        package = types.ModuleType(name)
        package.__path__ = [str(checkout / name.replace(".", "/"))]
        sys.modules[name] = package
    try:
        inspect.signature(np.add)
    except ValueError:
        inspect.signature = with_ufuncs(inspect.signature)
    simulation = importlib.import_module("triton_viz.core.simulation.nki_beta2")
    simulation.nki_patch_lang()
    return lambda kernel: simulation.NKIBeta2InterpretedFunction(kernel).run


def with_ufuncs(signature):
    """`inspect.signature` for NumPy before 2.0 too, whose ufuncs have none."""

    def of(function, *args, **kwargs):
        if not isinstance(function, np.ufunc):
            return signature(function, *args, **kwargs)
        kind = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Signature([inspect.Parameter(f"x{i + 1}", kind) for i in range(function.nin)])

    return of


class Side:
    def __init__(self, prepared, examples):
        self.prepared, self.examples = prepared, examples
        self.ready = {}

    def turn(self, name):
        case = cases.CASES[name]
        if name not in self.ready:
            call, arguments = self.prepared(case.load(self.examples)), case.arguments()
            call(*arguments)  # the first call isn't timed: memory, threads and caches of code
            self.ready[name] = call, arguments, case.check(arguments)
        call, arguments, error = self.ready[name]
        gc.collect()
        seconds, cpu = [], time.process_time()
        for _ in range(case.calls):
            # Accumulating sides would show if a result were only kept from the call before.
            case.result(arguments)[...] = 0
            start = time.perf_counter()
            call(*arguments)
            seconds.append((time.perf_counter() - start) / case.scale)
        cpu = time.process_time() - cpu
        case.check(arguments)
        return {"seconds": statistics.median(seconds), "best": min(seconds), "error": error, "cpu": cpu}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("side", choices=("headway", "triton-viz"))
    parser.add_argument(
        "--triton-viz", type=pathlib.Path, help="a checkout: its examples, and for that side its interpreter"
    )
    args = parser.parse_args()
    prepared = headway() if args.side == "headway" else triton_viz(args.triton_viz)
    side = Side(prepared, args.triton_viz / "examples" / "nki_beta2")
    for line in sys.stdin:
        try:
            answer = side.turn(line.strip())
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
