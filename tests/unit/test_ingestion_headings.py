"""Headings of PDFs without an outline, by the size and weight of their type."""

import pytest

from meta_agent_rag.ingestion.parsers import File
from meta_agent_rag.ingestion.reading import read_document
from tests.files import pdf

SPRINGS = ["Passive compliance uses springs that give way under load.", "They need no power at all to hold a part."]
MOTORS = [
    "Active compliance needs motors and sensors in every joint.",
    "Its control loop runs a thousand times a second.",
]
NOTE = ["A large note in several lines", "without a full stop at its end", "that goes on and on", "for four lines"]
OUTPUT = [["Plant", "2021"], ["Quay", "410"], ["Mole", "12"]]


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


def test_a_heading_of_two_lines_is_one_block() -> None:
    sizes = {"Passive and active": 18, "compliance of grippers": 18}
    found = blocks(pdf([[*sizes, *SPRINGS, *MOTORS]], sizes=sizes))
    assert found[0] == ("Passive and active compliance of grippers",) * 2


def test_an_outline_takes_precedence() -> None:
    content = pdf([["Springs", *SPRINGS]], sizes={"Springs": 18}, outline={"Compliance": 0})
    assert blocks(content) == [("Springs", "Compliance"), (" ".join(SPRINGS), "Compliance")]


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
