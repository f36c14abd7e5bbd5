"""Why a row failed, in one line."""

from __future__ import annotations

import re
import traceback

LONGEST = 300

_BARE = re.compile(r"^AssertionError(: False is not true)?$")
_RULE = re.compile(r"\[([a-z0-9]+(?:-[a-z0-9]+)*)\]\s*$")
# Lines of a traceback and of pytest's report that lead to the message but aren't it.
_FRAME = re.compile(r"^(Traceback|File |\^+$|During handling|The above exception|[-=_ ]{8,}$|~+)")


def line_of(text: str) -> str:
    """The last line of the text that says something, without machine paths and shortened."""
    lines = [line.strip() for line in text.strip().splitlines()]
    lines = [line for line in lines if line and not _FRAME.match(line)]
    line = lines[-1] if lines else ""
    if _BARE.match(line):
        # An assertion without a message: its code says more.
        code = [said for said in lines if said.startswith(("assert ", "self.assert"))]
        line = f"{line}: {code[-1]}" if code else line
    line = re.sub(r"(?:/[\w.+@-]+)+/([\w.+-]+)", r"\1", line)
    line = " ".join(line.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 4] + " ..."


def of(error: BaseException) -> tuple[str, str | None]:
    """The line and the rule of the package it names in brackets at its end (None: it names none)."""
    text = str(error)
    if not text:
        frames = traceback.extract_tb(error.__traceback__)
        text = f"{frames[-1].line if frames else ''}\n{type(error).__name__}"
    line = line_of(text)
    found = _RULE.search(text.strip())
    # A text from another process or framework names its own class.
    if "\n" not in text.strip() and not isinstance(error, AssertionError):
        line = f"{type(error).__name__}: {line}"
    return line, found.group(1) if found else None
