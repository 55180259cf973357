"""Reciprocal rank fusion and the blended score."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.retrieval.fusion import BM25_HALF, best_of, blended_score, reciprocal_rank_fusion
from meta_agent_rag.retrieval.passage import Found, Passage


def found(id_: str, dense: float | None = None, lexical: float | None = None) -> Found:
    return Found(passage=Passage(id=id_, doc_id="d", title="", text=id_), score=9.0, dense=dense, lexical=lexical)


def test_reciprocal_rank_fusion_by_hand() -> None:
    fused = reciprocal_rank_fusion(
        [[found("a", dense=0.9), found("b", dense=0.8)], [found("b", lexical=12.0), found("c", lexical=3.0)]], k=60
    )
    assert [(one.passage.id, one.dense, one.lexical) for one in fused] == [
        ("b", 0.8, 12.0),
        ("a", 0.9, None),
        ("c", None, 3.0),
    ]
    assert [one.score for one in fused] == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])


rankings = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8), max_size=5)


@given(rankings, st.integers(1, 100), st.randoms())
def test_fusion_is_a_sorted_union_in_any_order_of_rankings(ids: list[list[str]], k: int, random: Random) -> None:
    lists: Sequence[Sequence[Found]] = [[found(id_) for id_ in ranking] for ranking in ids]
    fused = reciprocal_rank_fusion(lists, k)
    assert {one.passage.id for one in fused} == {id_ for ranking in ids for id_ in ranking}
    assert len({one.passage.id for one in fused}) == len(fused)
    assert fused == sorted(fused, key=lambda one: (-one.score, one.passage.id))
    assert all(0 < one.score <= len(ids) / (k + 1) + 1e-12 for one in fused)
    shuffled = list(lists)
    random.shuffle(shuffled)
    assert reciprocal_rank_fusion(shuffled, k) == fused


def test_the_blend_by_hand() -> None:
    assert blended_score(0.8, BM25_HALF) == pytest.approx(0.85 * 0.8 + 0.15 * 0.5)
    assert blended_score(None, None) == 0.0
    assert blended_score(-0.4, None) == 0.0
    assert blended_score(1.2, None) == pytest.approx(0.85)
    assert blended_score(None, -1.0) == 0.0


def test_the_best_for_one_query_ranks_above_the_mediocre_for_all() -> None:
    def found(*ids: str) -> list[Found]:
        return [Found(passage=Passage(id=id_, doc_id=id_, title="", text=id_), score=0.0) for id_ in ids]

    rankings = [found("a", "m", "x"), found("b", "m", "y", "a")]
    assert [one.passage.id for one in best_of(rankings)] == ["a", "b", "m", "x", "y"]
    assert [one.score for one in best_of(rankings)][:3] == [1 / 61, 1 / 61, 1 / 62]
    assert best_of([]) == []
