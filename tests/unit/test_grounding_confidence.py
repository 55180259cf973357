"""Confidence and its levels."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.grounding.confidence import confidence, level

NUMBERS = st.one_of(st.floats(), st.floats(min_value=0, max_value=1))


@pytest.mark.parametrize(
    ("scores", "generation", "cited", "score", "name"),
    [
        ([], None, [], 0.68, "low"),
        ([0.2, 0.4], 0.8, [], 0.68, "low"),
        ([1.0], 1.0, [], 1.0, "high"),
        ([0.9, 0.5], None, [], 0.86, "high"),
        ([0.9, 0.7], None, [1, 2, 2], 0.8, "medium"),
        ([0.9, 0.7], None, [9, 0, -1], 0.86, "high"),
        ([0.7], 0.7, [], 0.7, "medium"),
        ([nan], nan, [], 0.68, "low"),
        ([1.0], inf, [], 0.92, "high"),
    ],
)
def test_the_score_and_level_by_hand(
    scores: list[float], generation: float | None, cited: list[int], score: float, name: str
) -> None:
    result = confidence(scores, generation, cited)
    assert result.score == pytest.approx(score, abs=1e-6)
    assert result.level == name


@given(st.lists(NUMBERS, max_size=6), st.one_of(st.none(), NUMBERS), st.lists(st.integers(-2, 8), max_size=4))
def test_the_score_stays_within_its_bounds(scores: list[float], generation: float | None, cited: list[int]) -> None:
    result = confidence(scores, generation, cited)
    assert 0.6 <= result.retrieval <= 1
    assert 0 <= result.generation <= 1
    assert 0.36 <= result.score <= 1
    assert result.level == level(result.score)


@pytest.mark.parametrize(("chance", "name"), [(0.75, "high"), (0.7499, "medium"), (0.5, "medium"), (0.4999, "low")])
def test_a_calibrated_probability_is_the_score(chance: float, name: str) -> None:
    result = confidence([0.9], chance, [1], calibrated=True)
    assert (result.score, result.level, result.calibrated) == (chance, name, True)
    assert result.coverage == pytest.approx(0.6 * 0.9 + 0.4 * chance)


def test_without_a_probability_none_is_shown() -> None:
    assert confidence([0.9], None, [1], calibrated=True) == confidence([0.9], None, [1])
