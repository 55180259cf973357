"""Ranking quality: recall, all-found, nDCG and reciprocal rank, in percent."""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

RECALL_AT = (2, 5, 10, 20)
ALL_AT = (5, 10)
NDCG_AT = 10


def ranking_scores(rankings: Sequence[Sequence[str]], relevant: Sequence[Collection[str]]) -> dict[str, float]:
    """Means over queries of each measure, in percent, by name.

    `recall@k` is the share of a query's relevant passages in the top k, `all@k` whether all of them
    are there, `ndcg@10` has binary gains and the discount log2(rank + 1) (Jarvelin and Kekalainen 2002),
    `mrr` is the reciprocal rank of the first relevant passage. A query without relevant passages is a `ValueError`.
    """
    if len(rankings) != len(relevant) or not all(relevant):
        raise ValueError("every query needs a ranking and at least one relevant passage")
    rows = [_scores(ranking, frozenset(wanted)) for ranking, wanted in zip(rankings, relevant, strict=True)]
    return {name: round(100.0 * float(np.mean([row[name] for row in rows])), 2) for name in rows[0]} if rows else {}


def _scores(ranking: Sequence[str], wanted: frozenset[str]) -> Mapping[str, float]:
    hits = [rank for rank, id_ in enumerate(dict.fromkeys(ranking), start=1) if id_ in wanted]
    gain = sum(1.0 / math.log2(rank + 1) for rank in hits if rank <= NDCG_AT)
    ideal = sum(1.0 / math.log2(rank + 1) for rank in range(1, min(NDCG_AT, len(wanted)) + 1))
    return {
        **{f"recall@{k}": sum(rank <= k for rank in hits) / len(wanted) for k in RECALL_AT},
        **{f"all@{k}": float(sum(rank <= k for rank in hits) == len(wanted)) for k in ALL_AT},
        f"ndcg@{NDCG_AT}": gain / ideal,
        "mrr": 1.0 / hits[0] if hits else 0.0,
    }
