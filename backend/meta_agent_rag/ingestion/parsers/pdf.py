"""PDF: text page by page with pypdf, ruled tables with pdfplumber, sections from the outline."""

import io
import logging
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from ..document import Block, Document, Refused
from ..tables import row_text, table_blocks
from ..text import fault_of, flowed, one_line
from . import LONGEST_TITLE, File, Parser

if TYPE_CHECKING:
    from pdfplumber.page import Page
    from pypdf import PageObject, PdfReader

_LOG = logging.getLogger(__name__)
_SUFFIXES = (".pdf",)
_MOST_CONTENT = 2 * 1024 * 1024
"""The most bytes of one page's content. The densest of 619 pages of prose has 0.1 MB; one with 3.3 MB was a drawing
for whose labels pypdf took 418 MB."""
_MOST_DAMAGED = 0.1
"""The share of unreadable pages, among those with content, above which the whole file is rejected."""
_NO_TITLE = re.compile(
    r"untitled\b|microsoft (?:word|powerpoint|excel)\b|(?:table of )?contents$|index$|.*\.[a-z]\w{1,4}$", re.I
)
_RULES = re.compile(rb"(?<=[\d\s])(?:re|l)(?=\s)")
_LEAST_RULES = 6
"""The number of lines and boxes on a page from which it may contain a ruled table: two rows of two cells have these."""
_MOST_TABLE_PAGES = 200
"""The most pages passed to pdfplumber, which takes ten times as long as pypdf."""
_LEAST_LINES = 3
"""The number of lines in each cell of a row from which it is taken for as many rows without rules between them."""
_EDGE = 2
"""The lines at the top and bottom of a page that may be running heads."""
_CODE = re.compile(r"courier|mono|consol|menlo|typewriter|cmtt|inconsolata", re.I)
_LETTER = 0.6
"""The width of a letter of a typewriter face, in heights of the type."""
_LEADER = re.compile(r"(?:(?:\.\s?){5,}\s*[\divxlc]+|(?:[.\u2026\u00b7]\s*){5,})\s*$", re.I)
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[a-z])")
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_GLYPH = re.compile(r"\(cid:\d+\)")
_DOUBLED = re.compile(r"(?:(\S)\1)+")
_SHORT_LINE, _LEAST_DOUBLED = 0.75, 6


class Line(NamedTuple):
    """A line of text; `left` is the indent of a line of code, in letters."""

    text: str
    code: bool = False
    left: int = 0


class Part(NamedTuple):
    """A stretch of a page: lines of text, or the rows of a table."""

    lines: Sequence[Line] = ()
    rows: Sequence[str] = ()


def _recognises(file: File) -> bool:
    named = file.ends_with(_SUFFIXES) and (b"%PDF-" in file.content[:1024] or b"startxref" in file.content)
    return named or file.content.startswith(b"%PDF-")


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
    parts, faults = _read_pages(file, pages)
    blocks = tuple(_blocks(parts, _outline(reader)))
    damaged = [fault for fault in faults.values() if fault.kind != "limit"]
    good = len({block.page for block in blocks})
    if faults and (not good or len(damaged) > _MOST_DAMAGED * (good + len(damaged))):
        raise (damaged or list(faults.values()))[0]
    notes = tuple(f"page {number} was left out: {fault.reason}" for number, fault in faults.items())
    lines = [line.text.strip() for page in parts.values() for part in page for line in part.lines if line.text.strip()]
    return Document(title=_title(reader, lines[:2], file), kind="pdf", blocks=blocks, pages=len(pages), notes=notes)


def _refused(error: Exception) -> Refused:
    from pypdf.errors import FileNotDecryptedError, LimitReachedError

    if isinstance(error, Refused):
        return error
    if isinstance(error, FileNotDecryptedError):
        return Refused("encrypted", "it is protected by a password; save it without one")
    if isinstance(error, LimitReachedError | RecursionError):
        return Refused("limit", f"it needs more resources than is safe ({fault_of(error)})")
    return Refused("unreadable", f"it is not a valid PDF ({fault_of(error)})")


def _read_pages(
    file: File, pages: Sequence["PageObject"]
) -> tuple[Mapping[int, Sequence[Part]], Mapping[int, Refused]]:
    """The parts of each page by its number, in order, and what was wrong with the others."""
    import pdfplumber

    plumbed = cache(lambda: pdfplumber.open(io.BytesIO(file.content)))  # for the first page with rules
    parts: dict[int, Sequence[Part]] = {}
    faults: dict[int, Refused] = {}
    left = _MOST_TABLE_PAGES
    for number, page in enumerate(pages, start=1):
        try:
            content = page.get_contents()
            drawn = b"" if content is None else content.get_data()
            if len(drawn) > _MOST_CONTENT:
                raise Refused("limit", "it is a drawing of more than 2 MB")
            found: Sequence[Part] = ()
            if left and len(_RULES.findall(drawn)) >= _LEAST_RULES:
                left -= 1
                try:
                    with closing(plumbed().pages[number - 1]) as one:  # frees the parsed page
                        found = list(_table_parts(one))
                except MemoryError:
                    raise
                except Exception:  # noqa: BLE001 # a table that is not recognised is read as text
                    _LOG.debug("The tables of page %d are read as text.", number, exc_info=True)
            parts[number] = found or [Part(lines=list(_lines(page)))]
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 # pypdf may raise any exception; the page is named in the notes
            faults[number] = _refused(error)
    return parts, faults


def _lines(page: "PageObject") -> Iterator[Line]:
    """The lines of a page as pypdf reads them; one in a typewriter face is code."""
    pieces: list[list[tuple[str, str, float]]] = [[]]

    def visit(
        text: str, outer: Sequence[float], inner: Sequence[float], font: Mapping[str, Any] | None, size: float
    ) -> None:
        width = _LETTER * abs(size * inner[3] * outer[3])
        left = (inner[4] * outer[0] + inner[5] * outer[2] + outer[4]) / width if width else 0.0
        for place, part in enumerate(text.split("\n")):
            if place:
                pieces.append([])
            pieces[-1].append((part, str((font or {}).get("/BaseFont", "")), left))

    text = page.extract_text(visitor_text=visit)
    if "\n".join("".join(piece[0] for piece in line) for line in pieces) != text:
        pieces = [[(line, "", 0.0)] for line in text.split("\n")]
    for line in pieces:
        shown = [piece for piece in line if piece[0].strip()]
        code = bool(shown) and all(_CODE.search(font) for _, font, _ in shown)
        yield Line(_mended("".join(piece[0] for piece in line)), code, round(shown[0][2]) if code else 0)


def _mended(text: str) -> str:
    """A line without glyphs that stand for no character and without letters printed twice."""
    words = _GLYPH.sub("", text.translate(_LIGATURES)).split(" ")
    doubled = [word for word in words if _DOUBLED.fullmatch(word)]
    if any(len(word) >= _LEAST_DOUBLED and len(set(word)) > 1 and not re.search(r"\d", word) for word in doubled):
        words = [word[::2] if word in doubled else word for word in words]
    return " ".join(words)


def _table_parts(page: "Page") -> Iterator[Part]:
    """Text and tables of a page from top to bottom; nothing if it has no table."""
    found = [(table.bbox, rows) for table in page.find_tables() if (rows := _rows(table.extract()))]
    if not found:
        return
    found.sort(key=lambda one: (one[0][1], one[0][0]))
    outside = page.filter(lambda thing: not any(_within(thing, box) for box, _ in found))
    left, position, right, bottom = page.bbox
    for box, rows in [*found, ((0, bottom, 0, bottom), [])]:
        edge = min(max(box[1], position), bottom)
        between = outside.crop((left, position, right, edge)) if edge - position > 1 else None
        lines = between.extract_text_lines(return_chars=False) if between is not None else ()
        yield Part(lines=[Line(_mended(" ".join(line["text"].split()))) for line in lines])
        yield Part(rows=rows)
        position = edge


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


def _blocks(pages: Mapping[int, Sequence[Part]], outline: Mapping[int, Sequence[str]]) -> Iterator[Block]:
    """Paragraphs and tables, without running heads and page numbers. Their section is the outline's entry above them.

    An entry begins with the line that repeats it, or else with the entry before it, or with its page.
    """
    lines = {n: [line for part in parts for line in part.lines if line.text.strip()] for n, parts in pages.items()}
    heads = _running_heads(lines)
    section: str | None = None
    for number, parts in pages.items():
        names, waiting = {_name(line.text) for line in lines[number]}, deque(outline.get(number, ()))
        for part in parts:
            run: list[Line] = []
            for line in part.lines:
                begun = _name(line.text)
                while waiting and (_name(waiting[0]) not in names or _name(waiting[0]) == begun):
                    yield from (Block(text=text, section=section, page=number) for text in texts_of(run))
                    section, run = waiting.popleft(), []
                if id(line) not in heads:
                    run.append(line)
            texts = (*texts_of(run), *table_blocks(part.rows))
            yield from (Block(text=text, section=section, page=number) for text in texts)
        section = waiting[-1] if waiting else section


def _running_heads(pages: Mapping[int, Sequence[Line]]) -> set[int]:
    """The ids of lines that stand, up to the page's number, at the edges of three pages and of a third of all."""
    edges = {
        number: {id(line): _forms(line.text, number) for line in (*lines[:_EDGE], *lines[-_EDGE:])}
        for number, lines in pages.items()
    }
    counts = Counter(form for lines in edges.values() for form in set().union(*lines.values()))
    repeated = {form for form, count in counts.items() if count >= max(3, len(pages) / 3)}
    heads = {line for lines in edges.values() for line, forms in lines.items() if forms & repeated}
    return heads if len(heads) < sum(map(len, pages.values())) else set()  # otherwise nothing would be left


def _forms(line: str, page: int) -> set[str]:
    """A line, and the line with its first or last number as a distance from the page's."""
    words = " ".join(line.casefold().split())
    numbers = list(re.finditer(r"\d+", words))
    return {words} | {
        f"{words[: found.start()]}\0{int(found[0][:9]) - page}{words[found.end() :]}"
        for found in numbers[:1] + numbers[-1:]
    }


def _name(text: str) -> str:
    """A heading without its number, for comparison."""
    return re.sub(r"^[\d.]+\s*|[^\w]+", "", text.casefold())


def texts_of(lines: Iterable[Line]) -> Iterator[str]:
    """Paragraphs and code, in order. Lines of a table of contents are left out.

    A paragraph ends at a blank line, and after a sentence that leaves its last line short.
    """
    kept = (line for line in lines if not _LEADER.search(line.text))
    for is_code, group in groupby(kept, key=lambda line: line.code):
        run = list(group)
        if is_code:
            left = min(line.left for line in run)
            yield "\n".join(" " * (line.left - left) + line.text.strip() for line in run)
            continue
        texts = [line.text.strip() for line in run]
        width = max(map(len, texts))
        paragraph: list[str] = []
        for text in [*texts, ""]:
            paragraph += [text] if text else []
            ends = not text or (text.endswith((".", "!", "?", ":")) and len(text) < _SHORT_LINE * width)
            if ends and paragraph:
                yield flowed(_HYPHENATED.sub("", "\n".join(paragraph)))
                paragraph = []


def _outline(reader: "PdfReader") -> Mapping[int, Sequence[str]]:
    """The outline's entries by page, in order; empty for a file without a valid outline."""
    entries: dict[int, list[str]] = {}
    try:
        waiting: list[Any] = list(reversed(reader.outline))
        while waiting:
            entry = waiting.pop()
            if isinstance(entry, list):
                waiting.extend(reversed(entry))
                continue
            number = reader.get_destination_page_number(entry)
            title = one_line(str(entry.title or ""))
            if number is not None and title:
                entries.setdefault(number + 1, []).append(title)
    except Exception:  # noqa: BLE001 # a damaged outline only costs the headings
        return {}
    return entries


def _title(reader: "PdfReader", lines: Sequence[str], file: File) -> str:
    """The file's own title if plausible, else its first line if that is no part of a sentence, else its name."""
    try:
        stated = one_line(str(reader.metadata.title or "") if reader.metadata is not None else "")
    except Exception:  # noqa: BLE001 # damaged metadata only cost the title
        stated = ""
    first = next(iter(lines), "")
    within = first.endswith((".", ",", ";", "-")) or any(line[:1].islower() for line in lines[1:])
    for title, most in ((stated, LONGEST_TITLE), ("" if within else first, LONGEST_TITLE // 2)):
        if 2 < len(title) <= most and not _NO_TITLE.match(title) and any(map(str.isalpha, title)):
            return title
    return file.stem


PARSER = Parser(kind="pdf", suffixes=_SUFFIXES, priority=0, recognises=_recognises, parse=_parse)
