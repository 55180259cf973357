"""Headings of PDFs without an outline, by the size and weight of their type."""

import pytest

from meta_agent_rag.ingestion.parsers import File, read_document
from meta_agent_rag.ingestion.parsers.pdf import Line, texts_of
from tests.files import pdf

SPRINGS = ["Passive compliance uses springs that give way under load.", "They need no power at all to hold a part."]
MOTORS = [
    "Active compliance needs motors and sensors in every joint.",
    "Its control loop runs a thousand times a second.",
]
NOTE = ["A large note in several lines", "without a full stop at its end", "that goes on and on", "for four lines"]
OUTPUT = [["Plant", "2021"], ["Quay", "410"], ["Mole", "12"]]


TITLE = "Grippers and springs"


def blocks(content: bytes) -> list[tuple[str, str | None]]:
    return [(block.text, block.section) for block in read_document(File(name="a.pdf", content=content)).blocks]


@pytest.mark.parametrize("size", [16, -12], ids=["larger", "bold"])
def test_larger_or_bold_lines_are_headings_and_begin_sections(size: int) -> None:
    sizes = {"Passive compliance": size, "Active compliance": size}
    pages = [["Passive compliance", *SPRINGS], ["Motors follow.", "Active compliance", *MOTORS]]
    assert blocks(pdf(pages, sizes=sizes)) == [
        ("Passive compliance", "Passive compliance"),
        (" ".join(SPRINGS), "Passive compliance"),
        ("Motors follow.", "Passive compliance"),
        ("Active compliance", "Active compliance"),
        (" ".join(MOTORS), "Active compliance"),
    ]


def test_headings_on_a_page_with_a_table_are_found() -> None:
    found = blocks(pdf([["Passive compliance", *SPRINGS]], sizes={"Passive compliance": 18}, tables={0: OUTPUT}))
    assert found[0] == ("Passive compliance", "Passive compliance")
    assert ("Plant | 2021\nQuay | 410\nMole | 12", "Passive compliance") in found


def test_an_outline_takes_precedence() -> None:
    content = pdf([["Springs", *SPRINGS]], sizes={"Springs": 18}, outline={"Compliance": 0})
    assert blocks(content) == [("Springs", "Compliance"), (" ".join(SPRINGS), "Compliance")]


def test_every_outline_entry_of_a_page_begins_a_section() -> None:
    lines = ["1 Springs", SPRINGS[0], "2 Motors", MOTORS[0]]
    found = blocks(pdf([lines], outline={"Springs": 0, "Motors": 0}))
    assert [section for text, section in found if any(one in text for one in (SPRINGS[0], MOTORS[0]))] == [
        "Springs",
        "Motors",
    ]


@pytest.mark.parametrize("stated", ["10811.exe", "Contents", "report_final.indd", "Table of Contents"])
def test_a_file_name_or_a_list_of_contents_is_no_title(stated: str) -> None:
    document = read_document(
        File(name="a.pdf", content=pdf([[TITLE, *SPRINGS, *MOTORS]], title=stated, sizes={TITLE: 18}))
    )
    assert document.title == TITLE


def test_lines_of_contents_are_left_out() -> None:
    lines = ["Springs . . . . . . . . 3", "Motors ........... 14", *SPRINGS]
    assert "14" not in "".join(text for text, _ in blocks(pdf([lines])))


def test_letters_printed_twice_are_read_once() -> None:
    assert blocks(pdf([["EENNFFOORRCCEEDD RRUULLEESS", *SPRINGS]]))[0][0].startswith("ENFORCED RULES")


def line(text: str, **fields: object) -> Line:
    return Line(text=text, size=10.0, **fields)  # type: ignore[arg-type]


def test_lines_of_code_keep_their_breaks_and_indents() -> None:
    lines = [line("Run this:"), line("for x in y:", code=True, left=40.0), line("print(x)", code=True, left=64.0)]
    assert list(texts_of(lines)) == ["Run this:", "for x in y:\n    print(x)"]


def test_a_line_break_within_japanese_text_is_no_blank() -> None:
    assert list(texts_of([line("荷重は最大で4.5トン"), line("です。")])) == ["荷重は最大で4.5トンです。"]
    assert list(texts_of([line("a heavy"), line("load")])) == ["a heavy load"]


@pytest.mark.parametrize(
    ("lines", "sizes"),
    [
        ([SPRINGS[0], "in every gripper", *MOTORS], {"in every gripper": -12}),
        (["Harbour Boats", "Nord 14", "Ost 9", *SPRINGS], {"Harbour Boats": -12}),
        (["Grippers hold parts.", *SPRINGS], {"Grippers hold parts.": -12}),
        ([*NOTE, *SPRINGS, *MOTORS, *SPRINGS, *MOTORS], dict.fromkeys(NOTE, 16)),
        (["12", *SPRINGS], {"12": 20}),
        (["Passive compliance", SPRINGS[0]], dict.fromkeys(["Passive compliance", SPRINGS[0]], 16)),
    ],
    ids=["bold words within a sentence", "header of a table", "sentence", "large quotation", "number", "one size only"],
)  # fmt: skip
def test_other_lines_are_not_headings(lines: list[str], sizes: dict[str, int]) -> None:
    assert {section for _, section in blocks(pdf([lines], sizes=sizes))} == {None}
