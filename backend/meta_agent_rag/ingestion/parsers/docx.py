"""Word documents (.docx), with python-docx; the archive is checked before it is opened."""

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..archives import SIGNATURES, contents, opened
from ..document import Block, Document, Refused
from ..tables import Cell, grid_rows, table_blocks
from ..text import fault_of, one_line
from . import File, Parser

if TYPE_CHECKING:
    from docx.document import Document as WordDocument

_SUFFIXES = (".docx",)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_DEFAULT_TITLE = "Word Document"
"""python-docx's default title for a file without one."""
_HEADING = re.compile(r"(?:heading|title)\b", re.I)
_CONTAINERS = {f"{_WORD}{name}" for name in ("sdt", "sdtContent", "customXml", "ins", "smartTag")}
_MOST_INDENT = 100
"""The most columns that a row leaves out at its beginning."""
_MOST_DIGITS = 6
_BREAKS = {f"{_WORD}tab": " ", f"{_WORD}br": "\n", f"{_WORD}cr": "\n", f"{_WORD}noBreakHyphen": "-"}


def _recognises(file: File) -> bool:
    """Accepts any zip or OLE file that no other parser recognised; its real kind is determined when it is opened."""
    return file.content.startswith((*SIGNATURES, _OLE))


def _parse(file: File) -> Document:
    if file.content.startswith(_OLE):
        if _ENCRYPTED in file.content:
            raise Refused("encrypted", "it is protected by a password; save it without one")
        raise Refused("type", "it is an old Office file; save it as .docx, .xlsx or .pptx")
    with opened(file):
        names, _ = contents(file)
    if not {"[Content_Types].xml", "word/document.xml"} <= names:
        raise Refused("type", "it is a zip archive, but not a supported document; save it as PDF or .docx")
    document = _opened(file)
    blocks = tuple(_blocks(document))
    stated = one_line(document.core_properties.title or "")
    stated = "" if stated == _DEFAULT_TITLE else stated
    headings = (block.text for block in blocks if block.section == block.text)
    return Document(title=stated or next(headings, "") or file.stem, kind="docx", blocks=blocks)


def _opened(file: File) -> "WordDocument":
    import docx
    from lxml.etree import XMLSyntaxError

    try:
        return docx.Document(io.BytesIO(file.content))
    except (KeyError, ValueError, XMLSyntaxError, AttributeError) as error:
        raise Refused("unreadable", f"it is not a valid Word document ({fault_of(error)})") from error


def _blocks(document: "WordDocument") -> Iterator[Block]:
    """Paragraphs and tables in text order. Works on the XML, because python-docx's objects take 1 GB."""
    headings = _heading_styles(document)
    numbering, notes = _Numbering(document), _notes(document)
    section: str | None = None
    for element in _inside(document.element.body, "p", "tbl"):
        if element.tag == f"{_WORD}tbl":
            yield from (Block(text=text, section=section) for text in table_blocks(grid_rows(_rows(element))))
            continue
        text = _text(element).strip()
        number = numbering.of(element) if text else ""
        if text and _is_heading(element, headings):
            section = " ".join(f"{number}{text}".split())
            yield Block(text=section, section=section)
        elif text:
            marks = element.iter(f"{_WORD}footnoteReference", f"{_WORD}endnoteReference")
            told = [note for mark in marks if (note := notes.get((mark.tag, mark.get(f"{_WORD}id") or "")))]
            yield Block(text=" ".join([f"{number}{text}", *(f"(Note: {note})" for note in told)]), section=section)


def _notes(document: "WordDocument") -> Mapping[tuple[str, str], str]:
    """The texts of footnotes and endnotes, by the tag of their marks and their id."""
    from lxml import etree

    found = {}
    for part in document.part.package.iter_parts():
        kind = part.partname.rpartition("/")[2].removesuffix("s.xml")
        if kind in {"footnote", "endnote"}:
            root = etree.fromstring(part.blob, etree.XMLParser(resolve_entities=False, no_network=True))
            for note in root.iterfind(f"{_WORD}{kind}"):
                if text := " ".join(_text(note).split()):
                    found[f"{_WORD}{kind}Reference", note.get(f"{_WORD}id") or ""] = text
    return found


class _Numbering:
    """The numbers of list paragraphs, counted as Word does; bullets have none."""

    def __init__(self, document: "WordDocument") -> None:
        self._counts: dict[tuple[str, int], int] = {}
        self._levels: dict[tuple[str, int], tuple[str, str, int]] = {}
        self._styles: dict[str, Any] = {
            style.get(f"{_WORD}styleId"): style.find(f"{_WORD}pPr/{_WORD}numPr")
            for style in document.styles.element.iterfind(f"{_WORD}style")
        }
        try:
            root = document.part.numbering_part.element
        except (KeyError, NotImplementedError):  # python-docx cannot make a part that is missing
            return
        abstract = {one.get(f"{_WORD}abstractNumId"): one for one in root.iterfind(f"{_WORD}abstractNum")}
        for number in root.iterfind(f"{_WORD}num"):
            kind = abstract.get(_value(number, "abstractNumId"))
            for level in kind.iterfind(f"{_WORD}lvl") if kind is not None else ():
                key = number.get(f"{_WORD}numId") or "", int(level.get(f"{_WORD}ilvl") or 0)
                start = _number(level, "start", default=1)
                self._levels[key] = _value(level, "numFmt"), _value(level, "lvlText"), start

    def of(self, paragraph: Any) -> str:
        """The number of a paragraph with a blank after it; empty if it has none."""
        style = self._styles.get(_value(paragraph, "pPr", "pStyle"))
        own = paragraph.find(f"{_WORD}pPr/{_WORD}numPr")
        stated = own if own is not None else style
        if stated is None:
            return ""
        name, depth = _value(stated, "numId"), _number(stated, "ilvl", default=0)
        form, text, start = self._levels.get((name, depth), ("", "", 1))
        if form in {"", "bullet", "none"}:
            return ""
        self._counts[name, depth] = self._counts.get((name, depth), start - 1) + 1
        for key in [key for key in self._counts if key[0] == name and key[1] > depth]:
            del self._counts[key]
        return re.sub(r"%(\d)", lambda match: self._shown(name, int(match[1]) - 1), text) + " "

    def _shown(self, name: str, depth: int) -> str:
        form, _, start = self._levels.get((name, depth), ("decimal", "", 1))
        count = self._counts.get((name, depth), start)
        if form in {"lowerLetter", "upperLetter"}:
            letter = chr(ord("a") + (count - 1) % 26) * ((count - 1) // 26 + 1)
            return letter.upper() if form == "upperLetter" else letter
        return _roman(count, upper=form == "upperRoman") if form.endswith("Roman") else str(count)


def _roman(number: int, *, upper: bool) -> str:
    signs = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"))
    text = ""
    for value, sign in (*signs, (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")):
        text += sign * (number // value)
        number %= value
    return text.upper() if upper else text


def _value(element: Any, *path: str) -> str:
    """The value of the element at the end of a path; empty if there is none."""
    found = element.find("/".join(f"{_WORD}{name}" for name in path))
    return "" if found is None else found.get(f"{_WORD}val") or ""


def _rows(table: Any) -> list[list[Cell]]:
    """The cells of each row; one that continues the cell above is counted among the rows that this one spans."""
    rows: list[list[Cell]] = []
    owners: dict[int, tuple[list[Cell], int]] = {}  # the last cell of each column: its row, and its place there
    for row in _inside(table, "tr"):
        indent = _number(row, "trPr", "gridBefore", default=0)
        cells = [Cell("") for _ in range(min(indent, _MOST_INDENT))]
        column = len(cells)
        for element in _inside(row, "tc"):
            across = _number(element, "tcPr", "gridSpan", default=1)
            merge = element.find(f"{_WORD}tcPr/{_WORD}vMerge")
            if merge is not None and merge.get(f"{_WORD}val") != "restart" and column in owners:
                owner, place = owners[column]
                owner[place] = replace(owner[place], down=owner[place].down + 1)
            else:
                owners[column] = (cells, len(cells))
                cells.append(Cell(_text(element), across))
            column += across
        rows.append(cells)
    return rows


def _number(element: Any, *path: str, default: int) -> int:
    stated = _value(element, *path)
    return int(stated) if stated.isascii() and stated.isdigit() and len(stated) < _MOST_DIGITS else default


def _inside(parent: Any, *names: str) -> Iterator[Any]:
    """The elements with these names directly inside another, or inside content controls and similar wrappers."""
    wanted = {f"{_WORD}{name}" for name in names}
    waiting = list(reversed(parent))
    while waiting:
        element = waiting.pop()
        if element.tag in wanted:
            yield element
        elif element.tag in _CONTAINERS:
            waiting.extend(reversed(element))


def _text(element: Any) -> str:
    """The text of an element, without the second rendering for older programs."""
    parts: list[str] = []
    waiting = [element]
    while waiting:
        node = waiting.pop()
        if node.tag == f"{_WORD}t":
            parts.append(node.text or "")
        elif node.tag in _BREAKS:
            parts.append(_BREAKS[node.tag])
        elif node.tag != _FALLBACK:
            if node.tag == f"{_WORD}p" and parts:
                parts.append("\n")
            waiting.extend(reversed(node))
    return "".join(parts)


def _heading_styles(document: "WordDocument") -> set[str]:
    """Ids of heading styles, identified by their (untranslated) name or level."""
    found = set()
    for style in document.styles.element.iterfind(f"{_WORD}style"):
        name = style.find(f"{_WORD}name")
        named = name is not None and _HEADING.match(name.get(f"{_WORD}val") or "")
        if named or style.find(f"{_WORD}pPr/{_WORD}outlineLvl") is not None:
            found.add(style.get(f"{_WORD}styleId"))
    return found


def _is_heading(paragraph: Any, styles: set[str]) -> bool:
    style = paragraph.find(f"{_WORD}pPr/{_WORD}pStyle")
    level = paragraph.find(f"{_WORD}pPr/{_WORD}outlineLvl")
    return (style is not None and style.get(f"{_WORD}val") in styles) or level is not None


PARSER = Parser(kind="docx", suffixes=_SUFFIXES, priority=1, recognises=_recognises, parse=_parse)
