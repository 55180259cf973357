"""Tables as text: cells joined with " | ", a row a line."""

from collections.abc import Iterable, Iterator

SHORT_TABLE = 2_000
"""Characters up to which a table stays one block; a longer one is divided between rows."""


def row_text(cells: Iterable[str]) -> str:
    """One row; empty for a row of empty cells."""
    shown = [" ".join(cell.split()) for cell in cells]
    return " | ".join(shown) if any(shown) else ""


def table_blocks(rows: Iterable[str]) -> Iterator[str]:
    """The texts of the blocks that a table becomes."""
    block: list[str] = []
    length = 0
    for row in rows:
        if block and length + len(row) > SHORT_TABLE:
            yield "\n".join(block)
            block, length = [], 0
        if row:
            block.append(row)
            length += len(row) + 1
    if block:
        yield "\n".join(block)
