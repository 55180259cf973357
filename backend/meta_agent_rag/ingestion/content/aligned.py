"""Tables of a PDF page without vertical rules: lines whose words stand in columns, one of them of numbers.

pdfplumber's own strategy for tables without rules takes a page of prose for one table, so columns are found here:
words with more than a letter's width between them are cells, and cells below each other are columns. A false table is
worse than a table read as text: a header, a column of numbers and gaps throughout are required.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, TypeAlias

from .headings import Line

_GAP = 1.0
"""The least space between two cells, in heights of the letters; between words of justified text it is below 0.8."""
_LEADING = 3.0
"""The most from one row to the next, in heights of the letters."""
_LEAST_ROWS = 3
_MOST_COLUMNS = 15
_NUMERIC = 0.7
"""The share of a column's filled cells that are numbers."""
_LONGEST_CELL = 60
_LONG_TEXT = 30
_NUMBER = re.compile(
    r"[^\w\s]{0,2}\s?\d[\d.,:/\u2009\u2013\u00b1+-]*(?:\s\d{3})*\s?[%\w\u00b0\u00b5/]{0,6}[)*]?|[-\u2013\u2014]|n/?a",
    re.I,
)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_LEADERS = re.compile(r"\.\s?\.\s?\.\s?\.")
_TOKEN = re.compile(r"\S+")
_LEAST_SHARE = 0.25
_MOST_OF_PROSE = 0.5
"""The share of numbers among a line's words from which it is not running text, however long it is."""
_SHORT = 0.7
"""The length, as a share of the page's usual line, up to which a line is not running text."""
_LEAST_USUAL = 60
"""The least length of a usual line of running text; on a page with nothing but a table, no line is short otherwise."""
_LEAST_ALONE = 4
_LONGEST_LINE = 100

Box: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class _Cell:
    text: str
    left: float
    right: float


@dataclass(frozen=True, kw_only=True)
class _Row:
    cells: tuple[_Cell, ...]
    top: float
    bottom: float


def may_be_aligned(lines: Sequence[Line]) -> bool:
    """Are there lines with as many numbers as in a table? Decides whether a page is read again, with places of words.

    These are two consecutive lines of words and numbers with wide gaps, three of which no gaps are known but which
    are not like running text, or several of numbers alone: cells may be drawn one by one.
    """
    filled = [line for line in lines if line.text.strip()]
    alone = sum(_is_number(line.text.strip()) for line in filled)
    if alone >= _LEAST_ALONE:
        return True
    usual = sorted([_LEAST_USUAL, *(len(line.text) for line in filled)])[3 * len(filled) // 4]
    short = _SHORT * max(usual, _LEAST_USUAL)
    shares = [_numbers(line.text) for line in filled]
    spaced = [line.spaced and share >= _LEAST_SHARE for line, share in zip(filled, shares, strict=True)]
    unlike = [
        share >= (_LEAST_SHARE if line.spaced or len(line.text) < short else _MOST_OF_PROSE)
        for line, share in zip(filled, shares, strict=True)
    ]
    return any(map(all, pairwise(spaced))) or any(map(all, zip(unlike, unlike[1:], unlike[2:], strict=False)))


def _numbers(line: str) -> float:
    """The share of a line's words that are numbers; 0 if it is long, or if only its first word is one."""
    if len(line) > _LONGEST_LINE:
        return 0.0
    numbers = [token[0].isdigit() or token[-1].isdigit() for token in _TOKEN.findall(line)]
    return sum(numbers) / len(numbers) if any(numbers[1:]) else 0.0


def aligned_tables(words: Sequence[dict[str, Any]]) -> Iterator[tuple[Box, list[list[str]]]]:
    """The tables among a page's words, as pdfplumber's `extract_words` returns them: each with its box and its rows."""
    for run in _runs(_rows(words)):
        columns = _columns(run)
        cells = [_cells(row, columns) for row in run]
        if _is_table(cells):
            yield (columns[0][0], run[0].top, columns[-1][1], run[-1].bottom), cells


def _rows(words: Sequence[dict[str, Any]]) -> Iterator[_Row]:
    """Lines of words, divided into cells at wide gaps."""
    line: list[dict[str, Any]] = []
    for word in sorted(words, key=lambda word: (word["bottom"], word["x0"])):
        if line and word["bottom"] - line[0]["bottom"] > (line[0]["bottom"] - line[0]["top"]) / 3:
            yield _row(line)
            line = []
        line.append(word)
    if line:
        yield _row(line)


def _row(line: list[dict[str, Any]]) -> _Row:
    line.sort(key=lambda word: word["x0"])
    height = median(word["bottom"] - word["top"] for word in line)
    cells: list[list[dict[str, Any]]] = [[line[0]]]
    for before, word in pairwise(line):
        if word["x0"] - before["x1"] > _GAP * height:
            cells.append([])
        cells[-1].append(word)
    return _Row(
        cells=tuple(
            _Cell(text=" ".join(word["text"] for word in cell), left=cell[0]["x0"], right=cell[-1]["x1"])
            for cell in cells
        ),
        top=min(word["top"] for word in line),
        bottom=max(word["bottom"] for word in line),
    )


def _runs(rows: Iterator[_Row]) -> Iterator[list[_Row]]:
    """Consecutive rows of several cells."""
    run: list[_Row] = []
    for row in rows:
        near = not run or row.bottom - run[-1].bottom <= _LEADING * (row.bottom - row.top)
        if run and (len(row.cells) == 1 or not near):
            yield run
            run = []
        if len(row.cells) > 1:
            run.append(row)
    if run:
        yield run


def _columns(run: Sequence[_Row]) -> list[tuple[float, float]]:
    """The horizontal extents of the columns: those of cells that overlap are joined."""
    columns: list[tuple[float, float]] = []
    for left, right in sorted((cell.left, cell.right) for row in run for cell in row.cells):
        if columns and left < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], right))
        else:
            columns.append((left, right))
    return columns


def _cells(row: _Row, columns: Sequence[tuple[float, float]]) -> list[str]:
    return [
        " ".join(cell.text for cell in row.cells if left <= cell.left and cell.right <= right)
        for left, right in columns
    ]


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    """Have the rows a header and a column of numbers, and no more than one column of longer texts?"""
    if len(rows) < _LEAST_ROWS or not 1 < len(rows[0]) <= _MOST_COLUMNS:
        return False
    header, body = rows[0], rows[1:]
    texts = [cell for row in rows for cell in row if cell]
    if (
        max(map(len, texts)) > _LONGEST_CELL
        or any(map(_LEADERS.search, texts))
        or sum(map(bool, header)) < len(header) - 1
    ):
        return False
    columns = [[row[column] for row in body if row[column]] for column in range(len(header))]
    numeric = [
        column
        for column, cells in enumerate(columns)
        if column and len(cells) > 1 and sum(map(_is_number, cells)) >= _NUMERIC * len(cells)
    ]
    long = sum(bool(cells) and median(map(len, cells)) > _LONG_TEXT for cells in columns)
    headed = [column for column in numeric if not _is_number(header[column]) or _YEAR.fullmatch(header[column])]
    return bool(headed) and len(headed) == len(numeric) and long <= 1


def _is_number(text: str) -> bool:
    return len(text) <= _LONGEST_CELL and _NUMBER.fullmatch(text) is not None
