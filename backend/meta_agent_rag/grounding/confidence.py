"""The reliability of an answer in one number: its calibrated probability of being right, if known.

Otherwise it is what was found, combined with the writer's own estimate: 0.6 x retrieval + 0.4 x generation,
with `retrieval` limited to 0.60..1.0. That number ranks answers, and is not a probability.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, TypeAlias, get_args

_RETRIEVAL_WEIGHT, _GENERATION_WEIGHT = 0.6, 0.4
_LEAST_RETRIEVAL = 0.60
_GENERATION_WHERE_MISSING = 0.80
_LIKELY, _EVEN = 0.75, 0.5
"""Probabilities from which a level is `high` and `medium`: right in three of four cases, and in one of two."""
_LEAST_SUFFICIENT = 0.7
"""Chosen on the replies of a small model (docs/decisions/036)."""

Level: TypeAlias = Literal["high", "medium", "low"]
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """The confidence in an answer, its level and its two parts; all in 0..1.

    `calibrated` says that the score is a probability. `coverage` is the weighted mean of both parts: how well the
    documents cover the question.
    """

    score: float
    level: Level
    retrieval: float
    generation: float
    coverage: float
    calibrated: bool = False


def confidence(
    scores: Sequence[float], generation: float | None, cited: Sequence[int] = (), *, calibrated: bool = False
) -> Confidence:
    """The confidence in an answer.

    `scores` are the relevance (0..1) of each passage of the prompt (`retrieval.hybrid.confidence`), in the
    prompt's order. `cited` are the 1-based numbers of those that the answer cites: their mean counts, or the best
    score of all if none of them is in the prompt. `generation` is the probability that the answer is right if
    `calibrated`, else the writer's estimate, in 0..1.

    >>> confidence([0.9, 0.5], None, cited=[1]).level
    'high'
    >>> confidence([0.9, 0.5], 0.4, cited=[1], calibrated=True).level
    'low'
    """
    known = [score if isfinite(score) else 0.0 for score in scores]
    counted = [known[number - 1] for number in dict.fromkeys(cited) if 1 <= number <= len(known)]
    found = sum(counted) / len(counted) if counted else max(known, default=0.0)
    retrieval = min(1.0, max(_LEAST_RETRIEVAL, found))
    missing = generation is None or not isfinite(generation)
    estimate = _GENERATION_WHERE_MISSING if missing or generation is None else min(1.0, max(0.0, generation))
    # rounded, so that 0.6 x 0.85 + 0.4 x 0.85 is 0.85
    coverage = round(_RETRIEVAL_WEIGHT * retrieval + _GENERATION_WEIGHT * estimate, 6)
    probable = calibrated and not missing
    score = estimate if probable else coverage
    return Confidence(
        score=score,
        level=level(score, calibrated=probable),
        retrieval=retrieval,
        generation=estimate,
        coverage=coverage,
        calibrated=probable,
    )


def level(score: float, *, calibrated: bool = False) -> Level:
    """`high` from a probability of 0.75, `medium` from 0.5; uncalibrated, `high` above 0.85, `medium` from 0.70."""
    high, medium = (score >= _LIKELY, score >= _EVEN) if calibrated else (score > 0.85, score >= 0.70)
    return "high" if high else "medium" if medium else "low"


def is_doubtful(probability: float | None) -> bool:
    """Whether an answer with this probability of being right, if known, is more likely wrong."""
    return probability is not None and probability < _EVEN


def is_covered(sufficient: float | None) -> bool:
    """Whether the passages answer the question, by the critic's probability (0..1) of it, if known.

    A critic without log-probabilities says 0 or 1.
    """
    return sufficient is None or sufficient >= _LEAST_SUFFICIENT
