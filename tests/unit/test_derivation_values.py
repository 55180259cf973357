"""Looked-up values compared by type: dates, quantities, numbers and names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.agent.derivation.operator import Operand, discover_operators
from meta_agent_rag.agent.derivation.operators.choices import greater, smaller
from meta_agent_rag.agent.derivation.values import Quantity, as_quantity, countries, same_value
from meta_agent_rag.text.dates import Date, as_date, dates_in


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("8 December 1966", Date(year=1966, month=12, day=8)),
        ("born June 20, 1634 in Turin", Date(year=1634, month=6, day=20)),
        ("1969", Date(year=1969)),
        ("c. 1450", Date(year=1450)),
        ("December 1966", Date(year=1966, month=12)),
        ("12th May 2001", Date(year=2001, month=5, day=12)),
        ("the 1990s", None),
        ("17th century", None),
        ("356 BC", Date(year=-356)),
        ("Vancouver, BC, 5 May 1950", Date(year=1950, month=5, day=5)),
        ("8. Dezember 1966", Date(year=1966)),
        ("12 people in 1966", Date(year=1966)),
        ("May Robson died in 1942", Date(year=1942)),
        ("08.12.1966", Date(year=1966, month=12, day=8)),
        ("1966-12-08", Date(year=1966, month=12, day=8)),
        ("44 BC", Date(year=-44)),
        ("12/25/2020", Date(year=2020, month=12, day=25)),
        ("8-Dec-1966", Date(year=1966, month=12, day=8)),
        ("December the 8th, 1966", Date(year=1966, month=12, day=8)),
        ("8. December of 1966", Date(year=1966, month=12, day=8)),
        ("1,234", None),
        ("8 December 1966, in Paris", Date(year=1966, month=12, day=8)),
        ("born in 1950, died in 1999", Date(year=1950)),
        ("216 BC", Date(year=-216)),
        ("AD 79", Date(year=79)),
        ("120 CE", Date(year=120)),
        ("Berlin", None),
    ],
)
def test_dates_are_parsed(text: str, date: Date | None) -> None:
    assert as_date(text) == date


@given(st.integers(1000, 2099), st.integers(1, 12), st.integers(1, 28))
def test_a_written_date_is_found_in_a_sentence(year: int, month: int, day: int) -> None:
    import calendar

    written = f"{calendar.month_name[month]} {day}, {year}"
    assert as_date(written) == Date(year=year, month=month, day=day)
    assert {Date(year=year, month=month, day=day), Date(year=year)} <= dates_in(f"She was born on {written} in Ulm.")


@pytest.mark.parametrize(
    ("one", "other", "is_greater"),
    [
        ("5 km", "4,000 m", True),
        ("90 minutes", "2 hours", False),
        ("1 km", "1000 m", None),
        ("5 km", "4 kg", None),
        ("$5", "€4", None),
        ("5 million", "4,999,999", True),
        ("$5m", "$4 million", True),
        ("$900k", "$1.5M", False),
        ("$1.2 trillion", "$900 billion", True),
        ("A$5 million", "$4.5 million", None),
        ("half a million", "800,000", False),
        ("two and a half million", "2,400,000", True),
        ("2\u00bd miles", "2 miles", True),
        ("12,34,567", "50,000", True),
        ("1.234,56 Euro", "\u20ac900", True),
        ("6 ft 11 in", "2.01 m", True),
        ("6'2\"", "6 feet 3 inches", False),
        ("1,000 km2", "500 mi2", False),
        ("1,000 sq mi", "2,000 sq. km", True),
        ("100 km per hour", "30 m/s", False),
        ("5 m3", "5 m", None),
        ("5 miles per dollar", "4 km", None),
        ("5 \u00b0C per hour", "5 \u00b0F per hour", True),
    ],
)
def test_quantities_of_one_kind_are_compared_across_units(one: str, other: str, is_greater: bool | None) -> None:
    left, right = as_quantity(one), as_quantity(other)
    assert left is not None
    assert right is not None
    assert greater(left, right) is is_greater
    assert smaller(left, right) is (None if is_greater is None else not is_greater)


@given(st.text(max_size=60))
def test_every_parser_accepts_any_text(text: str) -> None:
    as_date(text)
    as_quantity(text)
    countries(text)
    same_value(text, "1 May 2001")


@pytest.mark.parametrize(
    ("question", "one", "other", "answer"),
    [
        ("How many days after Ann Bode was Karl Lutz born?", "1 May 1990", "3 May 1990", "2"),
        ("How many days lie between the two?", "30 December 1990", "2 January 1991", "3"),
        ("How many full weeks lie between the two?", "1 May 1990", "1 June 1990", "4"),
        ("How many months lie between the two?", "January 1990", "December 1990", "11"),
        ("How many years lie between the two?", "30 December 1990", "2 January 1991", "1"),
        ("How many days lie between the two?", "1990", "3 May 1990", None),
        ("How many years lie between the two?", "50 BC", "30 AD", "79"),
        ("How many decades lie between the two?", "1950", "1990", "4"),
        ("How many centuries lie between the two?", "1950", "1990", None),
        ("How many metres taller is A than B?", "450 m", "800 ft", "206.16"),
        ("How many more miles does A run?", "100 km", "50 km", "31.0686"),
        ("How many square kilometres larger is A?", "500 acres", "100 acres", "1.6187"),
        ("How many years lie between the two?", "19th century", "1850", None),
        ("How many years lie between the two?", "early 1900s", "1905", None),
        ("How many degrees warmer was it?", "-5 °C", "3 °C", "8"),
        ("How many hours longer was it?", "120 minutes", "1 hour", "1"),
        ("How many years lie between the two?", "300 BC", "400", "699"),
    ],
)
def test_a_difference_is_in_the_unit_asked_for(question: str, one: str, other: str, answer: str | None) -> None:
    operands = [Operand(of="A", value=one), Operand(of="B", value=other)]
    found = discover_operators()["difference"].combine(question, operands)
    assert (found.answer if found else None) == answer


@pytest.mark.parametrize(
    ("operator", "question", "values", "answer"),
    [
        ("count", "How many fans came?", ("1,200",), "1,200"),
        ("count", "How many children had he?", ("two sons and three daughters",), None),
        ("count", "How many children had he?", ("12, including Anna and Bo",), "12"),
        ("most", "Which has the higher peak, A or B?", ("4,500 m", "3,200 m"), "A"),
        ("most", "Which city ranks higher in population, A or B?", ("45,000", "32,000"), "A"),
        ("most", "Which song ranked higher, A or B?", ("4", "12"), "A"),
        ("most", "Which song had the higher chart position, A or B?", ("4", "12"), "A"),
        ("most", "Who finished their career with the higher batting average, A or B?", ("57.2", "43.1"), "A"),
        ("most", "Which song ranked higher, A or B?", ("12", "4"), "B"),
        ("earliest", "Who was born first, A or B?", ("356 BC", "27 February 312"), "A"),
        ("same", "Were they born in the same year?", ("8 May 1931", "2 June 1931"), "yes"),
        ("same", "Were they founded in the same decade?", ("1931", "1935"), "yes"),
        ("same", "Were they founded in the same century?", ("1850", "1901"), "no"),
        ("same", "Were they born in the same month?", ("8 May 1931", "2 May 1950"), "yes"),
        ("same", "Were they born in the same state?", ("Virginia", "West Virginia"), None),
        ("same", "Do they have the same number of members?", ("four", "4"), "yes"),
        ("same", "Are they equally high?", ("1,000 m", "3,281 ft"), None),
        ("same", "Do they play the same sport?", ("yes", "yes"), None),
        ("same", "Do they have the same nationality?", ("US", "American"), "yes"),
        ("same", "Did they open the same event?", ("2018 Winter Olympics", "2018 FIFA World Cup"), "no"),
    ],
)
def test_values_are_combined(operator: str, question: str, values: tuple[str, ...], answer: str | None) -> None:
    operands = [Operand(of=of, value=value) for of, value in zip("AB", values, strict=False)]
    found = discover_operators()[operator].combine(question, operands)
    assert (found.answer if found else None) == answer


def test_numbers_below_zero_are_compared_with_their_sign() -> None:
    operands = [Operand(of="Alder", value="minus 20 °C"), Operand(of="Quay", value="3 °C")]
    found = discover_operators()["least"].combine("Which town was colder, Alder or Quay?", operands)
    assert found is not None
    assert found.answer == "Alder"
    assert as_quantity("1914-1918") == Quantity(number=1914.0)
