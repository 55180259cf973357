"""Workbooks, presentations, OpenDocument, books and rich text, each by the library of its format."""

import io
import posixpath
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from datetime import date, datetime, time
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ..archives import contents, opened
from ..document import Block, Document, Refused
from ..tables import MOST_SPANNED, Cell, grid_rows, row_text, table_blocks
from ..text import decoded, one_line
from . import LONGEST_TITLE, File, Parser
from .html import blocks_of, soup_of

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

_DEFAULT_TITLE = "PowerPoint Presentation"


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


def _document(file: File, kind: str, title: str, blocks: Sequence[Block], pages: int | None = None) -> Document:
    """A document with its stated title, else its first heading, else its name."""
    stated = one_line(title).replace(_DEFAULT_TITLE, "")
    first = next((block.text for block in blocks if block.section == block.text), "")
    return Document(title=stated or first or file.stem, kind=kind, blocks=tuple(blocks), pages=pages)


# -- workbooks


def _workbook(file: File) -> Document:
    """One section per sheet; a formula without a stored value stands as it is written."""
    from openpyxl import load_workbook

    opened(file)
    book = values = load_workbook(io.BytesIO(file.content))
    if any(cell.data_type == "f" for sheet in book.worksheets for cell in sheet._cells.values()):
        values = load_workbook(io.BytesIO(file.content), data_only=True)
    blocks: list[Block] = []
    for sheet, written in zip(values.worksheets, book.worksheets, strict=True):
        # `iter_rows` would make every empty cell up to the last, which may be formatted far below the others
        filled: dict[tuple[int, int], Cell] = {}
        for place, cell in sheet._cells.items():
            formula = written._cells[place].value
            if (text := _shown(cell) or str(getattr(formula, "text", formula) or "")).strip():  # or an array's
                filled[place] = Cell(text)
        for merged in sheet.merged_cells.ranges:
            if first := filled.get((merged.min_row, merged.min_col)):
                right = min(merged.max_col, merged.min_col + MOST_SPANNED, sheet.max_column)
                for row in range(merged.min_row, min(merged.max_row, sheet.max_row) + 1):
                    filled |= {(row, column): first for column in range(merged.min_col, right + 1)}
        rows: dict[int, dict[int, Cell]] = {}
        for row, column in sorted(filled):
            rows.setdefault(row, {})[column] = filled[row, column]
        for _, table in groupby(enumerate(rows), key=lambda one: one[1] - one[0]):  # an empty row ends a table
            cells = [rows[row] for _, row in table]
            columns = sorted({column for row in cells for column in row})
            grid = ([row.get(column) or Cell("") for column in columns] for row in cells)
            blocks += (Block(text=text, section=sheet.title) for text in table_blocks(grid_rows(grid)))
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


# -- presentations


def _presentation(file: File) -> Document:
    """One page per slide: its title, text and tables in slide order, then its notes."""
    from pptx import Presentation

    opened(file)
    shown = Presentation(io.BytesIO(file.content))
    blocks = [block for number, slide in enumerate(shown.slides, start=1) for block in _slide(slide, number)]
    return _document(file, "pptx", shown.core_properties.title or "", blocks, pages=len(shown.slides))


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
            texts += table_blocks(grid_rows(_placed(shape.table)))
        elif shape.has_text_frame and (heading is None or shape.shape_id != heading.shape_id):
            texts.append(shape.text_frame.text)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        texts.append(slide.notes_slide.notes_text_frame.text)
    yield from (Block(text=text, section=section or None, page=number) for text in texts if text.strip())


def _placed(table: Any) -> list[list[Cell]]:
    grid = [[Cell(cell.text) for cell in row.cells] for row in table.rows]
    for row, cells in enumerate(table.rows):
        for column, cell in enumerate(cells.cells):
            for place in range(row, row + cell.span_height) if cell.is_merge_origin else ():
                grid[place][column : column + cell.span_width] = [grid[row][column]] * cell.span_width
    return grid


# -- OpenDocument

_AS_HTML = {
    "text:h": "h1", "text:p": "p", "text:list-item": "li", "text:line-break": "br", "table:table": "table",
    "table:table-row": "tr", "table:table-cell": "td",
}  # fmt: skip
_SKIPPED = ["text:tracked-changes", "text:sequence-decls", "office:forms", "office:annotation", "text:note-citation"]


def _opendocument(file: File) -> Document:
    """Its elements as those of HTML."""
    archive = opened(file)
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
        for _ in range(min(int(repeated), MOST_SPANNED) - 1 if repeated.isdigit() and element.get_text() else 0):
            element.insert_after(copy(element))
    title = meta.find("dc:title")
    return _document(file, "odt", title.get_text() if title is not None else "", list(blocks_of(body)))


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
_ENCRYPTION = "META-INF/encryption.xml"
_FONTS = (b"http://www.idpf.org/2008/embedding", b"http://ns.adobe.com/pdf/enc#RC")


def _book(file: File) -> Document:
    """The chapters in reading order."""
    archive = opened(file)
    names = archive.namelist()
    statement = archive.read(_ENCRYPTION) if _ENCRYPTION in names else b""
    if b"EncryptedData" in statement and not any(font in statement for font in _FONTS):
        raise Refused("encrypted", "it is copy-protected; use a copy without protection")
    root = _xml(archive, _CONTAINER).find("rootfile")
    path = str(root.attrs.get("full-path", "")) if root is not None else ""
    if path not in names:
        raise Refused("unreadable", f"it is not a valid book ({path!r} is missing)")
    package = _xml(archive, path)
    items = {item.attrs.get("id"): item.attrs for item in package.find_all("item")}
    blocks: list[Block] = []
    section: str | None = None
    for reference in package.find_all("itemref"):
        item = items.get(reference.attrs.get("idref"), {})
        chapter = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(str(item.get("href", "")))))
        if chapter in names and "html" in str(item.get("media-type")) and "nav" not in str(item.get("properties")):
            for block in blocks_of(soup_of(decoded(archive.read(chapter)) or "")):
                section = block.section or section
                blocks.append(Block(text=block.text, section=section))
    title = package.find("dc:title") or package.find("title")
    return _document(file, "epub", title.get_text() if title is not None else file.stem, blocks)


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
    parse=lambda file: _READERS[_kind(file)](file),
)
