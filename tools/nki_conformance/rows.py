"""The rows of the run: nki_rows.csv, read and selected."""

from __future__ import annotations

import csv
import dataclasses
import fnmatch
import pathlib

TABLE = pathlib.Path(__file__).parent.parent / "nki_rows.csv"


@dataclasses.dataclass(frozen=True)
class Row:
    """One unit that can pass or fail; the fields are the columns described in tools/README.md."""

    id: str
    group: str
    repository: str
    commit: str
    path: str
    entry: str
    dialect: str
    reference: str
    arguments: str
    needs: str
    notes: str

    @property
    def heavy(self) -> bool:
        """Takes minutes rather than seconds."""
        return "heavy" in self.notes

    def checkout(self, checkouts: pathlib.Path) -> pathlib.Path:
        """The folder of the row's repository."""
        return pathlib.Path(checkouts) / self.repository.replace("/", "+")


def read(table: pathlib.Path = TABLE) -> list[Row]:
    """All rows, in the table's order."""
    with open(table, newline="", encoding="utf-8") as file:
        return [Row(**line) for line in csv.DictReader(file)]


def select(
    rows: list[Row], patterns=(), group: str | None = None, dialect: str | None = None, heavy: bool = True
) -> list[Row]:
    """Rows whose id matches one of the shell patterns (none: all), of the group and dialect.

    heavy=False leaves long ones out.
    ValueError if a pattern, the group or the dialect fits no row of the table.
    """
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(row.id, pattern) for row in rows):
            raise ValueError(f"no row's id matches '{pattern}'; the ids are the first column of {TABLE.name}")
    for what, value in (("group", group), ("dialect", dialect)):
        known = sorted({getattr(row, what) for row in rows})
        if value is not None and value not in known:
            raise ValueError(f"no {what} '{value}'; there are {', '.join(known)}")
    return [
        row
        for row in rows
        if (not patterns or any(fnmatch.fnmatchcase(row.id, pattern) for pattern in patterns))
        and group in (None, row.group)
        and dialect in (None, row.dialect)
        and (heavy or not row.heavy)
    ]
