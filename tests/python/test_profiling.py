"""profile and benchmark: the simulated time of a call."""

import json

import numpy as np
import pytest

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl
from headway.nki.errors import InputError


@nki.jit
def add(a, b):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x, y = nl.load(a), nl.load(b)
    nisa.tensor_tensor(x, x, y, nl.add)  # the sum
    nl.store(out, x)
    return out


def arrays(rng):
    return [rng.standard_normal((128, 512)).astype(np.float32) for _ in range(2)]


def test_a_profile_has_figures_lines_and_files(rng, tmp_path):
    profile = nki.profile(add)(*arrays(rng))
    assert 1e-6 < profile.seconds < 1e-3 and profile.low <= profile.seconds <= profile.high
    assert profile.arguments == ["a=float32[128, 512]", "b=float32[128, 512]"]
    line = next(i for i, text in enumerate(open(__file__), 1) if "# the sum" in text)
    assert f"test_profiling.py:{line}" in str(profile)
    assert "trn2" in profile.text()
    profile.save(tmp_path / "p.json")
    assert json.loads((tmp_path / "p.json").read_text())["kernel"] == "add"
    profile.save(tmp_path / "p.html")
    assert "headway-data" in (tmp_path / "p.html").read_text()
    profile.save(tmp_path / "p.pftrace")
    assert (tmp_path / "p.pftrace").stat().st_size > 100
    with pytest.raises(InputError, match="p.txt"):
        profile.save(tmp_path / "p.txt")


def test_the_same_program_takes_the_same_time(rng):
    x = arrays(rng)
    assert nki.profile(add)(*x).seconds == nki.profile(add)(*x).seconds
    spec = nki.ArraySpec((128, 512), np.float32)
    assert nki.profile(add)(spec, spec).seconds == nki.profile(add)(*x).seconds


def test_more_work_takes_longer():
    def seconds(columns):
        spec = nki.ArraySpec((128, columns), nl.float32)
        return nki.profile(add)(spec, spec).seconds

    assert seconds(256) < seconds(2048) < seconds(8192)


def test_benchmark_executes_and_measures(rng):
    a, b = arrays(rng)
    measured = nki.benchmark(add)
    np.testing.assert_array_equal(measured(a, b), a + b)
    latency = measured.benchmark_result.nc_latency
    assert latency.get_latency_percentile(50) == latency.get_latency_percentile(99) > 1
    with pytest.raises(InputError, match="101"):
        latency.get_latency_percentile(101)


def test_keyword_arguments_make_decorators(rng):
    @nki.benchmark(warmup=5, iters=10)
    def kernel(a, b):
        return add.func(a, b)

    @nki.profile(working_directory="/tmp", profile_nth=1)
    def other(a, b):
        return add.func(a, b)

    a, b = arrays(rng)
    np.testing.assert_array_equal(kernel(a, b), a + b)
    np.testing.assert_array_equal(other(a, b), a + b)
    assert kernel.benchmark_result.nc_latency.get_latency_percentile(50) > 0
    assert other.profile_result.seconds > 0
