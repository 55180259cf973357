"""OpenDocument texts (.odt), with odfpy."""

import io
from collections.abc import Iterator
from typing import Any

from ..content import archive
from ..content.grid import Cell, grid_rows
from ..content.tables import table_blocks
from ..document import Block, Document
from ..text import one_line
from . import File, Parser

_SUFFIXES = (".odt",)
_KIND = "application/vnd.oasis.opendocument.text"
_SKIPPED = {"text:tracked-changes", "text:sequence-decls", "office:forms", "office:annotation", "text:note-citation"}
_CHARACTERS = {3, 4}
"""Node types of text and CDATA."""
_MOST_REPEATED = 100
"""The most repetitions of a row or cell that are expanded; spreadsheets fill a sheet to its end in this way."""

_MOST_DIGITS = 10


def _recognises(file: File) -> bool:
    return archive.stated_kind(file).startswith(_KIND)


def _parse(file: File) -> Document:
    from odf.opendocument import load

    archive.check(file)
    document = load(io.BytesIO(file.content))
    blocks = tuple(_blocks(document.text))
    stated = next((_text(one) for one in _named(document.meta, "dc:title")), "")
    headings = (block.text for block in blocks if block.section == block.text)
    return Document(title=one_line(stated) or next(headings, "") or file.stem, kind="odt", blocks=blocks)


def _blocks(root: Any) -> Iterator[Block]:
    section: str | None = None
    waiting = list(reversed(root.childNodes))
    while waiting:
        node = waiting.pop()
        name = getattr(node, "tagName", "")
        if name == "text:h":
            section = " ".join(_text(node).split()) or section
            yield Block(text=section or "", section=section)
        elif name == "text:p":
            yield Block(text=_text(node).strip(), section=section)
        elif name == "table:table":
            yield from (Block(text=text, section=section) for text in table_blocks(grid_rows(_rows(node))))
        elif name not in _SKIPPED:
            waiting.extend(reversed(node.childNodes))


def _rows(table: Any) -> Iterator[list[Cell]]:
    """The cells of each row; those that are covered by merged cells have another name."""
    for row in _named(table, "table:table-row"):
        cells: list[Cell] = []
        for cell in _named(row, "table:table-cell"):
            text, across, down = _text(cell), _number(cell, "numbercolumnsspanned"), _number(cell, "numberrowsspanned")
            cells += [Cell(text, across, down) for _ in range(_repeated(cell, "numbercolumnsrepeated"))]
        for _ in range(_repeated(row, "numberrowsrepeated")):
            yield [Cell(cell.text, cell.across, cell.down) for cell in cells]


def _repeated(element: Any, name: str) -> int:
    return min(_number(element, name), _MOST_REPEATED)


def _number(element: Any, name: str) -> int:
    stated = str(element.getAttribute(name) or "1")
    return int(stated) if stated.isascii() and stated.isdigit() and len(stated) < _MOST_DIGITS else 1


def _named(root: Any, name: str) -> Iterator[Any]:
    """Elements with this name inside another, without nested ones."""
    waiting = list(reversed(root.childNodes))
    while waiting:
        node = waiting.pop()
        if getattr(node, "tagName", "") == name:
            yield node
        else:
            waiting.extend(reversed(node.childNodes))


def _text(element: Any) -> str:
    """The text of an element, including spaces and breaks."""
    parts: list[str] = []
    waiting = [element]
    while waiting:
        node = waiting.pop()
        name = getattr(node, "tagName", "")
        if name in {"text:s", "text:tab"}:
            parts.append(" ")
        elif name == "text:line-break":
            parts.append("\n")
        elif node.nodeType in _CHARACTERS:
            parts.append(str(node.data))
        elif name not in _SKIPPED:
            if name == "text:p" and parts:
                parts.append("\n")
            waiting.extend(reversed(node.childNodes))
    return "".join(parts)


PARSER = Parser(kind="odt", suffixes=_SUFFIXES, priority=0, recognises=_recognises, parse=_parse)
