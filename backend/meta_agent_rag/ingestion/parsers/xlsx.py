"""Excel workbooks (.xlsx), with openpyxl: one section per sheet, its rows as a table."""

import io
from collections.abc import Iterator
from datetime import date, datetime, time
from itertools import takewhile
from typing import TYPE_CHECKING

from ..content import archive
from ..content.tables import row_text, table_blocks
from ..document import Block, Document, Refused
from ..text import one_line
from . import File, Parser

if TYPE_CHECKING:
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

_SUFFIXES = (".xlsx", ".xlsm")
_MOST_CELLS = 5_000_000
"""The most cells of a workbook, including empty ones; a sheet may declare 17 billion."""


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
    rows: list[str] = []
    for cells in sheet.iter_rows(values_only=True):
        left.take(max(len(cells), 1))
        texts = [_text(value) for value in cells]
        while texts and not texts[-1].strip():
            texts.pop()  # columns that are empty to the right
        rows.append(row_text(texts))
    for table in _tables(rows):
        yield from (Block(text=text, section=sheet.title) for text in table_blocks(table))


def _tables(rows: list[str]) -> Iterator[list[str]]:
    """Runs of rows without an empty row, since a sheet may contain several tables."""
    waiting = iter(rows)
    for row in waiting:
        if row:
            yield [row, *takewhile(bool, waiting)]


def _text(value: object) -> str:
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


PARSER = Parser(kind="xlsx", suffixes=_SUFFIXES, priority=0, recognises=_recognises, parse=_parse)
