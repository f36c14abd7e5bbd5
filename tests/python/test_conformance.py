"""The conformance run: rows, comparisons, reasons, processes, page. No published kernel is needed here."""

import json
import pathlib
import sys

import numpy as np
import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from nki_conformance import groups, judge, processes, reasons, refused, report, rows, source  # noqa: E402


def test_the_table_is_what_its_description_says():
    table = rows.read()
    assert len(table) == 201 and len({row.id for row in table}) == 201
    assert [sum(row.dialect == dialect for row in table) for dialect in ("new", "old")] == [92, 109]
    assert {row.group for row in table} == set(groups.MODULES)
    assert all(len(row.commit) == 40 for row in table)


@pytest.mark.parametrize("group", groups.MODULES)
def test_every_group_has_a_runner(group):
    assert callable(groups.runner(group))


def test_rows_are_selected_by_pattern_group_and_weight():
    table = rows.read()
    assert [row.id for row in rows.select(table, ["sdk-index-*"])] == ["sdk-index-1", "sdk-index-3"]
    assert len(rows.select(table, group="nkibench")) == 14
    light = rows.select(table, group="nki-library", heavy=False)
    assert 0 < len(light) < 59 and not any("heavy" in row.notes for row in light)
    with pytest.raises(ValueError, match="no row's id matches 'sdk-indexx'"):
        rows.select(table, ["sdk-indexx"])
    with pytest.raises(ValueError, match="no group 'nothing'"):
        rows.select(table, group="nothing")


def test_equality_names_the_place():
    judge.equal(np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3))
    with pytest.raises(judge.Mismatch, match=r"1 of 6 elements differ; at \(1, 0\): 9, reference 3"):
        judge.equal(np.array([[0, 1, 2], [9, 4, 5]]), np.arange(6).reshape(2, 3))
    with pytest.raises(judge.Mismatch, match="the shape is"):
        judge.equal(np.zeros((2, 3)), np.zeros((3, 2)))


def test_nan_is_never_right():
    for compare in (
        judge.equal,
        lambda a, b: judge.close(a, b, 1.0, 1.0),
        lambda a, b: judge.rounded_once(a, b, **judge.FLOAT16),
    ):
        with pytest.raises(judge.Mismatch):
            compare(np.array([np.nan]), np.array([1.0]))


def test_closeness_is_numpys():
    want = np.array([100.0])
    judge.close(np.array([101.0]), want, atol=0.0, rtol=1e-2)
    with pytest.raises(judge.Mismatch, match="off by more than 0 \\+ 0.01"):
        judge.close(np.array([101.01]), want, atol=0.0, rtol=1e-2)


def test_one_rounding_is_half_a_unit(rng):
    exact = rng.standard_normal(2000) * 10.0 ** rng.integers(-6, 4, 2000)
    once = exact.astype(np.float16)
    judge.rounded_once(once, exact, **judge.FLOAT16)
    with pytest.raises(judge.Mismatch, match="more than one rounding away"):
        judge.rounded_once(np.nextafter(once, np.float16(np.inf)), exact, **judge.FLOAT16)


@pytest.mark.parametrize(
    "error, line, rule",
    [
        (
            ValueError("k.py:3: dma_copy, dst: too long [shape]"),
            "ValueError: k.py:3: dma_copy, dst: too long [shape]",
            "shape",
        ),
        (AssertionError(""), "AssertionError", None),
        (
            AssertionError("Traceback ...\n  File x\nKernelError: /a/b/k.py:3: no [start-partition]\n"),
            "KernelError: k.py:3: no [start-partition]",
            "start-partition",
        ),
        (KeyError("name"), "KeyError: 'name'", None),
        (
            AssertionError(
                "Traceback\n  File x\n    self.assertTrue(a == b)\nAssertionError: False is not true"
            ),
            "AssertionError: False is not true: self.assertTrue(a == b)",
            None,
        ),
    ],
)
def test_reasons(error, line, rule):
    assert reasons.of(error) == (line, rule)


def test_a_bare_assertion_shows_its_code(tmp_path):
    (tmp_path / "bare.py").write_text("assert sum([]) == 1\n")
    with pytest.raises(AssertionError) as caught:
        source.load(tmp_path / "bare.py")
    assert reasons.of(caught.value)[0] == "AssertionError: assert sum([]) == 1"


def test_long_reasons_are_shortened():
    assert len(reasons.line_of("x" * 5000)) == reasons.LONGEST


def test_scripts_run_as_they_are(tmp_path):
    (tmp_path / "beside.py").write_text("WORD = 'match'\n")
    file = tmp_path / "driver.py"
    file.write_text(
        "import sys\nfrom beside import WORD\nif __name__ == '__main__':\n    print(WORD, sys.argv[1:])\n"
    )
    assert source.script(file, "--x") == "match ['--x']\n"
    source.must_say("NKI and Torch match", "match", "differ")
    for printed in ("NKI and Torch differ", "match\ndiffer", ""):
        with pytest.raises(AssertionError, match="verdict"):
            source.must_say(printed, "match", "differ")
    file.write_text("raise SystemExit(3)\n")
    with pytest.raises(AssertionError, match="driver.py ended with 3"):
        source.script(file)


def _run(checkouts, results, row, timeout=60.0):
    variables = processes.environment(TOOLS.parent / "python", 1)
    outcomes = []
    processes.run(
        [row],
        1,
        lambda one: processes.Running(one, checkouts, results, 1, timeout, variables),
        lambda one, outcome: outcomes.append(outcome),
    )
    return outcomes[0]


@pytest.fixture
def checkout(tmp_path):
    """A stand-in for the file of one row; gives the row, the folders and a function that writes the file."""
    row = rows.select(rows.read(), ["sdk-simulate"])[0]
    file = row.checkout(tmp_path) / row.path
    file.parent.mkdir(parents=True)
    results = tmp_path / "results"
    results.mkdir()
    return row, tmp_path, results, file.write_text


def test_a_row_passes_fails_dies_and_hangs_alone(checkout):
    row, checkouts, results, write = checkout
    write("import nki\nassert nki.jit\n")
    assert _run(checkouts, results, row)["result"] == "pass"
    write("raise ValueError('wrong [shape]')\n")
    outcome = _run(checkouts, results, row)
    assert (outcome["result"], outcome["reason"], outcome["rule"]) == (
        "fail",
        "ValueError: wrong [shape]",
        "shape",
    )
    assert "Traceback" in (results / f"{row.id}.log").read_text()
    write("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    assert _run(checkouts, results, row)["reason"] == "the process ended with signal SIGSEGV"
    write("while True: pass\n")
    assert _run(checkouts, results, row, timeout=3.0)["reason"] == "no result within 3 s"


def test_a_missing_file_says_what_to_do(checkout):
    row, checkouts, results, _ = checkout
    assert "fetch it as tools/README.md says" in _run(checkouts, results, row)["reason"]


def test_refused_needs_the_listed_rule(monkeypatch):
    monkeypatch.setitem(refused.REFUSED, "a", ("race", "text"))
    fail = {"id": "a", "result": "fail", "reason": "", "rule": "race", "seconds": 1.0}
    assert refused.settle(fail)["result"] == "refused"
    assert refused.settle({**fail, "rule": "shape"})["result"] == "fail"
    assert refused.settle({**fail, "id": "b"})["result"] == "fail"
    assert refused.settle({**fail, "result": "pass"})["result"] == "pass"


def test_the_page_counts_what_there_is():
    table = rows.read()
    passed = {"result": "pass", "reason": "", "rule": None, "seconds": 1.0}
    outcomes = {row.id: {"id": row.id, **passed} for row in table if row.dialect == "new"}
    outcomes["sdk-avgpool"] = {
        "id": "sdk-avgpool",
        "result": "fail",
        "reason": "a | b",
        "rule": None,
        "seconds": 2.0,
    }
    text = "\n".join(report.lines(table, outcomes, {"Date": "today"}))
    assert "| new | 92 | 91 | 1 | 0 | 0 | **98.9%** | 85% | 95% |" in text
    assert "| old | 109 | 0 | 0 | 0 | 109 | **0.0%** | 70% | 90% |" in text
    assert "| sdk-avgpool | `tensor_avgpool_kernel` | a \\| b |" in text
    assert text.count("| sdk-avgpool |") == 2


def test_outcomes_are_kept(checkout, capsys):
    row, checkouts, results, write = checkout
    sys.path.insert(0, str(TOOLS))
    import importlib.util

    spec = importlib.util.spec_from_file_location("conformance_command", TOOLS / "nki_conformance.py")
    command = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(command)
    write("raise ValueError('first')\n")
    arguments = [str(checkouts), "--rows", row.id, "--package", str(TOOLS.parent / "python")]
    assert command.main(arguments) == 1
    write("pass\n")
    assert command.main(arguments) == 1  # the failure is known
    assert "[1/1]" in capsys.readouterr().out
    assert command.main([*arguments, "--rerun", "failed", "--report", str(checkouts / "page.md")]) == 0
    assert json.loads((results / "results.json").read_text())[0]["result"] == "pass"
    assert "| sdk-examples | new | 20 | 1 | 0 | 0 | 19 | 5.0% |" in (checkouts / "page.md").read_text()
    with pytest.raises(SystemExit):
        command.main([str(checkouts / "absent")])
