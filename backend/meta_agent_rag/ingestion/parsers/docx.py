"""Word documents (.docx), with python-docx; the archive is checked before it is opened."""

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..archives import SIGNATURES, opened
from ..document import Block, Document, Refused
from ..tables import MOST_SPANNED, Cell, grid_rows, table_blocks
from ..text import fault_of, one_line
from . import File, Parser

if TYPE_CHECKING:
    from docx.document import Document as WordDocument

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_DEFAULT_TITLE = "Word Document"
"""python-docx's title for a file without one."""
_HEADING = re.compile(r"(?:heading|title)\b", re.I)
_WRAPPERS = [f"{_WORD}{name}" for name in ("sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag", "fldSimple")]
_UNREAD = [f"{_WORD}sdtPr", f"{_WORD}sdtEndPr", f"{_WORD}del", f"{_WORD}moveFrom", _FALLBACK]
_ROMAN = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


def _recognises(file: File) -> bool:
    """Accepts any zip or OLE file that no other parser recognised; its real kind is determined when it is opened."""
    return file.content.startswith((*SIGNATURES, _OLE))


def _parse(file: File) -> Document:
    if file.content.startswith(_OLE):
        if _ENCRYPTED in file.content:
            raise Refused("encrypted", "it is protected by a password; save it without one")
        raise Refused("type", "it is an old Office file; save it as .docx, .xlsx or .pptx")
    names = opened(file).namelist()
    if not {"[Content_Types].xml", "word/document.xml"}.issubset(names):
        raise Refused("type", "it is a zip archive, but not a supported document; save it as PDF or .docx")
    document = _opened(file)
    blocks = tuple(_blocks(document))
    stated = one_line(document.core_properties.title or "").replace(_DEFAULT_TITLE, "")
    headings = (block.text for block in blocks if block.section == block.text)
    return Document(title=stated or next(headings, "") or file.stem, kind="docx", blocks=blocks)


def _opened(file: File) -> "WordDocument":
    """The document, without content controls, marks of changes and a second rendering for older programs."""
    import docx
    from lxml import etree

    try:
        document = docx.Document(io.BytesIO(file.content))
        etree.strip_elements(document.element.body, *_UNREAD, with_tail=False)
        etree.strip_tags(document.element.body, *_WRAPPERS)
    except (KeyError, ValueError, etree.XMLSyntaxError, AttributeError) as error:
        raise Refused("unreadable", f"it is not a valid Word document ({fault_of(error)})") from error
    return document


def _blocks(document: "WordDocument") -> Iterator[Block]:
    """Paragraphs and tables in text order. Works on the XML, because python-docx's objects take 1 GB."""
    headings = {
        style.get(f"{_WORD}styleId")
        for style in document.styles.element.iterfind(f"{_WORD}style")
        if _HEADING.match(_value(style, "name")) or style.find(f"{_WORD}pPr/{_WORD}outlineLvl") is not None
    }
    numbering, notes = _Numbering(document), _notes(document)
    section: str | None = None
    for element in document.element.body.iterchildren(f"{_WORD}p", f"{_WORD}tbl"):
        if element.tag == f"{_WORD}tbl":
            yield from (Block(text=text, section=section) for text in table_blocks(grid_rows(_grid(element))))
        elif text := _text(element).strip():
            text = numbering.of(element) + text
            level = element.find(f"{_WORD}pPr/{_WORD}outlineLvl")
            if level is not None or _value(element, "pPr", "pStyle") in headings:
                text = section = " ".join(text.split())
            marks = element.iter(f"{_WORD}footnoteReference", f"{_WORD}endnoteReference")
            told = [note for mark in marks if (note := notes.get((mark.tag, mark.get(f"{_WORD}id"))))]
            yield Block(text=" ".join([text, *(f"(Note: {note})" for note in told)]), section=section)


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

    def __init__(self, document: "WordDocument") -> None:
        self._counts: Counter[tuple[str, int]] = Counter()
        self._levels: dict[tuple[str, int], tuple[str, str, int]] = {}
        self._styles = {
            style.get(f"{_WORD}styleId"): style.find(f"{_WORD}pPr/{_WORD}numPr")
            for style in document.styles.element.iterfind(f"{_WORD}style")
        }
        try:
            root = document.part.numbering_part.element
        except (KeyError, NotImplementedError):  # python-docx cannot make a part that is missing
            return
        abstract = {one.get(f"{_WORD}abstractNumId"): one for one in root.iterfind(f"{_WORD}abstractNum")}
        for number in root.iterfind(f"{_WORD}num"):
            for level in abstract.get(_value(number, "abstractNumId"), ()):
                if level.tag == f"{_WORD}lvl":
                    key = number.get(f"{_WORD}numId") or "", _number(level.get(f"{_WORD}ilvl"))
                    start = _number(_value(level, "start") or "1")
                    self._levels[key] = _value(level, "numFmt"), _value(level, "lvlText"), start

    def of(self, paragraph: Any) -> str:
        """The number of a paragraph with a blank after it; empty if it has none."""
        own = paragraph.find(f"{_WORD}pPr/{_WORD}numPr")
        stated = own if own is not None else self._styles.get(_value(paragraph, "pPr", "pStyle"))
        if stated is None:
            return ""
        name, depth = _value(stated, "numId"), _number(_value(stated, "ilvl"))
        form, text, _ = self._levels.get((name, depth), ("none", "", 0))
        if form in {"bullet", "none"}:
            return ""
        self._counts[name, depth] += 1
        for key in [key for key in self._counts if key[0] == name and key[1] > depth]:
            del self._counts[key]
        return re.sub(r"%(\d)", lambda match: self._shown(name, int(match[1]) - 1), text) + " "

    def _shown(self, name: str, depth: int) -> str:
        form, _, start = self._levels.get((name, depth), ("decimal", "", 1))
        count = max(self._counts[name, depth], 1) + start - 1
        shown = str(count)
        if form.endswith("Letter") and 0 < count <= 26:
            shown = chr(ord("a") + count - 1)
        elif form.endswith("Roman") and 0 < count < 40:
            shown = ""
            for value, sign in _ROMAN:
                shown += sign * (count // value)
                count %= value
        return shown.upper() if form.startswith("upper") else shown


def _value(element: Any, *path: str) -> str:
    """The value of the element at the end of a path; empty if there is none."""
    found = element.find("/".join(f"{_WORD}{name}" for name in path))
    return "" if found is None else found.get(f"{_WORD}val") or ""


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else 0


PARSER = Parser(kind="docx", suffixes=(".docx",), priority=1, recognises=_recognises, parse=_parse)
