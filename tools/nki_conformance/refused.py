"""Rows whose kernel does what the hardware doesn't allow: refused here and there.

Such a row counts as not passed. It is listed here by hand, never by the package's own opinion: the entry
names the rule of the package and the sentence of the NKI documentation behind it. A row that fails for
another reason is not refused.
"""

from __future__ import annotations

# id: (rule that the package names, what the documentation says)
REFUSED: dict[str, tuple[str, str]] = {}


def settle(outcome: dict) -> dict:
    """The outcome with result "refused" where the row is listed and failed by the listed rule."""
    listed = REFUSED.get(outcome["id"])
    if outcome["result"] == "fail" and listed is not None and outcome["rule"] == listed[0]:
        return {**outcome, "result": "refused"}
    return outcome
