"""Workbooks, presentations, OpenDocument, books and rich text, each by the library of its format."""

import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ..archives import contents, opened
from ..document import Block, Document, Refused
from ..tables import Cell, grid_rows, row_text, table_blocks
from ..text import decoded, one_line
from . import LONGEST_TITLE, File, Parser
from .html import blocks_of, soup_of

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_DEFAULT_TITLES = {"PowerPoint Presentation"}


def _kind(file: File) -> str:
    """The format of the content; empty for others."""
    if file.content.lstrip()[:5] == b"{\\rtf":
        return "rtf"
    names, stated = contents(file)
    if "xl/workbook.xml" in names:
        return "xlsx"
    if "ppt/presentation.xml" in names:
        return "pptx"
    if stated.startswith("application/vnd.oasis.opendocument.text"):
        return "odt"
    return "epub" if stated == "application/epub+zip" or _CONTAINER in names else ""


def _parse(file: File) -> Document:
    return _READERS[_kind(file)](file)


def _document(file: File, kind: str, title: str, blocks: Sequence[Block], pages: int | None = None) -> Document:
    """A document with its stated title, else its first heading, else its name."""
    stated = "" if one_line(title) in _DEFAULT_TITLES else one_line(title)
    first = next((block.text for block in blocks if block.section == block.text), "")
    return Document(title=stated or first or file.stem, kind=kind, blocks=tuple(blocks), pages=pages)


# -- workbooks

_MOST_CELLS = 5_000_000
"""The most cells of a workbook, including empty ones; a sheet may declare 17 billion."""
_MOST_MERGED, _MOST_COLUMNS = 200_000, 100
"""The most places of merged cells that are filled in a sheet, and the most columns of one."""
_RANGE = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]{0,80}?ref=[\"']([A-Z]{1,3}[0-9]{1,7}:[A-Z]{1,3}[0-9]{1,7})[\"']")
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s>]")


def _workbook(file: File) -> Document:
    """One section per sheet, its rows as tables; a formula without a stored value stands as it is written."""
    from openpyxl import load_workbook

    with opened(file):
        values = load_workbook(io.BytesIO(file.content), read_only=True, data_only=True)
    formulas = load_workbook(io.BytesIO(file.content), read_only=True)
    blocks: list[Block] = []
    left = _MOST_CELLS
    for sheet, written in zip(values.worksheets, formulas.worksheets, strict=True):
        with sheet._get_source() as stream:
            source = stream.read()
        unstored = written.iter_rows(values_only=True) if _FORMULA.search(source) else None
        rows: list[list[str]] = []
        for cells in sheet.iter_rows():
            left -= max(len(cells), 1)
            if left < 0:
                raise Refused("limit", f"it has more than {_MOST_CELLS} cells; save only the sheets that you need")
            texts = [_shown(cell) for cell in cells]
            if unstored is not None:
                texts = [text or str(value or "") for text, value in zip(texts, next(unstored), strict=False)]
            rows.append(texts)
        for table in _tables(rows, _merged(source, len(rows))):
            blocks += (Block(text=text, section=sheet.title) for text in table_blocks(grid_rows(table)))
    return _document(file, "xlsx", values.properties.title or file.stem, blocks)


def _shown(cell: Any) -> str:
    """A cell's value as a person reads it: dates without a time, shares in percent, whole numbers without a point."""
    value = cell.value
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, int | float) and not isinstance(value, bool):
        if "%" in (cell.number_format or ""):
            return f"{round(value * 100, 10):g}%"
        return str(int(value)) if float(value).is_integer() else str(value)
    return "" if value is None else str(value)


def _merged(source: bytes, count: int) -> Mapping[tuple[int, int], tuple[int, int] | None]:
    """The merged cells of a sheet's rows by (row, column) from 0: columns and rows spanned, `None` if covered."""
    from openpyxl.utils import range_boundaries

    found: dict[tuple[int, int], tuple[int, int] | None] = {}
    for match in _RANGE.finditer(source):
        first, top, last, bottom = range_boundaries(match[1].decode("ascii"))
        last, bottom = min(last, first + _MOST_COLUMNS - 1), min(bottom, count)
        if len(found) + (last - first + 1) * max(bottom - top + 1, 0) > _MOST_MERGED:
            break
        found |= {(row - 1, column - 1): None for row in range(top, bottom + 1) for column in range(first, last + 1)}
        found[top - 1, first - 1] = (last - first + 1, bottom - top + 1)
    return found


def _tables(
    rows: Sequence[Sequence[str]], merged: Mapping[tuple[int, int], tuple[int, int] | None]
) -> Iterator[list[list[Cell]]]:
    """Runs of rows without an empty one, since a sheet may contain several tables."""
    table: list[list[Cell]] = []
    for number, texts in enumerate(rows):
        places = [(text, (number, column)) for column, text in enumerate(texts)]
        covered = any(merged.get(place, ()) is None for _, place in places)
        if any(map(str.strip, texts)) or covered:
            spans = [(text, merged.get(place, (1, 1))) for text, place in places]
            table.append([Cell(text, *span) for text, span in spans if span is not None])
        elif table:
            yield table
            table = []
    if table:
        yield table


# -- presentations


def _presentation(file: File) -> Document:
    """One page per slide: its title, text and tables in slide order, then its notes."""
    from pptx import Presentation

    with opened(file):
        shown = Presentation(io.BytesIO(file.content))
    slides = list(shown.slides)
    blocks = [block for number, slide in enumerate(slides, start=1) for block in _slide(slide, number)]
    return _document(file, "pptx", shown.core_properties.title or "", blocks, pages=len(slides))


def _slide(slide: Any, number: int) -> Iterator[Block]:
    heading = slide.shapes.title
    section = one_line(heading.text_frame.text) if heading is not None else ""
    texts = [section]
    waiting = list(reversed(list(slide.shapes)))
    while waiting:  # groups may be nested to any depth
        shape = waiting.pop()
        if hasattr(shape, "shapes"):
            waiting.extend(reversed(list(shape.shapes)))
        elif getattr(shape, "has_table", False):
            cells = [[cell for cell in row.cells if not cell.is_spanned] for row in shape.table.rows]
            texts += table_blocks(
                grid_rows([Cell(cell.text, cell.span_width, cell.span_height) for cell in row] for row in cells)
            )
        elif shape.has_text_frame and (heading is None or shape.shape_id != heading.shape_id):
            texts.append(shape.text_frame.text)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        texts.append(slide.notes_slide.notes_text_frame.text)
    yield from (Block(text=text, section=section or None, page=number) for text in texts if text.strip())


# -- OpenDocument

_MOST_REPEATED = 100
_AS_HTML = {
    "text:h": "h1", "text:p": "p", "text:list-item": "li", "text:line-break": "br", "table:table": "table",
    "table:table-row": "tr", "table:table-cell": "td",
}  # fmt: skip
_SKIPPED = ["text:tracked-changes", "text:sequence-decls", "office:forms", "office:annotation", "text:note-citation"]


def _opendocument(file: File) -> Document:
    with opened(file) as archive:
        body, meta = (_xml(archive, name) for name in ("content.xml", "meta.xml"))
    for element in body.find_all([*_SKIPPED, "table:covered-table-cell"]):
        element.decompose()
    for note in body.find_all("text:note"):
        note.replace_with(f" (Note: {' '.join(note.get_text(' ').split())})")
    for element in body.find_all(["text:s", "text:tab"]):
        element.replace_with(" ")
    for element in body.find_all(list(_AS_HTML)):
        element.name = _AS_HTML[f"{element.prefix}:{element.name.rpartition(':')[2]}"]
        for attribute, span in (("columns", "colspan"), ("rows", "rowspan")):
            element[span] = str(element.attrs.get(f"table:number-{attribute}-spanned", "1"))
        repeated = str(element.attrs.get("table:number-columns-repeated", "1"))
        for _ in range(min(int(repeated), _MOST_REPEATED) - 1 if repeated.isdigit() and element.get_text() else 0):
            element.insert_after(_copy(element))
    title = meta.find("dc:title")
    return _document(file, "odt", title.get_text() if title is not None else "", list(blocks_of(body)))


def _copy(element: "Tag") -> "Tag":
    from copy import copy

    return copy(element)


def _xml(archive: zipfile.ZipFile, name: str) -> "BeautifulSoup":
    """A part as XML without entities of its own. Raises `Refused`."""
    from bs4 import BeautifulSoup

    try:
        content = archive.read(name)
    except KeyError as error:
        raise Refused("unreadable", f"its part {name!r} is missing") from error
    if b"<!ENTITY" in content:
        raise Refused("unreadable", f"its part {name!r} declares entities")
    return BeautifulSoup(content, "xml")


# -- books

_CONTAINER = "META-INF/container.xml"
_CHAPTERS = {"application/xhtml+xml", "text/html"}
_FONTS = (b"http://www.idpf.org/2008/embedding", b"http://ns.adobe.com/pdf/enc#RC")


def _book(file: File) -> Document:
    """The chapters in reading order."""
    with opened(file) as archive:
        names = frozenset(archive.namelist())
        _refuse_protected(archive, names)
        root = _xml(archive, _CONTAINER).find("rootfile")
        path = str(root.attrs.get("full-path", "")) if root is not None else ""
        if path not in names:
            raise Refused("unreadable", f"it is not a valid book ({path!r} is missing)")
        package = _xml(archive, path)
        blocks: list[Block] = []
        for chapter in _spine(package, posixpath.dirname(path)):
            section = blocks[-1].section if blocks else None
            markup = decoded(archive.read(chapter)) if chapter in names else None
            for block in blocks_of(soup_of(markup or "")):
                section = block.section or section
                blocks.append(Block(text=block.text, section=section))
    title = package.find("dc:title") or package.find("title")
    return _document(file, "epub", title.get_text() if title is not None else file.stem, blocks)


def _refuse_protected(archive: zipfile.ZipFile, names: frozenset[str]) -> None:
    statement = archive.read("META-INF/encryption.xml") if "META-INF/encryption.xml" in names else b""
    if b"EncryptedData" in statement and not any(font in statement for font in _FONTS):
        raise Refused("encrypted", "it is copy-protected; use a copy without protection")


def _spine(package: "BeautifulSoup", folder: str) -> Iterator[str]:
    """The paths of the chapters in reading order."""
    items = {
        item.attrs.get("id"): str(item.attrs.get("href", ""))
        for item in package.find_all("item")
        if item.attrs.get("media-type") in _CHAPTERS and "nav" not in str(item.attrs.get("properties", "")).split()
    }
    for reference in package.find_all("itemref"):
        if href := items.get(reference.attrs.get("idref")):
            yield posixpath.normpath(posixpath.join(folder, unquote(href)))


# -- rich text


def _rich_text(file: File) -> Document:
    from striprtf.striprtf import rtf_to_text

    # one byte per character: striprtf decodes escapes with the code page that the file states
    text: str = rtf_to_text(file.content.decode("latin-1"), errors="replace")  # type: ignore[no-untyped-call]
    blocks: list[Block] = []
    for is_row, lines in groupby(text.split("\n"), key=lambda line: line.rstrip().endswith("|")):
        if is_row:  # striprtf ends each cell with a bar
            rows = [row_text(line.rstrip().removesuffix("|").split("|")) for line in lines]
            blocks += (Block(text=block) for block in table_blocks(rows))
        else:
            blocks += (Block(text=line) for line in lines if line.strip())
    first = one_line(blocks[0].text) if blocks else ""
    return _document(file, "rtf", first if len(first) <= LONGEST_TITLE // 2 else file.stem, blocks)


_READERS: Mapping[str, Callable[[File], Document]] = {
    "xlsx": _workbook,
    "pptx": _presentation,
    "odt": _opendocument,
    "epub": _book,
    "rtf": _rich_text,
}
PARSER = Parser(
    kind="office",
    suffixes=(".xlsx", ".xlsm", ".pptx", ".odt", ".epub", ".rtf"),
    priority=0,
    recognises=lambda file: bool(_kind(file)),
    parse=_parse,
)
