"""Excel workbooks (.xlsx), with openpyxl: one section per sheet, its rows as a table."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

from ..content import archive
from ..content.grid import MOST_PADDED, Cell, grid_rows
from ..content.tables import row_text, table_blocks
from ..document import Block, Document, Refused
from ..text import one_line
from . import File, Parser

if TYPE_CHECKING:
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

_SUFFIXES = (".xlsx", ".xlsm")
_MOST_CELLS = 5_000_000
"""The most cells of a workbook, including empty ones; a sheet may declare 17 billion."""

_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]{0,80}?ref=[\"']([A-Z]{1,3}[0-9]{1,7}:[A-Z]{1,3}[0-9]{1,7})[\"']")
_LONGEST_TAG = 120
_AT_ONCE = 1024 * 1024
_MOST_MERGED = 200_000
"""The most rows of merged cells of a sheet, each counted for itself, from which on cells are not spread."""
_Range: TypeAlias = tuple[int, int, int, int]
"""The first row and column of merged cells, and the last ones, from 1."""
_Row: TypeAlias = tuple[int, list[str]]
"""The number of a row, from 1, and its texts."""


def _recognises(file: File) -> bool:
    return archive.holds(file, "xl/workbook.xml")


def _parse(file: File) -> Document:
    from openpyxl import load_workbook

    archive.check(file)
    workbook = load_workbook(io.BytesIO(file.content), read_only=True, data_only=True)  # values, not formulas
    try:
        left = _Left()
        blocks = tuple(block for sheet in workbook.worksheets for block in _sheet(sheet, left))
        title = one_line(workbook.properties.title or "")
    finally:
        workbook.close()
    return Document(title=title or file.stem, kind="xlsx", blocks=blocks)


class _Left:
    """The number of cells that may still be read."""

    def __init__(self) -> None:
        self._cells = _MOST_CELLS

    def take(self, count: int) -> None:
        """Count a row's cells. Raises `Refused`."""
        self._cells -= count
        if self._cells < 0:
            raise Refused("limit", f"it has more than {_MOST_CELLS} cells; save only the sheets that you need")


def _sheet(sheet: "ReadOnlyWorksheet", left: _Left) -> Iterator[Block]:
    rows: list[_Row] = []
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        left.take(max(len(cells), 1))
        texts = [_text(value) for value in cells]
        while texts and not texts[-1].strip():
            texts.pop()  # columns that are empty to the right
        rows.append((number, texts))
    merged = _merged(sheet, next((number for number, texts in reversed(rows) if texts), 0))
    for table in _tables(rows, merged):
        lines = _unmerged(table, merged) if any(number in merged for number, _ in table) else _padded(table)
        yield from (Block(text=text, section=sheet.title) for text in table_blocks(lines))


def _tables(rows: Sequence[_Row], merged: Mapping[int, Sequence[_Range]]) -> Iterator[list[_Row]]:
    """Runs of rows without an empty row, since a sheet may contain several tables."""

    def filled(row: _Row) -> bool:
        return any(map(str.strip, row[1])) or any(top < row[0] for top, *_ in merged.get(row[0], ()))

    waiting = iter(rows)
    for row in waiting:
        if filled(row):
            yield [row, *takewhile(filled, waiting)]


def _padded(table: Sequence[_Row]) -> Iterator[str]:
    """The rows of a table without merged cells, none with fewer cells than its first row of several cells."""
    width = next((len(texts) for _, texts in table if len(texts) > 1), 0)
    for number, (_, texts) in enumerate(table):
        missing = width - len(texts) if width <= MOST_PADDED and (number or len(texts) > 1) else 0
        yield row_text([*texts, *[""] * missing])


def _unmerged(table: Sequence[_Row], merged: Mapping[int, Sequence[_Range]]) -> list[str]:
    """The rows of a table with merged cells."""
    rows: list[list[Cell]] = []
    for number, texts in table:
        ranges = merged.get(number, ())
        covered = {column for _, left, _, right in ranges for column in range(left, right + 1)}
        spans = {left: (right - left + 1, bottom - top + 1) for top, left, bottom, right in ranges if top == number}
        width = max([len(texts), *spans])
        filled = enumerate([*texts, *[""] * (width - len(texts))], start=1)
        rows.append([Cell(text, *spans.get(at, (1, 1))) for at, text in filled if at in spans or at not in covered])
    return grid_rows(rows)


def _merged(sheet: "ReadOnlyWorksheet", count: int) -> Mapping[int, Sequence[_Range]]:
    """The merged cells of a sheet's first `count` rows, by each of these rows; openpyxl leaves them out of rows."""
    from openpyxl.utils import range_boundaries

    found: dict[int, list[_Range]] = {}
    left = _MOST_MERGED
    with sheet._get_source() as source:
        tail = b""
        while left > 0 and (part := source.read(_AT_ONCE)):
            text, position = tail + part, 0
            for match in _MERGED.finditer(text):
                first, top, last, bottom = range_boundaries(match[1].decode("ascii"))
                bottom = min(bottom, count)
                left -= max(bottom - top + 1, 0)
                for row in range(top, bottom + 1) if left >= 0 else ():
                    found.setdefault(row, []).append((top, first, bottom, min(last, first + MOST_PADDED - 1)))
                position = match.end()
            tail = text[max(position, len(text) - _LONGEST_TAG) :]
    return found


def _text(value: object) -> str:
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


PARSER = Parser(kind="xlsx", suffixes=_SUFFIXES, priority=0, recognises=_recognises, parse=_parse)
