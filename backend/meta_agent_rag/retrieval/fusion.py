"""Merging rankings: reciprocal rank fusion, and the weighted blend that serves as confidence."""

from collections.abc import Sequence
from dataclasses import replace
from math import fsum

from .passage import Found

DENSE_WEIGHT = 0.85
LEXICAL_WEIGHT = 0.15
BM25_HALF = 37.0
"""The BM25 score that counts as 0.5: between the medians of supporting passages in HotpotQA (38.6) and
2WikiMultiHopQA (35.4), first 150 and 100 questions, scored as `stores.embedded` does."""


def reciprocal_rank_fusion(rankings: Sequence[Sequence[Found]], k: int = 60) -> list[Found]:
    """Fuse rankings: score(p) = sum over rankings of 1 / (k + rank(p)), ranks from 1.

    Cormack, Clarke and Buettcher, SIGIR 2009, with k = 60. Ties are broken by passage id. A fused passage
    keeps its best `dense` and `lexical` score in any ranking.
    """
    found: dict[str, list[Found]] = {}
    shares: dict[str, list[float]] = {}
    for ranking in rankings:
        for rank, one in enumerate(ranking, start=1):
            found.setdefault(one.passage.id, []).append(one)
            shares.setdefault(one.passage.id, []).append(1.0 / (k + rank))
    fused = []
    for id_, same in found.items():
        dense = max((one.dense for one in same if one.dense is not None), default=None)
        lexical = max((one.lexical for one in same if one.lexical is not None), default=None)
        score = fsum(shares[id_])  # exact, so the order of the rankings cannot break a tie
        fused.append(Found(passage=same[0].passage, score=score, dense=dense, lexical=lexical, via=same[0].via))
    return sorted(fused, key=lambda one: (-one.score, one.passage.id))


def best_of(rankings: Sequence[Sequence[Found]], k: int = 60) -> list[Found]:
    """Merge the results of several questions: score(p) = max over rankings of 1 / (k + rank(p)).

    CombMAX (Fox and Shaw, TREC-2, 1994) over reciprocal ranks: the questions ask for different things, so
    the best result for one of them precedes results that are mediocre for all. Ties are broken by the sum, then by id.
    """
    best: dict[str, float] = {}
    for ranking in rankings:
        for rank, found in enumerate(ranking, start=1):
            best[found.passage.id] = max(best.get(found.passage.id, 0.0), 1.0 / (k + rank))
    summed = sorted(reciprocal_rank_fusion(rankings, k), key=lambda found: -best[found.passage.id])
    return [replace(found, score=best[found.passage.id]) for found in summed]


def blend(rankings: Sequence[Sequence[Found]]) -> list[Found]:
    """Merge rankings by `blended_score`, best first; ties are broken by passage id."""
    merged = reciprocal_rank_fusion(rankings)
    scored = [replace(found, score=blended_score(found.dense, found.lexical)) for found in merged]
    return sorted(scored, key=lambda found: (-found.score, found.passage.id))


def blended_score(dense: float | None, lexical: float | None) -> float:
    """The absolute relevance of a passage, 0..1: 0.85 * cosine (clipped) + 0.15 * BM25 as x / (x + BM25_HALF).

    A side that did not return the passage (`None`) contributes nothing.

    >>> round(blended_score(1.0, 37.0), 3)
    0.925
    """
    bm25 = max(0.0, lexical or 0.0)
    return DENSE_WEIGHT * min(1.0, max(0.0, dense or 0.0)) + LEXICAL_WEIGHT * bm25 / (bm25 + BM25_HALF)
