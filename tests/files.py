"""Make valid and invalid files of every format; shared by the tests of ingestion."""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence

import docx
import openpyxl
import pptx
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

_CONTENT_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONSHIPS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Target="word/document.xml" Type='
    '"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>'
)
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def pdf(
    pages: Sequence[Sequence[str]],
    *,
    title: str | None = None,
    outline: Mapping[str, int] | None = None,
    password: str | None = None,
    tables: Mapping[int, Sequence[Sequence[str]]] | None = None,
) -> bytes:
    """A PDF with these lines on each page; `outline` maps headings to 0-based pages, `tables` pages to tables."""
    writer = PdfWriter()
    font = DictionaryObject({
        NameObject("/Type"): NameObject("/Font"),
        NameObject("/Subtype"): NameObject("/Type1"),
        NameObject("/BaseFont"): NameObject("/Helvetica"),
    })  # fmt: skip
    for number, lines in enumerate(pages):
        page = writer.add_blank_page(width=600, height=800)
        shown = "/F1 12 Tf " + "".join(f"({line}) Tj 0 -14 Td " for line in lines)
        content = DecodedStreamObject()
        drawn = _table((tables or {}).get(number, ()))
        content.set_data(f"BT 40 760 Td {shown}ET {drawn}".encode("latin-1"))
        page[NameObject("/Contents")] = writer._add_object(content)  # a stream must be a separate object
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
    if title is not None:
        writer.add_metadata({"/Title": title})
    for heading, page_number in (outline or {}).items():
        writer.add_outline_item(title=heading, page_number=page_number)
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def _table(rows: Sequence[Sequence[str]], top: int = 600) -> str:
    """Operators that draw a table with cells 120 wide and 20 high, and a line of text below."""
    if not rows:
        return ""
    cells = [
        f"{40 + 120 * column} {top - 20 * (row + 1)} 120 20 re S "
        f"BT /F1 10 Tf {44 + 120 * column} {top - 14 - 20 * row} Td ({text}) Tj ET "
        for row, texts in enumerate(rows)
        for column, text in enumerate(texts)
    ]
    return "".join([*cells, f"BT /F1 12 Tf 40 {top - 20 * len(rows) - 30} Td (Below the table.) Tj ET"])


def word(*, title: str = "") -> bytes:
    """A Word document with a heading, a paragraph and a table."""
    document = docx.Document()
    document.core_properties.title = title
    document.add_paragraph("Words before any heading.")
    document.add_heading("Rivers", level=1)
    document.add_paragraph("The Danube flows through ten countries.")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(table._cells, ("river", "km", "Danube", "2850"), strict=True):
        cell.text = text
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def word_archive(
    body: str,
    *,
    prologue: str = "",
    extra: Mapping[str, bytes] | None = None,
    parts: Mapping[str, tuple[str, str, str]] | None = None,
) -> bytes:
    """A Word document from raw XML, as an attacker might write it; `parts` are (XML, content type, relationship)."""
    types = "".join(
        f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, (_, kind, _) in (parts or {}).items()
    )
    links = "".join(
        f'<Relationship Id="n{place}" Target="{name.removeprefix("word/")}" Type="{relation}"/>'
        for place, (name, (_, _, relation)) in enumerate((parts or {}).items())
    )
    linked = f'<?xml version="1.0"?><Relationships xmlns="{_RELATIONS}">{links}</Relationships>'
    written = {name: text.encode() for name, (text, _, _) in (parts or {}).items()}
    if links:
        written["word/_rels/document.xml.rels"] = linked.encode()
    markup = f'<?xml version="1.0"?>{prologue}<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
    return archive({
        "[Content_Types].xml": _CONTENT_TYPES.replace("</Types>", f"{types}</Types>").encode(),
        "_rels/.rels": _RELATIONSHIPS.encode(),
        "word/document.xml": markup.encode(),
        **written,
        **(extra or {}),
    })  # fmt: skip


def archive(parts: Mapping[str, bytes]) -> bytes:
    """A zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return stream.getvalue()


def workbook(sheets: Mapping[str, Sequence[Sequence[object]]]) -> bytes:
    """An Excel workbook."""
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, lines in sheets.items():
        sheet = book.create_sheet(name)
        for line in lines:
            sheet.append(list(line))
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def slides(*texts: tuple[str, str], table: Sequence[Sequence[str]] = (), notes: str = "") -> bytes:
    """A presentation: a title and text for each slide, and a table and notes on the last."""
    shown = pptx.Presentation()
    for title, text in texts:
        slide = shown.slides.add_slide(shown.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    if table:
        size = pptx.util.Inches(1)
        frame = slide.shapes.add_table(len(table), len(table[0]), size, size, size, size)
        for row, cells in enumerate(table):
            for column, cell in enumerate(cells):
                frame.table.cell(row, column).text = cell
    if notes:
        slide.notes_slide.notes_text_frame.text = notes
    stream = io.BytesIO()
    shown.save(stream)
    return stream.getvalue()


def opendocument(body: str, *, title: str = "") -> bytes:
    """An OpenDocument text whose body is this raw XML."""
    kind = "application/vnd.oasis.opendocument.text"
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "text", "table", "meta")
    )
    meta = f'<office:meta xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></office:meta>'
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
        '<manifest:file-entry manifest:full-path="meta.xml" manifest:media-type="text/xml"/></manifest:manifest>'
    )
    text = f"<office:body><office:text>{body}</office:text></office:body>"
    content = f"<office:document-content {spaces}>{text}</office:document-content>"
    return archive({
        "mimetype": kind.encode(),
        "META-INF/manifest.xml": manifest.encode(),
        "content.xml": content.encode(),
        "meta.xml": f"<office:document-meta {spaces}>{meta}</office:document-meta>".encode(),
    })  # fmt: skip


def book(chapters: Mapping[str, str], *, title: str = "Rivers", extra: Mapping[str, bytes] | None = None) -> bytes:
    """An EPUB whose spine lists the chapters in order and whose manifest lists them in reverse."""
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="text/book.opf"/></rootfiles></container>'
    )
    items = "".join(
        f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"/>'
        for name in reversed(list(chapters))
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata><dc:title xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"{title}</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    return archive({
        "mimetype": b"application/epub+zip",
        "META-INF/container.xml": container.encode(),
        "text/book.opf": package.encode(),
        **{f"text/{name}.xhtml": f"<html><body>{body}</body></html>".encode() for name, body in chapters.items()},
        **(extra or {}),
    })  # fmt: skip


def rows(*items: Mapping[str, object]) -> bytes:
    """JSON lines."""
    return "".join(json.dumps(item) + "\n" for item in items).encode()


OFFICE = {
    "xlsx": ("a.xlsx", workbook({"Rivers": [["River", "Note"], ["Danube", "It flows through ten countries."]]})),
    "pptx": ("a.pptx", slides(("Rivers", "The Danube flows through ten countries."))),
    "odt": ("a.odt", opendocument("<text:p>The Danube flows through ten countries.</text:p>")),
    "epub": ("a.epub", book({"one": "<p>The Danube flows through ten countries.</p>"})),
    "rtf": ("a.rtf", rb"{\rtf1\ansi\ansicpg1252 The Danube flows through ten countries.\par}"),
}
"""A valid file of each office format, by parser kind."""
