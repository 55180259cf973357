"""Ranking metrics, checked against values computed by hand."""

import math

import pytest

from benchmarks.speed.retrieval import ranking_scores


def test_a_worked_example() -> None:
    scores = ranking_scores([["x", "a", "y", "z", "w", "b"], ["c"]], [{"a", "b"}, {"c"}])
    assert scores["recall@2"] == 75.0
    assert scores["recall@5"] == 75.0
    assert scores["recall@10"] == 100.0
    assert scores["all@5"] == 50.0
    assert scores["all@10"] == 100.0
    assert scores["mrr"] == 75.0
    gain = 1 / math.log2(3) + 1 / math.log2(7)
    assert scores["ndcg@10"] == pytest.approx(50 * (gain / (1 + 1 / math.log2(3)) + 1), abs=0.01)


def test_duplicate_ids_count_once_and_misses_count_zero() -> None:
    assert ranking_scores([["x", "x", "a"]], [{"a"}])["recall@2"] == 100.0
    assert set(ranking_scores([["x"]], [{"a"}]).values()) == {0.0}
    assert ranking_scores([], []) == {}


def test_a_query_without_relevant_passages_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least one"):
        ranking_scores([["a"]], [set()])
