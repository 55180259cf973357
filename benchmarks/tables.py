"""A table, as Markdown for the report and as CSV for a spreadsheet."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Cells: TypeAlias = tuple[str, ...]

_INTERVAL = re.compile(r"([-+]?[\d.]+) \[([-+]?[\d.]+), ([-+]?[\d.]+)\]")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table by the name of its files; `note` is for its reader, `caveat` belongs in its caption."""

    name: str
    title: str
    head: Cells
    rows: Sequence[Cells]
    note: str = ""
    caveat: str = ""

    @property
    def caption(self) -> str:
        """The title, with its caveat."""
        return f"{self.title} ({self.caveat})" if self.caveat else self.title


def as_markdown(table: Table) -> str:
    """Only the table, in GitHub's Markdown."""
    head, *rows = (
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |"
        for line in (table.head, *table.rows)
    )
    return "\n".join([head, "|" + "---|" * len(table.head), *rows])


def as_csv(table: Table) -> str:
    """Head and rows as in RFC 4180, with Unix line ends; a caveat becomes an extra column.

    A figure with its interval becomes three columns of numbers, so that a spreadsheet can compute with them.
    """
    out = io.StringIO()
    columns = [_columns(name, [row[place] for row in table.rows]) for place, name in enumerate(table.head)]
    lines = [tuple(cell for column in columns for cell in column[index]) for index in range(len(table.rows) + 1)]
    if table.caveat:
        lines = [(*line, cell) for line, cell in zip(lines, ("caveat", *[table.caveat] * len(table.rows)), strict=True)]
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def _columns(name: str, cells: Sequence[str]) -> list[Cells]:
    """A column of the CSV as lines, its head first: one cell each, or figure, low and high end of its interval."""
    parts = [_INTERVAL.fullmatch(cell) for cell in cells]
    if not any(parts):
        return [(name,), *((cell,) for cell in cells)]
    plain = name.replace(" [95 %]", "")
    split = [part.groups() if part else (cell, "", "") for part, cell in zip(parts, cells, strict=True)]
    return [(plain, f"{plain} low", f"{plain} high"), *((one[0], one[1], one[2]) for one in split)]


def number(value: float | None, digits: int = 1) -> str:
    """A figure for a cell; a dash if it is missing."""
    return "-" if value is None else f"{value:.{digits}f}"


def percent(share: float | None) -> str:
    """A share (0..1) as a percentage for a cell; a dash if it is missing."""
    return number(None if share is None else 100.0 * share)


def with_interval(value: float | None, interval: Sequence[float] | None, digits: int = 1) -> str:
    """A figure and its interval for a cell; a dash if it is missing."""
    if value is None or interval is None:
        return "-"
    low, high = interval
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def signed(value: float, interval: Sequence[float], digits: int = 1) -> str:
    """A difference and its interval for a cell, each with its sign."""
    value, low, high = (round(one, digits) + 0.0 for one in (value, *interval))  # no "-0.0"
    return f"{value:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"


def p_words(p: float) -> str:
    """A p value in a sentence: `p = 0.021`, or `p < 0.001`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
