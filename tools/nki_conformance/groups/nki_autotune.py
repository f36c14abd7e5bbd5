"""nki-autotune: kernels in float32 through the repository's own wrapper of nki.simulate."""

from __future__ import annotations

import sys

import numpy as np

from nki_conformance import judge, source

TOLERANCE = {"atol": 5e-3, "rtol": 5e-3}


def run(row, checkout, options) -> None:
    sys.path[:0] = [str(checkout / "nkigym" / "src"), str(checkout)]
    if row.path.startswith("test/"):
        _test(row, checkout)
        return
    from nkigym.synthesis.simulate_nki import simulate_fp32

    module = source.load(checkout / row.path)
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((2048, 2048)).astype(np.float32) for _ in range(2))
    got = simulate_fp32(getattr(module, row.entry))(left, right)
    got = got[0] if isinstance(got, tuple) else got
    if row.entry == "matmul_lhs_rhs_nkigym":
        want = left @ right
    elif row.entry == "rmsnorm_matmul_online":
        mean_square = np.mean(left.astype(np.float64) ** 2, axis=1, keepdims=True)
        want = (left / np.sqrt(mean_square + module.EPS)) @ right
    else:
        want = left.T @ right
    judge.close(got, want, **TOLERANCE)


def _test(row, checkout) -> None:
    import pytest

    class Outcome:
        passed = 0
        failed: list[str] = []

        def pytest_runtest_logreport(self, report):
            if report.failed:
                self.failed.append(report.longreprtext)
            elif report.when == "call" and report.passed:
                self.passed += 1

    outcome = Outcome()
    # The repository's package `test` would be Python's own.
    sys.modules.pop("test", None)
    file = checkout / row.path
    code = pytest.main(
        [f"{file}::{row.entry}", "-q", "-p", "no:cacheprovider", f"--rootdir={checkout}"], plugins=[outcome]
    )
    if outcome.failed:
        raise AssertionError(outcome.failed[0])
    if code != 0 or outcome.passed == 0:
        raise AssertionError(f"no case passed (pytest ended with {int(code)})")
