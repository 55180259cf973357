"""Tables as text: cells joined with " | ", one row per line, with the header repeated in every part of a table."""

from collections.abc import Iterable, Iterator

SHORT_TABLE = 400
"""The number of characters up to which a table stays one block, so that a default passage also holds the header."""


def row_text(cells: Iterable[str]) -> str:
    """One row; empty for a row of empty cells."""
    shown = [" ".join(cell.split()) for cell in cells]
    return " | ".join(shown) if any(shown) else ""


def table_blocks(rows: Iterable[str]) -> Iterator[str]:
    """The texts of a table's blocks; each begins with the table's first row, its header.

    >>> [text.count("Plant") for text in table_blocks(["Plant | t", *(f"Quay {n} | {n}" for n in range(60))])]
    [1, 1]
    """
    kept = [row for row in rows if row]
    if not kept:
        return
    header, block, length = kept[0], [kept[0]], len(kept[0])
    for row in kept[1:]:
        if len(block) > 1 and length + len(row) > SHORT_TABLE:
            yield "\n".join(block)
            block, length = [header], len(header)
        block.append(row)
        length += len(row) + 1
    yield "\n".join(block)
