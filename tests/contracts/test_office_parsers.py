"""The structure that parsers find in office formats and PDFs: sections, pages, tables, running heads."""

from collections.abc import Sequence
from datetime import datetime

import pytest

from meta_agent_rag.ingestion.document import Document, Refused
from meta_agent_rag.ingestion.parsers import File, read_document
from tests.files import archive, book, opendocument, pdf, slides, workbook

OUTPUT = [["Plant", "2021", "2022"], ["Harbour Works", "410", "455"], ["Quay", "", "12"]]
ROWS = "Plant | 2021 | 2022\nHarbour Works | 410 | 455\nQuay |  | 12"


def read(name: str, content: bytes) -> Document:
    return read_document(File(name=name, content=content))


def blocks(document: Document) -> list[tuple[str, str | None, int | None]]:
    return [(block.text, block.section, block.page) for block in document.blocks]


def refusal(name: str, content: bytes) -> tuple[str, str]:
    with pytest.raises(Refused) as raised:
        read(name, content)
    return raised.value.kind, raised.value.reason


# -- PDF


def test_a_ruled_pdf_table_keeps_its_rows_and_position() -> None:
    document = read("a.pdf", pdf([["The annual report.", "Output of the plants:"]], tables={0: OUTPUT}))
    assert [block.text for block in document.blocks] == [
        "The annual report. Output of the plants:",
        ROWS,
        "Below the table.",
    ]
    assert {block.page for block in document.blocks} == {1}


def test_running_heads_and_page_numbers_are_removed_from_a_pdf() -> None:
    towns = ["Alby", "Bergen", "Celle", "Dover", "Ennis", "Fano"]
    pages = [
        ["The Harbour Board", f"{number} of 6", f"{town} was enlarged in {1900 + 7 * number}.", f"- {number} -"]
        for number, town in enumerate(towns, start=1)
    ]
    document = read("a.pdf", pdf(pages))
    assert [(block.text, block.page) for block in document.blocks] == [
        (f"{town} was enlarged in {1900 + 7 * number}.", number) for number, town in enumerate(towns, start=1)
    ]


@pytest.mark.parametrize(
    "pages",
    [
        [["Roll on, sea!", "A.", "B.", "C.", "D."], ["Roll on, sea!", "E.", "F.", "G.", "H."]],
        [["The same words."], ["The same words."], ["The same words."]],
        [["In 1901 it grew.", "A."], ["In 1907 it grew.", "B."], ["In 1908 it grew.", "C."]],
        [["Preface", "A."], ["Preface", "B."]],
    ],
    ids=["refrain", "nothing else is there", "numbers that do not grow with the pages", "two pages"],
)
def test_lines_that_are_not_running_heads_are_kept(pages: list[list[str]]) -> None:
    document = read("a.pdf", pdf(pages))
    assert all(line in document.text for page in pages for line in page)


# -- office formats


def test_a_workbook_has_sheets_as_sections_and_separate_tables() -> None:
    sheet: list[Sequence[object]] = [
        *OUTPUT,
        [],
        ["Name", "Born"],
        ["Mira Holt", datetime(1912, 3, 4)],
        ["Ola", 1_900.0],
        ["Per", 2.5],
    ]
    document = read("plants.xlsx", workbook({"Output": sheet, "Empty": [], "Notes": [["One line."]]}))
    assert document.title == "plants"
    assert blocks(document) == [
        (ROWS, "Output", None),
        ("Name | Born\nMira Holt | 1912-03-04\nOla | 1900\nPer | 2.5", "Output", None),
        ("One line.", "Notes", None),
    ]


def test_a_presentation_has_one_page_per_slide() -> None:
    document = read(
        "a.pptx", slides(("Rivers", "Ten countries."), ("Plants", "Output:"), table=OUTPUT, notes="Say why.")
    )
    assert (document.title, document.pages) == ("Rivers", 2)
    assert blocks(document) == [
        ("Rivers", "Rivers", 1),
        ("Ten countries.", "Rivers", 1),
        ("Plants", "Plants", 2),
        ("Output:", "Plants", 2),
        (ROWS, "Plants", 2),
        ("Say why.", "Plants", 2),
    ]


def test_an_opendocument_has_headings_lists_and_tables() -> None:
    body = (
        '<text:h text:outline-level="1">Rivers</text:h><text:p>The<text:s/>Danube.<text:line-break/>Long.</text:p>'
        "<text:list><text:list-item><text:p>One</text:p></text:list-item></text:list>"
        "<table:table>"
        "<table:table-row><table:table-cell><text:p>Plant</text:p></table:table-cell>"
        '<table:table-cell table:number-columns-repeated="2"><text:p>t</text:p></table:table-cell></table:table-row>'
        '<table:table-row table:number-rows-repeated="1048576"><table:table-cell/></table:table-row>'
        "</table:table>"
    )
    document = read("a.odt", opendocument(body, title="The &amp; Book"))
    assert document.title == "The & Book"
    assert blocks(document) == [
        ("Rivers", "Rivers", None),
        ("The Danube. Long.", "Rivers", None),
        ("One", "Rivers", None),
        ("Plant | t | t", "Rivers", None),
    ]


def test_rich_text_keeps_paragraphs_and_tables_and_decodes_its_code_page() -> None:
    source = (
        rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0 Arial;}}\f0 \'cf\'f0\'e8\'e2\'e5\'f2\par The Danube.\par"
        rb"\trowd\cellx1000\cellx2000 Plant\cell t\cell\row"
        rb"\trowd\cellx1000\cellx2000 Quay\cell 12\cell\row\pard End.\par}"
    )
    document = read("a.rtf", source)
    assert [block.text for block in document.blocks] == ["Привет", "The Danube.", "Plant | t\nQuay | 12", "End."]


def test_an_epub_is_read_in_spine_order() -> None:
    chapters = {"b": "<h1>Sources</h1><p>Black Forest.</p>", "a": "<p>Goes on.</p><h1>Mouth</h1><p>Black Sea.</p>"}
    document = read("a.epub", book(chapters, title="The Danube"))
    assert document.title == "The Danube"
    assert blocks(document) == [
        ("Sources", "Sources", None),
        ("Black Forest.", "Sources", None),
        ("Goes on.", "Sources", None),
        ("Mouth", "Mouth", None),
        ("Black Sea.", "Mouth", None),
    ]


@pytest.mark.parametrize(
    ("name", "content", "kind", "reason"),
    [
        ("a.epub", book({}), "no_text", "it contains no text"),
        ("a.epub", archive({"META-INF/container.xml": b"<no>"}), "unreadable", "not a valid book"),
        ("a.ods", archive({"mimetype": b"application/vnd.oasis.opendocument.spreadsheet"}), "type", "save it as PDF"),
        ("a.xlsx", archive({"xl/workbook.xml": b"\0" * 300_000_000}), "limit", "unpacks to more than 256 MB"),
        ("a.odt", opendocument("<text:p>" + " " * 9 + "</text:p>"), "no_text", "it contains no text"),
    ],
)  # fmt: skip
def test_unreadable_files_are_rejected_with_a_remedy(name: str, content: bytes, kind: str, reason: str) -> None:
    found = refusal(name, content)
    assert found[0] == kind
    assert reason in found[1]


def test_epub_entities_are_not_expanded() -> None:
    entities = b'<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">'
    bomb = b"<!DOCTYPE p [" + entities + b"]><package><metadata><title>&b;</title></metadata></package>"
    assert refusal("a.epub", book({"one": "x"}, extra={"text/book.opf": bomb}))[0] in {"no_text", "unreadable"}
