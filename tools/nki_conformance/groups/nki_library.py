"""nki-library: its own pytest harness in simulation mode, in one more process because it replaces modules."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HARNESS = pathlib.Path(__file__).parent.parent / "nki_library.py"


def run(row, checkout, options) -> None:
    passed = _pytest(row, checkout, everything=False)
    if passed == 0:
        # Large cases are left out by default; a row that has no other is run with them.
        passed = _pytest(row, checkout, everything=True)
    if passed == 0:
        raise AssertionError("every case was skipped")


def _pytest(row, checkout, everything: bool) -> int:
    """How many cases passed; AssertionError with the first failure's text if one didn't."""
    environment = dict(os.environ)
    paths = [environment.get("PYTHONPATH", ""), "src", "src/nkilib_src", "."]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    environment.pop("NKILIB_SIMULATION_RUN_ALL", None)
    if everything:
        environment["NKILIB_SIMULATION_RUN_ALL"] = "1"
    with tempfile.TemporaryDirectory(prefix="nki-library-") as folder:
        outcome = pathlib.Path(folder) / "outcome.xml"
        command = [sys.executable, str(HARNESS), "::".join([row.path, *row.entry.split(".")])]
        command += ["--test-mode", "simulation", "--platform-target", "trn2", "--output-directory", folder]
        command += [
            f"--junitxml={outcome}",
            "-p",
            "no:cacheprovider",
            "-q",
            "-W",
            "ignore",
            "--tb=short",
            "--maxfail=3",
        ]
        ended = subprocess.run(command, cwd=checkout, env=environment, check=False).returncode
        if not outcome.exists():
            raise AssertionError(f"the harness ended with {ended} and wrote no outcome")
        suite = xml.etree.ElementTree.parse(outcome).getroot().find("testsuite")
        cases = suite.findall("testcase")
        for case in cases:
            for kind in ("failure", "error"):
                found = case.find(kind)
                if found is not None:
                    raise AssertionError(f"{case.get('name')}: {found.get('message') or found.text}")
        return sum(case.find("skipped") is None for case in cases)
