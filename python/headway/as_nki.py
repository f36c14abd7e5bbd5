"""``import headway.as_nki``: from here on ``import nki`` and ``import neuronxcc.nki`` are answered by Headway in this process.

Nothing else takes these names, so that an installed package of the vendor's is never shadowed silently: where there is one, a
ShadowWarning says so.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import warnings

# Name that a kernel imports: our module. The longest that fits counts.
_NAMES = {
    "nki": "headway.nki",
    "neuronxcc": "headway.neuronxcc",
    "nki_cpu_simulator.nki": "headway.nki",
    "nki_cpu_simulator": "headway.nki_cpu_simulator",
    "neuron_dtypes": "headway.neuron_dtypes",
}


def _ours(name: str) -> str | None:
    """Our module for the name, or None."""
    for known, ours in _NAMES.items():
        if name == known or name.startswith(known + "."):
            return ours + name[len(known):]
    return None


class _Loader(importlib.abc.Loader):
    """Gives the module that is already there under its own name."""

    def __init__(self, ours: str):
        self.ours = ours

    def create_module(self, spec):
        module = importlib.import_module(self.ours)
        self.kept = {name: getattr(module, name, None) for name in ("__spec__", "__loader__", "__package__", "__name__", "__path__", "__file__")}
        return module

    def exec_module(self, module):
        # The import machinery has put the alias into these; the module stays what it is.
        for name, value in self.kept.items():
            if value is not None:
                setattr(module, name, value)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        ours = _ours(name)
        if ours is None:
            return None
        try:
            found = importlib.util.find_spec(ours)
        except ModuleNotFoundError:
            found = None
        if found is None:
            return None
        return importlib.machinery.ModuleSpec(name, _Loader(ours), is_package=found.submodule_search_locations is not None)


def install() -> None:
    """Answers to the names; more than once does no more."""
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    from headway.nki.errors import ShadowWarning

    for name in ("nki", "neuronxcc"):
        loaded = sys.modules.get(name)
        if loaded is not None and not loaded.__name__.startswith("headway."):
            raise ImportError(
                f"'{name}' is already imported from {getattr(loaded, '__file__', 'elsewhere')}; import headway.as_nki before it"
            )
        try:
            other = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            other = None
        if other is not None and other.origin:
            warnings.warn(f"the installed package '{name}' at {other.origin} is replaced by Headway's in this process", ShadowWarning, stacklevel=3)
    sys.meta_path.insert(0, Finder())


install()
