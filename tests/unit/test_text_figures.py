"""Quantities in text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.text.figures import figures, in_digits


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("8051 m", [(8051.0, "meter")]),
        ("$3.5 million", [(3_500_000.0, "currency:USD")]),
        ("67,845 crore", [(678_450_000_000.0, "")]),
        ("twenty-five episodes", [(25.0, "")]),
        ("5 feet 6 inches", [(5.5, "foot")]),
        ("5 hours and 15 minutes", [(5.25, "hour")]),
        ("On 4 May 2021 and on 2022-11-06", []),
        ("in 1986 Stone directed it", [(1986.0, "")]),
        ("the 1990s", [(1990.0, "")]),
        ("the 10th of 12 % at 60 km/h", [(10.0, ""), (12.0, "percent"), (60.0, "kilometer / hour")]),
    ],
)
def test_figures_are_read_with_their_units(text: str, found: list[tuple[float, str]]) -> None:
    assert [(figure.number, figure.unit) for figure in figures(in_digits(text))] == found


@given(st.text(max_size=80))
def test_any_text_is_read(text: str) -> None:
    plain = in_digits(text)
    for figure in figures(plain):
        assert plain[figure.start : figure.end].strip() == figure.written.strip()
