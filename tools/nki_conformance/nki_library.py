"""Runs pytest over nki-library's harness, in its simulation mode, in the current folder (the checkout)."""

import sys

import headway.as_nki  # noqa: F401  (answers to nki)
import private_modules
import pytest


class Harness:
    """What the published harness lacks in simulation mode."""

    def pytest_sessionstart(self):
        # It is set by compiling, which simulation skips, and looked at after running.
        sys.modules["test.utils.test_orchestrator"].Orchestrator._compiled_kernel = None


private_modules.install()
sys.exit(pytest.main(sys.argv[1:], plugins=[Harness()]))
