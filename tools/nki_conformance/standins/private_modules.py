"""Two modules that nki-library's harness imports and its repository doesn't hold. They guard and analyse
machines with chips, of which there are none here; the names are enough."""

import sys
import types


class LockStatus:
    pass


class LockResult:
    pass


def analyze_trace(*_args, **_kwargs):
    """There are no traces of a chip."""


def install() -> None:
    scripts = types.ModuleType("test.utils.scripts")
    scripts.__path__ = []
    remote = types.ModuleType("test.utils.scripts.remote_lock_scripts")
    remote.LockStatus, remote.LockResult = LockStatus, LockResult
    analysis = types.ModuleType("test.utils.perf_analysis_private")
    analysis.analyze_trace = analyze_trace
    for module in (scripts, remote, analysis):
        sys.modules[module.__name__] = module
