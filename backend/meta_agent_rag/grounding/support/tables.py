"""Rows of a table as sentences that pair every cell with its header."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_CELLS = re.compile(r"\s*\|\s*|\t+")
_RULE = re.compile(r"[\s|:+=-]+")
_UNIT = re.compile(r"\s*[(\[]([^()\[\]]{1,12})[)\]]\s*$")
_LEAST_CELLS = 2


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a text, at `text[start:end]`; a row of a table has its cells, with headers if there are any.

    Only rows below a header have a `label`, the first cell.
    """

    text: str
    start: int
    end: int
    label: str = ""
    in_table: bool = False


def lines(text: str) -> Iterator[Line]:
    """The lines of a text, with the rows of tables written out.

    >>> [line.text for line in lines("| Plant | 2021 (t) |\\n|---|---|\\n| Harbour | 410 |")][-1]
    'Plant = Harbour; 2021 = 410 t'
    """
    header: Sequence[str] | None = None
    start = 0
    for line in text.splitlines(keepends=True):
        end = start + len(line)
        cells = _cells(line)
        if len(cells) < _LEAST_CELLS:
            header = None
            yield Line(text=line, start=start, end=end)
        elif header is None or len(cells) != len(header):
            header = cells
            yield Line(text="; ".join(cells), start=start, end=end, in_table=True)
        elif not _RULE.fullmatch(line):
            text = _written_out(header, cells)
            yield Line(text=text, start=start, end=end, label=cells[0], in_table=True)
        start = end


def _cells(line: str) -> list[str]:
    bare = line.strip().strip("|")
    return [cell.strip() for cell in _CELLS.split(bare)] if "|" in bare or "\t" in bare else []


def _written_out(header: Sequence[str], cells: Sequence[str]) -> str:
    own = _UNIT.search(cells[0])
    return "; ".join(_cell(name, cell, own) for name, cell in zip(header, cells, strict=True) if cell)


def _cell(name: str, cell: str, own: re.Match[str] | None) -> str:
    """A cell with its header; a unit in brackets behind the header, or behind the row's label (`own`), is its unit."""
    unit = _UNIT.search(name) or own
    bare = _UNIT.sub("", name)
    shown = _with_unit(cell, unit[1]) if unit and cell[-1:].isdigit() else cell
    return f"{bare} = {shown}" if bare else shown


def _with_unit(cell: str, unit: str) -> str:
    """A number with its unit: 410 t, and \u00a33,900 thousand from "\u00a3 thousand"."""
    sign, _, rest = unit.partition(" ")
    return f"{sign}{cell} {rest}" if rest and not sign[0].isalnum() else f"{cell} {unit}"
