"""`python -m nki_conformance.one_row OPTIONS`: runs one row in this process and writes its outcome.

OPTIONS is JSON: id, checkouts, result (the file to write), seeds. The outcome says "pass", or "fail" with the
exception in one line and the rule in brackets where the package names one.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile
import time
import traceback

from nki_conformance import reasons, rows


def main(options: dict) -> int:
    row = next(row for row in rows.read() if row.id == options["id"])
    checkout = row.checkout(pathlib.Path(options["checkouts"]).resolve())
    outcome = {"id": row.id, "result": "fail", "reason": "", "rule": None}
    if row.group == "nkibench":
        outcome["seeds"] = options["seeds"]
    started = time.monotonic()
    try:
        # Kernel files and drivers must find the names they import before anything of theirs is loaded.
        import headway.as_nki  # noqa: F401
        import numpy as np

        from nki_conformance import groups

        np.random.seed(0)
        if "torch" in row.needs:
            import torch

            torch.manual_seed(0)
            torch.set_num_threads(int(os.environ.get("HEADWAY_THREADS", "2")))
        if not (checkout / row.path).exists():
            raise FileNotFoundError(f"{row.path} is not in {checkout.name}: fetch it as tools/README.md says")
        with tempfile.TemporaryDirectory(prefix="nki-row-") as folder:
            # Drivers leave files where they run; the checkout stays as it is.
            os.chdir(folder)
            groups.runner(row.group)(row, checkout, options)
            os.chdir("/")
        outcome["result"] = "pass"
    except (
        BaseException
    ) as error:  # a driver's sys.exit or a test framework's own exceptions fail the row too
        traceback.print_exc()
        outcome["reason"], outcome["rule"] = reasons.of(error)
        os.chdir("/")
    outcome["seconds"] = round(time.monotonic() - started, 1)
    pathlib.Path(options["result"]).write_text(json.dumps(outcome), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
