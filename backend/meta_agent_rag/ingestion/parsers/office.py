"""Word files, workbooks, presentations, OpenDocument, books and rich text, each by the library of its format."""

import io
import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from datetime import date, datetime, time
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ..document import Block, Document, Refused
from ..tables import MOST_SPANNED, Cell, grid_rows, row_text, table_blocks
from ..text import EXPONENT, decoded, fault_of, one_line
from . import LONGEST_TITLE, File, Parser
from .html import blocks_of, soup_of

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from docx.document import Document as WordDocument

_ZIP, _RTF, _OLE = (b"PK\x03\x04", b"PK\x05\x06"), b"{\\rtf", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_MOST_PARTS = 10_000
_MEGABYTE = 1024 * 1024
_DEFAULT_TITLES = {"Word Document", "PowerPoint Presentation"}
"""The titles that libraries give to files without one."""


def _recognises(file: File) -> bool:
    """Accepts any archive and any old Office file, whose real kind is determined when it is opened."""
    return file.content.startswith((*_ZIP, _OLE)) or file.content.lstrip().startswith(_RTF)


def _parse(file: File) -> Document:
    if file.content.startswith(_OLE):
        if _ENCRYPTED in file.content:
            raise Refused("encrypted", "it is protected by a password; save it without one")
        raise Refused("type", "it is an old Office file; save it as .docx, .xlsx or .pptx")
    if not file.content.startswith(_ZIP):
        return _rich_text(file)
    archive = _opened(file)
    names = archive.namelist()
    stated = archive.open("mimetype").read(200).decode("ascii", "replace") if "mimetype" in names else ""
    for sign, read in _READERS.items():
        if sign in names or stated.startswith(sign):
            return read(file, archive)
    raise Refused("type", "it is a zip archive, but not a supported document; save it as PDF or .docx")


def _opened(file: File) -> zipfile.ZipFile:
    """The archive. Refuses one that is damaged, encrypted, or unpacks to too much.

    The stated sizes suffice: `zipfile` never unpacks more of a part than is stated.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(file.content))
    except Exception as error:  # what a damaged archive raises depends on where it is damaged
        raise Refused("unreadable", f"the archive is damaged ({fault_of(error)})") from error
    entries = archive.infolist()
    if len(entries) > _MOST_PARTS:
        raise Refused("limit", f"it has more than {_MOST_PARTS} parts")
    if sum(entry.file_size for entry in entries) > file.unpacked_bytes:
        most = file.unpacked_bytes // _MEGABYTE
        raise Refused("limit", f"it unpacks to more than {most} MB; raise INGEST_FILE_MB")
    if any(entry.flag_bits & 1 for entry in entries):
        raise Refused("encrypted", "its parts are protected by a password; save it without one")
    return archive


def _document(file: File, kind: str, title: str, blocks: Sequence[Block], pages: int | None = None) -> Document:
    """A document with its stated title, else its first heading, else its name."""
    stated = one_line(title)
    first = next((block.text for block in blocks if block.section == block.text), "")
    name = ("" if stated in _DEFAULT_TITLES else stated) or first or file.stem
    return Document(title=name, kind=kind, blocks=tuple(blocks), pages=pages)


# -- Word

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_HEADING = re.compile(r"(?:heading|title)\b", re.I)
_BODY_TEXT = 9
"""The outline level of what is no heading."""
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_WRAPPERS = [f"{_WORD}{name}" for name in ("sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag", "fldSimple")]
_WRAPPERS.append(f"{_MATH}oMathPara")
_UNREAD = [f"{_WORD}sdtPr", f"{_WORD}sdtEndPr", f"{_WORD}del", f"{_WORD}moveFrom", _FALLBACK]
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv", "xvi")


def _word(file: File, _: zipfile.ZipFile) -> Document:
    """Paragraphs and tables in text order. Works on the XML, because python-docx's objects take 1 GB."""
    import docx
    from lxml import etree

    document = docx.Document(io.BytesIO(file.content))
    body = document.element.body
    etree.strip_elements(body, *_UNREAD, with_tail=False)  # marks of changes, a second rendering for older programs
    for formula in list(body.iter(f"{_MATH}oMath")):  # python-docx reads runs alone
        formula.getparent().replace(formula, _run(_formula(formula)))
    for raised in body.iterfind(f".//{_WORD}vertAlign[@{_WORD}val='superscript']"):
        run = raised.getparent().getparent()
        text = run.find(f"{_WORD}t")
        if text is not None and EXPONENT.match(text.text or "") and not _is_raised(run.getprevious()):
            text.text = f"^{text.text}"
    etree.strip_tags(body, *_WRAPPERS)
    styles = {style.get(f"{_WORD}styleId"): style for style in document.styles.element.iterfind(f"{_WORD}style")}
    headings = {name for name, style in styles.items() if _HEADING.match(_value(style, "name")) or _is_outlined(style)}
    numbering, notes = _Numbering(document, styles), _notes(document)
    blocks: list[Block] = []
    section: str | None = None
    for element in body.iterchildren(f"{_WORD}p", f"{_WORD}tbl"):
        if element.tag == f"{_WORD}tbl":
            blocks += (Block(text=text, section=section) for text in table_blocks(grid_rows(_grid(element))))
        elif text := _text(element).strip():
            text = numbering.of(element) + text
            if _is_outlined(element) or _value(element, "pPr", "pStyle") in headings:
                text = section = " ".join(text.split())
            marks = element.iter(f"{_WORD}footnoteReference", f"{_WORD}endnoteReference")
            told = [note for mark in marks if (note := notes.get((mark.tag, mark.get(f"{_WORD}id"))))]
            blocks.append(Block(text=" ".join([text, *(f"(Note: {note})" for note in told)]), section=section))
    return _document(file, "docx", document.core_properties.title or "", blocks)


def _is_raised(run: Any) -> bool:
    return run is not None and _value(run, "rPr", "vertAlign") == "superscript"


def _formula(formula: Any) -> str:
    """A formula as one line: a blank between its parts, `/` before a denominator, `^` before an exponent."""
    said = ""
    for part in formula.iter(f"{_MATH}t"):
        within = [one.tag for one in part.iterancestors(f"{_MATH}den", f"{_MATH}sup")][:1]
        sign = {f"{_MATH}den": "/", f"{_MATH}sup": "^"}.get(within[0] if within else "", " ")
        said += f"{sign}{(part.text or '').strip()}"
    return said.strip()


def _run(text: str) -> Any:
    from docx.oxml import OxmlElement

    run, held = OxmlElement("w:r"), OxmlElement("w:t")
    held.text = text
    run.append(held)
    return run


def _is_outlined(element: Any) -> bool:
    level = _value(element, "pPr", "outlineLvl")
    return bool(level) and int(level) < _BODY_TEXT


def _grid(table: Any) -> Iterator[list[Cell]]:
    above: list[Cell] = []
    for row in table.tr_lst:
        cells = [Cell("")] * min(row.grid_before, MOST_SPANNED)
        for cell in row.tc_lst:
            continues = cell.vMerge == "continue" and len(cells) < len(above)
            cells += [above[len(cells)] if continues else Cell(_text(cell))] * min(cell.grid_span, MOST_SPANNED)
        yield cells
        above = cells


def _text(element: Any) -> str:
    """The text of all paragraphs in an element."""
    return "\n".join(paragraph.text for paragraph in element.iter(f"{_WORD}p"))


def _notes(document: "WordDocument") -> Mapping[tuple[str, str | None], str]:
    """The texts of footnotes and endnotes, by the tag of their marks and their id."""
    from docx.oxml import parse_xml

    found = {}
    for part in document.part.package.iter_parts():
        kind = part.partname.rpartition("/")[2].removesuffix("s.xml")
        if kind in {"footnote", "endnote"}:
            for note in parse_xml(part.blob).iterfind(f"{_WORD}{kind}"):
                found[f"{_WORD}{kind}Reference", note.get(f"{_WORD}id")] = " ".join(_text(note).split())
    return found


class _Numbering:
    """The numbers of list paragraphs, counted as Word does; bullets have none."""

    def __init__(self, document: "WordDocument", styles: Mapping[str | None, Any]) -> None:
        self._counts: Counter[tuple[str, int]] = Counter()
        self._styles = styles
        self._levels: dict[tuple[str, int], Any] = {}
        self._starts: dict[tuple[str, int], int] = {}
        try:
            root = document.part.numbering_part.element
        except (KeyError, NotImplementedError):  # python-docx cannot make a part that is missing
            return
        abstract = {one.get(f"{_WORD}abstractNumId"): one for one in root.iterfind(f"{_WORD}abstractNum")}
        for number in root.iterfind(f"{_WORD}num"):
            levels = abstract.get(_value(number, "abstractNumId"))
            for level in () if levels is None else levels.iterfind(f"{_WORD}lvl"):
                self._levels[number.get(f"{_WORD}numId"), int(level.get(f"{_WORD}ilvl"))] = level
            for override in number.iterfind(f"{_WORD}lvlOverride"):
                if start := _value(override, "startOverride"):
                    self._starts[number.get(f"{_WORD}numId"), int(override.get(f"{_WORD}ilvl"))] = int(start)

    def of(self, paragraph: Any) -> str:
        """The number of a paragraph with a blank after it; empty if it has none."""
        own = paragraph.find(f"{_WORD}pPr/{_WORD}numPr")
        style = self._styles.get(_value(paragraph, "pPr", "pStyle"))
        stated = style.find(f"{_WORD}pPr/{_WORD}numPr") if own is None and style is not None else own
        if stated is None:
            return ""
        name, depth = _value(stated, "numId"), int(_value(stated, "ilvl") or 0)
        level = self._levels.get((name, depth))
        if level is None or _value(level, "numFmt") in {"bullet", "none"}:
            return ""
        self._counts[name, depth] += 1
        for key in [key for key in self._counts if key[0] == name and key[1] > depth]:
            del self._counts[key]
        return re.sub(r"%(\d)", lambda match: self._shown(name, int(match[1]) - 1), _value(level, "lvlText")) + " "

    def _shown(self, name: str, depth: int) -> str:
        level = self._levels.get((name, depth))
        if level is None:  # a text may name a level that the list does not have
            return ""
        form, start = _value(level, "numFmt"), self._starts.get((name, depth), int(_value(level, "start") or 1))
        count = max(self._counts[name, depth], 1) + start - 1
        shown = str(count)
        if form.endswith("Letter") and 0 < count <= 26:
            shown = chr(ord("a") + count - 1)
        elif form.endswith("Roman") and 0 < count <= len(_ROMAN):
            shown = _ROMAN[count - 1]
        return shown.upper() if form.startswith("upper") else shown


def _value(element: Any, *path: str) -> str:
    """The value of the element at the end of a path; empty if there is none."""
    found = element.find("/".join(f"{_WORD}{name}" for name in path))
    return "" if found is None else found.get(f"{_WORD}val") or ""


# -- workbooks


def _workbook(file: File, _: zipfile.ZipFile) -> Document:
    """One section per sheet; a formula without a stored value stands as it is written."""
    from openpyxl import load_workbook

    formulas = {
        (sheet.title, place): str(getattr(cell.value, "text", cell.value))  # or an array's
        for sheet in load_workbook(io.BytesIO(file.content)).worksheets
        for place, cell in sheet._cells.items()
        if cell.data_type == "f"
    }
    book = load_workbook(io.BytesIO(file.content), data_only=True)
    blocks: list[Block] = []
    for sheet in book.worksheets:
        # `iter_rows` would make every empty cell up to the last, which may be formatted far below the others
        shown = {place: _shown(cell) or formulas.get((sheet.title, place), "") for place, cell in sheet._cells.items()}
        filled = {place: Cell(text) for place, text in shown.items() if text.strip()}
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
    return _document(file, "xlsx", book.properties.title or file.stem, blocks)


def _shown(cell: Any) -> str:
    """A cell's value as a person reads it: dates without a time, shares in percent, whole numbers without a point."""
    value = cell.value
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) or type(value) is int:
        if "%" in (cell.number_format or ""):
            return f"{value * 100:.15g}%"
        return str(int(value)) if float(value).is_integer() else f"{value:.15g}"
    return "" if value is None else str(value)


# -- presentations


def _presentation(file: File, _: zipfile.ZipFile) -> Document:
    """One page per slide: its title, text and tables in slide order, then its notes."""
    from pptx import Presentation

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


def _opendocument(file: File, archive: zipfile.ZipFile) -> Document:
    """Its elements as those of HTML."""
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
    """A part as XML without entities of its own. Raises `Refused`, and `KeyError` if it is missing."""
    from bs4 import BeautifulSoup

    content = archive.read(name)
    if b"<!ENTITY" in content:
        raise Refused("unreadable", f"its part {name!r} declares entities")
    return BeautifulSoup(content, "xml")


# -- books

_CONTAINER = "META-INF/container.xml"


def _book(file: File, archive: zipfile.ZipFile) -> Document:
    """The chapters in reading order."""
    names = archive.namelist()
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


_READERS: Mapping[str, Callable[[File, zipfile.ZipFile], Document]] = {
    "word/document.xml": _word,
    "xl/workbook.xml": _workbook,
    "ppt/presentation.xml": _presentation,
    "application/vnd.oasis.opendocument.text": _opendocument,
    "application/epub+zip": _book,
    _CONTAINER: _book,
}
"""The readers by a part of the archive, or by how the type that it states begins."""
PARSER = Parser(
    kind="office",
    suffixes=(".docx", ".xlsx", ".xlsm", ".pptx", ".odt", ".epub", ".rtf"),
    priority=1,
    recognises=_recognises,
    parse=_parse,
)
