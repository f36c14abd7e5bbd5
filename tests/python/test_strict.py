"""What the vendor's compiler refuses: each rule on a kernel that breaks it, and on one that doesn't."""

import importlib
import os
import pathlib
import re
import sys
import textwrap

import pytest

import headway.as_nki  # noqa: F401
from headway.nki import ArraySpec, Kernel, kernel_file, strict

HEAD = """
import dataclasses
import enum
import typing
import nki
import nki.isa as nisa
import nki.language as nl
"""


@pytest.fixture
def write(tmp_path):
    """write(text): a kernel file with the usual imports; gives its path."""

    def written(text, name="kernels.py"):
        path = tmp_path / name
        path.write_text(HEAD + textwrap.dedent(text))
        return path

    return written


@pytest.fixture
def found(write):
    """found(text): (rule, line text) of what the kernel `k` of the file breaks, deprecations too."""

    def rules(text):
        path = write(text)
        lines = path.read_text().split("\n")
        findings = strict.findings(kernel_file.kernel(f"{path}:k"))
        assert all(os.path.realpath(f.file) == os.path.realpath(path) for f in findings)
        return [(f.rule, lines[f.line - 1].strip()) for f in findings]

    return rules


CLEAN = """
class Mode(enum.Enum):
    fast = 0

@dataclasses.dataclass
class Config(nl.NKIObject):
    rows: int
    def half(self):
        return self.rows // 2

def helper(t, config=None, *rest):
    if config is None:
        return t
    if config is not None and Mode.fast == Mode.fast:
        names = {"a": 1}
        names["b"] = 2
        return t[0:config.half()]

def scale(x, **anything):
    return {Mode.fast: nl.exp, nl.float32: 4}[nl.float32]

@nki.jit
def k(x, sizes=(1, 2), flag: typing.List[int] = None):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 4), x.dtype, buffer=nl.sbuf)
    for i in range(4):
        nisa.tensor_copy(helper(t, Config(64)), t, engine=nisa.engine.vector)
    with nl.no_reorder():
        nisa.memset(t, 0)
    scale(x)
    count = nisa.register_alloc(2)
    if count is None or len(sizes) > 1:
        pass
    def body(i):
        inside = nl.ndarray((128, 4), x.dtype, buffer=nl.sbuf)
        nisa.memset(inside, 0.0)
        locals_of_body = []
        locals_of_body.append(inside)
    nl.fori_loop(0, count, body)
    try:
        pass
    except ValueError:
        pass
    return out
"""


def test_legal_code_breaks_nothing(found):
    assert found(CLEAN) == []


def _kernel(body, signature="x", before="", decorator="@nki.jit"):
    return before + f"\n{decorator}\ndef k({signature}):\n" + textwrap.indent(textwrap.dedent(body), "    ") + "\n    return x\n"


CASES = [
    ("identity", "if x.dtype is nl.float32:", _kernel("if x.dtype is nl.float32:\n    pass")),
    ("identity", "y = 1 if x is not True else 2", _kernel("y = 1 if x is not True else 2")),
    ("star-parameters", "def k(x, *more):", _kernel("pass", "x, *more")),
    ("star-parameters", "def k(x, **more):", _kernel("pass", "x, **more")),
    ("star-parameters", "def k(x, *, scale=1):", _kernel("pass", "x, *, scale=1")),
    ("list-argument", "def k(x, sizes=[1, 2]):", _kernel("pass", "x, sizes=[1, 2]")),
    ("list-argument", "inner(x, [1, 2])", _kernel("inner(x, [1, 2])", before="@nki.jit\ndef inner(x, sizes):\n    return x\n")),
    ("dict-key", "d = {1: x}", _kernel("d = {1: x}")),
    ("dict-key", "d = {(0, i): x for i in range(2)}", _kernel("d = {(0, i): x for i in range(2)}")),
    ("dict-key", "d[i] = x", _kernel("d = {}\nfor i in range(3):\n    d[i] = x")),
    ("dict-key", "d[None] = x", _kernel("d = dict()\nd[None] = x")),
    ("nested-kernel", "@nki.jit", _kernel("@nki.jit\ndef inner(y):\n    return y")),
    ("platform-target", '@nki.jit(platform_target="trn2")', _kernel("pass", decorator='@nki.jit(platform_target="trn2")')),
    ("jit-mode", '@nki.jit(mode="trace")', _kernel("pass", decorator='@nki.jit(mode="trace")')),
    ("raw-enum", "nisa.memset(x, 0, engine=5)", _kernel("nisa.memset(x, 0, engine=5)")),
    ("raw-enum", "nisa.tensor_copy(x, x, 5)", _kernel("nisa.tensor_copy(x, x, 5)")),
    ("raw-enum", "nisa.dma_copy(x, x, oob_mode=1)", _kernel("nisa.dma_copy(x, x, oob_mode=1)")),
    ("named-buffer", 't = nl.ndarray((4, 4), nl.float32, buffer="sbuf")', _kernel('t = nl.ndarray((4, 4), nl.float32, buffer="sbuf")')),
    ("named-buffer", 't = nl.ndarray((4, 4), nl.float32, "psum")', _kernel('t = nl.ndarray((4, 4), nl.float32, "psum")')),
    ("class-base", "state = State(1)", _kernel("state = State(1)", before="class State:\n    def __init__(self, n):\n        self.n = n\n")),
    ("removed-parameter", "nisa.tensor_copy(x, x, mask=None)", _kernel("nisa.tensor_copy(x, x, mask=None)")),
    ("removed-parameter", "nisa.dma_copy(x, x, dst_rmw_op=nl.add)", _kernel("nisa.dma_copy(x, x, dst_rmw_op=nl.add)")),
    ("removed-parameter", "nisa.register_move(x, imm=3)", _kernel("nisa.register_move(x, imm=3)")),
    ("removed-name", "i = nl.arange(4)[:, None]", _kernel("i = nl.arange(4)[:, None]")),
    ("removed-name", "@nki.benchmark(warmup=1)", _kernel("pass", decorator="@nki.benchmark(warmup=1)")),
    ("register-control-flow", "if r:", _kernel("r = nisa.register_alloc(1)\nif r:\n    pass")),
    ("register-control-flow", "y = 1 if not r and x else 2", _kernel("r = nisa.register_alloc(1)\ny = 1 if not r and x else 2")),
    ("register-control-flow", "while r > 0:", _kernel("r = nisa.register_alloc(1)\nwhile r > 0:\n    pass")),
    ("register-control-flow", "for i in range(r):", _kernel("r = nisa.register_alloc(1)\nfor i in range(r):\n    pass")),
    ("loop-scope", "kept = nl.ndarray((4, 4), nl.float32)",
     _kernel("kept = None\ndef body(i):\n    nonlocal kept\n    kept = nl.ndarray((4, 4), nl.float32)\nnl.fori_loop(0, 4, body)")),
    ("loop-scope", "kept.append(t)", _kernel("kept = []\ndef body(i):\n    t = nl.zeros((4, 4), nl.float32)\n    kept.append(t)\nnl.fori_loop(0, 4, body_fun=body)")),
    ("loop-scope", "kept[0] = nl.zeros((4, 4), nl.float32)",
     _kernel("kept = [None]\ndef body(r):\n    kept[0] = nl.zeros((4, 4), nl.float32)\n    return r\nnl.while_loop(1, body)")),
    ("loop-in-no-reorder", "nl.fori_loop(0, 4, body)", _kernel("def body(i):\n    pass\nwith nl.no_reorder():\n    nl.fori_loop(0, 4, body)")),
    ("deprecated", "for i in nl.affine_range(4):", _kernel("for i in nl.affine_range(4):\n    pass")),
    ("deprecated", "while r:", _kernel("r = nisa.register_alloc(1)\nwhile r:\n    break")),
    ("deprecated", "n = nl.tile_size.psum_fmax", _kernel("n = nl.tile_size.psum_fmax")),
    ("deprecated", "nisa.memset(x, 0, engine=nisa.vector_engine)", _kernel("nisa.memset(x, 0, engine=nisa.vector_engine)")),
    ("older-namespace", "y = old.add(x, x)", _kernel("y = old.add(x, x)", before="import neuronxcc.nki.language as old\n")),
]


@pytest.mark.parametrize("rule,line,text", CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
def test_a_breach_is_found_at_its_line(found, rule, line, text):
    assert found(text) == [(rule, line)]


def test_every_rule_has_a_case_and_a_line_in_its_page():
    cases = {case[0] for case in CASES} | {"output-buffer"}
    assert cases == set(strict.RULES)
    page = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "nki-strict.md")
    with open(page) as file:
        assert set(re.findall(r"^\| `([a-z-]+)` \|", file.read(), re.M)) == set(strict.RULES)


def test_helpers_in_other_modules_methods_and_closures_are_read(tmp_path, write):
    (tmp_path / "strict_helpers.py").write_text(
        HEAD + "class Tiles(nl.NKIObject):\n    n: int\n    def size(self):\n        return {1: self.n}\n"
        "    def unused(self):\n        return {2: self.n}\n"
        "def deep(x):\n    return x is x\n"
        "def far(x):\n    return deep(x)\n"
        "def host(x):\n    return {4: x}\n"
    )
    path = write("import strict_helpers\n\ndef made(n):\n    def inner(x):\n        return x is n\n    return inner\nclosed = made(5)\n\n"
                 "@nki.jit\ndef k(x):\n    strict_helpers.far(x)\n    closed(x)\n    return strict_helpers.Tiles(4).size()\n")
    findings = strict.findings(kernel_file.kernel(f"{path}:k"))
    sys.modules.pop("strict_helpers")
    texts = sorted((os.path.basename(f.file), f.rule, f.message.split(" ")[0 if f.rule == "identity" else 2]) for f in findings)
    assert texts == [("kernels.py", "identity", "'x"), ("strict_helpers.py", "dict-key", "1"), ("strict_helpers.py", "identity", "'x")]


def test_annotations_are_not_read(found):
    assert found("import neuronxcc.nki.typing as nt\n" + _kernel("y: nt.tensor = x", "x: nt.tensor")) == []


def test_a_register_in_control_flow_is_found_when_it_is_recorded(write):
    path = write("def choose(r):\n    return 1 if r else 2\n\n@nki.jit\ndef k(x):\n    choose(nisa.register_alloc(1))\n    return x\n")
    kernel = kernel_file.kernel(f"{path}:k")
    assert strict.findings(kernel) == []  # the source alone doesn't show it
    with pytest.raises(TypeError) as raised:
        kernel.record(ArraySpec((128, 4), "float32"))
    finding = strict.of_error(raised.value)
    assert finding.rule == "register-control-flow"
    assert path.read_text().split("\n")[finding.line - 1].strip() == "return 1 if r else 2"
    assert strict.of_error(TypeError("something else")) is None


@pytest.mark.parametrize("buffer,breaks", [("hbm", ["output-buffer"]), ("private_hbm", ["output-buffer"]), ("shared_hbm", [])])
def test_results_outside_shared_hbm(write, buffer, breaks):
    path = write(f"@nki.jit\ndef k(x):\n    out = nl.ndarray((128, 4), nl.float32, buffer=nl.{buffer})\n"
                 "    nisa.dma_copy(out, x)\n    return out\n")
    kernel = kernel_file.kernel(f"{path}:k")
    recording = kernel.record(ArraySpec((128, 4), "float32"))
    assert [f.rule for f in strict.of_recording(kernel, recording)] == breaks


def test_findings_say_place_rule_and_remedy(write):
    path = write(_kernel("d = {1: x}"))
    (finding,) = strict.findings(kernel_file.kernel(f"{path}:k"))
    assert re.fullmatch(r"kernels\.py:\d+: the key 1 of a dictionary is no string; use .* \[dict-key\]", finding.text())
    assert finding.is_error


LIBRARY = os.environ.get("HEADWAY_NKI_LIBRARY", "")


@pytest.mark.skipif(not LIBRARY, reason="HEADWAY_NKI_LIBRARY doesn't name the folder nkilib_src of a checkout of nki-library")
def test_the_public_library_is_legal(monkeypatch):
    monkeypatch.syspath_prepend(LIBRARY)
    kernels = {}
    for path in sorted(pathlib.Path(LIBRARY).rglob("nkilib/*/**/*.py")):
        if "torch" not in path.name and path.name != "__init__.py":
            module = importlib.import_module(".".join(path.relative_to(LIBRARY).with_suffix("").parts))
            kernels.update({id(value): value for value in vars(module).values() if isinstance(value, Kernel)})
    assert len(kernels) > 40
    assert [f.text() for kernel in kernels.values() for f in strict.findings(kernel) if f.is_error] == []


def test_a_kernel_of_the_older_dialect_is_named_once_a_function(found):
    kernel = _kernel("y = old.add(x, x)\ny = old.add(y, y)", before="import neuronxcc.nki.language as old\n")
    assert found(kernel) == [("older-namespace", "y = old.add(x, x)")]
