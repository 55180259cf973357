"""PDF: text page by page with pypdf, ruled tables with pdfplumber, sections from the outline or from the type."""

import io
import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..document import Block, Document, Refused
from ..lines import Headings, Letters, Line, line_of, running_heads, texts_of
from ..tables import continued, row_text, table_blocks
from ..text import fault_of, flowed, one_line
from . import LONGEST_TITLE, File, Parser

if TYPE_CHECKING:
    from pdfplumber.page import Page
    from pdfplumber.pdf import PDF
    from pypdf import PageObject, PdfReader

_LOG = logging.getLogger(__name__)
_SUFFIXES = (".pdf",)
_HEAD_BYTES = 1024
_MOST_CONTENT = 2 * 1024 * 1024
"""The most bytes of one page's content. The densest of 619 pages of prose has 0.1 MB; one with 3.3 MB was a drawing
for whose labels pypdf took 418 MB."""
_MOST_DAMAGED = 0.1
"""The share of unreadable pages, among those with content, above which the whole file is rejected."""
_NO_TITLE = re.compile(
    r"untitled\b|microsoft (?:word|powerpoint|excel)\b|(?:table of )?contents$|index$|inhalt\w*$|.*\.[a-z]\w{1,4}$",
    re.I,
)
_RULES = re.compile(rb"(?<=[\d\s])(?:re|l)(?=\s)")
_LEAST_RULES = 6
"""The number of lines and boxes on a page from which it may contain a ruled table: two rows of two cells have these."""
_MOST_TABLE_PAGES = 200
"""The most pages passed to pdfplumber, which takes ten times as long as pypdf."""
_LEAST_LINES = 3
"""The number of lines in each cell of a row from which it is taken for as many rows without rules between them."""
_DEEPEST_OUTLINE = 8


def _recognises(file: File) -> bool:
    if file.content.startswith(b"%PDF-"):
        return True
    named = file.ends_with(_SUFFIXES)
    return named and (b"%PDF-" in file.content[:_HEAD_BYTES] or b"startxref" in file.content)


def _parse(file: File) -> Document:
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    logging.getLogger("pdfminer").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(file.content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Refused("encrypted", "it is protected by a password; save it without one")
        pages = list(reader.pages)
    except MemoryError:
        raise
    except Exception as error:  # pypdf lets TypeError, AttributeError and others escape
        raise _refused(error) from error
    blocks, notes = _read_pages(file, pages, _outline(reader))
    return Document(title=_title(reader, blocks, file), kind="pdf", blocks=blocks, pages=len(pages), notes=notes)


def _read_pages(
    file: File, pages: list["PageObject"], outline: Mapping[int, Sequence[str]]
) -> tuple[tuple[Block, ...], tuple[str, ...]]:
    """The blocks of all pages, and a note on each page that could not be read."""
    parts: dict[int, Sequence[Part]] = {}
    faults: dict[int, Refused] = {}
    reading = _Reading(file.content)
    for number, page in enumerate(pages, start=1):
        try:
            parts[number] = reading.parts(number, page)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 # pypdf may raise any exception; the page is named in the notes
            faults[number] = _refused(error)
    blocks = list(_blocks(parts, outline))
    damaged = [fault for fault in faults.values() if fault.kind != "limit"]
    good = len({block.page for block in blocks})
    if faults and (not good or len(damaged) > _MOST_DAMAGED * (good + len(damaged))):
        raise (damaged or list(faults.values()))[0]
    notes = tuple(f"page {number} was left out: {fault.reason}" for number, fault in faults.items())
    return tuple(blocks), notes


def _refused(error: Exception) -> Refused:
    from pypdf.errors import FileNotDecryptedError, LimitReachedError

    if isinstance(error, Refused):
        return error
    if isinstance(error, FileNotDecryptedError):
        return Refused("encrypted", "it is protected by a password; save it without one")
    if isinstance(error, LimitReachedError | RecursionError):
        return Refused("limit", f"it needs more resources than is safe ({fault_of(error)})")
    return Refused("unreadable", f"it is not a valid PDF ({fault_of(error)})")


@dataclass(frozen=True, kw_only=True)
class Part:
    """A stretch of a page: lines of text, or the rows of a table."""

    lines: tuple[Line, ...] = ()
    rows: tuple[str, ...] = ()


class _Reading:
    """Reads one page after another; opens the file with pdfplumber for the first page with ruled tables."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._left = _MOST_TABLE_PAGES

    @cached_property
    def _pdf(self) -> "PDF":
        import pdfplumber

        return pdfplumber.open(io.BytesIO(self._content))

    def parts(self, number: int, page: "PageObject") -> Sequence[Part]:
        """Text and tables of a page (from 1) in order."""
        streams: list[bytes] = []
        for stream in _content_streams(page):
            streams.append(stream.get_data())
            if sum(map(len, streams)) > _MOST_CONTENT:
                raise Refused("limit", "it is a drawing of more than 2 MB")
        if self._left and sum(len(_RULES.findall(stream)) for stream in streams) >= _LEAST_RULES:
            self._left -= 1
            try:
                if found := self._with_tables(number - 1):
                    return found
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 # a table that is not recognised is read as text
                _LOG.debug("The tables of page %d are read as text.", number, exc_info=True)
        return [Part(lines=tuple(_lines(page)))]

    def _with_tables(self, number: int) -> Sequence[Part]:
        """Text and tables of a page (from 0) from top to bottom; empty if it has no table."""
        page = self._pdf.pages[number]
        try:
            return list(_table_parts(page))
        finally:
            page.close()  # frees the parsed page


def _content_streams(page: "PageObject") -> Iterator[Any]:
    from pypdf.generic import ArrayObject, StreamObject

    content = page.get("/Contents")
    content = content.get_object() if content is not None else None
    for item in content if isinstance(content, ArrayObject) else [content]:
        stream = item.get_object() if item is not None else None
        if isinstance(stream, StreamObject):
            yield stream


def _lines(page: "PageObject") -> Iterator[Line]:
    """The lines of a page as pypdf reads them, with their type if it can be told."""
    lines: list[list[Letters]] = [[]]

    def visit(
        text: str, outer: Sequence[float], inner: Sequence[float], font: Mapping[str, Any] | None, size: float
    ) -> None:
        scale = math.hypot(*inner[2:4]) * math.hypot(*outer[2:4])
        left = inner[4] * outer[0] + inner[5] * outer[2] + outer[4]
        name = str((font or {}).get("/BaseFont", ""))
        for place, part in enumerate(text.split("\n")):
            if place:
                lines.append([])
            lines[-1].append(Letters(text=part, size=abs(size) * scale, font=name, left=left))

    text = page.extract_text(visitor_text=visit)
    if "\n".join("".join(piece.text for piece in line) for line in lines) == text:
        return map(line_of, lines)
    return (line_of([], line) for line in text.split("\n"))


def _table_parts(page: "Page") -> Iterator[Part]:
    found = [(table.bbox, rows) for table in page.find_tables() if (rows := _rows(table.extract()))]
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
    """The rows of a table; empty if it has not two rows and two columns of text."""
    filled = [part for row in cells for part in divided([cell or "" for cell in row])]
    rows = [row for row in filled if any(cell.strip() for cell in row)]
    is_table = len(rows) > 1 and any(sum(map(bool, map(str.strip, row))) > 1 for row in rows)
    return [row_text(row) for row in rows] if is_table else []


def divided(row: list[str]) -> list[list[str]]:
    """A row whose cells hold equally many lines, as that many rows: there are no rules between them."""
    lines = [cell.split("\n") for cell in row if cell.strip()]
    if len(lines) < 2 or len(lines[0]) < _LEAST_LINES or len({len(cell) for cell in lines}) > 1:
        return [row]
    blank = [""] * len(lines[0])
    return [list(parts) for parts in zip(*(cell.split("\n") if cell.strip() else blank for cell in row), strict=True)]


def _within(thing: dict[str, float], box: tuple[float, float, float, float]) -> bool:
    across, down = (thing["x0"] + thing["x1"]) / 2, (thing["top"] + thing["bottom"]) / 2
    return box[0] <= across <= box[2] and box[1] <= down <= box[3]


def _text(page: "Page", box: tuple[float, float, float, float]) -> Iterator[Part]:
    lines = page.crop(box).extract_text_lines(return_chars=True) if box[3] - box[1] > 1 else []
    if lines:
        yield Part(lines=tuple(map(_plumbed, lines)))


def _plumbed(found: dict[str, Any]) -> Line:
    """A line as pdfplumber reads it."""
    chars = found["chars"]
    letters = [Letters(text=one["text"], size=one["size"], font=one["fontname"], left=one["x0"]) for one in chars]
    return line_of(letters, " ".join(found["text"].split()))


def _blocks(pages: Mapping[int, Sequence[Part]], outline: Mapping[int, Sequence[str]]) -> Iterator[Block]:
    """Paragraphs and tables, without running heads and page numbers."""
    lines = [[line.text for part in parts for line in part.lines] for parts in pages.values()]
    headings = Headings(line for parts in pages.values() for part in parts for line in part.lines)
    sections = _Sections(outline)
    last: Sequence[str] = ()  # the rows of the table with which the text ends so far
    for (number, parts), heads in zip(pages.items(), running_heads(lines), strict=True):
        place, above = 0, last
        sections.turn(number, [line for part in parts for line in part.lines])
        for part in parts:
            kept = [line for at, line in enumerate(part.lines, start=place) if at not in heads]
            place += len(part.lines)
            rows = continued(above, part.rows) if above and part.rows else part.rows
            if rows or any(line.text.strip() for line in kept):
                above, last = (), rows
            for section, run in sections.divided(kept):
                for is_heading, stretch in headings.split(run):
                    if is_heading:
                        heading = flowed("\n".join(line.text for line in stretch))
                        sections.typed = heading
                        yield Block(text=heading, section=section or heading, page=number)
                        continue
                    for text in texts_of(stretch):
                        yield Block(text=text, section=section or sections.typed, page=number)
            for text in table_blocks(rows):
                yield Block(text=text, section=sections.current or sections.typed, page=number)


class _Sections:
    """The section of each line: the last entry of the outline above it. `typed` is the last heading by its type."""

    def __init__(self, outline: Mapping[int, Sequence[str]]) -> None:
        self._outline = outline
        self._waiting: list[tuple[str, bool]] = []
        self.current: str | None = None
        self.typed: str | None = None

    def turn(self, page: int, lines: Sequence[Line]) -> None:
        """Begin a page. Entries that no line of the page repeats begin with the one before them, or with the page."""
        texts = {_name(line.text) for line in lines}
        for entry, _ in self._waiting:
            self.current = entry
        self._waiting = [(entry, _name(entry) in texts) for entry in self._outline.get(page, ())]
        self._skip()

    def divided(self, lines: Sequence[Line]) -> Iterator[tuple[str | None, list[Line]]]:
        """The lines in runs of one section."""
        run: list[Line] = []
        for line in lines:
            if self._waiting and _name(line.text) == _name(self._waiting[0][0]):
                if run:
                    yield self.current, run
                run = []
                self.current = self._waiting.pop(0)[0]
                self._skip()
            run.append(line)
        if run:
            yield self.current, run

    def _skip(self) -> None:
        while self._waiting and not self._waiting[0][1]:
            self.current = self._waiting.pop(0)[0]


def _name(text: str) -> str:
    """A heading without its number, for comparison."""
    return re.sub(r"^[\d.]+\s*|[^\w]+", "", text.casefold())


def _outline(reader: "PdfReader") -> Mapping[int, Sequence[str]]:
    """The outline's entries by page, in order; empty for a file without a valid outline."""
    entries: dict[int, list[str]] = {}
    try:
        for entry in _outline_entries(reader.outline):
            number = reader.get_destination_page_number(entry)
            title = one_line(str(entry.title or ""))
            if number is not None and title:
                entries.setdefault(number + 1, []).append(title)
    except Exception:  # noqa: BLE001 # a damaged outline only costs the headings
        return {}
    return entries


def _outline_entries(outline: list[Any], depth: int = 0) -> Iterator[Any]:
    for entry in outline:
        if not isinstance(entry, list):
            yield entry
        elif depth < _DEEPEST_OUTLINE:
            yield from _outline_entries(entry, depth + 1)


def _title(reader: "PdfReader", blocks: Sequence[Block], file: File) -> str:
    """The file's own title if plausible, else its first line or the heading below that, else its name."""
    try:
        metadata = reader.metadata
        stated = one_line(str(metadata.title or "")) if metadata is not None else ""
    except Exception:  # noqa: BLE001 # damaged metadata only cost the title
        stated = ""
    if _is_title(stated, LONGEST_TITLE):
        return stated
    first = (block.text for place, block in enumerate(blocks[:2]) if not place or block.section == block.text)
    return next((text for text in first if _is_title(text, LONGEST_TITLE // 2) and text[-1] not in ".,;"), file.stem)


def _is_title(text: str, most: int) -> bool:
    return 2 < len(text) <= most and not _NO_TITLE.match(text) and any(map(str.isalpha, text)) and "\n" not in text


PARSER = Parser(kind="pdf", suffixes=_SUFFIXES, priority=0, recognises=_recognises, parse=_parse)
