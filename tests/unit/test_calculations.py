"""Calculations that a critic writes: what counts as one, and what it may support."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.grounding.support.deriving.derived import Vouched, derived
from meta_agent_rag.grounding.support.statement import read
from meta_agent_rag.text.figures import figures, in_digits
from meta_agent_rag.text.figures.arithmetic import calculations

PRICES = "A stalls seat costs £34, a gallery seat £16; booking adds £3, and pensioners get 20 per cent off."
WALK = "Start at 19:30. The first half takes 70 minutes, the interval 20 and the second half 50 minutes."
LOAN = "The first of sixteen quarterly rates is due on 31 March 2025."


def steps(claim: str, named: str, calculation: str, *, question: str = "") -> list[str]:
    """How the figures of a claim follow, the calculation included."""
    vouched = Vouched(question=read(question, "en"), passage=(), calculations=calculations(calculation, "en"))
    found = derived(read(claim, "en"), [read(named, "en")], vouched=vouched)
    return [one.steps for one in found if one.operation in {"calculation", "duration"}]


@pytest.mark.parametrize(
    ("claim", "named", "calculation", "shown"),
    [
        ("It is £152.", PRICES, "3 x 34 + 2 x 16 + 6 x 3 = 152", []),
        ("It is £137.", PRICES, "3 × £34 + 2 × £16 + £3 = £137", ["3 × £34 + 2 × £16 + £3 = £137"]),
        ("It is £137.", PRICES, "3 * 34 + 2 * 16 = 134; 134 + 3 = 137", ["134 + 3 = £137"]),
        ("It is £107.20.", PRICES, "(3 * 34 + 2 * 16) * 0.8 = 107.2", ["(3 × 34 + 2 × 16) × 0.8 = £107.20"]),
        ("It is £107.20.", PRICES, "(3 * 34 + 2 * 16) * (1 - 20%)", ["(3 × 34 + 2 × 16) × (1 − 20%) = £107.20"]),
        ("It is £26.80.", PRICES, "20% of (3 * 34 + 2 * 16) = 26.80", ["20% × (3 × 34 + 2 × 16) = £26.80"]),
        ("It ends at 21:50.", WALK, "19:30 + 70 min + 20 min + 50 min", ["19:30 + 70 min + 20 min + 50 min = 21:50"]),
        ("It is out at 00:10.", WALK, "19:30 + 2 × (70 + 20 + 50) min = 00:10", ["19:30 + 2 × (70 + 20 + 50) = 00:10"]),
        (
            "It ends on 30 June 2026.",
            LOAN,
            "31 March 2025 + 5 × 3 months",
            ["31 March 2025 + 15 months = 30 June 2026"],
        ),
    ],
)
def test_a_calculation_supports_what_it_gives(claim: str, named: str, calculation: str, shown: list[str]) -> None:
    assert steps(claim, named, calculation, question="What do 3 of one and 2 of the other come to?") == shown


@pytest.mark.parametrize(
    ("claim", "calculation"),
    [
        ("It is £134.", "3 × 34 + 2 × 16 + 3 = 137"),
        ("It is £1340.", "3 × 340 + 2 × 160 = 1340"),
        ("It is £700.", "7 × 100 = 700"),
        ("It is 137 km.", "3 × £34 + 2 × £16 + £3 = 137 km"),
        ("It is £137.", "137 = 137"),
        ("It is £137.", "three times the price"),
        ("It is £137.", "__import__('os').system('true') + 34"),
        ("It is £137.", "34 / 0 + 16"),
        ("It is £39304.", "34 ** 3"),
    ],
)
def test_other_numbers_results_units_and_code_support_nothing(claim: str, calculation: str) -> None:
    assert steps(claim, PRICES, calculation, question="What do 3 of one and 2 of the other come to?") == []


@pytest.mark.parametrize(
    ("claim", "named", "calculation"),
    [
        ("It ends at 19:32.", "It starts at 19:30 and lasts 2 hours.", "19:30 + 2 hours = 19:32"),
        ("It is 502 km.", "It is 2 km by road and 500 m on foot.", "2 km + 500 m = 502 km"),
        ("It is £39.80.", "A seat is £40, with 20 per cent off.", "£40 - 20% = £39.80"),
        ("It is 0.7 %.", "First 50 per cent, then 20 per cent.", "50% + 20% = 0.7%"),
        ("It took 40 days.", "It began on 3 May 2021.", "12 June 2021 - 3 May 2021 = 40 days"),
        ("It is £134.", "A seat is £34.", "£34 + £100 = £134"),
        ("It is £171.", "A seat is £34.", "34 - 34 + 100 + 60 + 10 + 1 = 171"),
        ("It is £70.", "It is £40 here and €30 there.", "£40 + €30 = £70"),
        ("It is £1170.", "It starts at 19:30.", "19:30 x 1 = £1170"),
        ("It is 160 kg.", "It is 40 kg and 120 km away.", "40 + 120 km = 160 kg"),
        ("It ended on 1 September 2021.", "It began on 1 March 2021, for 6 months.", "1 March 2021 - 6 months"),
        ("It is £34,016.", "A seat is £34, a gallery seat £16.", "34000 + 16 = 34016"),
        ("It ends on 30 June 2026.", "It began on 31 March 2025.", "31 March 2025 + 1000 x 1000 x 7 days"),
    ],
)
def test_no_other_reading_of_a_calculation_counts(claim: str, named: str, calculation: str) -> None:
    vouched = Vouched(question=read("", "en"), passage=(), calculations=calculations(calculation, "en"))
    found = derived(read(claim, "en"), [read(named, "en")], vouched=vouched)
    assert [one.steps for one in found if one.operation == "calculation"] == []


@pytest.mark.parametrize(
    ("claim", "named", "calculation"),
    [
        ("It is £193.60.", "A seat is £121, with 20 per cent off.", "2 × £121 × (100 − 20)/100 = £193.60"),
        ("It is £193.60.", "A seat is £121, with 20 per cent off.", "2 x £121 = 242, 242 x 0.8 = 193.6"),
        ("It is £193.60.", "A seat is £121, with 20 per cent off.", "Step 1: [2x£121] × 80% = £193.60"),
        ("It takes 2 hours.", "It opens at 23:00 and closes at 01:00.", "01:00 − 23:00 = 2 hours"),
    ],
)
def test_calculations_are_read_as_models_write_them(claim: str, named: str, calculation: str) -> None:
    assert steps(claim, named, calculation, question="What do two come to?")


@pytest.mark.parametrize(
    ("text", "language", "units"),
    [
        ("Inflation fell from 10 to 5 per cent.", "en", ["percent", "percent"]),
        ("The court ruled 5 to 4.", "en", ["", ""]),
        ("It scored 10 past 3 goalkeepers.", "en", ["", ""]),
        ("It left at 10 past 3 on Friday.", "en", ["clock"]),
        ("Rates rose from 3.50 to 4.50 percent.", "en", ["percent", "percent"]),
        ("The pound stood at 1.35 on Friday.", "en", [""]),
        ("The doors open at 17.30.", "en", ["clock"]),
        ("Platz 5 nach 12 Spieltagen.", "de", ["", ""]),
        ("\u77f3\u7530\u4e09\u6210\u306f\u6b66\u5c06\u3060\u3002", "ja", []),
    ],
)
def test_times_are_not_read_where_amounts_stand(text: str, language: str, units: list[str]) -> None:
    assert [one.unit for one in figures(in_digits(text, language), language)] == units


@given(st.text(alphabet="0123456789.,+-*/×÷x:%()= ;£€minh\n", max_size=250))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for one in calculations(text, "en"):
        value = one.value([figure.number for figure in one.operands])
        assert value is None or isinstance(value, float)
