"""Figures in running text, read as values in many languages."""

from datetime import date

import pytest
from babel.dates import format_date
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.text.dates import Date
from meta_agent_rag.text.figures import Figure, figures, in_digits
from meta_agent_rag.text.figures.figure import in_unit, stands_in
from meta_agent_rag.text.language import language_of


def read(text: str) -> tuple[Figure, ...]:
    return figures(in_digits(text), language_of(text))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Bills of £1,260 and £940.50 came in.", [(1260.0, "currency:GBP"), (940.5, "currency:GBP")]),
        (
            "Die Mauer ist 37,5 Meter hoch und staut 2,4 Millionen Kubikmeter.",
            [(37.5, "meter"), (2.4e6, "cubic_meter")],
        ),
        ("Sie versorgt 3.200 Haushalte mit Strom.", [(3200.0, "")]),
        ("甲板のクレーンは4.5トンまで持ち上げられる。", [(4.5, "tonne")]),
        ("大坝高37.5米、水量2.4亿立方米。", [(37.5, "meter"), (2.4e8, "cubic_meter")]),
        ("Nausea was reported by 15 % of 120 patients.", [(15.0, "percent"), (120.0, "")]),
        ("It is open from 9 am to 7:30 pm every day.", [(540.0, "clock"), (1170.0, "clock")]),
        ("They had twenty-five cats and two dogs, and no one knew.", [(25.0, ""), (2.0, "")]),
        ("The vote was 7 to 2 in favour.", [(7.0, ""), (2.0, "")]),
        ("A file holds 64 MB; it took a 12-week course.", [(64.0, "megabyte"), (12.0, "week")]),
        ("Il y a 1 234 567 habitants dans la ville.", [(1234567.0, "")]),
        ("No figure is here.", []),
    ],
)
def test_numbers_are_parsed_with_their_units(text: str, values: list[tuple[float, str]]) -> None:
    assert [(figure.number, figure.unit) for figure in read(text)] == values


@pytest.mark.parametrize(
    "code", ["en", "de", "fr", "es", "it", "pt", "nl", "da", "sv", "pl", "cs", "ru", "uk", "ja", "ko"]
)
@given(day=st.dates(min_value=date(1800, 1, 1), max_value=date(2099, 12, 31)))
def test_a_long_date_is_parsed_in_every_language(code: str, day: date) -> None:
    (figure,) = figures(format_date(day, "long", locale=code), code)
    assert figure.date == Date(year=day.year, month=day.month, day=day.day)


@pytest.mark.parametrize(
    ("one", "other", "stands"),
    [
        ("250 mg", "0.25 g", True),
        ("about 35 km", "22 miles", True),
        ("36 km", "22 miles", False),
        ("3 weeks", "21 days", True),
        ("4.5 m", "4.5 tonnes", False),
        ("1912", "4 May 1912", True),
        ("May 1912", "4 May 1912", True),
        ("5 May 1912", "May 1912", False),
        ("14 September 2023", "2023-09-14", True),
        ("about 1,200", "1,266", False),
        ("about 1,200", "1,187", True),
        ("1,200", "1,187", False),
        ("3200", "3.200", True),
        ("15 %", "15", True),
    ],
)
def test_one_figure_may_be_contained_in_others(one: str, other: str, stands: bool) -> None:
    (figure,) = read(one)
    assert stands_in(figure, read(other)) is stands


@given(st.text(max_size=80))
def test_figures_have_ordered_spans_in_the_text(text: str) -> None:
    position = 0
    for figure in figures(text, "en"):
        assert position <= figure.start < figure.end <= len(text)
        assert figure.numbers or figure.date
        position = figure.end


@given(st.floats(min_value=0.001, max_value=1e6))
def test_a_unit_conversion_round_trips(number: float) -> None:
    there = in_unit(number, "mile", "kilometer")
    assert there is not None
    assert in_unit(there, "kilometer", "mile") == pytest.approx(number)
