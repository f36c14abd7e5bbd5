"""Runs published NKI kernels on Headway: `python tools/nki_conformance.py CHECKOUTS [--rows GLOB ...] ...`.

CHECKOUTS is the folder that tools/README.md's loop fills. Each row of tools/nki_rows.csv runs in a process of
its own; its outcome stays in the results folder (ID.json, and ID.log with all it printed) and is used again
unless --rerun asks for the row. --report writes the page.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from nki_conformance import processes, refused, report, rows  # noqa: E402

# Asked of a process like a row's.
_VERSIONS = """
import json, numpy
try:
    import torch
    version = torch.__version__
except ImportError:
    version = "none"
print(json.dumps([numpy.__version__, version]))
"""


def _arguments(given):
    parser = argparse.ArgumentParser(
        description="Runs published NKI kernels, unmodified, and writes down which pass."
    )
    parser.add_argument("checkouts", type=pathlib.Path, help="folder with one folder owner+name a repository")
    parser.add_argument("--rows", nargs="+", default=[], metavar="GLOB", help="ids of rows, with * and ?")
    parser.add_argument("--group", help="rows of this group only")
    parser.add_argument("--dialect", choices=["new", "old"], help="rows of this dialect only")
    parser.add_argument("--light", action="store_true", help="leave rows marked heavy out")
    parser.add_argument("--rerun", choices=["failed", "all"], help="run rows again that have an outcome")
    parser.add_argument("--jobs", type=int, default=1, help="rows at a time (default 1)")
    parser.add_argument("--threads", type=int, default=2, help="threads of a row (default 2)")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for a row (default 1800)")
    parser.add_argument(
        "--seeds", type=int, default=5, help="of the publisher's five seeds, in nkibench rows (default all)"
    )
    parser.add_argument(
        "--results", type=pathlib.Path, help="folder of outcomes (default: CHECKOUTS/results)"
    )
    parser.add_argument(
        "--package",
        type=pathlib.Path,
        help="folder that holds headway/ (default: this project's, if built, else the installed one)",
    )
    parser.add_argument("--report", type=pathlib.Path, metavar="FILE.md", help="write the page of all rows")
    given = parser.parse_args(given)
    if not given.checkouts.is_dir():
        parser.error(f"{given.checkouts} is no folder; tools/README.md has the loop that fills it")
    if given.jobs < 1 or given.threads < 1 or not 1 <= given.seeds <= 5:
        parser.error("--jobs and --threads are at least 1, --seeds is 1 to 5")
    return given, parser


def _package(given: pathlib.Path | None) -> pathlib.Path | None:
    """The folder for PYTHONPATH; None for the installed package."""
    own = HERE.parent / "python"
    folder = given or (own if any((own / "headway").glob("_chip*.so")) else None)
    return folder.resolve() if folder else None


def _outcomes(results: pathlib.Path, table) -> dict[str, dict]:
    found = {}
    for row in table:
        file = results / f"{row.id}.json"
        if file.exists():
            found[row.id] = refused.settle(json.loads(file.read_text(encoding="utf-8")))
    return found


def _notes(variables: dict[str, str]) -> dict[str, str]:
    """Versions that the outcomes depend on."""
    said = subprocess.run(
        [sys.executable, "-c", _VERSIONS], env=variables, capture_output=True, text=True, check=True
    ).stdout
    numpy, torch = json.loads(said)
    commit = subprocess.run(
        ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "Date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "Commit": commit or "unknown",
        "With": f"Python {platform.python_version()}, NumPy {numpy}, PyTorch {torch.split('+')[0]}",
    }


def main(given=None) -> int:
    given, parser = _arguments(given)
    table = rows.read()
    try:
        chosen = rows.select(table, given.rows, given.group, given.dialect, heavy=not given.light)
    except ValueError as error:
        parser.error(str(error))
    results = given.results or given.checkouts / "results"
    results.mkdir(parents=True, exist_ok=True)
    results, checkouts = results.resolve(), given.checkouts.resolve()
    package = _package(given.package)
    variables = processes.environment(package, given.threads)
    before = _outcomes(results, table)
    due = [
        row
        for row in chosen
        if row.id not in before
        or given.rerun == "all"
        or (given.rerun == "failed" and before[row.id]["result"] != "pass")
    ]
    count = 0

    def start(row):
        return processes.Running(row, checkouts, results, given.seeds, given.timeout, variables)

    def tell(row, outcome):
        nonlocal count
        count += 1
        outcome = refused.settle(outcome)
        print(
            f"[{count}/{len(due)}] {outcome['result']:8}{outcome['seconds']:8.1f} s  {row.id}",
            outcome["reason"],
            flush=True,
        )

    processes.run(due, given.jobs, start, tell)
    outcomes = _outcomes(results, table)
    (results / "results.json").write_text(
        json.dumps(list(outcomes.values()), indent=1) + "\n", encoding="utf-8"
    )
    for dialect in ("new", "old"):
        mine = [row for row in table if row.dialect == dialect]
        passed = sum(outcomes.get(row.id, {}).get("result") == "pass" for row in mine)
        print(f"{dialect}: {passed} of {len(mine)} rows pass ({100 * passed / len(mine):.1f}%)")
    if given.report:
        given.report.write_text("\n".join(report.lines(table, outcomes, _notes(variables))), encoding="utf-8")
    return 0 if all(outcomes.get(row.id, {}).get("result") == "pass" for row in chosen) else 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main())
