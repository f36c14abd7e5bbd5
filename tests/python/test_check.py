"""``python -m headway kernel check``, ``python -m headway FILE.py``, and the comparison with references."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from headway.nki import check, comparison, dtypes
from headway.nki.errors import InputError

KERNELS = """
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

def copied(x, rows=128):
    t = nl.ndarray((rows, x.shape[1]), x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(t, x[0:rows])
    return t

@nki.jit
def added(x, y, scale=1.0):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t, u = copied(x, x.shape[0]), copied(y, y.shape[0])
    nisa.scalar_tensor_tensor(t, u, nl.multiply, scale, nl.add, t)
    nisa.dma_copy(out, t)
    return out

def added_reference(x, y, scale=1.0):
    return x + scale * y

@nki.jit
def spoiled(x, y):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t, u = copied(x), copied(y)
    nisa.tensor_tensor(t, t, u, nl.add)
    nisa.memset(t[64:128, 3:5], 0.0)
    nisa.dma_copy(out, t)
    return out

@nki.jit
def unwritten(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, x.shape[1]), x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(t[0:64], x[0:64])
    nisa.dma_copy(out, t)
    return out

@nki.jit
def copy_of(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t = copied(x)
    nisa.dma_copy(out, t)
    return out

@nki.jit
def raced(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t = copied(x)
    nisa.tensor_scalar(t, t, nl.add, float(nl.program_id(0)))
    nisa.dma_copy(out, t)
    return out

@nki.jit
def in_place(x):
    t = copied(x)
    nisa.tensor_scalar(t, t, nl.multiply, 2.0)
    nisa.dma_copy(x, t)

def twice(x):
    return 2 * x

@nki.jit
def two_results(x):
    a = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    b = nl.ndarray((x.shape[0], 1), nl.float32, buffer=nl.shared_hbm)
    t = copied(x)
    s = nl.ndarray((x.shape[0], 1), nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(s, nl.add, t, axis=1)
    nisa.dma_copy(a, t)
    nisa.dma_copy(b, s)
    return a, b

def two_reference(x):
    assert x.dtype == np.float64
    return x, x.sum(1, keepdims=True)

@nki.jit
def careless(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.hbm)
    names = {1: copied(x)}
    nisa.dma_copy(out, names[1])
    return out

@nki.jit
def raises(x):
    return [][1]

def same(x):
    return x

def failing(x):
    return x["missing"]

def other_shape(x):
    return x[:1]

def torch_reference(x):
    import torch
    return torch.mul(x, 1.0)
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "checked_kernels.py"
    path.write_text(KERNELS)
    yield path
    sys.modules.pop("checked_kernels", None)
    sys.path[:] = [entry for entry in sys.path if entry != str(tmp_path)]


@pytest.fixture
def run(file, capsys, monkeypatch):
    """run(kernel, options ...): exit code, what was printed, the JSON."""
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")  # so that it is restored

    def ran(kernel, *options):
        code = check.main([f"{file}:{kernel}", "--json", *options])
        captured = capsys.readouterr()
        lines = captured.out.strip().split("\n")
        result = json.loads(lines[-1]) if lines[-1].startswith("{") else None
        return code, captured.out + captured.err, result

    return ran


def test_a_right_kernel_passes_over_shapes_dtypes_and_samples(run):
    code, text, result = run("added", "--reference", ":added_reference", "--arg", "x=bf16[128,512]|f32[64,1024]|f16[32,8]",
                             "--arg", "y=bf16[128,512]|f32[64,1024]|f16[32,8]", "--arg", "scale=3", "--samples", "2")
    assert code == 0 and result["ok"], text
    assert len(result["cases"]) == 6
    dtypes_ = [case["outputs"][0]["dtype"] for case in result["cases"]]
    assert dtypes_ == ["bfloat16"] * 2 + ["float32"] * 2 + ["float16"] * 2
    for case in result["cases"]:
        output = case["outputs"][0]
        assert 0 < output["error"] <= output["allowed"] and output["differing"] == 0
    # A second sample has other numbers.
    assert result["cases"][2]["outputs"][0]["allowed"] != result["cases"][3]["outputs"][0]["allowed"]
    assert "x=float32[64, 1024]" in text and "largest error" in text and "chip trn2 (" in text


def test_seeds_repeat(run):
    call = ("added", "--reference", ":added_reference", "--arg", "x=f32[128,64]", "--arg", "y=f32[128,64]")
    first, again, other = run(*call)[2], run(*call)[2], run(*call, "--seed", "7")[2]
    assert first == again != other


def test_a_wrong_kernel_fails_and_the_first_difference_is_named(run):
    code, text, result = run("spoiled", "--reference", ":added_reference", "--arg", "x=f32[128,16]", "--arg", "y=f32[128,16]")
    assert code == 1 and not result["ok"]
    assert "output0[64, 3] is 0, the reference says " in text and "128 of 2048 elements differ" in text and "DIFFERS" in text
    assert result["cases"][0]["outputs"][0]["differing"] == 128


def test_a_scale_that_is_slightly_off_is_found(run):
    options = ("--reference", ":added_reference", "--arg", "x=f32[128,16]", "--arg", "y=f32[128,16]")
    code, text, _ = run("added", *options, "--arg", "scale=1.001")
    assert code == 0, text
    # The same kernel beside a reference that doesn't get the scale.
    code, text, result = run("spoiled", *options, "--tolerance", "10")
    assert code == 0, text
    assert result["cases"][0]["outputs"][0]["tolerance"] == 10


def test_unwritten_memory_is_an_error(run):
    code, text, result = run("unwritten", "--arg", "x=f32[128,16]")
    assert code == 3 and "[unwritten]" in text and "checked_kernels.py:" in text
    assert not result["ok"] and "never written" in result["error"]


def test_races_are_errors(run):
    code, text, _ = run("raced", "--arg", "x=f32[128,16]", "--lnc", "2")
    assert code == 3 and "[race]" in text
    assert run("raced", "--reference", ":same", "--arg", "x=f32[128,16]")[0] == 0
    # Both cores write the same values: that only warns.
    code, text, _ = run("copy_of", "--reference", ":same", "--arg", "x=f32[128,16]", "--lnc", "2")
    assert code == 0 and "warning: " in text and "[race]" in text


def test_kernels_that_write_to_their_arguments(run):
    assert run("in_place", "--reference", ":twice", "--arg", "x=f32[128,16]")[0] == 0
    assert run("in_place", "--reference", ":same", "--arg", "x=f32[128,16]")[0] == 1


def test_several_results_and_tolerances_by_name(run):
    call = ("two_results", "--reference", ":two_reference", "--arg", "x=f32[128,64]")
    code, text, result = run(*call)
    assert code == 0, text
    assert [o["shape"] for o in result["cases"][0]["outputs"]] == [[128, 64], [128, 1]]
    assert run(*call, "--tolerance", "output1=0")[0] == 1
    assert run(*call, "--tolerance", "output0=0")[0] == 0  # copied bit for bit


def test_strict_findings_count(run):
    code, text, result = run("careless", "--reference", ":same", "--arg", "x=f32[128,16]", "--strict")
    assert code == 3
    assert {f["rule"] for f in result["strict"]} == {"dict-key", "output-buffer"}
    assert "[dict-key]" in text and "Strict: 2 errors, 0 warnings" in text
    assert run("careless", "--reference", ":same", "--arg", "x=f32[128,16]")[0] == 0


def test_without_a_reference_only_the_rules_count(run):
    code, text, result = run("spoiled", "--arg", "x=f32[128,16]", "--arg", "y=f32[128,16]")
    assert code == 0 and "weren't compared" in text
    assert "error" not in result["cases"][0]["outputs"][0]


def test_values_of_an_interval(run):
    call = ("in_place", "--reference", ":twice", "--arg", "x=f32[128,16]")
    small = run(*call, "--range", "x=0:1e-3")[2]["cases"][0]["outputs"][0]["allowed"]
    assert small < 1e-2 * run(*call)[2]["cases"][0]["outputs"][0]["allowed"]


@pytest.mark.parametrize("kernel,options,code,words", [
    ("added", ["--reference", ":added_reference", "--arg", "x=f32[128,16]"], 2, "'y'"),
    ("added", ["--arg", "x=f32[128,16]", "--arg", "z=3"], 2, "no parameter 'z'"),
    ("added", ["--arg", "x"], 2, "NAME=VALUE"), ("added", ["--arg", "x=f32[128"], 2, "closing bracket"),
    ("added", ["--arg", "x=f33[128]"], 2, "f33"), ("added", ["--arg", "x=f32[0]"], 2, "no extent"),
    ("added", ["--arg", "x=f32[1]|f32[2]", "--arg", "y=f32[1]|f32[2]|f32[3]"], 2, "different numbers of alternatives"),
    ("added", ["--tolerance", "much"], 2, "--tolerance"), ("added", ["--tolerance", "-1"], 2, "at least 0"),
    ("added", ["--range", "x=1"], 2, "--range"), ("added", ["--range", "x=2:1"], 2, "isn't below"), ("added", ["--samples", "0"], 2, "at least 1"),
    ("added", ["--lnc", "two"], 2, "--lnc"), ("added", ["--chip", "trn9"], 2, "trn2"), ("missing", [], 2, "has no 'missing'"),
    ("copy_of", ["--reference", ":nothing"], 2, "has no 'nothing'"),
    ("copy_of", ["--reference", ":failing", "--arg", "x=f32[128,16]"], 2, "the reference failed at checked_kernels.py:"),
    ("copy_of", ["--reference", ":other_shape", "--arg", "x=f32[128,16]"], 1, "shape [128, 16], the reference's [1, 16]"),
    ("two_results", ["--reference", ":same", "--arg", "x=f32[128,16]"], 2, "2 results, the reference 1"),
    ("raises", ["--arg", "x=f32[128,16]"], 2, "IndexError"), ("added", ["--arg", "x=f32[256,16]", "--arg", "y=f32[256,16]"], 3, "[partitions]"),
])
def test_what_is_wrong_is_said(run, kernel, options, code, words):
    found, text, _ = run(kernel, *options)
    assert found == code and words in text, text


def test_references_in_pytorch(run):
    pytest.importorskip("torch")
    code, text, _ = run("copy_of", "--reference", ":torch_reference", "--torch", "--arg", "x=bf16[128,16]")
    assert code == 0, text


# --- The comparison ---


def test_tolerances_follow_the_coarsest_type():
    tolerance = comparison.tolerance_of
    assert tolerance(dtypes.float32, [dtypes.float32]) == 2e-5
    assert tolerance(dtypes.bfloat16, []) == 4 * 2.0**-8
    assert tolerance(dtypes.float32, [dtypes.bfloat16, dtypes.float32]) == 4 * 2.0**-8
    assert tolerance(dtypes.float16, [dtypes.int32]) == 4 * 2.0**-11
    assert tolerance(dtypes.int32, [dtypes.bfloat16]) == 0


@pytest.mark.parametrize("got,want,differing", [
    ([1.0, 2.0], [1.0, 2.0], 0), ([1.0, 2.0], [1.0, 2.1], 1), ([np.nan, 2.0], [1.0, 2.0], 1), ([np.nan, 2.0], [np.nan, 2.0], 0),
    ([1.0, 2.0], [np.nan, 2.0], 1), ([np.inf, 2.0], [np.inf, 2.0], 0), ([-np.inf, 2.0], [np.inf, 2.0], 1), ([1.0, 2.0], [np.inf, 2.0], 1),
    ([1e-9, 2.0], [0.0, 2.0], 0), ([0.1, 2.0], [0.0, 2.0], 1),
])
def test_elements_that_differ(got, want, differing):
    found = comparison.compare("y", np.array(got, np.float32), np.array(want), 1e-3)
    assert found.differing == differing and found.ok == (differing == 0)


def test_the_worst_is_what_exceeds_its_bound_most():
    found = comparison.compare("y", np.array([100.0, 0.0, 1.0], np.float32), np.array([100.1, 0.09, 1.0]), 1e-3)
    # 0.1 is more, but allowed: its bound is almost three times that of 0.09.
    assert found.error == pytest.approx(0.09) and found.bound == pytest.approx(1e-3 * (0.09 + np.sqrt((100.1**2 + 0.09**2 + 1) / 3)))
    assert found.differing == 1 and found.first.startswith("y[1] is 0, the reference says 0.09")


def test_whole_numbers_must_be_exact():
    assert comparison.compare("y", np.array([1, 2], np.int32), np.array([1, 2]), 0.0).ok
    assert comparison.compare("y", np.array([1, 2], np.int32), np.array([1, 3]), 0.0).first.startswith("y[1] is 2, the reference says 3")


def test_attributes_of_the_command_line():
    assert check.attribute("3", "") == 3 and isinstance(check.attribute("3", ""), int)
    assert check.attribute("0.5", "") == 0.5 and check.attribute("true", "") is True and check.attribute("None", "") is None
    assert check.attribute("[1,[2,3]]", "") == (1, (2, 3)) and check.attribute("fast", "") == "fast"
    assert check.attribute("nl.float32", "") == dtypes.float32
    with pytest.raises(InputError, match="nl.nothing"):
        check.attribute("nl.nothing", "")


# --- python -m headway ---


def python(*arguments, cwd=None):
    environment = {name: value for name, value in os.environ.items() if name != "NEURON_PLATFORM_TARGET_OVERRIDE"}
    done = subprocess.run([sys.executable, "-m", "headway", *arguments], capture_output=True, text=True, timeout=120, cwd=cwd, env=environment)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def absolute(monkeypatch):
    """PYTHONPATH that holds in any folder."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p))


def test_scripts_run_with_the_names_answered(tmp_path, absolute):
    (tmp_path / "beside.py").write_text("name = 'beside'\n")
    script = tmp_path / "script.py"
    script.write_text("import sys, nki, neuronxcc.nki, beside\nprint(__name__, nki.__name__, sys.argv[1:], beside.name, sys.argv[0] == __file__)\nsys.exit(7)\n")
    code, out, _ = python(str(script), "--flag", "3", cwd=tmp_path)
    assert code == 7 and out == "__main__ headway.nki ['--flag', '3'] beside True\n"
    code, out, _ = python("-m", "script", "a", cwd=tmp_path)
    assert code == 7 and out.startswith("__main__ headway.nki ['a'] beside")


def test_names_are_not_answered_without_being_asked():
    done = subprocess.run([sys.executable, "-c", "import headway.nki\nimport nki"], capture_output=True, text=True)
    assert done.returncode == 1 and "No module named 'nki'" in done.stderr


@pytest.mark.parametrize("arguments,code,words", [
    ([], 2, "usage"), (["--help"], 0, "usage"), (["--version"], 0, "0."), (["--wrong"], 2, "--wrong is no option"), (["missing.py"], 2, "no such file"),
    (["-m"], 2, "names no module"), (["kernel"], 2, "kernel check"), (["kernel", "time", "k.py:f"], 2, "headway kernel time k.py:f"),
    (["kernel", "check"], 2, "name"), (["kernel", "check", "--help"], 0, "--reference"),
])
def test_use_and_misuse(arguments, code, words):
    found, out, errors = python(*arguments)
    assert found == code and words in out + errors


def test_the_command_as_a_process(file):
    code, out, errors = python("kernel", "check", f"{file}:copy_of", "--reference", f"{file}:same", "--arg", "x=bf16[128,64]|f32[128,16]")
    assert code == 0, errors
    assert "x=bfloat16[128, 64]" in out
