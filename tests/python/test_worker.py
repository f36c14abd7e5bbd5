"""The worker: one request a line, answers with programs; its errors; what it does to what kernels print."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from headway.nki import kernel_file, worker
from headway.nki.errors import InputError

KERNELS = """
import ctypes
import nki
import nki.isa as nisa
import nki.language as nl
import helper_of_kernels

print("loaded")

@nki.jit
def scaled(x, scale=2.0, op=nl.multiply, name="t", sizes=(1,)):
    print("recording", name)
    ctypes.CDLL(None).puts(b"from C")
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for row in range(0, x.shape[0], 128):
        t = nl.ndarray((128, x.shape[1]), x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(t, x[row:row + 128])
        nisa.tensor_scalar(t, t, op, scale)
        nisa.dma_copy(out[row:row + 128], t)
    return out

@nki.jit
def halves(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    rows = x.shape[0] // nl.num_programs(0)
    t = nl.ndarray((rows, x.shape[1]), x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(t, x[core * rows:(core + 1) * rows])
    nisa.dma_copy(out[core * rows:(core + 1) * rows], t)
    return out

@nki.jit
def too_many_partitions(x):
    nl.ndarray((256, 4), nl.float32, buffer=nl.sbuf)
    return x

@nki.jit
def raises(x):
    return helper_of_kernels.fails(x)

@nki.jit
def exits(x):
    import sys
    sys.exit(3)

@nki.jit
def reads_a_value(x):
    t = nl.ndarray((1, 1), nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(t, x[0:1, 0:1])
    r = nisa.register_alloc(0)
    nisa.register_load(r, t)
    from headway.nki.trace import session
    return session().value(r)

@nki.jit
def endless(x):
    t = nl.ndarray((128, 4), nl.float32, buffer=nl.sbuf)
    while True:
        nisa.memset(t, 0.0)

def plain(x):
    return x

number = 3
"""
X = [{"name": "x", "dtype": "float32", "shape": [256, 64]}]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "worker_kernels.py"
    path.write_text(textwrap.dedent(KERNELS))
    (tmp_path / "helper_of_kernels.py").write_text("def fails(x):\n    values = {}\n    return values['missing']\n")
    yield path
    for name in ("worker_kernels", "helper_of_kernels"):
        sys.modules.pop(name, None)
    sys.path[:] = [entry for entry in sys.path if entry != str(tmp_path)]


@pytest.fixture
def ask(file, capfd):
    """ask(kernel, ...): header and programs of one request, answered in this process."""

    def answered(kernel, **request):
        header, programs = worker.answer(json.dumps({"kernel": f"{file}:{kernel}", **request}))
        json.dumps(header)
        return header, programs

    return answered


def run_worker(text, **environment):
    """stdout, as bytes, and stderr of a worker that is given ``text``."""
    done = subprocess.run([sys.executable, "-m", "headway.nki.worker"], input=text.encode(), capture_output=True,
                          env={**os.environ, **environment}, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout, done.stderr.decode()


def parsed(output):
    """The answers in a worker's output: headers with the bytes of their programs."""
    answers = []
    while output:
        line, _, output = output.partition(b"\n")
        header = json.loads(line)
        programs = []
        for size in header.get("programs", []):
            assert len(output) >= size
            programs.append(output[:size])
            output = output[size:]
        answers.append((header, programs))
    return answers


def test_answers_are_programs_whatever_the_kernel_prints(file):
    requests = [{"kernel": f"{file}:scaled", "inputs": X}, {"kernel": f"{file}:nothing"}, {"kernel": f"{file}:scaled", "inputs": X}]
    output, errors = run_worker("\n\n".join(json.dumps(r) for r in requests) + "\n")
    (first, programs), (second, none), (third, again) = parsed(output)
    assert first["ok"] and third["ok"] and not second["ok"] and none == []
    assert [p[:8] for p in programs] == [b"HWPROG\r\n"] and programs == again
    assert first["kernel"] == "scaled" and first["instructions"] == [6]
    assert first["outputs"][0]["shape"] == [256, 64] and first["outputs"][0]["dtype"] == "float32"
    for text in ("loaded", "recording t", "from C"):
        assert text in errors
        assert text.encode() not in output


def test_the_last_line_may_lack_its_end(file):
    output, _ = run_worker(json.dumps({"kernel": f"{file}:plain", "inputs": X}))
    assert parsed(output)[0][0]["ok"]


def test_both_cores_of_a_logical_core(ask):
    header, programs = ask("halves", inputs=X, lnc=2)
    assert header["ok"], header
    assert len(programs) == 2 and programs[0] != programs[1]
    assert ask("halves", inputs=X, grid=[2])[1] == programs


def test_attributes_arrive_as_they_are_written(ask):
    base = ask("scaled", inputs=X)[1]
    assert ask("scaled", inputs=X, attributes={"scale": 2.0, "op": "nl.multiply"})[1] == base
    assert ask("scaled", inputs=X, attributes={"scale": 3.0})[1] != base
    assert ask("scaled", inputs=X, attributes={"op": "nl.add"})[1] != base
    assert worker.attribute([1, [2, "nl.float32"], {"a": [3]}]) == (1, (2, "float32"), {"a": (3,)})
    header, _ = ask("scaled", inputs=X, attributes={"op": "nl.multiplicate"})
    assert header["error"] == "InputError" and "multiplicate" in header["message"]


def test_what_is_recorded_is_what_a_call_records(file, capfd):
    kernel = kernel_file.kernel(f"{file}:scaled")
    called = kernel.record(np.zeros((256, 64), np.float32), scale=3.0)
    asked = worker.record(worker.parse(json.dumps({"kernel": f"{file}:scaled", "inputs": X, "attributes": {"scale": 3.0}})))
    assert called.sessions[0].trace.text() == asked.sessions[0].trace.text() != []


@pytest.mark.parametrize("chip,fails", [("trn2", False), ("trn1", True)])
def test_the_chip_is_the_requests(ask, chip, fails):
    # Trainium1 has no logical cores of two.
    header, _ = ask("halves", inputs=X, chip=chip, lnc=2)
    assert header["ok"] is not fails, header


@pytest.mark.parametrize("kernel,error,words,line", [
    ("too_many_partitions", "KernelError", "256 partitions", "nl.ndarray((256, 4), nl.float32, buffer=nl.sbuf)"),
    ("raises", "KeyError", "missing", "return values['missing']"),
    ("exits", "SystemExit", "3", "sys.exit(3)"),
    ("reads_a_value", "Unsupported", "has no data", "return session().value(r)"),
])
def test_errors_name_the_line(ask, kernel, error, words, line):
    dtype = "int32" if kernel == "reads_a_value" else "float32"
    header, programs = ask(kernel, inputs=[{"name": "x", "dtype": dtype, "shape": [256, 64]}])
    assert programs == [] and header["ok"] is False
    assert header["error"] == error and words in header["message"], header
    with open(header["file"]) as source:
        assert source.read().split("\n")[header["line"] - 1].strip() == line
    assert "Traceback" in header["traceback"]


def test_a_kernel_that_never_ends_meets_the_limit(ask):
    header, _ = ask("endless", inputs=X, max_instructions=1000)
    assert header["error"] == "KernelError" and "1000" in header["message"].replace(",", ""), header
    assert ask("scaled", inputs=X)[0]["ok"]  # the limit was that request's


@pytest.mark.parametrize("request_,words", [
    ("x", "no JSON"), ("[1]", "no JSON object"), ('{"kernel": 3}', "FILE.py:KERNEL"), ('{"kernel": "a.py", "cores": 2}', "'cores'"),
    ('{"kernel": "a.py", "lnc": 0}', "'lnc'"), ('{"kernel": "a.py", "lnc": true}', "'lnc'"), ('{"kernel": "a.py", "lnc": 2, "grid": [2]}', "one of them"),
    ('{"kernel": "a.py", "grid": [0]}', "'grid'"), ('{"kernel": "a.py", "chip": ""}', "'chip'"), ('{"kernel": "a.py", "inputs": {}}', "'inputs'"),
    ('{"kernel": "a.py", "attributes": []}', "'attributes'"), ('{"kernel": "a.py", "inputs": [3]}', "inputs[0]"),
    ('{"kernel": "a.py", "inputs": [{"name": "x", "dtype": "f", "shape": [1]}]}', "inputs[0].dtype"),
    ('{"kernel": "a.py", "inputs": [{"name": "x", "dtype": "float32", "shape": [0]}]}', "inputs[0].shape"),
    ('{"kernel": "a.py", "inputs": [{"name": "x", "dtype": "float32", "shape": [1]}, {"name": "x", "dtype": "int8", "shape": [1]}]}', "repeats"),
    ('{"kernel": "a.py", "inputs": [{"name": "x", "dtype": "float32", "shape": [1]}], "attributes": {"x": 1}}', "input too"),
    ('{"kernel": "a.py", "max_instructions": "many"}', "max_instructions"), ('{"kernel": "missing.py"}', "no such file"),
    ('{"kernel": "missing"}', "FILE.py:KERNEL"), ('{"kernel": "a.py", "chip": "trn9"}', "trn2"),
])
def test_bad_requests_are_refused(request_, words):
    header, programs = worker.answer(request_)
    assert header["error"] == "InputError" and words in header["message"], header
    assert programs == []


@pytest.mark.parametrize("kernel,attributes,words", [
    ("scald", {}, "did you mean 'scaled'"), ("number", {}, "int, not a kernel"), ("scaled", {"scal": 3}, "did you mean 'scale'"),
])
def test_what_doesnt_fit_the_file(ask, kernel, attributes, words):
    header, _ = ask(kernel, inputs=X, attributes=attributes)
    assert header["error"] == "InputError" and words in header["message"], header


def test_a_missing_input_is_named(ask):
    header, _ = ask("scaled")
    assert header["error"] == "InputError" and "'x'" in header["message"] and "scaled(x" in header["message"]


def test_a_file_with_one_kernel_needs_no_name(tmp_path):
    path = tmp_path / "single_kernel.py"
    path.write_text("import nki\n\ndef helper(x):\n    return x\n\n@nki.jit\ndef only(x):\n    return helper(x)\n")
    assert kernel_file.kernel(str(path)).__name__ == "only"
    path.write_text("import nki\n\n@nki.jit\ndef one(x):\n    return x\n\n@nki.jit\ndef two(x):\n    return x\n")
    with pytest.raises(InputError, match="2 kernels.*one.*two"):
        kernel_file.kernel(str(path))
    path.write_text("x = 1\n")
    with pytest.raises(InputError, match="no function with nki.jit"):
        kernel_file.kernel(str(path))


def test_a_file_that_changed_is_loaded_again(tmp_path):
    path = tmp_path / "changing_kernel.py"
    path.write_text("import nki\n\n@nki.jit\ndef k(x):\n    return x\n")
    before = kernel_file.kernel(str(path))
    assert kernel_file.kernel(str(path)) is before
    path.write_text("import nki\n\n@nki.jit\ndef k(x, y):\n    return y\n")
    assert kernel_file.signature_text(kernel_file.kernel(str(path))) == "k(x, y)"


def test_a_file_of_a_package_has_its_relative_imports(tmp_path):
    package = tmp_path / "package_of_kernels" / "inner"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package.parent / "sizes.py").write_text("ROWS = 128\n")
    (package / "k.py").write_text("import nki\nfrom ..sizes import ROWS\n\n@nki.jit\ndef k(x, rows=ROWS):\n    return x\n")
    assert kernel_file.signature_text(kernel_file.kernel(str(package / "k.py"))) == "k(x, rows=128)"


def test_a_file_with_an_error_says_where(tmp_path):
    path = tmp_path / "broken_kernel.py"
    path.write_text("import nki\n\ndef k(x:\n")
    header, _ = worker.answer(json.dumps({"kernel": f"{path}:k"}))
    assert header["error"] == "SyntaxError" and header["file"] == str(path) and header["line"] == 3
    path.write_text("import nki\n\nvalue = 1 / 0\n")
    header, _ = worker.answer(json.dumps({"kernel": f"{path}:k"}))
    assert header["error"] == "ZeroDivisionError" and header["line"] == 3


def test_the_older_dialect(tmp_path):
    path = tmp_path / "older_kernel.py"
    path.write_text("from neuronxcc import nki\nimport neuronxcc.nki.language as nl\n\n@nki.jit\ndef doubled(x):\n"
                    "    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)\n    t = nl.load(x)\n    nl.store(out, nl.add(t, t))\n    return out\n")
    header, programs = worker.answer(json.dumps({"kernel": str(path), "inputs": [{"name": "x", "dtype": "float32", "shape": [128, 64]}]}))
    assert header["ok"], header
    assert len(programs) == 1 and header["outputs"][0]["shape"] == [128, 64]
