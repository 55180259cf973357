"""Tables with merged cells: each cell's text stands in every place that it spans, and header rows become one row."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .tables import row_text

_MOST_SPANNED = 100
"""The most columns that a cell spans; HTML allows 1,000."""
_MOST_HEADERS = 4
"""The most rows that are joined into a header."""
_MOST_REPEATED = 200
"""The number of characters up to which a text is repeated in the further places of its cell."""
_MOST_PLACES = 200_000
"""The most further places of cells in one table that are filled."""
MOST_PADDED = 100
"""The most columns of a table whose short rows are filled up with empty cells."""
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell and the number of columns and rows that it spans; two cells with the same text are different.

    `named`: the file says that it is a header.
    """

    text: str
    across: int = 1
    down: int = 1
    named: bool = False


Row = Mapping[int, Cell]
"""A row's cells by column; a cell that spans several places is in each of them."""


def grid_rows(rows: Iterable[Sequence[Cell]]) -> list[str]:
    """The rows of a table as text, without rows and columns in which no cell begins.

    A row has the cells that begin in it, without the places that cells further up or left cover, as in HTML. If a
    cell of the first row spans columns, its name is joined with the names below it, provided that these are headers: a
    cell beside it spans both rows, or the file says so.

    >>> towns = [Cell("A"), Cell("5"), Cell("6")]
    >>> grid_rows([[Cell("Town", 1, 2), Cell("Sales", 2)], [Cell("2020"), Cell("2021")], towns])
    ['Town | Sales 2020 | Sales 2021', 'A | 5 | 6']
    """
    grid = list(_placed(rows))
    kept = [row for row, above in zip(grid, [{}, *grid], strict=False) if _begins(row, above)]
    columns = sorted({column for row in kept for column in _firsts(row)})
    titles = next((place for place, row in enumerate(kept) if len(set(row.values())) > 1), 0)
    heads = titles + _header(kept[titles:])
    lines = [row_text([cell.text]) for row in kept[:titles] for cell in [*row.values()][:1]]
    lines += [_joined(kept[titles:heads], columns)] if heads > titles else []
    befores = [kept[heads - 1] if heads else {}, *kept[heads:]]
    return lines + [_line(row, before, columns) for row, before in zip(kept[heads:], befores, strict=False)]


def _placed(rows: Iterable[Sequence[Cell]]) -> Iterator[dict[int, Cell]]:
    """Each row with its cells and those that reach into it from above."""
    reaching: dict[int, tuple[Cell, int]] = {}
    left = _MOST_PLACES
    for cells in rows:
        row = {column: cell for column, (cell, _) in reaching.items()}
        still = reaching.items() if left > 0 else ()
        reaching = {column: (cell, more - 1) for column, (cell, more) in still if more > 1}
        column = 0
        for cell in cells:
            while column in row:
                column += 1
            across = min(max(cell.across, 1), _MOST_SPANNED) if left > 0 else 1
            for place in range(column, column + across):
                if place in row:
                    break
                row[place] = cell
                if cell.down > 1 and left > 0:
                    reaching[place] = (cell, cell.down - 1)
            left -= across - 1 + (cell.down > 1)
            column += 1
        left -= len(reaching)
        yield row


def _begins(row: Row, above: Row) -> bool:
    """Does a cell with text begin in the row?"""
    return any(cell.text.strip() and above.get(column) is not cell for column, cell in row.items())


def _firsts(row: Row) -> Iterator[int]:
    """The columns in which the row's cells begin."""
    return (column for column, cell in row.items() if row.get(column - 1) is not cell)


def _header(grid: Sequence[Row]) -> int:
    """The number of rows to join into a header; 0 if no cell of the first row spans columns."""
    wide = [column for column, cell in (grid[0].items() if grid else ()) if cell.across > 1]
    if not wide:
        return 0
    reach = min(max(cell.down for cell in grid[0].values()), _MOST_HEADERS)
    beside = [column for column in grid[0] if column not in wide]
    first = set(grid[0].values())
    heads = 1
    for row in grid[1 : max(reach, 2)]:
        spanning = [row[column] is grid[0][column] for column in beside if column in row]
        blank = all(
            row[column] is grid[0][column] or not row[column].text.strip() for column in beside if column in row
        )
        is_header = any(spanning) or all(cell.named for cell in set(row.values()) - first)
        named = all(column in row and _is_name(row[column].text.strip()) for column in wide)
        if not (blank and is_header and named):
            break
        heads += 1
    return heads


def _is_name(text: str) -> bool:
    """Is it a text without digits, or a year?"""
    return bool(text) and (_YEAR.fullmatch(text) is not None or not any(map(str.isdigit, text)))


def _line(row: Row, above: Row, columns: Sequence[int]) -> str:
    lone = len(set(row.values())) == 1
    texts: list[str] = []
    shown = columns if len(columns) <= MOST_PADDED else columns[: bisect_right(columns, max(row))]
    for place, column in enumerate(shown):
        cell = row.get(column)
        again = bool(place) and row.get(columns[place - 1]) is cell
        long = cell is not None and len(cell.text) > _MOST_REPEATED and (again or above.get(column) is cell)
        texts.append("" if cell is None or long or (again and lone) else cell.text)
    return row_text(texts)


def _joined(rows: Sequence[Row], columns: Sequence[int]) -> str:
    named = [dict.fromkeys(row[column].text for row in rows if column in row) for column in columns]
    return row_text(" ".join(names) for names in named)
