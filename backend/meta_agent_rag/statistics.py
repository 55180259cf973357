"""Confidence intervals, paired tests of two answers to the same questions, and the official scores of a short answer.

Intervals and tests are order-independent, so that a resumed run reports the same as an uninterrupted one. Every score
is a float in 0..1. Source: `hotpot_evaluate_v1.py` of https://github.com/hotpotqa/hotpot (Yang et al., EMNLP 2018),
which the published figures of this field are computed with. The script scores against one gold answer; where a data
set has aliases, the best gold counts (see `score_answer`).

    >>> score_answer("the Eiffel Tower, Paris", ["Eiffel Tower"]).recall
    1.0
"""

import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .errors import InputError

Verdict: TypeAlias = Literal["more", "less", "unknown"]
SIGNIFICANT = 0.05
DRAWS_IN_MEMORY = 4_000_000
"""The number of values in a batch of resamples: 32 MB, regardless of the number of questions."""
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_VERDICTS = frozenset({"yes", "no", "noanswer"})


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A mean paired difference with its 95 % interval, in the unit of the values."""

    mean: float
    low: float
    high: float


def bootstrap_ci(values: Sequence[float], *, resamples: int = 2000, seed: int = 42) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the mean (Efron 1979), low and high, in the unit of `values`.

    The same values and seed give the same interval in any order, so that a
    resumed run reports the same as an uninterrupted one. If all values are equal, or there is only one,
    resampling has no effect: the interval is that value twice.

    Raises `InputError` if there are no values, and for values that are not finite.
    """
    import numpy as np
    from scipy.stats import bootstrap

    ordered = sorted(finite(values))
    if ordered[0] == ordered[-1]:
        return ordered[0], ordered[0]
    interval = bootstrap(
        (ordered,),
        np.mean,
        n_resamples=resamples,
        batch=max(1, DRAWS_IN_MEMORY // len(ordered)),
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def paired_difference(one: Sequence[float], other: Sequence[float], *, seed: int = 42) -> Difference:
    """The mean of `other` minus `one` over pairs, with the percentile bootstrap interval over pairs.

    Raises the errors of `bootstrap_ci`, and `InputError` for sequences of unequal length.
    """
    differences = _differences(one, other)
    low, high = bootstrap_ci(differences, seed=seed)
    return Difference(mean=math.fsum(differences) / len(differences), low=low, high=high)


def verdict(difference: Difference, p: float) -> Verdict:
    """Whether and in which direction a difference is significant: p is below 0.05 and the interval excludes 0."""
    if not p < SIGNIFICANT or difference.low <= 0.0 <= difference.high:
        return "unknown"
    return "more" if difference.mean > 0.0 else "less"


def mcnemar_exact(only_one: int, only_other: int) -> float:
    """The two-sided exact p of McNemar's test (McNemar 1947), from the counts that only one of two got right.

    Under the null hypothesis both are equally likely: a binomial test with 1/2; 1.0 without discordant pairs.
    """
    from scipy.stats import binomtest

    if only_one + only_other == 0:
        return 1.0
    return float(binomtest(only_one, only_one + only_other, 0.5).pvalue)


def permutation_p(one: Sequence[float], other: Sequence[float], *, seed: int = 42, resamples: int = 10000) -> float:
    """The two-sided p of the paired permutation test of a mean difference (Fisher 1935), by signs.

    Exact if the unequal pairs have at most `resamples` patterns of signs; otherwise sampled, and
    counted including the observed one, so that it is never 0 (Phipson & Smyth 2010).
    Symmetric in its arguments. Raises the errors of `paired_difference`.
    """
    import numpy as np
    from scipy.stats import permutation_test

    unequal = [difference for difference in _differences(one, other) if difference]
    total = math.fsum(unequal)
    if total == 0.0 or len(unequal) == 1:
        return 1.0  # every pattern of signs is as extreme
    tested = permutation_test(
        (np.array(sorted(math.copysign(1.0, total) * difference for difference in unequal)),),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, DRAWS_IN_MEMORY // len(unequal)),
        rng=np.random.default_rng(seed),
    )
    return float(tested.pvalue)


def require_pairs(one: Sequence[object], other: Sequence[object]) -> None:
    """Raise `InputError` for sequences of unequal length or without values."""
    if len(one) != len(other):
        raise InputError(
            f"Values must come in pairs, but there are {len(one)!r} and {len(other)!r}; leave out unpaired ones."
        )
    if len(one) == 0:
        raise InputError("There are no pairs to compare; omit the figure if nothing was answered.")


def _differences(one: Sequence[float], other: Sequence[float]) -> list[float]:
    require_pairs(one, other)
    return [second - first for first, second in zip(finite(one), finite(other), strict=True)]


def finite(values: Sequence[float]) -> list[float]:
    """The values as floats. Raises `InputError` if there are none, and for one that is not finite."""
    if len(values) == 0:
        raise InputError("There are no values to summarise; omit the figure if nothing was answered.")
    for value in values:
        if not math.isfinite(value):
            raise InputError(f"Every value must be a finite number, but one is {value!r}.")
    return [float(value) for value in values]


@dataclass(frozen=True, kw_only=True)
class Score:
    """Exact match, F1, precision and recall, each in 0..1."""

    em: float
    f1: float
    precision: float
    recall: float


class AnswerScore(Score):
    """Scores of a short answer, by tokens."""


def normalize_answer(text: str) -> str:
    """Lower-case, drop ASCII punctuation, then the articles a, an, the; single spaces between words."""
    bare = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def score_answer(prediction: str, golds: Sequence[str]) -> AnswerScore:
    """Score a prediction against the gold answer and its aliases.

    All four figures are for one gold: the one with the best (em, f1), or the first of equals. The 2Wiki
    script takes the maximum of each figure by itself; EM and F1 agree with it, precision and recall
    can be lower here. As in the official script, two texts that normalise to nothing match exactly
    (EM 1) and share no token (F1 0).

    Raises `InputError` without a gold, and for a bare string instead of a list.
    """
    if isinstance(golds, str) or not golds:
        raise InputError(f"Give a list of at least one gold answer, not {golds!r}.")
    return max((_score_one(prediction, gold) for gold in golds), key=lambda score: (score.em, score.f1))


def contains_answer(prediction: str, golds: Sequence[str]) -> bool:
    """Whether the prediction contains a gold answer, or begins with it if that is yes or no, whatever else it says.

    Words are normalised as for `score_answer`. It counts right answers that are not as short as the gold answer.

    >>> contains_answer("Yes, both films are French.", ["yes"]), contains_answer("He was born in Oslo.", ["Oslo"])
    (True, True)
    """
    said = f" {normalize_answer(prediction)} "
    wanted = [normalize_answer(gold) for gold in golds]
    return any(
        said.startswith(f" {gold} ") if gold in {"yes", "no"} else f" {gold} " in said for gold in wanted if gold
    )


def _score_one(prediction: str, gold: str) -> AnswerScore:
    said, meant = normalize_answer(prediction), normalize_answer(gold)
    em = float(said == meant)
    words, gold_words = Counter(said.split()), Counter(meant.split())
    shared = (words & gold_words).total()
    if not shared or (said != meant and not _VERDICTS.isdisjoint((said, meant))):
        return AnswerScore(em=em, f1=0.0, precision=0.0, recall=0.0)
    precision, recall = shared / words.total(), shared / gold_words.total()
    return AnswerScore(em=em, f1=harmonic_mean(precision, recall), precision=precision, recall=recall)


def harmonic_mean(precision: float, recall: float) -> float:
    """F1 of precision and recall, all in 0..1; 0 if both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
