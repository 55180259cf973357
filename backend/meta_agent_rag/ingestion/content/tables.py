"""Tables as text: cells joined with " | ", a row a line, the first row again wherever the table is divided."""

from collections.abc import Iterable, Iterator

SHORT_TABLE = 400
"""Characters up to which a table stays one block, so that a passage of the default size holds the first row too."""


def row_text(cells: Iterable[str]) -> str:
    """One row; empty for a row of empty cells."""
    shown = [" ".join(cell.split()) for cell in cells]
    return " | ".join(shown) if any(shown) else ""


def table_blocks(rows: Iterable[str]) -> Iterator[str]:
    """The texts of the blocks that a table becomes; each begins with the table's first row, its header.

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
