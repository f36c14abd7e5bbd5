"""Which chip kernels run on: ``NEURON_PLATFORM_TARGET_OVERRIDE`` (trn1, trn2, trn3 or gen2, gen3, gen4), default trn2, or what a call asks for."""

from __future__ import annotations

import os
from functools import lru_cache

from headway import _chip
from headway.nki.errors import InputError

_NAMES = {"trn1": "trn1", "inf2": "trn1", "gen2": "trn1", "trn2": "trn2", "gen3": "trn2", "trn3": "trn3", "gen4": "trn3"}


@lru_cache(maxsize=8)
def load(name: str):
    """The chip file of that name or path, as ``_chip.Spec``."""
    return _chip.Spec.load(name)


def name() -> str:
    """The name or path of the chip file in force."""
    # The second is what nki-library's tests set.
    asked = os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE", "") or os.environ.get("NKI_NC_VERSION", "")
    if not asked:
        return "trn2"
    if asked.lower() in _NAMES:
        return _NAMES[asked.lower()]
    if asked.endswith(".toml") or "/" in asked:
        return asked
    raise InputError(f"NEURON_PLATFORM_TARGET_OVERRIDE is '{asked}'; it may be {', '.join(_NAMES)} or the path of a chip file")


def spec():
    """The chip in force: that of the kernel that is being recorded, or else the default."""
    from headway.nki import trace

    session = trace.active()
    return session.spec if session is not None else load(name())
