"""The kernels of examples/nki: right, and each version faster than the one before (docs/nki-tutorial.md)."""

import importlib.util
import pathlib

import numpy as np
import pytest

ml_dtypes = pytest.importorskip("ml_dtypes")

import headway.as_nki  # noqa: E402, F401
from headway import nki  # noqa: E402

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "nki"
VERSIONS = sorted(path.stem for path in EXAMPLES.glob("matmul_*.py"))


def kernel(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.matmul


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("k, m, n", [(256, 1024, 1024), (512, 512, 2048)])
def test_the_product_is_right(name, k, m, n, rng):
    lhsT = rng.standard_normal((k, m)).astype(ml_dtypes.bfloat16)
    rhs = rng.standard_normal((k, n)).astype(ml_dtypes.bfloat16)
    product = lhsT.T.astype(np.float32) @ rhs.astype(np.float32)
    # Sums are float32 and in another order than NumPy's; rounding to 8 bits of mantissa is the rest.
    found = kernel(name)(lhsT, rhs).astype(np.float32)
    np.testing.assert_allclose(found, product, rtol=2**-8, atol=1e-3)


def test_each_version_is_faster_and_the_last_is_at_its_bound():
    assert len(VERSIONS) == 5
    operand = np.zeros((2048, 2048), ml_dtypes.bfloat16)
    profiles = [nki.profile(kernel(name))(operand, operand) for name in VERSIONS]
    seconds = [profile.seconds for profile in profiles]
    assert all(after < 0.95 * before for before, after in zip(seconds, seconds[1:])), seconds
    assert profiles[0].bound == "dma_issue"
    assert "tensor" in profiles[-1].bound
    # 1,024 products of 512 columns each at 2.4 GHz take 218 us.
    assert 1024 * 512 / 2.4e9 <= seconds[-1] <= 1.1 * 1024 * 512 / 2.4e9
