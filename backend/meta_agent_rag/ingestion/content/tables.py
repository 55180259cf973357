"""Tables as text: cells joined with " | ", one row per line, with the header repeated in every part of a table."""

from collections.abc import Iterable, Iterator, Sequence

SHORT_TABLE = 400
"""The number of characters up to which a table stays one block, so that a default passage also holds the header."""

BETWEEN_CELLS = " | "
_MOST_TITLES = 2
_LONGEST_TITLE = 100


def row_text(cells: Iterable[str]) -> str:
    """One row; empty for a row of empty cells. An empty first or last cell has a further "|" outside."""
    shown = [" ".join(cell.split()) for cell in cells]
    if not any(shown):
        return ""
    return f"{'' if shown[0] else '| '}{BETWEEN_CELLS.join(shown)}{'' if shown[-1] else ' |'}"


def table_blocks(rows: Iterable[str]) -> Iterator[str]:
    """The texts of a table's blocks; each begins with the table's first row, its header, and the titles above it.

    >>> [text.count("Plant") for text in table_blocks(["Plant | t", *(f"Quay {n} | {n}" for n in range(60))])]
    [1, 1]
    """
    kept = [row for row in rows if row]
    if not kept:
        return
    header = kept[: _heads(kept)]
    block, length = [*header], len("\n".join(header))
    for row in kept[len(header) :]:
        if len(block) > len(header) and length + len(row) > SHORT_TABLE:
            yield "\n".join(block)
            block, length = [*header], len("\n".join(header))
        block.append(row)
        length += len(row) + 1
    yield "\n".join(block)


def is_table(text: str) -> bool:
    """Is a block one of a table: several rows, the first or second of which has cells?"""
    rows = text.split("\n", _MOST_TITLES + 1)
    return len(rows) > 1 and BETWEEN_CELLS in rows[-1] and any(BETWEEN_CELLS in row for row in rows[: len(rows) - 1])


def cells_of(row: str) -> list[str]:
    """The cells of a row, as they were given to `row_text`.

    >>> cells_of(row_text(["", "5", ""]))
    ['', '5', '']
    """
    return [cell.strip() for cell in row.removeprefix("|").removesuffix("|").split("|")]


def continued(before: Sequence[str], rows: Sequence[str]) -> list[str]:
    """The rows of a table at the beginning of a page, with the header of the table that ends the page before.

    They are unchanged if that may be a different table: with other columns, without a column of numbers, or if the
    first row is a header of its own, because it has a name where the rows above it have numbers. A table of words may
    be another one of the same form: a claim must not be read from the names of foreign columns.

    >>> continued(["Plant | t", "Quay | 5"], ["Harbour | 7"])
    ['Plant | t', 'Harbour | 7']
    """
    heads = list(before[: _heads(before)])
    header, earlier, first = cells_of(heads[-1]), [cells_of(row) for row in before[len(heads) :]], cells_of(rows[0])
    if list(rows[: len(heads)]) == heads or len(first) != len(header) or len(header) == 1 or not earlier:
        return list(rows)
    numeric = [column for column, name in enumerate(header) if all(_is_number(row, column) for row in earlier)]
    return [*heads, *rows] if any(_is_number(first, column) for column in numeric) else list(rows)


def _is_number(row: Sequence[str], column: int) -> bool:
    """Has the cell a digit, or is it empty?"""
    return column < len(row) and (not row[column] or any(map(str.isdigit, row[column])))


def _heads(rows: Sequence[str]) -> int:
    """The number of rows up to the header: it is the first row, unless that is the title of a table of columns."""
    for number, row in enumerate(rows[: _MOST_TITLES + 1], start=1):
        if BETWEEN_CELLS in row:
            return number if len(rows) > number else 1
        if len(row) > _LONGEST_TITLE:
            break
    return 1
