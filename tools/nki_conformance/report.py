"""The page of a run: how many rows pass by group and dialect, and why the others don't."""

from __future__ import annotations

from nki_conformance.refused import REFUSED

# What issue and README promise: percent of the rows of a dialect, and the aim.
WANTED = {"new": (85, 95), "old": (70, 90)}


def _counts(rows, outcomes) -> dict[str, int]:
    counts = {"pass": 0, "fail": 0, "refused": 0, "not run": 0}
    for row in rows:
        counts[outcomes[row.id]["result"] if row.id in outcomes else "not run"] += 1
    return counts


def _numbers(counts: dict[str, int]) -> str:
    """Cells: rows, pass, fail, refused, not run."""
    return " | ".join(str(number) for number in (sum(counts.values()), *counts.values()))


def _percent(counts: dict[str, int]) -> str:
    total = sum(counts.values())
    return f"{100 * counts['pass'] / total:.1f}%" if total else "-"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def lines(rows, outcomes: dict[str, dict], notes: dict[str, str]) -> list[str]:
    """The page in Markdown.

    `rows`: all of the table; `outcomes`: by id, where there is one; `notes`: label and text for the head.
    """
    page = ["# NKI conformance", ""]
    page += [
        "Kernels that others published, run unmodified on Headway's chip and judged by their own references",
        "and tolerances. The rows were fixed before the package was written (`tools/nki_rows.csv`;",
        "`tools/README.md` says how they were chosen and what was left out). Written by",
        "`python tools/nki_conformance.py CHECKOUTS --report docs/nki-conformance.md`, no line by hand.",
        "",
    ]
    page += [f"{label}: {text}  " for label, text in notes.items()]
    page += [
        "",
        "## By dialect",
        "",
        "| dialect | rows | pass | fail | refused by the hardware too | not run | pass | wanted | aim |",
    ]
    page += ["|---|---|---|---|---|---|---|---|---|"]
    for dialect, (wanted, aim) in WANTED.items():
        counts = _counts([row for row in rows if row.dialect == dialect], outcomes)
        page.append(f"| {dialect} | {_numbers(counts)} | **{_percent(counts)}** | {wanted}% | {aim}% |")
    page += ["", "Refused and not run rows count as not passed."]
    fewer = [row.id for row in rows if outcomes.get(row.id, {}).get("seeds", 5) < 5]
    if fewer:
        page += ["", f"Judged on fewer than the publisher's five seeds: {', '.join(fewer)}."]
    page += ["", "## By group", ""]
    page += [
        "| group | dialect | rows | pass | fail | refused | not run | pass |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for group, dialect in dict.fromkeys((row.group, row.dialect) for row in rows):
        counts = _counts([row for row in rows if (row.group, row.dialect) == (group, dialect)], outcomes)
        page.append(f"| {group} | {dialect} | {_numbers(counts)} | {_percent(counts)} |")
    bad = [row for row in rows if row.id in outcomes and outcomes[row.id]["result"] == "fail"]
    page += ["", "## Rows that fail", ""]
    if bad:
        page += ["| row | entry | reason |", "|---|---|---|"]
        page += [f"| {row.id} | `{row.entry}` | {_cell(outcomes[row.id]['reason'])} |" for row in bad]
    else:
        page.append("None.")
    refused = [row for row in rows if row.id in outcomes and outcomes[row.id]["result"] == "refused"]
    if refused:
        page += [
            "",
            "## Rows that the hardware refuses too",
            "",
            "| row | rule | what the documentation says | reason |",
            "|---|---|---|---|",
        ]
        for row in refused:
            rule, text = REFUSED[row.id]
            page.append(f"| {row.id} | {rule} | {_cell(text)} | {_cell(outcomes[row.id]['reason'])} |")
    page += [
        "",
        "## Every row",
        "",
        "Seconds are of the whole process's work: imports, references on the CPU and comparison included.",
        "",
    ]
    page += ["| row | dialect | result | seconds |", "|---|---|---|---|"]
    for row in rows:
        outcome = outcomes.get(row.id)
        seconds = f"{outcome['seconds']:.1f}" if outcome else ""
        page.append(
            f"| {row.id} | {row.dialect} | {outcome['result'] if outcome else 'not run'} | {seconds} |"
        )
    return page + [""]
