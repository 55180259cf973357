"""Tables as text: cells joined with " | ", one row per line, with the header repeated in every part of a table."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

BETWEEN_CELLS = " | "
SHORT_TABLE = 400
"""The number of characters up to which a table stays one block, so that a default passage also holds the header."""
MOST_SPANNED = 100
"""The most columns over which a merged cell is repeated, and the most that reach into the rows below."""
_MOST_HEADS = 3


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell; `across` and `down` are the columns and rows that it spans, for `spread`."""

    text: str
    across: int = 1
    down: int = 1


_EMPTY = Cell("")


def row_text(cells: Iterable[str]) -> str:
    """One row; empty for a row of empty cells. An empty first or last cell has a further "|" outside."""
    shown = [" ".join(cell.split()) for cell in cells]
    if not any(shown):
        return ""
    return f"{'' if shown[0] else '| '}{BETWEEN_CELLS.join(shown)}{'' if shown[-1] else ' |'}"


def spread(rows: Iterable[Sequence[Cell]]) -> Iterator[list[Cell]]:
    """Rows of the cells that begin in them, as in HTML, with each cell in every place that it spans."""
    reaching: dict[int, tuple[Cell, int]] = {}
    for cells in rows:
        row = {column: cell for column, (cell, _) in reaching.items()}
        reaching = {column: (cell, more - 1) for column, (cell, more) in reaching.items() if more > 1}
        column = 0
        for cell in cells:
            while column in row:
                column += 1
            for _ in range(min(max(cell.across, 1), MOST_SPANNED)):
                row.setdefault(column, cell)
                if cell.down > 1 and column < MOST_SPANNED:
                    reaching[column] = (cell, cell.down - 1)
                column += 1
        yield [row.get(place, _EMPTY) for place in range(max(row, default=-1) + 1)]


def grid_rows(grid: Iterable[Sequence[Cell]]) -> list[str]:
    """The rows of a table as text. A merged cell is one object in several places, in each of which its text stands.

    Header rows below a cell that spans columns become one: those into which another header cell reaches down.

    >>> town, sales = Cell("Town"), Cell("Sales")
    >>> grid_rows([[town, sales, sales], [town, Cell("Q1"), Cell("Q2")], [Cell("A"), Cell("5"), Cell("6")]])
    ['Town | Sales Q1 | Sales Q2', 'A | 5 | 6']
    """
    kept: list[Sequence[Cell]] = []
    for row in grid:
        above = set(kept[-1]) if kept else set()
        if any(cell.text.strip() and cell not in above for cell in row):
            kept.append(row)
    filled = {place for row in kept for place, cell in enumerate(row) if cell.text.strip()}
    kept = [[cell for place, cell in enumerate(row) if place in filled] for row in kept]
    first = next((place for place, row in enumerate(kept) if len(set(row)) > 1), 0)
    top = kept[first] if kept else []
    lines = [row_text(cell.text for cell in (row if len(set(row)) > 1 else row[:1])) for row in kept]
    heads = next((n for n, row in enumerate(kept[first:]) if not set(top) & set(row)), 1)
    if len(set(top)) < len(top) and 1 < heads <= _MOST_HEADS:
        columns = zip(*kept[first : first + heads], strict=False)
        header = row_text(" ".join(dict.fromkeys(cell.text.strip() for cell in column)) for column in columns)
        lines[first : first + heads] = [header]
    return lines


def table_blocks(rows: Iterable[str]) -> Iterator[str]:
    """The texts of a table's blocks; each begins with the table's header, and the titles above it.

    >>> [text.count("Plant") for text in table_blocks(["Plant | t", *(f"Quay {n} | {n}" for n in range(60))])]
    [1, 1]
    """
    kept = [row for row in rows if row]
    header = kept[: next((n for n, row in enumerate(kept[:3], start=1) if BETWEEN_CELLS in row), 1)]
    rest = kept[len(header) :]
    if len("\n".join(header[:-1])) > SHORT_TABLE:  # a text above the table, which would be most of every block
        yield "\n".join(header[:-1])
        header = header[-1:]
    block, length = [*header], len("\n".join(header))
    for row in rest:
        if len(block) > len(header) and length + len(row) > SHORT_TABLE:
            yield "\n".join(block)
            block, length = [*header], len("\n".join(header))
        block.append(row)
        length += len(row) + 1
    if block:
        yield "\n".join(block)


def is_table(text: str) -> bool:
    """Whether a block is one of a table: several rows, one of the first three with cells."""
    rows = text.split("\n", 3)
    return len(rows) > 1 and any(BETWEEN_CELLS in row for row in rows[:3])
