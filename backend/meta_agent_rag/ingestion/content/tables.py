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


def _heads(rows: Sequence[str]) -> int:
    """The number of rows up to the header: it is the first row, unless that is the title of a table of columns."""
    for number, row in enumerate(rows[: _MOST_TITLES + 1], start=1):
        if BETWEEN_CELLS in row:
            return number if len(rows) > number else 1
        if len(row) > _LONGEST_TITLE:
            break
    return 1
