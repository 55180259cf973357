"""Two methods side by side: which questions, in which order, and how the difference is described."""

import pytest

from meta_agent_rag.demo.run_cards import beside, pairs, primer
from meta_agent_rag.demo.run_files import Row, Run
from meta_agent_rag.errors import InputError


def row(id_: str, method: str, f1: float, **more: object) -> Row:
    return {"id": id_, "method": method, "question": f"Q {id_}?", "prediction": f"{f1}", "f1": f1, **more}


ONE = Run(name="one", rows=(row("a", "m", 0.5), row("b", "m", 0.0), row("c", "m", 1.0), row("d", "m", 0.0)))
TWO = Run(
    name="two",
    rows=(
        row("a", "n", 0.5, cost_usd="0.25", llm_calls=3),
        row("b", "n", 1.0, prediction="<b>bold</b>"),
        row("c", "n", 1.0, error="lost"),
        row("e", "n", 1.0),
    ),
)


def test_shared_questions_are_paired_with_differing_ones_first() -> None:
    found = pairs(ONE, "m", TWO, "n")
    assert [ours["id"] for ours, _ in found] == ["b", "c", "a"]


def test_the_difference_and_each_question_are_shown() -> None:
    html = beside(pairs(ONE, "m", TWO, "n"))
    assert "Over 3 questions: F1 50.0 (A) and 50.0 (B). B minus A is +0.0 points" in html
    assert "p = 1.000: not statistically significant." in html
    assert html.count('class="m-differs"') == 2
    assert "$0.25000" in html
    assert "<td>free</td>" not in html
    assert beside(pairs(ONE, "m", TWO, "n"), (False, True)).count("<td>free</td>") == 2, "of B, a model on this machine"
    assert "failed" in html
    assert "<b>" not in html


def test_runs_over_different_questions_are_rejected() -> None:
    with pytest.raises(InputError, match="'m' of 'one' and 'none' of 'two' have no question in common"):
        pairs(ONE, "m", TWO, "none")
    other = Run(name="three", rows=({**row("a", "m", 1.0), "question": "Another?"},))
    with pytest.raises(InputError, match="'a' names different questions"):
        pairs(ONE, "m", other, "m")


def test_a_run_without_both_methods_shows_no_figures() -> None:
    assert "F1" not in primer([ONE])
    assert "Derivation" in primer([])
