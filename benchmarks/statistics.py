"""Intervals of shares, how well a score separates right from wrong answers, and latency percentiles.

Intervals of means and paired tests are in `meta_agent_rag.statistics`.

All are independent of order: a resumed run reports the same as an uninterrupted one.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from meta_agent_rag.errors import InputError
from meta_agent_rag.statistics import DRAWS_IN_MEMORY, bootstrap_ci, finite, require_pairs

_RESAMPLES = 1000
_BINS = 10


def binomial_interval(successes: int, n: int) -> tuple[float, float]:
    """The exact 95 % interval of a share (Clopper & Pearson 1934), low and high in 0..1.

    Unlike a bootstrap it is informative for a share of 0: with 0 of 100 the upper limit is 3.6 %.
    """
    from scipy.stats import binomtest

    interval = binomtest(successes, n).proportion_ci(method="exact")
    return float(interval.low), float(interval.high)


def score_interval(values: Sequence[float], *, exact: bool, seed: int = 42) -> tuple[float, float]:
    """The 95 % interval of a mean score in percent: exact for a share, else a bootstrap.

    It is exact too if all values are 0 or all 100, of which a bootstrap tells nothing.
    """
    if exact or set(values) in ({0.0}, {100.0}):
        low, high = binomial_interval(list(values).count(100.0), len(values))
        return 100.0 * low, 100.0 * high
    return bootstrap_ci(values, seed=seed)


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """The p50, p75, p90 and p99 in the unit of `seconds`, interpolated linearly between neighbours.

    Raises `InputError` without values and for values that are not finite.
    """
    import numpy as np

    ranks = (50, 75, 90, 99)
    return {f"p{rank}": float(value) for rank, value in zip(ranks, np.percentile(finite(seconds), ranks), strict=True)}


def auroc(scores: Sequence[float], labels: Sequence[float]) -> float | None:
    """The probability that a correct answer (label 1) scores above an incorrect one (0); ties count half.

    `None` if all are right or all wrong. Raises `InputError` for labels other than 0 and 1.
    """
    from scipy.stats import rankdata

    known, right = _labelled(scores, labels)
    rights = sum(right)
    pairs = rights * (len(right) - rights)
    if pairs == 0:
        return None
    won = rankdata(known)[right].sum() - rights * (rights + 1) / 2  # the statistic of Mann and Whitney
    return float(won / pairs)


def auroc_interval(scores: Sequence[float], labels: Sequence[float], *, seed: int = 42) -> tuple[float, float] | None:
    """The 95 % percentile bootstrap interval of `auroc` over answers, low and high in 0..1.

    Resamples without a right or without a wrong answer have no figure and are left out; `None` if all are right
    or all wrong. Independent of the order of answers.
    Raises `InputError` as `auroc` does.
    """
    import numpy as np

    ranked = sorted(zip(*_labelled(scores, labels), strict=True))
    right = np.array([is_right for _, is_right in ranked], dtype=float)
    if right.min() == right.max():
        return None
    ties = np.unique([score for score, _ in ranked], return_index=True)[1]
    draw, batch = np.random.default_rng(seed), max(1, DRAWS_IN_MEMORY // len(ranked))
    areas = []
    for start in range(0, _RESAMPLES, batch):
        drawn = draw.multinomial(len(ranked), [1 / len(ranked)] * len(ranked), size=min(batch, _RESAMPLES - start))
        rights = np.add.reduceat(drawn * right, ties, axis=1)
        wrongs = np.add.reduceat(drawn * (1 - right), ties, axis=1)
        won = (rights * (np.cumsum(wrongs, axis=1) - wrongs / 2)).sum(axis=1)  # ties count half
        pairs = rights.sum(axis=1) * wrongs.sum(axis=1)
        areas.append(won[pairs > 0] / pairs[pairs > 0])
    found = np.concatenate(areas)
    if not found.size:
        return None
    low, high = np.percentile(found, (2.5, 97.5))
    return float(low), float(high)


def calibration_bins(probabilities: Sequence[float], labels: Sequence[float]) -> list[dict[str, float]]:
    """Sort answers into ten bins of equal width by the probability that they are right; empty bins are left out.

    A bin holds `n` answers above `low` and at most `high` (Guo et al. 2017); `confidence` is their mean probability,
    `accuracy` the share that is right. Raises `InputError` for a probability outside 0..1 and for labels other than
    0 and 1.
    """
    known, right = _labelled(probabilities, labels)
    if outside := [value for value in known if not 0.0 <= value <= 1.0]:
        raise InputError(f"Probabilities lie in 0..1, but one is {outside[0]!r}; convert scores to probabilities.")
    edges = [(index + 1) / _BINS for index in range(_BINS)]
    members: list[list[tuple[float, bool]]] = [[] for _ in edges]
    for probability, label in zip(known, right, strict=True):
        members[bisect_left(edges, probability)].append((probability, label))
    return [
        {
            "low": index / _BINS,
            "high": edges[index],
            "n": len(found),
            "confidence": math.fsum(probability for probability, _ in found) / len(found),
            "accuracy": sum(label for _, label in found) / len(found),
        }
        for index, found in enumerate(members)
        if found
    ]


def expected_calibration_error(probabilities: Sequence[float], labels: Sequence[float]) -> float:
    """The mean distance of confidence and accuracy over bins, weighted by answers, 0..1 (Naeini et al. 2015).

    Raises `InputError` as `calibration_bins` does.
    """
    distances = (one["n"] * abs(one["accuracy"] - one["confidence"]) for one in calibration_bins(probabilities, labels))
    return math.fsum(distances) / len(probabilities)


def risk_coverage(scores: Sequence[float], labels: Sequence[float]) -> list[tuple[float, float]]:
    """Coverage and risk for each score threshold (El-Yaniv & Wiener 2010).

    Coverage is the share of answers kept, risk the share of wrong ones (label 0) among those; the highest
    scores come first, and equal scores together, because no threshold can separate them.
    """
    ranked = sorted(zip(*_labelled(scores, labels), strict=True), reverse=True)
    points, wrong = [], 0
    for kept, (score, right) in enumerate(ranked, start=1):
        wrong += not right
        if kept == len(ranked) or ranked[kept][0] != score:
            points.append((kept / len(ranked), wrong / kept))
    return points


def area_under_risk_coverage(points: Sequence[tuple[float, float]]) -> float:
    """The mean risk over all coverages, 0..1, of the curve that `risk_coverage` gives; lower is better.

    Without ties it is the mean of the risks at 1, 2, ... n answers kept (Geifman et al. 2019); a
    tied group counts with its own risk for all of its width.
    """
    before = (0.0, *(coverage for coverage, _ in points))
    return math.fsum((coverage - start) * risk for start, (coverage, risk) in zip(before, points, strict=False))


def cohen_kappa(one: Sequence[str], other: Sequence[str]) -> float | None:
    """The agreement of two raters beyond chance, -1..1 (Cohen 1960).

    `None` if both give every case the same single label: agreement by chance is then certain.
    """
    require_pairs(one, other)
    if len({*one, *other}) == 1:
        return None
    by_one, by_other = Counter(one), Counter(other)
    observed = sum(left == right for left, right in zip(one, other, strict=True)) / len(one)
    expected = sum(count * by_other[name] for name, count in by_one.items()) / len(one) ** 2
    return (observed - expected) / (1 - expected)


def _labelled(scores: Sequence[float], labels: Sequence[float]) -> tuple[list[float], list[bool]]:
    require_pairs(scores, labels)
    if strange := [label for label in labels if label not in (0, 1)]:
        raise InputError(f"Labels are 1 for correct and 0 for incorrect, but one is {strange[0]!r}.")
    return finite(scores), [bool(label) for label in labels]
