"""Tables of a PDF page with their rows and columns, by pdfplumber."""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .aligned import aligned_tables
from .headings import Letters, Line, line_in
from .tables import row_text

if TYPE_CHECKING:
    from pdfplumber.page import Page
    from pdfplumber.pdf import PDF

_RULES = re.compile(rb"(?<=[\d\s])(?:re|l)(?=\s)")
_LEAST_RULES = 6
"""The number of lines and boxes on a page from which it may contain a ruled table: two rows of two cells have these."""
_LEAST_CELLS = 2


@dataclass(frozen=True, kw_only=True)
class Part:
    """A stretch of a page: lines of text, or the rows of a table."""

    lines: tuple[Line, ...] = ()
    rows: tuple[str, ...] = ()


class PdfTables:
    """Reads pages with ruled tables; the file is opened for the first of them."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    @cached_property
    def _pdf(self) -> "PDF":
        import pdfplumber

        return pdfplumber.open(io.BytesIO(self._content))

    def parts(self, number: int) -> Sequence[Part]:
        """Text and tables of a page (from 0) from top to bottom; empty if it has no table.

        A table has at least two rows and two columns of text. pdfplumber may raise any exception.
        """
        page = self._pdf.pages[number]
        try:
            return list(_parts(page))
        finally:
            page.close()  # frees the parsed page


def may_hold_tables(streams: Sequence[bytes]) -> bool:
    """Are there enough drawing operators on the page for a ruled table?"""
    return sum(len(_RULES.findall(stream)) for stream in streams) >= _LEAST_RULES


def _parts(page: "Page") -> Iterator[Part]:
    found = [(table.bbox, rows) for table in page.find_tables() if (rows := _rows(table.extract()))]
    if not found:
        found = [(box, list(map(row_text, cells))) for box, cells in aligned_tables(page.extract_words())]
    if not found:
        return
    found.sort(key=lambda one: (one[0][1], one[0][0]))
    boxes = [box for box, _ in found]
    outside = page.filter(lambda thing: not any(_within(thing, box) for box in boxes))
    left, top, right, bottom = page.bbox
    position = top
    for box, rows in found:
        edge = min(max(box[1], position), bottom)
        yield from _text(outside, (left, position, right, edge))
        yield Part(rows=tuple(rows))
        position = edge
    yield from _text(outside, (left, position, right, bottom))


def _rows(cells: list[list[str | None]]) -> list[str]:
    filled = [[cell or "" for cell in row] for row in cells]
    rows = [row for row in filled if any(cell.strip() for cell in row)]
    is_table = len(rows) >= _LEAST_CELLS and any(sum(map(bool, map(str.strip, row))) >= _LEAST_CELLS for row in rows)
    return [row_text(row) for row in rows] if is_table else []


def _within(thing: dict[str, float], box: tuple[float, float, float, float]) -> bool:
    across, down = (thing["x0"] + thing["x1"]) / 2, (thing["top"] + thing["bottom"]) / 2
    return box[0] <= across <= box[2] and box[1] <= down <= box[3]


def _text(page: "Page", box: tuple[float, float, float, float]) -> Iterator[Part]:
    if box[3] - box[1] > 1:
        lines = page.crop(box).extract_text_lines(return_chars=True)
        if lines:
            yield Part(lines=tuple(map(_line, lines)))


def _line(found: dict[str, Any]) -> Line:
    letters = [Letters(text=char["text"], size=char["size"], font=char["fontname"]) for char in found["chars"]]
    return line_in(" ".join(found["text"].split()), letters)
