"""What all tests of the Python package share."""

import os

import numpy as np
import pytest

# Two threads on whatever machine: results don't depend on it.
os.environ.setdefault("HEADWAY_THREADS", "2")


@pytest.fixture
def rng(request):
    """Random numbers that differ from test to test and not from run to run."""
    return np.random.default_rng(sum(request.node.name.encode()))


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for name in ("NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_PRECISE_FP", "NKI_SIMULATOR", "HEADWAY_MAX_INSTRUCTIONS"):
        monkeypatch.delenv(name, raising=False)
