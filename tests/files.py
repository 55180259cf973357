"""Makes files of every format, good and bad; shared by the tests of ingestion."""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence

import docx
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
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def pdf(
    pages: Sequence[Sequence[str]],
    *,
    title: str | None = None,
    outline: Mapping[str, int] | None = None,
    password: str | None = None,
) -> bytes:
    """A PDF with these lines on each page; `outline` maps headings to pages from 0."""
    writer = PdfWriter()
    font = DictionaryObject({
        NameObject("/Type"): NameObject("/Font"),
        NameObject("/Subtype"): NameObject("/Type1"),
        NameObject("/BaseFont"): NameObject("/Helvetica"),
    })  # fmt: skip
    for lines in pages:
        page = writer.add_blank_page(width=600, height=800)
        shown = "".join(f"({line}) Tj 0 -14 Td " for line in lines)
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 40 760 Td {shown}ET".encode("latin-1"))
        page[NameObject("/Contents")] = content
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


def word_archive(body: str, *, prologue: str = "", extra: Mapping[str, bytes] | None = None) -> bytes:
    """A Word document of raw XML, as an attacker would write it."""
    markup = f'<?xml version="1.0"?>{prologue}<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
    return archive({
        "[Content_Types].xml": _CONTENT_TYPES.encode(),
        "_rels/.rels": _RELATIONSHIPS.encode(),
        "word/document.xml": markup.encode(),
        **(extra or {}),
    })  # fmt: skip


def archive(parts: Mapping[str, bytes]) -> bytes:
    """A zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return stream.getvalue()


def rows(*items: Mapping[str, object]) -> bytes:
    """JSON lines."""
    return "".join(json.dumps(item) + "\n" for item in items).encode()
