"""The reliability of an answer in one number: what was found, combined with the writer's own estimate.

    confidence = 0.6 x retrieval + 0.4 x generation

`retrieval` is limited to 0.60..1.0. The number ranks answers; it is not a probability of being right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, TypeAlias

RETRIEVAL_WEIGHT = 0.6
GENERATION_WEIGHT = 0.4
LEAST_RETRIEVAL = 0.60
GENERATION_WHERE_MISSING = 0.80
HIGH_ABOVE = 0.85
MEDIUM_FROM = 0.70

Level: TypeAlias = Literal["high", "medium", "low"]


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """The confidence in an answer, its level and its two parts; all in 0..1."""

    score: float
    level: Level
    retrieval: float
    generation: float


def confidence(scores: Sequence[float], generation: float | None, cited: Sequence[int] = ()) -> Confidence:
    """The confidence in an answer.

    `scores` are the relevance (0..1) of each passage of the prompt (`retrieval.hybrid.confidence`), in the
    prompt's order. `cited` are the 1-based numbers of those that the answer cites: their mean counts, or the best
    score of all if none of them is in the prompt. `generation` is the writer's estimate in 0..1.

    >>> confidence([0.9, 0.5], None, cited=[1]).level
    'high'
    """
    retrieval = min(1.0, max(LEAST_RETRIEVAL, _retrieval([_number(score) for score in scores], cited)))
    missing = generation is None or not isfinite(generation)
    estimate = GENERATION_WHERE_MISSING if missing or generation is None else min(1.0, max(0.0, generation))
    # rounded, so that 0.6 x 0.85 + 0.4 x 0.85 is 0.85
    score = round(RETRIEVAL_WEIGHT * retrieval + GENERATION_WEIGHT * estimate, 6)
    return Confidence(score=score, level=level(score), retrieval=retrieval, generation=estimate)


def level(score: float) -> Level:
    """`high` above 0.85, `medium` from 0.70 to 0.85, both included, `low` below."""
    if score > HIGH_ABOVE:
        return "high"
    return "medium" if score >= MEDIUM_FROM else "low"


def _retrieval(scores: Sequence[float], cited: Sequence[int]) -> float:
    counted = [scores[number - 1] for number in dict.fromkeys(cited) if 1 <= number <= len(scores)]
    return sum(counted) / len(counted) if counted else max(scores, default=0.0)


def _number(score: float) -> float:
    return score if isfinite(score) else 0.0
