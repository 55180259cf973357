"""Tables of all formats: merged cells, titles, repeated headers, and passages of whole rows."""

import io

import docx
import openpyxl
import pptx
import pytest
from openpyxl.worksheet.formula import ArrayFormula

from meta_agent_rag.ingestion.chunking import Chunking, cut
from meta_agent_rag.ingestion.parsers import File, read_document
from meta_agent_rag.ingestion.parsers.pdf import divided
from meta_agent_rag.ingestion.tables import Cell, grid_rows, spread, table_blocks
from tests.files import opendocument, pdf, workbook

SALES = [["Town", "Sales", ""], ["", "2020", "2021"], ["Aber", "5", "6"], ["Brun", "7", "8"], ["", "9", "10"]]
MERGED = ((0, 0, 1, 0), (0, 1, 0, 2), (3, 0, 4, 0))
"""First row and column, last row and column."""
SPREAD = "Town | Sales 2020 | Sales 2021\nAber | 5 | 6\nBrun | 7 | 8\nBrun | 9 | 10"
HTML = """<table><caption>Boats</caption><tr><th rowspan=2>Town<th colspan=2>Sales<tr><th>2020<th>2021
<tr><td>Aber<td>5<td>6<tr><td rowspan=2>Brun<td>7<td>8<tr><td>9<td>10</table>"""
PLANTS = [["Plant", "Colour", "Boats"], *([f"P{n}", f"colour{n}", str(100 + n)] for n in range(70))]


def texts(name: str, content: bytes) -> list[str]:
    return [block.text for block in read_document(File(name=name, content=content)).blocks]


def word() -> bytes:
    document, stream = docx.Document(), io.BytesIO()
    table = document.add_table(rows=5, cols=3)
    for row, cells in enumerate(SALES):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    for top, left, bottom, right in MERGED:
        merged = table.cell(top, left).merge(table.cell(bottom, right))
        merged.text = SALES[top][left]
    document.save(stream)
    return stream.getvalue()


def presentation() -> bytes:
    shown, stream, size = pptx.Presentation(), io.BytesIO(), pptx.util.Inches(1)
    table = shown.slides.add_slide(shown.slide_layouts[6]).shapes.add_table(5, 3, size, size, size, size).table
    for row, cells in enumerate(SALES):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    for top, left, bottom, right in MERGED:
        table.cell(top, left).merge(table.cell(bottom, right))
    shown.save(stream)
    return stream.getvalue()


def spreadsheet() -> bytes:
    book, stream = openpyxl.Workbook(), io.BytesIO()
    sheet = book.worksheets[0]
    for cells in SALES:
        sheet.append([text or None for text in cells])
    for top, left, bottom, right in MERGED:
        sheet.merge_cells(None, top + 1, left + 1, bottom + 1, right + 1)
    book.save(stream)
    return stream.getvalue()


def open_text() -> bytes:
    spans = {(top, left): (bottom - top + 1, right - left + 1) for top, left, bottom, right in MERGED}
    rows = []
    for row, cells in enumerate(SALES):
        inner = "<table:covered-table-cell/>"
        for column, text in enumerate(cells):
            down, across = spans.get((row, column), (1, 1))
            span = f'table:number-rows-spanned="{down}" table:number-columns-spanned="{across}"'
            inner += f"<table:table-cell {span}><text:p>{text}</text:p></table:table-cell>" if text else ""
        rows.append(f"<table:table-row>{inner}</table:table-row>")
    return opendocument(f"<table:table>{''.join(rows)}</table:table>")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", HTML.encode()), ("a.docx", word()), ("a.pptx", presentation()), ("a.xlsx", spreadsheet()),
        ("a.odt", open_text()),
    ],
)  # fmt: skip
def test_merged_cells_stand_in_every_place_that_they_span(name: str, content: bytes) -> None:
    assert texts(name, content)[-1] == SPREAD


def test_absurd_spans_are_limited() -> None:
    rows = grid_rows(spread([Cell("x", 10**9, 10**9)] for _ in range(900)))
    assert sum(map(len, rows)) < 900 * 2_000
    assert grid_rows(spread([[Cell("a", 10**9, 10**9)], [Cell("b")]]))[1].endswith("a | b")


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("<th colspan=2>Monday<th colspan=2>Tuesday", "<tr><td>Maths<td>Art<td>Music<td>Sport"),
        ("<th>Name<th colspan=2>Address", "<tr><td><td>Main<td>Oslo"),
    ],
)
def test_data_below_merged_cells_is_not_joined_with_them(head: str, body: str) -> None:
    (text,) = texts("a.html", f"<table><tr>{head}{body}<tr><td>Latin<td>Greek<td>Chess</table>".encode())
    header, *others = text.split("\n")
    assert len(others) == 2
    assert not any(name in header for name in ("Maths", "Main"))


def test_the_title_above_a_header_is_repeated_with_it() -> None:
    rows = ["Sales of boats", "Town | Boats", *(f"Town {number} | {number}" for number in range(90))]
    blocks = list(table_blocks(rows))
    assert len(blocks) > 2
    assert all(block.startswith("Sales of boats\nTown | Boats\nTown ") for block in blocks)
    assert list(table_blocks(["One line.", "Another."])) == ["One line.\nAnother."]
    text = "The figures are those of the harbour master. " * 20
    assert list(table_blocks([text, "Town | Boats", "Rees | 5"])) == [text, "Town | Boats\nRees | 5"]


@pytest.mark.parametrize("chunker", ["characters", "sentence"])
def test_no_passage_begins_within_a_table(chunker: str) -> None:
    book = workbook({"Plants": PLANTS})
    for words in ("", "The plants of the north are many. " * 9):
        page = (
            f"<p>{words}</p><table>{''.join(f'<tr><td>{a}<td>{b}<td>{c}' for a, b, c in PLANTS)}</table><p>End of it."
        )
        for name, content in (("a.xlsx", book), ("a.html", page.encode())):
            passages = list(cut(read_document(File(name=name, content=content)), "d", Chunking(chunker=chunker)))
            assert len(passages) >= 2
            for passage in passages:
                start = passage.text.partition(" | ")[0]
                assert start == "Plant" or start.startswith("The plants") or "|" not in passage.text
                assert passage.text.count("Plant | ") >= min(1, passage.text.count("| colour"))


def test_a_pdf_row_without_rules_between_its_lines_is_divided() -> None:
    drawn = pdf([["States."]], tables={0: [["State", "Boats"], ["Alabama", "18"], ["Ohio", "7"]]})
    assert texts("a.pdf", drawn) == ["States.", "State | Boats\nAlabama | 18\nOhio | 7", "Below the table."]
    assert divided(["Alabama\nAlaska\nArizona", "18,870\n209\n2,303"]) == [
        ["Alabama", "18,870"], ["Alaska", "209"], ["Arizona", "2,303"],
    ]  # fmt: skip
    assert divided(["one\ntwo", "three\nfour"]) == [["one\ntwo", "three\nfour"]]


def test_a_second_header_row_is_repeated_in_every_part_of_a_sheet() -> None:
    book, stream = openpyxl.Workbook(), io.BytesIO()
    sheet = book.worksheets[0]
    sheet.append(["Town", "Sales", None])
    sheet.append([None, "Q1", "Q2"])
    for number in range(60):
        sheet.append([f"Town {number}", number, number / 8])
        sheet.cell(sheet.max_row, 3).number_format = "0.0%"
    sheet.append(["Sum", "=SUM(B3:B62)", ArrayFormula("C63:C63", "=SUM(C3:C62)")])
    sheet.merge_cells("A1:A2")
    sheet.merge_cells("B1:C1")
    book.save(stream)
    found = texts("a.xlsx", stream.getvalue())
    assert len(found) > 2
    assert all(text.startswith("Town | Sales Q1 | Sales Q2\n") for text in found)
    assert "Town 1 | 1 | 12.5%" in found[0], "shares are read as they are shown"
    assert "Sum | =SUM(B3:B62) | =SUM(C3:C62)" in found[-1], "a formula without a stored value is kept"


def test_a_cell_formatted_far_below_costs_no_time() -> None:
    book, stream = openpyxl.Workbook(), io.BytesIO()
    sheet = book.worksheets[0]
    for row in (("Town", "Boats"), ("Rees", 5), (None, None), ("Port", "Quays"), ("Tern", 2)):
        sheet.append(row)
    sheet["XFD1048576"].number_format = "0%"
    book.save(stream)
    assert texts("a.xlsx", stream.getvalue()) == ["Town | Boats\nRees | 5", "Port | Quays\nTern | 2"]
