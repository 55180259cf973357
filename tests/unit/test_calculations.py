"""Calculations that a critic writes: what counts as one, and what it may support."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.grounding.support.deriving.derived import Vouched, derived
from meta_agent_rag.grounding.support.statement import read
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


@given(st.text(alphabet="0123456789.,+-*/×÷x:%()= ;£€minh\n", max_size=250))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for one in calculations(text, "en"):
        value = one.value([figure.number for figure in one.operands])
        assert value is None or isinstance(value, float)
