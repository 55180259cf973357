"""HTML, with Beautiful Soup over lxml."""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..document import Block, Document, Refused
from ..tables import Cell, grid_rows, spread, table_blocks
from ..text import decoded, flowed
from . import File, Parser

if TYPE_CHECKING:
    from bs4 import Tag
    from bs4.element import PageElement

_SUFFIXES = (".html", ".htm", ".xhtml")
_BEGINNING = re.compile(
    # Possessive and atomic: many consecutive comments must not be tried in all combinations.
    r"(?:\s|\ufeff|<\?xml[^>]{0,200}>|(?><!--.*?-->))*+<(?:!doctype\s+html|html|head|body)[\s>]",
    re.I | re.S,
)
_DECLARED = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.I)
_HEAD_BYTES = 4096
_DROPPED = {
    "script", "style", "nav", "template", "noscript", "head", "svg", "iframe", "object", "canvas", "audio", "video",
    "select", "button",
}  # fmt: skip
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_SPAN = re.compile(r"[0-9]{1,5}")
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html", "legend", "li",
    "main", "menu", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
} | _HEADINGS  # fmt: skip


def _recognises(file: File) -> bool:
    if file.text is None:
        return False
    return file.ends_with(_SUFFIXES) or _BEGINNING.match(file.text) is not None


def _parse(file: File) -> Document:
    declared = _DECLARED.search(file.content[:_HEAD_BYTES])
    markup = decoded(file.content, declared.group(1).decode("ascii") if declared else None)
    if markup is None:
        raise Refused("type", "it is not text")
    soup = soup_of(markup)
    heading = soup.title or soup.h1
    title = heading.get_text(" ") if heading is not None else ""
    return Document(title=title.strip() or file.stem, kind="html", blocks=tuple(blocks_of(soup)))


def soup_of(markup: str) -> "Tag":
    """The elements of a piece of HTML."""
    from bs4 import BeautifulSoup

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about XHTML, and about texts that look like an address
        return BeautifulSoup(markup, "lxml")


def blocks_of(root: "Tag") -> Iterator[Block]:
    """Blocks in the order of the document. The tree may be 100,000 deep, so no recursion."""
    from bs4 import Tag
    from bs4.element import CData, NavigableString

    reading = _HtmlReading()
    waiting: list[tuple[PageElement, bool]] = [(root, False)]
    while waiting:
        element, left = waiting.pop()
        if isinstance(element, Tag):
            if left:
                yield from reading.leave(element)
            elif not _is_dropped(element):
                yield from reading.enter(element)
                waiting.append((element, True))
                waiting.extend((child, False) for child in reversed(element.contents))
        elif type(element) in {NavigableString, CData}:  # comments and doctypes are strings too
            reading.pieces.append(str(element))
    yield from reading.flush()


@dataclass(kw_only=True)
class _HtmlReading:
    """The text since the end of the last block, and the rows of the current table."""

    pieces: list[str] = field(default_factory=list)
    section: str | None = None
    tables: int = 0
    preformatted: int = 0
    rows: list[list[Cell]] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """The next number of each list that is open; 0 for those without numbers."""
    number: str = ""
    """The number of the list item that has begun, until its text is taken."""

    def enter(self, element: "Tag") -> Iterator[Block]:
        """Handle the start of an element."""
        if element.name == "br":
            self.pieces.append("\n" if self.preformatted else " ")
        if element.name in _BLOCKS:
            yield from self._break()
        if element.name == "ol":
            stated = str(element.attrs.get("start", "1"))
            self.numbers.append(int(stated) if _SPAN.fullmatch(stated) else 1)
        elif element.name == "ul":
            self.numbers.append(0)
        elif element.name == "li":
            self.number = f"{self.numbers[-1]}. " if self.numbers and self.numbers[-1] else ""
            if self.number:
                self.numbers[-1] += 1
        self.tables += element.name == "table"
        self.preformatted += element.name == "pre"

    def leave(self, element: "Tag") -> Iterator[Block]:
        """Handle the end of an element."""
        outermost = self.tables == 1
        if outermost and element.name in {"td", "th"}:
            self.cells.append(Cell(self._taken(), _span(element, "colspan"), _span(element, "rowspan")))
        elif outermost and element.name == "tr":
            self._end_row()
        elif outermost and element.name == "caption":
            if text := self._taken():
                yield Block(text=text, section=self.section)
        elif outermost and element.name == "table":
            self._end_row()
            yield from (Block(text=text, section=self.section) for text in table_blocks(grid_rows(spread(self.rows))))
            self.rows = []
        elif element.name in _HEADINGS and not self.tables:
            heading = self._taken()
            self.section = heading or self.section
            if heading:
                yield Block(text=heading, section=self.section)
        elif element.name in _BLOCKS:
            yield from self._break()
        if element.name in {"ol", "ul"} and self.numbers:
            self.numbers.pop()
        self.tables -= element.name == "table"
        self.preformatted -= element.name == "pre"

    def flush(self) -> Iterator[Block]:
        """The text since the last block, as one block."""
        text = self._taken()
        if text:
            yield Block(text=text, section=self.section)

    def _break(self) -> Iterator[Block]:
        """Handle a block boundary; within a table it only separates words."""
        if self.tables:
            self.pieces.append(" ")
        else:
            yield from self.flush()

    def _end_row(self) -> None:
        loose = [Cell(self._taken())] if "".join(self.pieces).strip() else []
        self.rows.append([*self.cells, *loose])
        self.cells = []

    def _taken(self) -> str:
        text, self.pieces = "".join(self.pieces), []
        text = text.strip("\n") if self.preformatted else flowed(text)
        if text:
            text, self.number = self.number + text, ""
        return text


def _span(cell: "Tag", name: str) -> int:
    """The number of rows or columns that a cell spans, as stated by an attribute."""
    stated = str(cell.attrs.get(name, "")).strip()
    return int(stated) if _SPAN.fullmatch(stated) else 1


def _is_dropped(element: "Tag") -> bool:
    """Whether an element has no text of the document, or is invisible to readers."""
    style = element.attrs.get("style", "")
    return element.name in _DROPPED or "hidden" in element.attrs or _HIDDEN.search(str(style)) is not None


PARSER = Parser(kind="html", suffixes=_SUFFIXES, priority=2, recognises=_recognises, parse=_parse)
