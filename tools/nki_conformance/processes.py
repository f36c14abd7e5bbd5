"""Rows in processes of their own: a crash, a hang or an exhausted memory fails one row only."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent


def environment(package: pathlib.Path | None, threads: int) -> dict[str, str]:
    """What a row's process finds: the package, the stand-ins, this folder.

    Settings of the caller's that change how kernels run are left out.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NKI_", "NKILIB_", "NEURON_", "HEADWAY_"))
    }
    paths = [str(HERE.parent), str(HERE / "standins")]
    if package is not None:
        paths.insert(0, str(package))
    kept["PYTHONPATH"] = os.pathsep.join(
        paths + [path for path in [os.environ.get("PYTHONPATH", "")] if path]
    )
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    kept["HEADWAY_THREADS"] = kept["OMP_NUM_THREADS"] = str(threads)
    return kept


class Running:
    """One row's process."""

    def __init__(
        self,
        row,
        checkouts: pathlib.Path,
        results: pathlib.Path,
        seeds: int,
        timeout: float,
        variables: dict[str, str],
    ):
        self.row, self.timeout = row, timeout
        self.file = results / f"{row.id}.json"
        self.log = results / f"{row.id}.log"
        self.file.unlink(missing_ok=True)
        options = {"id": row.id, "checkouts": str(checkouts), "result": str(self.file), "seeds": seeds}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "nki_conformance.one_row", json.dumps(options)],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=variables,
                start_new_session=True,
                preexec_fn=_first_to_go,
            )
        self.started = time.monotonic()

    def done(self) -> bool:
        """True when the process has ended; it is ended when its time is over."""
        if self.process.poll() is not None:
            return True
        if time.monotonic() - self.started <= self.timeout:
            return False
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._fail(f"no result within {self.timeout:g} s")
        return True

    def outcome(self) -> dict:
        """What the process wrote; a failure that says how it ended if it wrote nothing."""
        if not self.file.exists():
            code = self.process.returncode
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
            self._fail(f"the process ended with {how}" + (" (memory?)" if code == -signal.SIGKILL else ""))
        return json.loads(self.file.read_text(encoding="utf-8"))

    def _fail(self, reason: str) -> None:
        seconds = round(time.monotonic() - self.started, 1)
        outcome = {"id": self.row.id, "result": "fail", "reason": reason, "rule": None, "seconds": seconds}
        self.file.write_text(json.dumps(outcome), encoding="utf-8")


def _first_to_go() -> None:
    # Where memory runs out the system ends this process and not the one that collects results.
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    except OSError:
        pass


def run(rows, jobs: int, start, report) -> None:
    """Runs the rows, so many at a time.

    start(row) gives a Running; report(row, outcome) is called as each ends.
    """
    waiting, running = list(rows), []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(start(waiting.pop(0)))
            time.sleep(0.05)
            for one in [one for one in running if one.done()]:
                running.remove(one)
                report(one.row, one.outcome())
    finally:
        for one in running:
            os.killpg(one.process.pid, signal.SIGKILL)
