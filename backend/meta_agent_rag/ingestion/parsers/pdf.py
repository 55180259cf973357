"""PDF: text page by page with pypdf, ruled tables with pdfplumber, sections from the outline."""

import io
import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..content.aligned import may_be_aligned
from ..content.headings import Headings, Letters, Line, lines_of
from ..content.pdf_tables import Part, PdfTables, may_hold_tables
from ..content.running_heads import running_heads
from ..content.tables import continued, table_blocks
from ..document import Block, Document, Refused
from ..text import one_line
from . import LONGEST_TITLE, File, Parser

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

_LOG = logging.getLogger(__name__)
_SUFFIXES = (".pdf",)
_HEAD_BYTES = 1024
_MOST_CONTENT = 2 * 1024 * 1024
"""The most bytes of one page's content. The densest of 619 pages of prose has 0.1 MB; one with 3.3 MB was a drawing
for whose labels pypdf took 418 MB."""
_MOST_DAMAGED = 0.1
"""The share of unreadable pages, among those with content, above which the whole file is rejected."""
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[a-z])")
_NO_TITLE = re.compile(
    r"untitled\b|microsoft (?:word|powerpoint|excel)\b|.*\.(?:docx?|indd|qxd|tex|dvi|rtf|pptx?|pdf)$", re.I
)
_SHORT_LINE = 0.75
_MOST_TABLE_PAGES = 200
"""The most pages passed to pdfplumber, which takes ten times as long as pypdf."""
_DEEPEST_OUTLINE = 8


def _recognises(file: File) -> bool:
    if file.content.startswith(b"%PDF-"):
        return True
    named = file.ends_with(_SUFFIXES)
    return named and (b"%PDF-" in file.content[:_HEAD_BYTES] or b"startxref" in file.content)


def _parse(file: File) -> Document:
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(file.content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Refused("encrypted", "it is protected by a password; save it without one")
        pages = list(reader.pages)
    except MemoryError:
        raise
    except Exception as error:  # pypdf lets TypeError, AttributeError and others escape
        raise _refused(error) from error
    blocks, notes = _read_pages(file, pages, _sections(reader))
    return Document(title=_title(reader, blocks, file), kind="pdf", blocks=blocks, pages=len(pages), notes=notes)


def _read_pages(
    file: File, pages: list["PageObject"], sections: Mapping[int, str]
) -> tuple[tuple[Block, ...], tuple[str, ...]]:
    """The blocks of all pages, and a note on each page that could not be read."""
    parts: dict[int, Sequence[Part]] = {}
    faults: dict[int, Refused] = {}
    reading = _Reading(PdfTables(file.content))
    for number, page in enumerate(pages, start=1):
        try:
            parts[number] = reading.parts(number, page)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 # pypdf may raise any exception; the page is named in the notes
            faults[number] = _refused(error)
    blocks = list(_blocks(parts, sections))
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
        return Refused("limit", f"it needs more resources than is safe ({one_line(str(error))[:120]})")
    return Refused("unreadable", f"it is not a valid PDF ({type(error).__name__}: {one_line(str(error))[:120]})")


class _Reading:
    """Reads one page after another; counts those passed to pdfplumber."""

    def __init__(self, tables: PdfTables) -> None:
        self._tables = tables
        self._left = _MOST_TABLE_PAGES

    def parts(self, number: int, page: "PageObject") -> Sequence[Part]:
        """Text and tables of a page (from 1) in order."""
        streams: list[bytes] = []
        for stream in _content_streams(page):
            streams.append(stream.get_data())
            if sum(map(len, streams)) > _MOST_CONTENT:
                raise Refused("limit", "it is a drawing of more than 2 MB")
        lines = tuple(_lines(page))
        if self._left and (may_hold_tables(streams) or may_be_aligned(lines)):
            self._left -= 1
            try:
                if found := self._tables.parts(number - 1):
                    return found
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 # a table that is not recognised is read as text
                _LOG.debug("The tables of page %d are read as text.", number, exc_info=True)
        return [Part(lines=lines)]


def _lines(page: "PageObject") -> Iterator[Line]:
    """The lines of a page as pypdf reads them."""
    pieces: list[Letters] = []

    def visit(
        text: str, outer: Sequence[float], inner: Sequence[float], font: Mapping[str, Any] | None, size: float
    ) -> None:
        scale = math.hypot(*inner[2:4]) * math.hypot(*outer[2:4])
        left = inner[4] * outer[0] + inner[5] * outer[2] + outer[4]
        name = str((font or {}).get("/BaseFont", ""))
        pieces.append(Letters(text=text, size=abs(size) * scale, font=name, left=left))

    text = page.extract_text(visitor_text=visit)
    lines = list(lines_of(pieces))
    if "\n".join(line.text for line in lines) == text:
        return iter(lines)
    return (Line(text=line) for line in text.split("\n"))


def _blocks(pages: Mapping[int, Sequence[Part]], sections: Mapping[int, str]) -> Iterator[Block]:
    """Paragraphs and tables, without running heads and page numbers."""
    lines = [[line.text for part in parts for line in part.lines] for parts in pages.values()]
    headings = Headings(line for parts in pages.values() for part in parts for line in part.lines)
    section: str | None = None
    last: Sequence[str] = ()  # the rows of the table with which the text ends so far
    for (number, parts), heads in zip(pages.items(), running_heads(lines), strict=True):
        place = 0
        above = last
        for part in parts:
            kept = [line for at, line in enumerate(part.lines, start=place) if at not in heads]
            place += len(part.lines)
            rows = continued(above, part.rows) if above and part.rows else part.rows
            if rows or any(line.text.strip() for line in kept):
                above, last = (), rows
            for is_heading, run in headings.split(kept):
                texts = [_joined([line.translate(_LIGATURES) for line in run])] if is_heading else _paragraphs(run)
                for text in texts:
                    section = text if is_heading else section
                    yield Block(text=text, section=sections.get(number) if sections else section, page=number)
            for text in table_blocks(rows):
                yield Block(text=text, section=sections.get(number) if sections else section, page=number)


def _content_streams(page: "PageObject") -> Iterator[Any]:
    from pypdf.generic import ArrayObject, StreamObject

    content = page.get("/Contents")
    content = content.get_object() if content is not None else None
    for item in content if isinstance(content, ArrayObject) else [content]:
        stream = item.get_object() if item is not None else None
        if isinstance(stream, StreamObject):
            yield stream


def _paragraphs(page_lines: Sequence[str]) -> Iterator[str]:
    """Splits at blank lines, and after a sentence that leaves its last line short."""
    lines = [line.translate(_LIGATURES).strip() for line in page_lines]
    width = max((len(line) for line in lines), default=0)
    paragraph: list[str] = []
    for line in lines:
        if line:
            paragraph.append(line)
        ends = not line or (line.endswith((".", "!", "?", ":")) and len(line) < _SHORT_LINE * width)
        if ends and paragraph:
            yield _joined(paragraph)
            paragraph = []
    if paragraph:
        yield _joined(paragraph)


def _joined(lines: list[str]) -> str:
    """Lines as running text, with hyphenated words rejoined."""
    return " ".join(_HYPHENATED.sub("", "\n".join(lines)).split())


def _sections(reader: "PdfReader") -> Mapping[int, str]:
    """The outline's last heading at or before each page; empty for a file without a valid outline."""
    starts: dict[int, str] = {}
    try:
        for entry in _outline_entries(reader.outline):
            number = reader.get_destination_page_number(entry)
            title = one_line(str(entry.title or ""))
            if number is not None and title:
                starts.setdefault(number + 1, title)
        pages = len(reader.pages)
    except Exception:  # noqa: BLE001 # a damaged outline only costs the headings
        return {}
    sections: dict[int, str] = {}
    current: str | None = None
    for page in range(1, pages + 1):
        current = starts.get(page, current)
        if current is not None:
            sections[page] = current
    return sections


def _outline_entries(outline: list[Any], depth: int = 0) -> Iterator[Any]:
    for entry in outline:
        if not isinstance(entry, list):
            yield entry
        elif depth < _DEEPEST_OUTLINE:
            yield from _outline_entries(entry, depth + 1)


def _title(reader: "PdfReader", blocks: Sequence[Block], file: File) -> str:
    """The file's own title if plausible, else its first line, else its name."""
    try:
        metadata = reader.metadata
        stated = one_line(str(metadata.title or "")) if metadata is not None else ""
    except Exception:  # noqa: BLE001 # damaged metadata only cost the title
        stated = ""
    if 2 < len(stated) <= LONGEST_TITLE and not _NO_TITLE.match(stated):
        return stated
    first = blocks[0].text if blocks else ""
    is_title = 2 < len(first) <= LONGEST_TITLE // 2 and not first.endswith((".", ",", ";"))
    return first if is_title and any(map(str.isalpha, first)) else file.stem


PARSER = Parser(kind="pdf", suffixes=_SUFFIXES, priority=0, recognises=_recognises, parse=_parse)
