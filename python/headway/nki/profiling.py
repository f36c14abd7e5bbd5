"""How long a kernel takes on the chip: ``profile`` and ``benchmark``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from headway.nki import kernel as kernels
from headway.nki.errors import InputError


class Profile:
    """Where the time of one call goes, by the simulated timeline.

    ``seconds`` and its interval ``low`` to ``high``; ``figures`` (a dict with Neuron Explorer's names); ``bound``; ``print(profile)``
    shows it all; ``save("x.json" | "x.html" | "x.pftrace")`` writes it.
    """

    def __init__(self, native):
        self.native = native
        self.figures = dict(native.figures)

    @property
    def seconds(self) -> float:
        return self.figures["total_time"]

    @property
    def low(self) -> float:
        return self.native.low

    @property
    def high(self) -> float:
        return self.native.high

    @property
    def bound(self) -> str:
        """The resource that bounds the kernel: "dma_descriptors"."""
        return self.native.bound

    @property
    def arguments(self) -> list[str]:
        return self.native.arguments

    def text(self) -> str:
        return self.native.text()

    __str__ = text

    def __repr__(self) -> str:
        return f"<profile of {self.native.kernel}: {self.seconds * 1e6:.2f} us, bound by {self.bound}>"

    def json(self) -> str:
        return self.native.json()

    def as_dict(self) -> dict:
        return json.loads(self.native.json())

    def save(self, path) -> None:
        """By the ending: .json the profile, .html a page of it, .pftrace for ui.perfetto.dev."""
        path = os.fspath(path)
        if path.endswith(".json"):
            contents = self.native.json().encode()
        elif path.endswith(".html"):
            contents = self.native.page().encode()
        elif path.endswith(".pftrace"):
            contents = self.native.perfetto()
        else:
            raise InputError(f"{path}: a profile is saved as .json, .html or .pftrace")
        aside = f"{path}.tmp"
        with open(aside, "wb") as file:
            file.write(contents)
        os.replace(aside, path)


def profile(kernel=None, **options):
    """``profile(kernel)(args)`` is the Profile of that call; nothing is executed, arrays may be ``ArraySpec``.

    With keyword arguments only it is NKI 0.1's decorator: a kernel whose calls execute and leave their profile as ``.profile_result``.
    """
    if kernel is None:
        return lambda function: Profiled(function, options)
    wanted = kernel if isinstance(kernel, kernels.Kernel) else kernels.Kernel(kernel)
    return lambda *args, **kwargs: wanted.record(*args, **kwargs).profile()


class Latency:
    """Percentiles of a latency that is always the same: the model's."""

    def __init__(self, seconds: float):
        self.seconds = seconds

    def get_latency_percentile(self, percentile: int) -> float:
        """In microseconds."""
        if not 0 <= percentile <= 100:
            raise InputError(f"percentile {percentile}: 0 to 100")
        return self.seconds * 1e6


class BenchmarkResult:
    """``nc_latency``: of the kernel with its launch, as the runtime measures it."""

    def __init__(self, profile: Profile):
        self.profile = profile
        launch = profile.figures.get("launch_time", 0.0)
        self.nc_latency = Latency(profile.seconds + launch)


class Profiled(kernels.Kernel):
    """A kernel that executes, and leaves the profile of its last call as ``profile_result`` and ``benchmark_result``."""

    def __init__(self, function: Callable, options: dict | None = None, **own):
        inner = function
        if isinstance(function, kernels.Kernel):
            own = {"grid": function.grid, "simulating": function.simulating, "platform": function.platform,
                   "schedule": function.schedule, **own}
            inner = function.func
        super().__init__(inner, **own)
        self.options = options or {}
        self.profile_result: Profile | None = None
        self.benchmark_result: BenchmarkResult | None = None

    def __call__(self, *args, **kwargs):
        recording = self.record(*args, **kwargs)
        self.profile_result = recording.profile()
        self.benchmark_result = BenchmarkResult(self.profile_result)
        return recording.execute()


def benchmark(kernel=None, **options):
    """``benchmark(kernel)`` (also a decorator, and with NKI 0.1's options) executes and measures: after a call,
    ``.benchmark_result.nc_latency.get_latency_percentile(50)`` is the latency in microseconds."""
    if kernel is None:
        return lambda function: Profiled(function, options)
    return Profiled(kernel, options)
