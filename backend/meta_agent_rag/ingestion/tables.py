"""Tables as text: cells joined with " | ", one row per line, with the header repeated in every part of a table."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

BETWEEN_CELLS = " | "
SHORT_TABLE = 400
"""The number of characters up to which a table stays one block, so that a default passage also holds the header."""
_MOST_TITLES = 2
_LONGEST_TITLE = 100
_MOST_SPANNED = 100
"""The most columns over which the text of a merged cell is repeated; HTML allows 65,534."""
_MOST_REACHING = 200
"""The number of columns in which a cell may reach into the rows below."""
_MOST_REPEATED = 200
"""The number of characters up to which a text is repeated in the further places of its cell."""
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell with the number of columns and rows that it spans. `named`: the file calls it a header."""

    text: str
    across: int = 1
    down: int = 1
    named: bool = False


def row_text(cells: Iterable[str]) -> str:
    """One row; empty for a row of empty cells. An empty first or last cell has a further "|" outside."""
    shown = [" ".join(cell.split()) for cell in cells]
    if not any(shown):
        return ""
    return f"{'' if shown[0] else '| '}{BETWEEN_CELLS.join(shown)}{'' if shown[-1] else ' |'}"


def cells_of(row: str) -> list[str]:
    """The cells of a row, as they were given to `row_text`."""
    return [cell.strip() for cell in row.removeprefix("|").removesuffix("|").split("|")]


def grid_rows(rows: Iterable[Sequence[Cell]]) -> list[str]:
    """The rows of a table as text; the text of a merged cell stands in every place that it spans.

    A row has the cells that begin in it, as in HTML. Header rows below a cell that spans columns become one.

    >>> head = [Cell("Town", down=2), Cell("Sales", across=2)]
    >>> grid_rows([head, [Cell("Q1"), Cell("Q2")], [Cell("A"), Cell("5"), Cell("6")]])
    ['Town | Sales Q1 | Sales Q2', 'A | 5 | 6']
    """
    placed = list(_placed(rows))
    kept = [
        row
        for row, above in zip(placed, map(set, [[], *placed]), strict=False)
        if any(cell.text.strip() and cell not in above for cell in row)
    ]
    begun = {
        place
        for row in kept
        for place, cell in enumerate(row)
        if cell.text.strip() and (not place or row[place - 1] is not cell)
    }
    kept = [[cell for place, cell in enumerate(row) if place in begun] for row in kept]
    first = next((place for place, row in enumerate(kept) if len(set(row)) > 1), 0)
    heads = _heads(kept[first:])
    lines = [row_text([row[0].text]) for row in kept[:first]]
    if heads > 1:
        columns = zip(*kept[first : first + heads], strict=False)
        lines.append(row_text(" ".join(dict.fromkeys(cell.text.strip() for cell in column)) for column in columns))
        first += heads
    return lines + [_line(row, above) for above, row in zip([[], *kept[first:]], kept[first:], strict=False)]


def _placed(rows: Iterable[Sequence[Cell]]) -> Iterator[list[Cell]]:
    """Each row with a cell in every column, those that reach into it from above included."""
    reaching: dict[int, tuple[Cell, int]] = {}
    width = 0
    for cells in rows:
        row = {column: cell for column, (cell, _) in reaching.items()}
        reaching = {column: (cell, more - 1) for column, (cell, more) in reaching.items() if more > 1}
        column = 0
        for cell in cells:
            while column in row:
                column += 1
            for _ in range(min(max(cell.across, 1), _MOST_SPANNED)):
                row.setdefault(column, cell)
                if cell.down > 1 and column < _MOST_REACHING:
                    reaching[column] = (cell, cell.down - 1)
                column += 1
        width = max(width, max(row, default=-1) + 1)
        yield [row.get(place, _EMPTY) for place in range(width)]


_EMPTY = Cell("")


def _heads(rows: Sequence[Sequence[Cell]]) -> int:
    """The number of rows that form the header: more than one only below a cell that spans columns.

    Such a row has names below the wide cells, and beside them cells that reach down from the row above, unless the
    file itself calls all of its cells headers.
    """
    if not rows:
        return 0
    top = rows[0]
    wide = [place for place, cell in enumerate(top) if cell.text and top.count(cell) > 1]
    heads = 1
    for row in rows[1:4] if wide else ():
        beside = [place for place in range(min(len(top), len(row))) if place not in wide]
        reaches = any(row[place] is top[place] and top[place].text for place in beside)
        blank = all(row[place] is top[place] or not row[place].text.strip() for place in beside)
        called = all(cell.named for cell in row if cell not in top)
        names = all(place < len(row) and _is_name(row[place].text.strip()) for place in wide)
        if not (blank and names and (reaches or called)):
            break
        heads += 1
    return heads


def _is_name(text: str) -> bool:
    """Whether a text names a column: it has a letter, or is a year."""
    return any(map(str.isalpha, text)) or _YEAR.fullmatch(text) is not None


def _line(row: Sequence[Cell], above: Sequence[Cell]) -> str:
    """A row as text; a text that is long, or that is alone in its row, stands once."""
    alone = len(set(row)) == 1
    seen = set(above)
    texts = []
    for place, cell in enumerate(row):
        again = (alone and place) or (cell in seen and len(cell.text) > _MOST_REPEATED)
        texts.append("" if again else cell.text)
        seen.add(cell)
    return row_text(texts)


def table_blocks(rows: Iterable[str]) -> Iterator[str]:
    """The texts of a table's blocks; each begins with the table's first row, its header, and the titles above it.

    >>> [text.count("Plant") for text in table_blocks(["Plant | t", *(f"Quay {n} | {n}" for n in range(60))])]
    [1, 1]
    """
    kept = [row for row in rows if row]
    if not kept:
        return
    header = kept[: _titled(kept)]
    block, length = [*header], len("\n".join(header))
    for row in kept[len(header) :]:
        if len(block) > len(header) and length + len(row) > SHORT_TABLE:
            yield "\n".join(block)
            block, length = [*header], len("\n".join(header))
        block.append(row)
        length += len(row) + 1
    yield "\n".join(block)


def is_table(text: str) -> bool:
    """Whether a block is one of a table: several rows, the first or second of which has cells."""
    rows = text.split("\n", _MOST_TITLES + 1)
    return len(rows) > 1 and BETWEEN_CELLS in rows[-1] and any(BETWEEN_CELLS in row for row in rows[: len(rows) - 1])


def continued(before: Sequence[str], rows: Sequence[str]) -> list[str]:
    """The rows of a table at the beginning of a page, with the header of the table that ends the page before.

    They are unchanged if that may be a different table: with other columns, without a column of numbers, or with a
    name in the first row where the rows above it have numbers.

    >>> continued(["Plant | t", "Quay | 5"], ["Harbour | 7"])
    ['Plant | t', 'Harbour | 7']
    """
    heads = list(before[: _titled(before)])
    earlier, first = [cells_of(row) for row in before[len(heads) :]], cells_of(rows[0])
    width = len(cells_of(heads[-1]))
    if list(rows[: len(heads)]) == heads or len(first) != width or width == 1 or not earlier:
        return list(rows)
    numeric = [column for column in range(width) if all(_is_number(row, column) for row in earlier)]
    return [*heads, *rows] if any(_is_number(first, column) for column in numeric) else list(rows)


def _is_number(row: Sequence[str], column: int) -> bool:
    """Whether the cell has a digit, or is empty."""
    return column < len(row) and (not row[column] or any(map(str.isdigit, row[column])))


def _titled(rows: Sequence[str]) -> int:
    """The number of rows up to the header: it is the first row, unless that is the title of a table of columns."""
    for number, row in enumerate(rows[: _MOST_TITLES + 1], start=1):
        if BETWEEN_CELLS in row:
            return number if len(rows) > number else 1
        if len(row) > _LONGEST_TITLE:
            break
    return 1
