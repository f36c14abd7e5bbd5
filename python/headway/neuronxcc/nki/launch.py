"""Kernels of the older dialect: N-dimensional grids, outputs of any extents, several ways to start them."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from headway.neuronxcc.nki.tile import Tile, new_tile, tile_over
from headway.nki import buffers, isa, profiling
from headway.nki import kernel as kernels
from headway.nki.errors import InputError, KernelError
from headway.nki.trace import session


@dataclass
class Returned:
    """An output: a tensor in HBM and the extents that the kernel gave it."""

    tensor: object
    shape: tuple


def _returned(value):
    if isinstance(value, Tile):
        source = value
        if not buffers.is_hbm(value.buffer):
            # A simulator may be asked for a tile; on the chip results lie in HBM.
            out = new_tile(value.shape, value.dtype, buffers.shared_hbm)
            isa.dma_copy(
                out.native(), source.native() if buffers.is_sbuf(value.buffer) else _to_sbuf(value).native()
            )
            source = out
        return Returned(source.native(), value.shape)
    return value


def _to_sbuf(tile: Tile) -> Tile:
    out = new_tile(tile.shape, tile.dtype, buffers.sbuf)
    isa.tensor_copy(out.native(), tile.native())
    return out


class OldRecording(kernels.Recording):
    """A call's recording: the instances of the grid one after another in one program."""

    def __init__(self, name, spec, grid: tuple, **options):
        super().__init__(name, spec, 1, simulating=True, **options)
        self.grid = grid

    def record(self, function, args, kwargs, schedule=None):
        def all_instances(*given, **named):
            result = None
            memo = session().memo
            memo["grid"] = self.grid
            for number, place in enumerate(itertools.product(*(range(n) for n in self.grid))):
                memo["program"] = place
                memo["hbm"] = 0
                value = function(*given, **named)
                if number == 0:
                    result = value
            return self._unwrapped_in(result)

        super().record(kernels.named_like(all_instances, function), args, kwargs, schedule)

    def _unwrapped_in(self, result):
        """Inside the recording, as outputs may have to be copied to HBM."""
        if isinstance(result, (list, tuple)):
            return type(result)(self._unwrapped_in(item) for item in result)
        return _returned(result)

    def _wrapped(self, tensor, given):
        return tile_over(tensor, given.shape)

    def _tensors(self, returned):
        if isinstance(returned, Returned):
            return [returned.tensor]
        if isinstance(returned, (list, tuple)):
            return [tensor for item in returned for tensor in self._tensors(item)]
        return []

    def _arrays(self, returned, torch, fresh):
        if isinstance(returned, Returned):
            values = super()._arrays(returned.tensor, torch, fresh)
            return values.reshape(returned.shape)
        return super()._arrays(returned, torch, fresh)

    def execute(self):
        try:
            return super().execute()
        except KernelError as error:
            # NumPy's words for a row out of bounds, which kernels of this dialect expect from its simulator.
            found = re.search(
                r"index (-?\d+) of row \d+ reaches bytes (-?\d+) to -?\d+ of '([^']*)', which has (\d+)",
                str(error),
            )
            if found is None:
                raise
            first, name, size = int(found[2]), found[3], int(found[4])
            element = self.sessions[0].memo.get("bytes of an element", {}).get(name, 1)
            raise IndexError(
                f"index {first // element} is out of bounds for axis 0 with size {size // element}"
            ) from error


class OldKernel(kernels.Kernel):
    """A kernel of the older dialect. ``kernel[a, b](...)`` runs a grid of instances."""

    def grid_shape(self) -> tuple:
        grid = self.grid if isinstance(self.grid, (tuple, list)) else (self.grid,)
        try:
            shape = tuple(int(n) for n in grid)
        except (TypeError, ValueError):
            raise InputError(f"kernel[{self.grid!r}]: the extents of a grid are whole numbers") from None
        if any(n < 1 for n in shape):
            raise InputError(f"kernel[{self.grid!r}]: the extents of a grid are at least 1")
        return shape

    def record(self, *args, **kwargs) -> OldRecording:
        name = getattr(self.func, "__name__", type(self.func).__name__)
        recording = OldRecording(name, self.spec(), self.grid_shape())
        recording.record(self.func, args, kwargs, self.schedule)
        return recording


class OldProfiled(profiling.Profiled, OldKernel):
    """A kernel that leaves the profile and the latency of its last call."""


def jit(function=None, *, platform_target=None, **_options):
    """Makes a function a kernel. ``mode`` and the compiler's options have no effect."""
    if function is None:
        return lambda f: jit(f, platform_target=platform_target)
    if isinstance(function, OldKernel):
        return function
    if isinstance(function, kernels.Kernel):
        function = function.func
    platform = {"inf2": "trn1", "gen2": "trn1", "gen3": "trn2", "gen4": "trn3"}.get(
        platform_target, platform_target
    )
    return OldKernel(function, platform=platform)


def baremetal(function=None, **_options):
    """Runs a kernel on arrays."""
    return (lambda f: jit(f)) if function is None else jit(function)


def benchmark(function=None, **options):
    """Runs a kernel and measures it: ``.benchmark_result.nc_latency.get_latency_percentile(p)`` in
    microseconds.
    """
    return (lambda f: OldProfiled(f, options)) if function is None else OldProfiled(function, options)


def profile(function=None, **options):
    """Runs a kernel and leaves its profile as ``.profile_result``."""
    return benchmark(function, **options)


def trace(function=None, **_options):
    """A kernel whose outputs are arguments."""
    return jit(function)


def simulate_kernel(kernel, *args, **kwargs):
    """Runs a kernel (or kernel[grid]) on NumPy arrays; arguments that it writes to are updated."""
    return jit(kernel)(*args, **kwargs)
