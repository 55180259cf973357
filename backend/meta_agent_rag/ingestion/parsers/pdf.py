"""PDF: text page by page with pypdf, ruled tables with pdfplumber, sections from the outline or from the type."""

import io
import logging
import math
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..document import Block, Document, Refused
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
_EDGE, _NEIGHBOURS = 2, 4
"""The lines at the top and bottom of a page that may be running heads, and the pages compared on either side."""
_LARGER, _LONGEST_HEADING, _MOST_HEADINGS = 1.15, 120, 0.3
"""A heading is larger than the body by this factor, and has at most so many characters; if more than this share of a
document is in such type, it is a poster."""
_NO_HEADING = re.compile(r"[.,;:]$|@|://|\.{3}|^[a-z]|^[\u2022\u2013*-]\s")
_BOLD = re.compile(r"bold|black|heavy|demi|cmbx", re.I)
_CODE = re.compile(r"courier|mono|consol|menlo|typewriter|cmtt|inconsolata", re.I)
_LEADER = re.compile(r"(?:\.\s?){3,}\s*[\divxlc]+\s*$", re.I)
_NUMBER = re.compile(r"\d+")
_ENDS = (".", "!", "?", ":", '"', "\u201d", ")", "\u3002", "\uff01", "\uff1f")
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[a-z])")
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_GLYPH = re.compile(r"\(cid:\d+\)")
_DOUBLED = re.compile(r"(?:(\S)\1)+")
_SHORT_LINE, _LEAST_DOUBLED, _LEAST_ROWS = 0.75, 6, 3
_LETTER = 0.6
"""The width of a letter of a typewriter face, in heights of the type."""
_GAP = 2.0
"""The width of a gap between cells, in heights of the type."""


@dataclass(frozen=True, kw_only=True)
class Letters:
    """A piece of text in one font; `left` is where it begins, in points."""

    text: str
    size: float
    font: str
    left: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of text with the size of its letters (0: unknown). `cells` are its parts between wide gaps."""

    text: str
    size: float = 0.0
    bold: bool = False
    code: bool = False
    left: float = 0.0
    cells: tuple[tuple[float, str], ...] = ()


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
    reading = _PdfReading(file.content)
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


class _PdfReading:
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
        content = page.get_contents()
        drawn = b"" if content is None else content.get_data()
        if len(drawn) > _MOST_CONTENT:
            raise Refused("limit", "it is a drawing of more than 2 MB")
        if self._left and len(_RULES.findall(drawn)) >= _LEAST_RULES:
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
    """Paragraphs and tables, without running heads and page numbers.

    Their section is the last entry of the outline above them, else the last heading. An entry begins with the line
    that repeats it, or else with the entry before it, or with its page.
    """
    lines = [[line.text for part in parts for line in part.lines] for parts in pages.values()]
    headings = Headings(line for parts in pages.values() for part in parts for line in part.lines)
    section: str | None = None
    heading: str | None = None
    last: Sequence[str] = ()  # the rows of the table with which the text ends so far
    for (number, parts), heads, texts in zip(pages.items(), running_heads(lines), lines, strict=True):
        place, above = 0, last
        names, waiting = set(map(_name, texts)), deque(outline.get(number, ()))
        for part in parts:
            kept = [line for at, line in enumerate(part.lines, start=place) if at not in heads]
            place += len(part.lines)
            rows = continued(above, part.rows) if above and part.rows else part.rows
            if rows or any(line.text.strip() for line in kept):
                above, last = (), rows
            runs: list[tuple[str | None, list[Line]]] = [(section, [])]
            for line in (*kept, None):
                begun = None if line is None else _name(line.text)
                while waiting and (_name(waiting[0]) not in names or _name(waiting[0]) == begun):
                    section = waiting.popleft()
                    runs.append((section, []))
                if line is not None:
                    runs[-1][1].append(line)
            for within, run in runs:
                for is_heading, stretch in headings.split(run):
                    if is_heading:
                        heading = flowed("\n".join(line.text for line in stretch))
                        yield Block(text=heading, section=within or heading, page=number)
                        continue
                    for text in texts_of(stretch):
                        yield Block(text=text, section=within or heading, page=number)
            for text in table_blocks(rows):
                yield Block(text=text, section=section or heading, page=number)
        section = waiting[-1] if waiting else section


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


def _outline_entries(outline: list[Any]) -> Iterator[Any]:
    for entry in outline:
        yield from _outline_entries(entry) if isinstance(entry, list) else (entry,)


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


# -- lines, and what they form


def line_of(pieces: Sequence[Letters], text: str | None = None) -> Line:
    """The line that pieces form, without glyphs that stand for no character and without doubled letters."""
    sizes: Counter[float] = Counter()
    bold = code = 0
    for piece in pieces:
        count = len(piece.text.strip())
        sizes[round(piece.size, 1)] += count
        bold += count if _BOLD.search(piece.font) else 0
        code += count if _CODE.search(piece.font) else 0
    total = sizes.total()
    words = "".join(piece.text for piece in pieces) if text is None else text
    return Line(
        text=_undoubled(_GLYPH.sub("", words.translate(_LIGATURES))),
        size=sizes.most_common(1)[0][0] if total else 0.0,
        bold=total > 0 and bold >= 0.9 * total,
        code=total > 0 and code >= 0.9 * total,
        left=min((piece.left for piece in pieces if piece.text.strip()), default=0.0),
        cells=tuple(_cells(pieces)),
    )


def _undoubled(text: str) -> str:
    """`EENNDD OOFF` printed twice for weight, as `END OF`."""
    words = text.split(" ")
    doubled = [word for word in words if _DOUBLED.fullmatch(word)]
    if not any(len(word) >= _LEAST_DOUBLED and len(set(word)) > 1 for word in doubled):
        return text
    return " ".join(word[::2] if word in doubled else word for word in words)


def _cells(pieces: Sequence[Letters]) -> Iterator[tuple[float, str]]:
    """The parts of a line between wide gaps, each with its left edge."""
    begun: list[Letters] = []
    for piece in pieces:
        if not piece.text.strip():
            continue
        end = max((one.left + _LETTER * one.size * len(one.text.strip()) for one in begun), default=piece.left)
        if begun and piece.left - end > _GAP * piece.size:
            yield begun[0].left, " ".join(one.text.strip() for one in begun)
            begun = []
        begun.append(piece)
    if begun:
        yield begun[0].left, " ".join(one.text.strip() for one in begun)


def running_heads(pages: Sequence[Sequence[str]]) -> list[set[int]]:
    """The places of each page's lines that two of the four pages on either side repeat at either edge.

    A line repeats another if it is equal, or if its numbers grow with the pages, as in "Page 3 of 10", "Page 4 of 10";
    then one repeat is enough in a file of two pages. If a document would be left without lines, all are kept.
    """
    keys = [_edge_keys(page, number) for number, page in enumerate(pages)]
    found = []
    for number, own in enumerate(keys):
        near = [
            set().union(*page.values())
            for page in (*keys[max(0, number - _NEIGHBOURS) : number], *keys[number + 1 : number + _NEIGHBOURS + 1])
        ]
        found.append({place for place, names in own.items() if _repeats(names, near)})
    left = any(
        line.strip()
        for page, heads in zip(pages, found, strict=True)
        for at, line in enumerate(page)
        if at not in heads
    )
    return found if left else [set() for _ in pages]


def _repeats(names: set[str], near: Sequence[set[str]]) -> bool:
    repeats = sum(not names.isdisjoint(page) for page in near)
    return repeats >= 2 or (len(near) == 1 and any("\0" in name for name in names & near[0]))


def _edge_keys(page: Sequence[str], number: int) -> dict[int, set[str]]:
    """The lines at both edges: as they are, and with their first, last and all numbers as distances from the page's."""
    places = [place for place, line in enumerate(page) if line.strip()]
    keys: dict[int, set[str]] = {}
    for place in {*places[:_EDGE], *places[-_EDGE:]}:
        words = " ".join(page[place].casefold().split())
        numbers = list(_NUMBER.finditer(words))
        keys[place] = {words}
        for chosen in (numbers[:1], numbers[-1:], numbers) if numbers else ():
            told, position = "", 0
            for match in chosen:
                told += f"{words[position : match.start()]}\0{int(match[0][:9]) - number}\0"
                position = match.end()
            keys[place].add(told + words[position:])
    return keys


class Headings:
    """Recognises headings by the type of a document's body text."""

    def __init__(self, lines: Iterable[Line]) -> None:
        sizes: Counter[float] = Counter()
        bold = 0
        for line in lines:
            sizes[line.size] += len(line.text)
            bold += len(line.text) * line.bold
        self._body = sizes.most_common(1)[0][0] if sizes else 0.0
        larger = sum(count for size, count in sizes.items() if size >= _LARGER * self._body)
        self._by_size = larger < sizes.total() * _MOST_HEADINGS
        self._by_weight = 2 * bold < sizes.total() * _MOST_HEADINGS

    def split(self, lines: Sequence[Line]) -> Iterator[tuple[bool, list[Line]]]:
        """Runs of lines in order: (True, the lines of one heading) or (False, lines of text)."""
        text: list[Line] = []
        runs = [(kind, list(run)) for kind, run in groupby(lines, self._kind)]
        for place, (kind, run) in enumerate(runs):
            following = runs[place + 1][1][0].text if place + 1 < len(runs) else ""
            if kind is not None and self._is_heading(run, kind[0], text, following):
                if text:
                    yield False, text
                yield True, run
                text = []
            else:
                text += run
        if text:
            yield False, text

    def _kind(self, line: Line) -> tuple[float, bool] | None:
        """The type of a line that stands out, `None` for other lines."""
        larger = self._by_size and line.size >= _LARGER * self._body
        heavier = self._by_weight and line.bold and line.size >= self._body
        return (line.size, line.bold) if line.text.strip() and self._body and (larger or heavier) else None

    def _is_heading(self, run: Sequence[Line], size: float, before: Sequence[Line], following: str) -> bool:
        text = " ".join(line.text.strip() for line in run)
        short = len(run) <= 3 and len(text) <= _LONGEST_HEADING
        if not short or _NO_HEADING.search(text) or sum(map(str.isalpha, text)) < 3:
            return False
        begins = not before or before[-1].text.rstrip().endswith(_ENDS)
        is_body = len(following.strip()) >= 25 or following.rstrip().endswith(_ENDS)
        return size >= _LARGER * self._body or (begins and is_body and not following.strip()[:1].islower())


def texts_of(lines: Sequence[Line]) -> Iterator[str]:
    """Paragraphs, code and rows of cells, in order. Lines of a table of contents are left out."""
    kept = [line for line in lines if not _LEADER.search(line.text)]
    for is_code, run in groupby(kept, key=lambda line: line.code):
        if is_code:
            yield _code(list(run))
        else:
            yield from _paragraphs(list(run))


def _code(lines: Sequence[Line]) -> str:
    """Lines of a program, indented as they stand on the page."""
    left = min(line.left for line in lines)
    return "\n".join(
        " " * (0 if not line.size else round((line.left - left) / (_LETTER * line.size))) + line.text.strip()
        for line in lines
    )


def _paragraphs(lines: Sequence[Line]) -> Iterator[str]:
    """Splits at blank lines, after a sentence that leaves its last line short, and around rows of cells."""
    width = max((len(line.text.strip()) for line in lines), default=0)
    paragraph: list[str] = []
    place = 0
    while place < len(lines):
        rows = _unruled(lines[place:])
        text = "" if rows else lines[place].text.strip()
        if text:
            paragraph.append(text)
        ends = not text or (text.endswith((".", "!", "?", ":")) and len(text) < _SHORT_LINE * width)
        if ends and paragraph:
            yield flowed(_HYPHENATED.sub("", "\n".join(paragraph)))
            paragraph = []
        if rows:
            yield "\n".join(rows)
        place += max(len(rows), 1)
    if paragraph:
        yield flowed(_HYPHENATED.sub("", "\n".join(paragraph)))


def _unruled(lines: Sequence[Line]) -> list[str]:
    """The rows of a table without rules with which the lines begin: three or more whose cells share left edges.

    All but the first must have a figure, so that columns of running text are none.
    """
    columns = [left for left, _ in lines[0].cells]
    rows: list[list[str]] = []
    for line in lines if len(columns) > 1 else ():
        cells = {_nearest(columns, left): text for left, text in line.cells}
        near = all(abs(_nearest(columns, left) - left) <= 2 * line.size for left, _ in line.cells)
        figure = not rows or any(any(map(str.isdigit, text)) for _, text in line.cells[1:])
        if len(cells) < 2 or len(cells) != len(line.cells) or not near or not figure:
            break
        rows.append([cells.get(column, "") for column in columns])
    return [row_text(row) for row in rows] if len(rows) >= _LEAST_ROWS else []


def _nearest(columns: Sequence[float], left: float) -> float:
    """The column whose left edge is the nearest."""
    return min(columns, key=lambda column: abs(column - left))


PARSER = Parser(kind="pdf", suffixes=_SUFFIXES, priority=0, recognises=_recognises, parse=_parse)
