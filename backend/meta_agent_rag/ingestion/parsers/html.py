"""HTML, with Beautiful Soup over lxml."""

import re
import warnings
from collections.abc import Iterator
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, NamedTuple

from ..document import Block, Document, Refused
from ..tables import Cell, grid_rows, spread, table_blocks
from ..text import EXPONENT, decoded, flowed
from . import File, Parser

if TYPE_CHECKING:
    from bs4 import Tag

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
_DIGITS = re.compile(r"[0-9]{1,5}")
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html", "legend", "li",
    "main", "menu", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
} | _HEADINGS  # fmt: skip


def _recognises(file: File) -> bool:
    return file.text is not None and (file.ends_with(_SUFFIXES) or _BEGINNING.match(file.text) is not None)


def _parse(file: File) -> Document:
    declared = _DECLARED.search(file.content[:_HEAD_BYTES])
    markup = decoded(file.content, declared.group(1).decode("ascii") if declared else None)
    if markup is None:
        raise Refused("type", "it is not text")
    soup = soup_of(markup)
    stated = (heading.get_text(" ") for heading in (soup.title, soup.h1) if heading is not None)
    title = next((one for one in stated if one.strip()), "")
    return Document(title=title.strip() or file.stem, kind="html", blocks=tuple(blocks_of(soup)))


def soup_of(markup: str) -> "Tag":
    """The elements of a piece of HTML."""
    from bs4 import BeautifulSoup

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about XHTML, and about texts that look like an address
        return BeautifulSoup(markup, "lxml")


def blocks_of(root: "Tag") -> Iterator[Block]:
    """Blocks in the order of the document: of each table its rows, else the text between the edges of two elements.

    The tree is changed. It may be 100,000 deep, so nothing here is recursive.
    """
    for element in root.find_all(_is_dropped):
        element.extract()
    for line_break in root.find_all("br"):
        line_break.replace_with("\n")
    for raised in root.find_all("sup"):
        if EXPONENT.match(raised.get_text()):
            raised.insert_before("^")
    for numbered in root.find_all("ol"):
        first = _number(numbered, "start")
        for number, item in enumerate(numbered.find_all("li", recursive=False), start=first):
            if text := next((string for string in item.strings if string.strip()), None):
                text.replace_with(f"{number}. {text.lstrip()}")
    section: str | None = None
    for _, group in groupby(_texts(root), key=lambda text: text.outer):
        texts = list(group)
        place = texts[0]
        if place.table is not None:
            captions = map(_flat, place.table.find_all("caption", limit=1))
            rows = table_blocks(grid_rows(spread(_cells(place.table))))
            yield from (Block(text=text, section=section) for text in (*filter(None, captions), *rows))
            continue
        text = "".join(text.string for text in texts)
        text = text.strip("\n") if place.preformatted else flowed(text)
        section = (place.heading and text) or section
        if text:
            yield Block(text=text, section=section)


class _Text(NamedTuple):
    """A text, the ids of the innermost block and of the outermost block or table that it is in, and what these are."""

    string: str
    block: int
    outer: int
    table: "Tag | None"
    heading: bool
    preformatted: bool


def _texts(root: "Tag") -> Iterator[_Text]:
    for string in root.strings:  # without comments and doctypes
        block, table, names = id(root), None, set[str]()
        for parent in takewhile(lambda one: one is not root.parent, string.parents):
            if parent.name in _BLOCKS and names.isdisjoint(_BLOCKS):
                block = id(parent)
            names.add(parent.name)
            table = parent if parent.name == "table" else table
        heading = not names.isdisjoint(_HEADINGS)
        yield _Text(string, block, block if table is None else id(table), table, heading, "pre" in names)


def _cells(table: "Tag") -> Iterator[list[Cell]]:
    """The cells that begin in each row, without those of tables within."""
    for row in table.find_all("tr"):
        if row.find_parent("table") is table:
            cells = row.find_all(["td", "th"], recursive=False)
            yield [Cell(_flat(cell), _number(cell, "colspan"), _number(cell, "rowspan")) for cell in cells]


def _flat(element: "Tag") -> str:
    """The text of an element in one line, with blanks between its blocks."""
    groups = groupby(_texts(element), key=lambda text: text.block)
    return flowed(" ".join("".join(text.string for text in group) for _, group in groups))


def _number(element: "Tag", name: str) -> int:
    """The number that an attribute states, else 1."""
    stated = str(element.attrs.get(name, "")).strip()
    return int(stated) if _DIGITS.fullmatch(stated) else 1


def _is_dropped(element: "Tag") -> bool:
    """Whether an element has no text of the document, or is invisible to readers."""
    style = element.attrs.get("style", "")
    return element.name in _DROPPED or "hidden" in element.attrs or _HIDDEN.search(str(style)) is not None


PARSER = Parser(kind="html", suffixes=_SUFFIXES, priority=2, recognises=_recognises, parse=_parse)
