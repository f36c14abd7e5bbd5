"""A module for each group of rows; `run(row, checkout, options)` returns if the row passes, else raises."""

from __future__ import annotations

import importlib

MODULES = {
    "sdk-examples": "sdk_examples",
    "nki-library": "nki_library",
    "nki-samples": "nki_samples",
    "nki-autotune": "nki_autotune",
    "sdk-nisa-tests": "sdk_nisa_tests",
    "cs149-asst4": "cs149",
    "nkibench": "nkibench",
}


def runner(group: str):
    """The group's function `run`. KeyError if there is none."""
    return importlib.import_module(f"{__name__}.{MODULES[group]}").run
