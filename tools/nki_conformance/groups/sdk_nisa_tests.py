"""aws-neuron-sdk, nki/test: the unittest method itself."""

from __future__ import annotations

import unittest

from nki_conformance import source


def run(row, checkout, options) -> None:
    module = source.load(checkout / row.path)
    case, method = row.entry.split(".")
    result = unittest.TestResult()
    unittest.TestSuite([getattr(module, case)(method)]).run(result)
    for _, text in result.errors + result.failures:
        raise AssertionError(text)
    if result.skipped or result.testsRun != 1:
        raise AssertionError(f"nothing ran: {result.skipped or 'no test'}")
